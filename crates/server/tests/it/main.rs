//! The server as its clients meet it: over sockets, with a fake runtime below.

#![cfg(test)]

mod access;
mod browser;
mod create;
mod endpoints;
mod flow;
mod guest;
mod hostile;
mod lifecycle;
mod model;
mod once;
mod pools;
mod proxy;
mod reload;
mod removal;
mod report;
mod restart;
mod signed;
mod socket;
mod two;
mod volumes;
mod world;

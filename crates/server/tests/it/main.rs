//! The server as its clients meet it: over sockets, with a fake runtime below.

#![cfg(test)]

mod access;
mod create;
mod endpoints;
mod guest;
mod hostile;
mod lifecycle;
mod proxy;
mod removal;
mod restart;
mod socket;
mod world;

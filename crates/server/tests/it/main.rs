//! The server as its clients meet it: over sockets, with a fake runtime below.

#![cfg(test)]

mod access;
mod create;
mod guest;
mod hostile;
mod lifecycle;
mod proxy;
mod restart;
mod socket;
mod world;

//! The client against a server that the tests script themselves.

#![cfg(test)]

mod calls;
mod connect;
mod exec;
mod server;
mod streams;
mod terminal;
mod transfers;

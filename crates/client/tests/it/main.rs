//! The client against a server that the tests script themselves.

#![cfg(test)]

mod calls;
mod server;
mod streams;
mod transfers;

//! The real program between two network namespaces: a sandbox's, in which every address leads to
//! its doors, and an internet's, in which every public address is one of its own.

#![cfg(test)]

mod api;
mod asks;
mod dns;
mod ends;
mod events;
mod http;
mod limits;
mod load;
mod names;
mod peers;
mod place;
mod requests;
mod resolver;
mod site;
mod switches;
mod tcp;
mod vault;
mod world;

//! Malformed and hostile requests over TCP and the Unix socket, against the program and real
//! sandboxes: each gets a status and a code that say whose fault it was, and the server goes on.

mod access;
mod bare;
mod framing;
mod raw;
mod removal;
mod requests;
mod streams;
mod uploads;

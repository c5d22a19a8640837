//! Tests about the code base itself: what depends on what, and what a file may look like.

// Helpers of tests may unwrap as tests may; the lints ask for this attribute to see it.
#![cfg(test)]

mod arrows;
mod docs;
mod fault;
mod names;
mod shape;
mod tidy;
mod tree;
mod words;

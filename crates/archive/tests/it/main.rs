//! Trees on their way through an archive, and archives of other programs.

#![cfg(test)]

mod round_trip;

//! What tests of several crates share, and (in `tests/it`) the tests about the code base itself.
//!
//! Never a normal dependency: the arrows test refuses it.

pub mod fuzz;
pub mod guests;
pub mod inputs;
pub mod leftovers;
pub mod seed;

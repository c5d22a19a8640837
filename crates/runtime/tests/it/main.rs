//! Tests of runtimes and images against real disks and processes.

#![cfg(test)]

mod contract;
mod image;
mod native;

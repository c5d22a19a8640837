//! The server as its clients meet it: over sockets, with a fake runtime below.

#![cfg(test)]

mod access;
mod approvals;
mod audit;
mod beside;
mod browser;
mod cases;
mod codes;
mod collector;
mod create;
mod diagnostics;
mod endpoints;
mod flow;
mod guest;
mod hostile;
mod keys;
mod layers;
mod lifecycle;
mod logs;
mod metrics;
mod model;
mod once;
mod outbound;
mod pauses;
mod pools;
mod proxy;
mod quotas;
mod reload;
mod removal;
mod report;
mod restart;
mod rights;
mod sealing;
mod secure;
mod signed;
mod snapshots;
mod socket;
mod states;
mod tenancy;
mod tenants;
mod traces;
mod two;
mod volumes;
mod watching;
mod world;

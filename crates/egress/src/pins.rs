//! Pure. Which names our own answers have given to which addresses, for one sandbox.
//!
//! A connection that says a name is believed only where the name was answered with the address it
//! goes to. Programs keep addresses longer than they should, so a pin outlives its answer a little.

use core::net::IpAddr;
use std::collections::{BTreeMap, HashMap};

use crate::address::plain;
use crate::name::Name;

/// Most pins of a sandbox; the oldest goes when there are more.
pub const PINS_MAX: usize = 4096;
/// Most bytes of names in the pins of a sandbox.
pub const PIN_BYTES_MAX: usize = 256 * 1024;
/// Most names of one address, so that one connection costs little to judge.
pub const NAMES_PER_ADDRESS_MAX: usize = 64;
/// Shortest time to live that is believed, in seconds.
pub const TTL_S_MIN: u32 = 60;
/// Longest time to live that is believed, in seconds.
pub const TTL_S_MAX: u32 = 24 * 60 * 60;
/// How much longer a pin lives than its answer, in milliseconds.
pub const GRACE_MS: u64 = 120_000;

/// Names by the addresses that they were answered with.
#[derive(Debug, Default)]
pub struct Pins {
    by_address: HashMap<IpAddr, Vec<Pin>>,
    /// In the order in which they were last answered.
    order: BTreeMap<u64, (IpAddr, Name)>,
    next: u64,
    name_bytes: usize,
}

#[derive(Debug)]
struct Pin {
    name: Name,
    turn: u64,
    until_ms: u64,
}

impl Pins {
    /// No pins.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that a name was answered with an address, for some seconds from now on. Time is in
    /// milliseconds of any clock that does not go back.
    pub fn insert(&mut self, name: &Name, address: IpAddr, ttl_s: u32, now_ms: u64) {
        let address = plain(address);
        let life_ms = u64::from(ttl_s.clamp(TTL_S_MIN, TTL_S_MAX)) * 1000 + GRACE_MS;
        let mut until_ms = now_ms.saturating_add(life_ms);
        let before = self.find(address, name).map(|pin| (pin.turn, pin.until_ms));
        if let Some((turn, until_before_ms)) = before {
            // A shorter answer takes nothing back that a longer one promised.
            until_ms = until_ms.max(until_before_ms);
            self.remove(turn);
        }
        let names = self.by_address.get(&address);
        let oldest = names.filter(|it| it.len() >= NAMES_PER_ADDRESS_MAX);
        let oldest = oldest.and_then(|it| it.iter().map(|pin| pin.turn).min());
        if let Some(turn) = oldest {
            self.remove(turn);
        }
        let turn = self.next;
        self.next += 1;
        self.name_bytes += name.as_str().len();
        self.order.insert(turn, (address, name.clone()));
        self.by_address.entry(address).or_default().push(Pin {
            name: name.clone(),
            turn,
            until_ms,
        });
        while self.order.len() > PINS_MAX || self.name_bytes > PIN_BYTES_MAX {
            let Some(turn) = self.order.keys().next().copied() else {
                return;
            };
            self.remove(turn);
        }
    }

    /// The names that an address stands for now.
    #[must_use]
    pub fn names_of(&self, address: IpAddr, now_ms: u64) -> Vec<Name> {
        let pins = self.by_address.get(&plain(address)).into_iter().flatten();
        let living = pins.filter(|pin| now_ms < pin.until_ms);
        living.map(|pin| pin.name.clone()).collect()
    }

    /// Lets go of what has run out.
    pub fn expire(&mut self, now_ms: u64) {
        let pins = self.by_address.values().flatten();
        let ended = pins.filter(|pin| pin.until_ms <= now_ms);
        let turns: Vec<u64> = ended.map(|pin| pin.turn).collect();
        for turn in turns {
            self.remove(turn);
        }
    }

    /// How many there are, run out or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    fn find(&self, address: IpAddr, name: &Name) -> Option<&Pin> {
        let pins = self.by_address.get(&address)?;
        pins.iter().find(|pin| pin.name == *name)
    }

    fn remove(&mut self, turn: u64) {
        let Some((address, name)) = self.order.remove(&turn) else {
            return;
        };
        self.name_bytes -= name.as_str().len();
        if let Some(pins) = self.by_address.get_mut(&address) {
            pins.retain(|pin| pin.turn != turn);
            if pins.is_empty() {
                self.by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

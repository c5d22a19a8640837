//! Spares: how many there are to be, and their making.

use std::os::fd::AsFd;

use super::create::Job;
use super::slot::Slot;
use super::{Launcher, token, watch};
use crate::blank::{self, Net};
use crate::faults::at;
use crate::ids::Map;
use crate::mounts;
use crate::spec::Network;

/// Spares that failed in a row before the launcher stops making more until one is asked for.
pub(super) const FAILURES_MAX: u32 = 3;

impl Launcher {
    pub(super) fn spares(&self) -> usize {
        self.slots.values().filter(|slot| slot.is_spare()).count()
    }

    pub(super) fn wants_spare(&self) -> bool {
        self.failures < FAILURES_MAX && self.spares() < self.options.blanks
    }

    /// Makes one spare if one is missing.
    pub(super) fn refill(&mut self) {
        if self.wants_spare() {
            self.make_blank(Network::Own, None);
        }
    }

    /// Makes a spare, or the process for one job that no spare fits.
    pub(super) fn make_blank(&mut self, network: Network, job: Option<Box<Job>>) {
        self.next_slot = self.next_slot.wrapping_add(1);
        let number = self.next_slot;
        let map = Map::of_slot(self.ids, number);
        let has_way_out = self.egress.is_ok();
        let net = Net {
            network,
            has_way_out,
        };
        let made = self.groups.create(&number.to_string()).and_then(|group| {
            let devices = mounts::copy(self.devices.as_fd())?;
            blank::make(group, &map, net, &devices, &self.program)
        });
        let made = made.map_err(at("make a process for it")).and_then(|blank| {
            watch(
                &self.epoll,
                &blank.control,
                token::of(token::CONTROL, number),
            )?;
            watch(&self.epoll, &blank.pidfd, token::of(token::PROCESS, number))?;
            Ok(blank)
        });
        match made {
            Ok(blank) => {
                let mut slot = Slot::new(blank);
                match job {
                    Some(job) => slot.claim(job),
                    None if self.makes_disks() => {
                        self.order_disk(number, &mut slot, self.options.disk_bytes);
                    }
                    None => {}
                }
                self.slots.insert(number, slot);
                self.go_on(number);
            }
            Err(error) => {
                self.note_failure(&error.to_string());
                if let Some(job) = job {
                    self.refuse_start(&job, &error.to_string());
                }
            }
        }
    }
}

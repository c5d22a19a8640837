//! How often an address may fail to show a key before it is told to wait. Whoever has the key is
//! not asked here, and who comes over the Unix socket has no address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use barchan_daemon::clock::Clock;
use barchan_wire::lifecycle::code;

use super::Peer;
use super::errors::Refusal;

/// Most failures of one address in a second that are told their reason.
const FAILURES_MAX: u32 = 50;
/// Most addresses that are counted in a second; further ones wait for the next.
const ADDRESSES_MAX: usize = 4096;
/// How long is counted.
const WINDOW: Duration = Duration::from_secs(1);

/// Counts failures. What is kept is bounded, and all of it is forgotten every second.
#[derive(Debug, Default)]
pub(crate) struct Strangers(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    began: Duration,
    failures: HashMap<IpAddr, u32>,
}

impl Strangers {
    /// What to answer to a peer that was refused for its key or token.
    pub(super) fn answer(&self, peer: &Peer, clock: &Clock, refusal: Refusal) -> Refusal {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match peer.ip {
            Some(ip) => {
                let told = window.count(network(ip), clock.now().uptime);
                if told == Told::Reason {
                    return refusal;
                }
                let message = "too many requests without the right key or token came from this \
                               address: wait a second, and send the right one";
                let refusal = Refusal::new(429, code::TOO_MANY_FAILURES, message).retry_after(1);
                match told {
                    Told::Again => refusal.repeated(),
                    _ => refusal,
                }
            }
            None => refusal,
        }
    }
}

/// What somebody is told who failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Reason,
    /// To wait, for the first time in a window.
    Wait,
    /// To wait, and no log says so again.
    Again,
}

impl Window {
    /// Counts one failure more.
    fn count(&mut self, network: IpAddr, now: Duration) -> Told {
        if now.saturating_sub(self.began) >= WINDOW {
            self.began = now;
            self.failures.clear();
        }
        if self.failures.len() >= ADDRESSES_MAX && !self.failures.contains_key(&network) {
            return Told::Again;
        }
        let failures = self.failures.entry(network).or_default();
        *failures = failures.saturating_add(1);
        match *failures {
            0..=FAILURES_MAX => Told::Reason,
            failures if failures == FAILURES_MAX + 1 => Told::Wait,
            _ => Told::Again,
        }
    }
}

/// What one caller can take an address from: of IPv6 whoever has one has 2^64.
fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many failures of an address are told their reason.
    fn told(window: &mut Window, address: &str, failures: u32, at_ms: u64) -> u32 {
        let network = network(address.parse().unwrap());
        let now = Duration::from_millis(at_ms);
        let told = (0..failures).filter(|_| window.count(network, now) == Told::Reason);
        told.count().try_into().unwrap()
    }

    #[test]
    fn each_network_fails_so_often_in_a_second() {
        let mut window = Window::default();
        for (address, failures, at_ms, expected) in [
            ("192.0.2.1", FAILURES_MAX, 10_000, FAILURES_MAX),
            ("192.0.2.1", 1, 10_999, 0),
            ("::ffff:192.0.2.1", 1, 10_999, 0),
            ("192.0.2.2", 1, 10_999, 1),
            ("2001:db8::1", FAILURES_MAX, 10_999, FAILURES_MAX),
            ("2001:db8::ffff:1", 1, 10_999, 0),
            ("2001:db8:0:1::1", 1, 10_999, 1),
            ("192.0.2.1", FAILURES_MAX + 5, 11_000, FAILURES_MAX),
        ] {
            let found = told(&mut window, address, failures, at_ms);
            assert_eq!(found, expected, "{address} at {at_ms}");
        }
    }

    #[test]
    fn what_is_counted_is_bounded() {
        let mut window = Window::default();
        let addresses = 0..u32::try_from(ADDRESSES_MAX).unwrap() + 1;
        for number in addresses.clone() {
            let address = std::net::Ipv4Addr::from_bits(number).to_string();
            let is_last = number + 1 == addresses.end;
            let expected = u32::from(!is_last);
            assert_eq!(told(&mut window, &address, 1, 5_000), expected, "{address}");
        }
        assert_eq!(
            told(&mut window, "0.0.0.0", 1, 5_000),
            1,
            "a counted one goes on"
        );
        assert_eq!(window.failures.len(), ADDRESSES_MAX);
        assert_eq!(
            told(&mut window, "192.0.2.1", 1, 6_000),
            1,
            "the next second"
        );
    }
}

//! Time of day. The only place of this program that asks for it; waiting is tokio's.

use barchan_wire::execd::moment;
use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// Now.
pub(crate) fn now() -> Timestamp {
    let time = clock_gettime(ClockId::Realtime);
    moment::from_unix(time.tv_sec, time.tv_nsec as u32)
}

/// Now, in Unix milliseconds.
pub(crate) fn unix_ms() -> u64 {
    now().as_millisecond().unsigned_abs()
}

/// Now in the ticks that /proc counts since boot.
pub(crate) fn boot_ticks() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let per_second = rustix::param::clock_ticks_per_second();
    time.tv_sec as u64 * per_second + time.tv_nsec as u64 * per_second / 1_000_000_000
}

/// A clock that only ever goes forward, in milliseconds, for code that runs on threads.
pub(crate) fn monotonic_ms() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

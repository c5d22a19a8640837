//! Time: one clock for this process and the programs that it starts.

use std::time::Duration;

use barchan_daemon::clock::Clock;

/// Time since the machine started.
pub(crate) fn now() -> Duration {
    Clock::system().now().uptime
}

/// Nanoseconds of the calendar's clock, which every process of the machine reads alike, whatever
/// its namespaces.
pub(crate) fn wall_ns() -> i128 {
    Clock::system().now().wall.as_nanosecond()
}

/// Milliseconds since a moment of [`now`].
pub(crate) fn ms_since(start: Duration) -> f64 {
    now().saturating_sub(start).as_secs_f64() * 1e3
}

/// Sleeps until a moment of [`now`].
pub(crate) fn sleep_until(moment: Duration) {
    if let Some(left) = moment.checked_sub(now()) {
        std::thread::sleep(left);
    }
}

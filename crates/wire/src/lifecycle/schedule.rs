//! Pure. When a periodic hook is due: cron lines of five fields, in UTC, and a few short forms.

use jiff::civil::{Date, DateTime, time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan};

/// How far ahead a moment is looked for, in days: February 29 comes within eight years, also over a
/// century that has none.
const DAYS_MAX: i64 = 366 * 8 + 3;
/// Longest interval of `@every`, in seconds: a year.
const EVERY_S_MAX: u64 = 366 * 24 * 3600;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// When something is due again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schedule {
    /// After so many seconds, counted from the end of the time before.
    Every(u64),
    /// In every minute that fits.
    Cron(Cron),
}

/// The minutes that fit, as sets of numbers: bit n stands for n.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether one of day and weekday is enough: both are restricted, as cron has it.
    any_day: bool,
}

/// Why a text is no schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no schedule: {why}")]
pub struct BadSchedule {
    text: String,
    why: &'static str,
}

/// The field's numbers, its names from the least on, and what it is called.
struct Field {
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

impl Schedule {
    /// Reads `minute hour day month weekday`, `@hourly` and the like, or `@every 90s`.
    ///
    /// # Errors
    /// When it is none of these, or never comes.
    pub fn parse(text: &str) -> Result<Self, BadSchedule> {
        let bad = |why| BadSchedule {
            text: text.chars().take(64).collect(),
            why,
        };
        let trimmed = text.trim();
        if let Some(interval) = trimmed.strip_prefix("@every ") {
            let seconds = interval_s(interval.trim())
                .ok_or_else(|| bad("after @every comes a whole number with s, m or h"))?;
            return match seconds {
                1..=EVERY_S_MAX => Ok(Self::Every(seconds)),
                _ => Err(bad("@every takes one second to one year")),
            };
        }
        let line = match trimmed {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            line => line,
        };
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields.as_slice() else {
            return Err(bad("it has five fields: minute hour day month weekday"));
        };
        let read = |text: &str, least, most, names| {
            let field = Field { least, most, names };
            field
                .read(text)
                .ok_or_else(|| bad("a field has a number, name, range or step that it cannot have"))
        };
        let weekdays = read(weekday, 0, 7, &DAYS)?;
        let cron = Cron {
            minutes: read(minute, 0, 59, &[])?,
            hours: read(hour, 0, 23, &[])?,
            days: read(day, 1, 31, &[])?,
            months: read(month, 1, 12, &MONTHS)?,
            // Seven is Sunday as well.
            weekdays: (weekdays | (weekdays >> 7)) & 0x7f,
            any_day: !day.starts_with('*') && !weekday.starts_with('*'),
        };
        // The longest wait there can be starts right after a February 29 before a skipped one.
        match cron.next_after(Timestamp::UNIX_EPOCH) {
            Some(_) => Ok(Self::Cron(cron)),
            None => Err(bad("that day never comes")),
        }
    }

    /// When it is due next; `None` at the end of all dates.
    #[must_use]
    pub fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(seconds) => {
                let span = Span::new()
                    .try_seconds(i64::try_from(*seconds).ok()?)
                    .ok()?;
                now.checked_add(span).ok()
            }
            Self::Cron(cron) => cron.next_after(now),
        }
    }
}

impl Cron {
    fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        let start = now.to_zoned(TimeZone::UTC).datetime();
        let mut date = start.date();
        for _ in 0..DAYS_MAX {
            if self.fits_day(date) {
                // Of the first day only what comes after this minute.
                let from = if date == start.date() {
                    u32::from(start.hour().unsigned_abs()) * 60
                        + u32::from(start.minute().unsigned_abs())
                        + 1
                } else {
                    0
                };
                if let Some(found) = self.in_day(date, from) {
                    return found.to_zoned(TimeZone::UTC).ok().map(|at| at.timestamp());
                }
            }
            date = date.checked_add(1.day()).ok()?;
        }
        None
    }

    fn fits_day(&self, date: Date) -> bool {
        let has = |set: u64, number: i8| set & (1 << number) != 0;
        let by_day = has(self.days, date.day());
        let by_weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        let fits = if self.any_day {
            by_day || by_weekday
        } else {
            by_day && by_weekday
        };
        fits && has(self.months, date.month())
    }

    /// The first minute of a day that fits, from a minute on.
    fn in_day(&self, date: Date, from: u32) -> Option<DateTime> {
        let fits = |minute: &u32| {
            self.hours & (1 << (minute / 60)) != 0 && self.minutes & (1 << (minute % 60)) != 0
        };
        let minute = (from..24 * 60).find(fits)?;
        let (hour, minute) = (
            i8::try_from(minute / 60).ok()?,
            i8::try_from(minute % 60).ok()?,
        );
        Some(date.to_datetime(time(hour, minute, 0, 0)))
    }
}

impl Field {
    /// The set that a field stands for.
    fn read(&self, text: &str) -> Option<u64> {
        text.split(',')
            .map(|part| self.part(part))
            .try_fold(0, |all, part| Some(all | part?))
    }

    fn part(&self, text: &str) -> Option<u64> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => (range, number(step).filter(|step| *step > 0)?),
            None => (text, 1),
        };
        let has_step = text.contains('/');
        let (first, last) = match (range, range.split_once('-')) {
            ("*", _) => (self.least, self.most),
            (_, Some((first, last))) => (self.number(first)?, self.number(last)?),
            // `5/15` is every fifteenth from five on.
            (one, None) => {
                let one = self.number(one)?;
                (one, if has_step { self.most } else { one })
            }
        };
        let mut set = 0;
        let mut at = first;
        if first > last {
            return None;
        }
        while at <= last {
            set |= 1 << at;
            at = at.checked_add(step)?;
        }
        Some(set)
    }

    fn number(&self, text: &str) -> Option<u32> {
        let lower = text.to_ascii_lowercase();
        let named = self.names.iter().position(|name| *name == lower);
        let number = match named {
            Some(place) => self.least + u32::try_from(place).ok()?,
            None => number(text)?,
        };
        (self.least..=self.most).contains(&number).then_some(number)
    }
}

/// A number in plain digits.
fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// `90s`, `5m`, `2h`.
fn interval_s(text: &str) -> Option<u64> {
    let unit = text.chars().next_back()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        _ => return None,
    };
    let count = number(text.strip_suffix(unit)?)?;
    u64::from(count).checked_mul(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn next(schedule: &str, now: &str) -> String {
        let schedule = Schedule::parse(schedule).unwrap();
        let now: Timestamp = now.parse().unwrap();
        schedule.next_after(now).unwrap().to_string()
    }

    #[test]
    fn schedules_come_when_cron_says() {
        for (schedule, now, expected) in [
            ("* * * * *", "2030-01-01T00:00:00Z", "2030-01-01T00:01:00Z"),
            (
                "* * * * *",
                "2030-01-01T00:00:59.9Z",
                "2030-01-01T00:01:00Z",
            ),
            (
                "*/15 * * * *",
                "2030-01-01T00:15:00Z",
                "2030-01-01T00:30:00Z",
            ),
            (
                "5/20 * * * *",
                "2030-01-01T00:26:00Z",
                "2030-01-01T00:45:00Z",
            ),
            (
                "0 9-17/4 * * MON-FRI",
                "2030-01-04T17:00:00Z",
                "2030-01-07T09:00:00Z",
            ),
            ("30 6 * * 7", "2030-01-01T00:00:00Z", "2030-01-06T06:30:00Z"),
            ("0 0 29 2 *", "2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"),
            (
                "0 0 29 feb *",
                "2096-02-29T00:00:00Z",
                "2104-02-29T00:00:00Z",
            ),
            ("0 0 31 * *", "2030-01-31T00:00:00Z", "2030-03-31T00:00:00Z"),
            (
                "0 0 13 * fri",
                "2030-01-01T00:00:00Z",
                "2030-01-04T00:00:00Z",
            ),
            ("0 0 13 * *", "2030-01-01T00:00:00Z", "2030-01-13T00:00:00Z"),
            (
                "59 23 31 12 *",
                "2030-12-31T23:59:00Z",
                "2031-12-31T23:59:00Z",
            ),
            (
                "1,2,40-42 3 * * *",
                "2030-01-01T03:02:00Z",
                "2030-01-01T03:40:00Z",
            ),
            ("@hourly", "2030-01-01T00:00:00Z", "2030-01-01T01:00:00Z"),
            ("@weekly", "2030-01-01T00:00:00Z", "2030-01-06T00:00:00Z"),
            ("@every 90s", "2030-01-01T00:00:00Z", "2030-01-01T00:01:30Z"),
            ("@every 2h", "2030-01-01T00:00:00Z", "2030-01-01T02:00:00Z"),
        ] {
            assert_eq!(next(schedule, now), expected, "{schedule} after {now}");
        }
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for text in [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 8",
            "5-1 * * * *",
            "*/0 * * * *",
            "-1 * * * *",
            "1- * * * *",
            "1,,2 * * * *",
            "a * * * *",
            "0 0 31 2 *",
            "0 0 30 feb *",
            "@reboot",
            "@every",
            "@every 5",
            "@every 0s",
            "@every -5s",
            "@every 99999h",
            "*/4294967295 99 * * *",
        ] {
            assert!(Schedule::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        /// Whatever is a schedule comes after now, and nothing makes the reader fail otherwise.
        #[test]
        fn schedules_come_later(text in "[0-9*,/@a-z -]{0,24}", second in 0i64..4_000_000_000) {
            if let Ok(schedule) = Schedule::parse(&text) {
                let now = Timestamp::from_second(second).unwrap();
                let next = schedule.next_after(now).unwrap();
                prop_assert!(next > now);
            }
        }

        /// No fitting minute lies between now and the one that is told.
        #[test]
        fn the_next_minute_is_the_first(
            minute in 0u32..60, hour in 0u32..24, weekday in 0u32..8, second in 0i64..2_000_000_000,
        ) {
            let line = format!("{minute} {hour} * * {weekday}");
            let schedule = Schedule::parse(&line).unwrap();
            let now = Timestamp::from_second(second).unwrap();
            let next = schedule.next_after(now).unwrap();
            prop_assert!(next.duration_since(now) <= jiff::SignedDuration::from_hours(24 * 7));
            let at = next.to_zoned(TimeZone::UTC);
            prop_assert_eq!(u32::from(at.minute().unsigned_abs()), minute);
            prop_assert_eq!(u32::from(at.hour().unsigned_abs()), hour);
            let day = at.weekday().to_sunday_zero_offset();
            prop_assert_eq!(u32::from(day.unsigned_abs()), weekday % 7);
        }
    }
}

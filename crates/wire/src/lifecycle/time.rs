//! Pure. Moments on the wire: RFC 3339 in UTC with `Z`, microseconds when there are any.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Numbers above this count milliseconds, below it seconds (the year 2603 in seconds).
const SECONDS_MAX: f64 = 2e10;

/// A moment with microseconds, the finest that this API can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(Timestamp);

impl Time {
    /// The moment, cut to microseconds so that it survives being written and read.
    #[must_use]
    pub fn new(moment: Timestamp) -> Self {
        Self::from_micros(moment.as_microsecond()).unwrap_or(Self(moment))
    }

    /// From microseconds since 1970; `None` outside the years -9999 to 9999.
    #[must_use]
    pub fn from_micros(micros: i64) -> Option<Self> {
        Timestamp::from_microsecond(micros).ok().map(Self)
    }

    /// Microseconds since 1970.
    #[must_use]
    pub fn as_micros(self) -> i64 {
        self.0.as_microsecond()
    }

    /// This many seconds later; `None` when no calendar reaches that far.
    #[must_use]
    pub fn plus_seconds(self, seconds: u64) -> Option<Self> {
        let micros = i64::try_from(seconds).ok()?.checked_mul(1_000_000)?;
        Self::from_micros(self.as_micros().checked_add(micros)?)
    }

    /// Reads what callers send as a moment: RFC 3339 in either case, a blank for the `T`, no zone
    /// (UTC), a date alone, or Unix time as a number or as text.
    #[must_use]
    pub fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Self::from_unix(number.as_f64()?),
            Value::String(text) => Self::read_text(text.trim()),
            _ => None,
        }
    }

    fn read_text(text: &str) -> Option<Self> {
        if let Ok(seconds) = text.parse::<f64>() {
            return Self::from_unix(seconds);
        }
        let upper = text.to_ascii_uppercase();
        if let Ok(moment) = upper.parse::<Timestamp>() {
            return Some(Self::new(moment));
        }
        let naive = upper.parse::<DateTime>().ok();
        let naive = naive.or_else(|| upper.parse::<Date>().ok().map(DateTime::from))?;
        Offset::UTC.to_timestamp(naive).ok().map(Self::new)
    }

    fn from_unix(number: f64) -> Option<Self> {
        if !number.is_finite() {
            return None;
        }
        let seconds = if number.abs() > SECONDS_MAX {
            number / 1e3
        } else {
            number
        };
        let micros = (seconds * 1e6).round();
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the range is checked first"
        )]
        (micros.abs() < 9e17)
            .then(|| Self::from_micros(micros as i64))
            .flatten()
    }
}

impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = Offset::UTC.to_datetime(self.0);
        let (year, month, day) = (at.year(), at.month(), at.day());
        let (hour, minute, second) = (at.hour(), at.minute(), at.second());
        write!(
            out,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
        )?;
        match at.subsec_nanosecond() / 1000 {
            0 => out.write_str("Z"),
            micros => write!(out, ".{micros:06}Z"),
        }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        Self::read(&value).ok_or_else(|| D::Error::custom("expected a moment as RFC 3339"))
    }
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn many_spellings_are_read_and_one_is_written() {
        for (input, expected) in [
            (json!("2030-01-02T03:04:05Z"), Some("2030-01-02T03:04:05Z")),
            (json!("2030-01-02t03:04:05z"), Some("2030-01-02T03:04:05Z")),
            (json!("2030-01-02 03:04:05"), Some("2030-01-02T03:04:05Z")),
            (
                json!("2030-01-02T03:04:05+02:00"),
                Some("2030-01-02T01:04:05Z"),
            ),
            (
                json!("2030-01-02T03:04:05.5Z"),
                Some("2030-01-02T03:04:05.500000Z"),
            ),
            (
                json!("2030-01-02T03:04:05.123456789Z"),
                Some("2030-01-02T03:04:05.123456Z"),
            ),
            (json!("2030-01-02"), Some("2030-01-02T00:00:00Z")),
            (json!(1_900_000_000), Some("2030-03-17T17:46:40Z")),
            (json!("1900000000"), Some("2030-03-17T17:46:40Z")),
            (json!(1_900_000_000_000_u64), Some("2030-03-17T17:46:40Z")),
            (json!(1e300), None),
            (json!("nan"), None),
            (json!("tomorrow"), None),
            (json!("2030-13-02"), None),
            (json!(true), None),
            (json!(null), None),
        ] {
            let read = Time::read(&input).map(|time| time.to_string());
            assert_eq!(read.as_deref(), expected, "{input}");
        }
    }

    #[test]
    fn no_deadline_lies_beyond_the_calendar() {
        let start = Time::read(&json!("2030-01-01")).unwrap();
        assert_eq!(
            start.plus_seconds(60).unwrap().to_string(),
            "2030-01-01T00:01:00Z"
        );
        for absurd in [1_000_000_000_000_000_000, u64::MAX, 252_000_000_000] {
            assert_eq!(start.plus_seconds(absurd), None, "{absurd}");
        }
    }
}

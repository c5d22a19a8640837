//! Pure. Moments on this wire: RFC 3339 in UTC, to the microsecond.

use jiff::Timestamp;

/// The moment of a Unix time; the epoch where that is beyond what can be written.
#[must_use]
pub fn from_unix(seconds: i64, nanoseconds: u32) -> Timestamp {
    let microsecond = (nanoseconds / 1000 * 1000) as i32;
    Timestamp::new(seconds, microsecond).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// For `#[serde(with)]` on a moment.
pub mod rfc3339 {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de};

    /// Writes the moment.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize<S: Serializer>(moment: &Timestamp, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(moment)
    }

    /// Reads a moment.
    ///
    /// # Errors
    /// When the text is no moment.
    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(input)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// For `#[serde(with)]` on a moment that may be absent.
pub mod rfc3339_option {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de};

    /// Writes the moment, or null.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize<S: Serializer>(moment: &Option<Timestamp>, out: S) -> Result<S::Ok, S::Error> {
        match moment {
            Some(moment) => super::rfc3339::serialize(moment, out),
            None => out.serialize_none(),
        }
    }

    /// Reads a moment or null.
    ///
    /// # Errors
    /// When the text is no moment.
    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Timestamp>, D::Error> {
        let text = Option::<String>::deserialize(input)?;
        let moment = text.map(|text| text.parse()).transpose();
        moment.map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_utc_to_the_microsecond() {
        for (seconds, nanoseconds, wanted) in [
            (0, 0, "1970-01-01T00:00:00Z"),
            (1_790_000_000, 123_456_789, "2026-09-21T14:13:20.123456Z"),
            (-1, 500_000_000, "1969-12-31T23:59:59.5Z"),
            (i64::MAX, 0, "1970-01-01T00:00:00Z"),
        ] {
            assert_eq!(from_unix(seconds, nanoseconds).to_string(), wanted);
        }
    }
}

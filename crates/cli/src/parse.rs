//! Pure. What people type: durations, pairs, places.

use std::path::PathBuf;
use std::time::Duration;

use barchan_wire::lifecycle::approval::ApprovalState;

/// How long a sandbox may live; `None` is for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lifetime(pub(crate) Option<Duration>);

/// One side of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A path on this machine; `-` is standard input or output.
    Local(PathBuf),
    /// A path in a sandbox.
    Sandbox {
        /// The sandbox as it was named.
        id: String,
        /// The path inside.
        path: String,
    },
}

/// A port of this machine that leads to one of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Forward {
    /// The port here; 0 is any that is free.
    pub(crate) local: u16,
    /// The port inside.
    pub(crate) port: u16,
}

/// Longest duration anybody may ask for: ten years.
const DURATION_S_MAX: u64 = 10 * 366 * 86_400;

/// Reads `30s`, `500ms`, `5m`, `1h`, `2d`, sums such as `1h30m`, and plain seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("`{text}` is no duration; write 30s, 500ms, 5m, 1h30m or 2d");
    if let Ok(seconds) = text.parse() {
        return within(Duration::from_secs(seconds)).ok_or_else(bad);
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
        let (number, tail) = rest.split_at(digits);
        let unit_end = tail
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let milliseconds: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(bad()),
        };
        let count: u64 = number.parse().map_err(|_| bad())?;
        let part = count.checked_mul(milliseconds).ok_or_else(bad)?;
        total = total
            .checked_add(Duration::from_millis(part))
            .ok_or_else(bad)?;
        rest = tail;
    }
    within(total).filter(|_| !text.is_empty()).ok_or_else(bad)
}

fn within(duration: Duration) -> Option<Duration> {
    (!duration.is_zero() && duration.as_secs() <= DURATION_S_MAX).then_some(duration)
}

/// Reads a duration, or `never`.
pub(crate) fn lifetime(text: &str) -> Result<Lifetime, String> {
    match text {
        "never" => Ok(Lifetime(None)),
        _ => duration(text).map(|it| Lifetime(Some(it))),
    }
}

/// Reads a state of approvals.
pub(crate) fn approval_state(text: &str) -> Result<ApprovalState, String> {
    let mut all = ApprovalState::ALL.into_iter();
    let found = all.find(|state| state.word().eq_ignore_ascii_case(text));
    found.ok_or_else(|| {
        let words = ApprovalState::ALL.map(ApprovalState::word).join(", ");
        format!("`{text}` is no state; write one of {words}")
    })
}

/// Reads `[LOCAL:]PORT`; without a local one it is the same.
pub(crate) fn forward(text: &str) -> Result<Forward, String> {
    let number = |text: &str| {
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_: &u16| is_plain)
    };
    let (local, port) = match text.split_once(':') {
        Some(("", port)) => (Some(0), number(port)),
        Some((local, port)) => (number(local), number(port)),
        None => (number(text), number(text)),
    };
    match (local, port) {
        (Some(local), Some(port)) if port > 0 => Ok(Forward { local, port }),
        _ => Err(format!(
            "`{text}` is no [LOCAL:]PORT; write 80, 8080:80, or 0:80 for any that is free here"
        )),
    }
}

/// Reads `KEY=VALUE`; the value may be empty and may hold `=`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is no KEY=VALUE")),
    }
}

/// Reads one side of a copy. A sandbox's begins with (part of) an id and a colon; a local path that
/// looks like one is written with `./` in front.
pub(crate) fn place(text: &str) -> Place {
    match text.split_once(':') {
        Some((id, path)) if is_id_like(id) => Place::Sandbox {
            id: id.to_owned(),
            path: path.to_owned(),
        },
        _ => Place::Local(PathBuf::from(text)),
    }
}

/// Whether a text may be an id or the beginning of one.
pub(crate) fn is_id_like(text: &str) -> bool {
    (1..=36).contains(&text.len())
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-'))
}

/// Where a file named `name` lands when it is copied to `path` in a sandbox.
pub(crate) fn landing(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        folder if folder.ends_with('/') => format!("{folder}{name}"),
        file => file.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_as_they_are_typed() {
        for (text, expected) in [
            ("80", Some((80, 80))),
            ("8080:80", Some((8080, 80))),
            ("0:80", Some((0, 80))),
            (":80", Some((0, 80))),
            ("65535:1", Some((65535, 1))),
            ("0", None),
            ("80:0", None),
            ("80:", None),
            (":", None),
            ("", None),
            ("65536", None),
            ("+80", None),
            ("a:80", None),
            ("127.0.0.1:80:80", None),
        ] {
            let read = forward(text).ok().map(|it| (it.local, it.port));
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn durations_are_read() {
        for (text, milliseconds) in [
            ("30s", Some(30_000)),
            ("45", Some(45_000)),
            ("500ms", Some(500)),
            ("1h30m", Some(5_400_000)),
            ("2d", Some(172_800_000)),
            ("", None),
            ("0", None),
            ("0s", None),
            ("-1s", None),
            ("1.5h", None),
            ("5 m", None),
            ("m", None),
            ("1w", None),
            ("4000d", None),
            ("99999999999999999999s", None),
            ("18446744073709551615d", None),
        ] {
            let expected = milliseconds.map(Duration::from_millis);
            assert_eq!(duration(text).ok(), expected, "{text}");
        }
        assert_eq!(lifetime("never"), Ok(Lifetime(None)));
    }

    #[test]
    fn pairs_are_read() {
        let pair_of = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));
        assert_eq!(pair("A=b=c"), pair_of("A", "b=c"));
        assert_eq!(pair("A="), pair_of("A", ""));
        assert!(pair("=b").is_err());
        assert!(pair("A").is_err());
    }

    #[test]
    fn places_are_told_apart() {
        let inside = |id: &str, path: &str| Place::Sandbox {
            id: id.into(),
            path: path.into(),
        };
        for (text, expected) in [
            ("0b0e7d5c:/tmp/a:b", inside("0b0e7d5c", "/tmp/a:b")),
            ("0b0e:", inside("0b0e", "")),
            ("./0b0e:/x", Place::Local("./0b0e:/x".into())),
            ("report.md", Place::Local("report.md".into())),
            ("C:/x", Place::Local("C:/x".into())),
            ("-", Place::Local("-".into())),
            (":/x", Place::Local(":/x".into())),
        ] {
            assert_eq!(place(text), expected, "{text}");
        }
    }

    #[test]
    fn a_folder_keeps_the_name() {
        assert_eq!(landing("/tmp/", "a"), "/tmp/a");
        assert_eq!(landing("/tmp/b", "a"), "/tmp/b");
        assert_eq!(landing("", "a"), "a");
    }
}

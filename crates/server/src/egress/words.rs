//! Pure. What is said of a connection that a sandbox wanted. Names in it are the sandbox's own
//! words.

use std::fmt::Write;

use barchan_wire::egress::{Connection, Protocol};

/// Longest name and longest rule in a sentence, in bytes. No name of the DNS is longer.
const WORD_BYTES_MAX: usize = 253;

/// What a connection or question was about, in one line.
// BOUNDARY: sandbox → host. Test: hostile_names_are_tamed
pub(crate) fn wanted(connection: &Connection) -> String {
    let mut text = match connection.protocol {
        Protocol::Dns => "the DNS for ".to_owned(),
        Protocol::Tcp => String::new(),
    };
    let name = connection.name.as_deref().map(tamed);
    let address = connection.address.as_deref().map(tamed);
    match (name, address) {
        (Some(name), Some(address)) if name != address => {
            // Writing to a text never fails.
            let _ = write!(text, "{name} ({address})");
        }
        (Some(one), _) | (None, Some(one)) => text.push_str(&one),
        (None, None) => text.push_str("something without a name"),
    }
    if let Some(port) = connection.port {
        let _ = write!(text, " on port {port}");
    }
    text
}

/// Why it was refused.
pub(crate) fn refused(connection: &Connection) -> String {
    let reason = tamed(&connection.reason);
    let rule = connection.rule.as_deref().map(tamed);
    match rule {
        Some(rule) => format!("{}: {reason}, by the rule `{rule}`", wanted(connection)),
        None => format!("{}: {reason}", wanted(connection)),
    }
}

/// How many more were refused than were told of.
pub(crate) fn rest_of(untold: u64) -> String {
    format!("{untold} more within a minute")
}

/// One short line without what a terminal would obey.
fn tamed(text: &str) -> String {
    let end = text.floor_char_boundary(WORD_BYTES_MAX);
    let shown = text.get(..end).unwrap_or_default();
    shown.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use barchan_wire::egress::Verdict;
    use barchan_wire::lifecycle::Time;

    use super::*;

    fn connection(name: Option<&str>, address: Option<&str>, port: Option<u16>) -> Connection {
        Connection {
            id: 1,
            protocol: if port.is_none() {
                Protocol::Dns
            } else {
                Protocol::Tcp
            },
            name: name.map(str::to_owned),
            address: address.map(str::to_owned),
            port,
            verdict: Verdict::Deny,
            reason: "no_rule".to_owned(),
            rule: None,
            opened_at: Time::from_micros(0).unwrap(),
            closed_at: None,
            sent_bytes: 0,
            received_bytes: 0,
            credentials: 0,
        }
    }

    #[test]
    fn connections_are_told_in_a_line() {
        for (name, address, port, expected) in [
            (
                Some("a.example"),
                Some("192.0.2.1"),
                Some(443),
                "a.example (192.0.2.1) on port 443: no_rule",
            ),
            (
                None,
                Some("192.0.2.1"),
                Some(22),
                "192.0.2.1 on port 22: no_rule",
            ),
            (
                Some("a.example"),
                None,
                None,
                "the DNS for a.example: no_rule",
            ),
        ] {
            assert_eq!(refused(&connection(name, address, port)), expected);
        }
    }

    #[test]
    fn hostile_names_are_tamed() {
        let long = "\u{1b}[2J\n".repeat(10_000);
        let told = refused(&connection(Some(&long), Some(&long), Some(1)));
        assert!(
            told.len() < 4096 && !told.contains(char::is_control),
            "{told}"
        );
    }
}

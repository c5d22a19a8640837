//! Which resolvers the host has.

use std::net::{IpAddr, SocketAddr};

/// Where they are listed.
const LIST: &str = "/etc/resolv.conf";
/// The port where none is named.
const PORT: u16 = 53;
/// Most that are taken; further ones are hardly ever asked.
pub(crate) const RESOLVERS_MAX: usize = 8;

/// Those of the host, the first first. They are asked from outside of sandboxes, so one that
/// listens on the host's loopback is as good as another.
pub(super) async fn of_host() -> Vec<String> {
    let listed = tokio::fs::read_to_string(LIST).await;
    let found = listed.as_deref().map(list).unwrap_or_default();
    if found.is_empty() {
        tracing::warn!(
            "{LIST} names no resolver that could be used, so sandboxes resolve no names: set \
             `egress.resolvers`"
        );
    }
    found
}

fn list(text: &str) -> Vec<String> {
    let named = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        words.next().filter(|word| *word == "nameserver")?;
        parse(words.next()?)
    });
    named.take(RESOLVERS_MAX).collect()
}

/// An `address` or `address:port` as `address:port`; `None` when it is neither.
pub(crate) fn parse(text: &str) -> Option<String> {
    let address: Option<IpAddr> = text.trim_matches(['[', ']']).parse().ok();
    let place = address.map(|address| SocketAddr::new(address, PORT));
    let place = place.or_else(|| text.parse().ok())?;
    (place.port() > 0).then(|| place.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_resolvers_are_read() {
        for (text, expected) in [
            ("", ""),
            ("nameserver 127.0.0.53\noptions edns0\n", "127.0.0.53:53"),
            (
                "# nameserver 1.1.1.1\n nameserver\t9.9.9.9 x\nnameserver ::1\n",
                "9.9.9.9:53 [::1]:53",
            ),
            ("nameserver fe80::1%eth0\nnameserver x\nnameserver\n", ""),
            ("nameservers 1.1.1.1\nsearch a.b\n", ""),
        ] {
            assert_eq!(list(text).join(" "), expected, "{text}");
        }
        assert_eq!(
            list(&"nameserver 1.1.1.1\n".repeat(100)).len(),
            RESOLVERS_MAX
        );
    }

    #[test]
    fn resolvers_have_a_port() {
        for (text, expected) in [
            ("1.1.1.1", Some("1.1.1.1:53")),
            ("1.1.1.1:5353", Some("1.1.1.1:5353")),
            ("::1", Some("[::1]:53")),
            ("[::1]:54", Some("[::1]:54")),
            ("1.1.1.1:0", None),
            ("resolver.example", None),
            ("", None),
        ] {
            assert_eq!(parse(text).as_deref(), expected, "{text}");
        }
    }
}

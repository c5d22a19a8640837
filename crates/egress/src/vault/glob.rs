//! Pure. Paths that a binding is about, where `*` stands for any text.

/// A path with stars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob(String);

impl Glob {
    /// Reads one: a text that begins with `/`, of characters that a path may have.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_fine = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'\\');
        (text.starts_with('/') && text.bytes().all(is_fine)).then(|| Self(text.to_owned()))
    }

    /// Whether it fits all paths.
    pub(super) fn is_any_path(&self) -> bool {
        self.0.trim_end_matches('*') == "/" && self.0.len() > 1
    }

    /// Whether a path fits: each piece between two stars stands in it, in order.
    pub(super) fn fits(&self, path: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else {
            return self.0 == path;
        };
        let Some(mut left) = path.strip_prefix(first) else {
            return false;
        };
        let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        for piece in middle.split('*') {
            let Some(at) = left.find(piece) else {
                return false;
            };
            left = left.get(at + piece.len()..).unwrap_or_default();
        }
        left.ends_with(last)
    }

    /// Whether a path may fit both. It errs towards yes where both have stars.
    pub(super) fn may_meet(&self, other: &Self) -> bool {
        match (self.0.contains('*'), other.0.contains('*')) {
            (false, false) => self == other,
            (false, true) => other.fits(&self.0),
            (true, false) => self.fits(&other.0),
            (true, true) => {
                let ((a, z), (b, y)) = (self.ends(), other.ends());
                (a.starts_with(b) || b.starts_with(a)) && (z.ends_with(y) || y.ends_with(z))
            }
        }
    }

    /// What stands before its first star and behind its last.
    fn ends(&self) -> (&str, &str) {
        let first = self.0.split('*').next().unwrap_or_default();
        let last = self.0.rsplit('*').next().unwrap_or_default();
        (first, last)
    }
}

/// Whether all servers read a path alike. One with dots as a part, with an encoded slash or dot,
/// or with an empty part may lead a server elsewhere than where it seems to.
pub(super) fn is_plain(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let doubtful = [
        "%2e", "%2f", "%5c", "%25", "%3b", "%3f", "%23", "%c0", "%c1", "%e0%80", "%0", "%1", "%7f",
        "\\", "//", ";",
    ];
    // Some servers take spaces off the end of a part.
    let is_dots = |part: &str| {
        let part = part.replace("%20", "");
        !part.is_empty() && part.bytes().all(|byte| byte == b'.')
    };
    !doubtful.iter().any(|it| lower.contains(it)) && !path.split('/').any(is_dots)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(text: &str) -> Glob {
        Glob::parse(text).unwrap()
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, path, expected) in [
            ("/", "/", true),
            ("/", "/a", false),
            ("/*", "/", true),
            ("/*", "/a/b", true),
            ("/v1/*", "/v1/a/b", true),
            ("/v1/*", "/v1", false),
            ("/v1/*", "/v2/v1/", false),
            ("/v1*", "/v1", true),
            ("/*/items", "/a/items", true),
            ("/*/items", "/a/items/1", false),
            ("/a*b*c", "/abc", true),
            ("/a*b*c", "/ac", false),
            ("/ab*ba", "/aba", false),
            ("/a**b", "/ab", true),
        ] {
            assert_eq!(glob(pattern).fits(path), expected, "{pattern} {path}");
        }
        for text in ["", "a", "*", "/a b", "/a?b", "/a#", "/ä"] {
            assert_eq!(Glob::parse(text), None, "{text}");
        }
        assert!(glob("/*").is_any_path() && glob("/**").is_any_path());
        assert!(!glob("/").is_any_path() && !glob("/*a").is_any_path());
    }

    #[test]
    fn what_may_fit_both_is_known() {
        for (one, other, expected) in [
            ("/a", "/a", true),
            ("/a", "/b", false),
            ("/v1/*", "/v1/a", true),
            ("/v1/*", "/v2/*", false),
            ("/v1/*", "/*", true),
            ("/v1/*", "/v1/a*", true),
            ("/*/a", "/*/b", false),
            ("/*/a", "/x/*", true),
        ] {
            assert_eq!(glob(one).may_meet(&glob(other)), expected, "{one} {other}");
            assert_eq!(glob(other).may_meet(&glob(one)), expected, "{other} {one}");
        }
    }

    #[test]
    fn a_path_that_servers_read_in_two_ways_is_not_plain() {
        for (path, expected) in [
            ("/v1/a.b/..c", true),
            ("/", true),
            ("/a/", true),
            ("/v1/../admin", false),
            ("/v1/.", false),
            ("/v1/%2E%2e/admin", false),
            ("/v1%2fadmin", false),
            ("/v1//admin", false),
            ("/v1/%252e", false),
            ("/v1/..;/admin", false),
            ("/v1/..%3b/admin", false),
            ("/v1/..%20/admin", false),
            ("/admin%3f/items", false),
            ("/v1/a%09", false),
            ("/v1/%c0%ae", false),
            ("/v1/a%20b", true),
            ("/v1\\..\\admin", false),
        ] {
            assert_eq!(is_plain(path), expected, "{path}");
        }
    }
}

//! Pure. Names in an archive: what they may be, and where links lead.

/// Deepest entry.
const DEPTH_MAX: usize = 128;
/// Longest name, in bytes: the kernel's limit of a path.
const NAME_BYTES_MAX: usize = 4096;

/// A name below the target directory, as its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name<'a>(Vec<&'a [u8]>);

impl<'a> Name<'a> {
    /// Takes a name apart.
    ///
    /// # Errors
    /// Why it is none that stays below.
    pub(crate) fn new(name: &'a [u8]) -> Result<Self, &'static str> {
        Self::within(name, DEPTH_MAX, NAME_BYTES_MAX)
    }

    /// The same, with other limits of depth and length.
    pub(crate) fn within(
        name: &'a [u8],
        depth_max: usize,
        bytes_max: usize,
    ) -> Result<Self, &'static str> {
        if name.starts_with(b"/") {
            return Err("its name begins at the root");
        }
        if name.contains(&0) {
            return Err("its name holds a NUL byte");
        }
        if name.len() > bytes_max {
            return Err("its name is too long");
        }
        let parts = name.split(|byte| *byte == b'/');
        let parts: Vec<&[u8]> = parts.filter(|it| !it.is_empty() && *it != b".").collect();
        if parts.iter().any(|part| *part == b"..") {
            return Err("its name leads upwards");
        }
        if parts.len() > depth_max {
            return Err("it lies too deep");
        }
        Ok(Self(parts))
    }

    /// The last part; `None` for the target itself.
    pub(crate) fn own(&self) -> Option<&'a [u8]> {
        self.0.last().copied()
    }

    /// The directories above, outermost first.
    pub(crate) fn above(&self) -> &[&'a [u8]] {
        self.0.split_last().map_or(&[], |(_, above)| above)
    }

    /// All parts.
    pub(crate) fn parts(&self) -> &[&'a [u8]] {
        &self.0
    }
}

/// Whether a link of this name may lead out of the target directory. Steps upwards are only counted
/// at the front, where no other link can change what they mean.
pub(super) fn leads_out(name: &Name<'_>, link: &[u8]) -> bool {
    if link.starts_with(b"/") || link.is_empty() {
        return true;
    }
    let parts = link.split(|byte| *byte == b'/');
    let mut parts = parts.filter(|it| !it.is_empty() && *it != b".").peekable();
    let mut up = 0;
    while parts.next_if(|it| *it == b"..").is_some() {
        up += 1;
    }
    up > name.above().len() || parts.any(|part| part == b"..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below() {
        let long = vec![b'a'; 5000];
        let deep = b"a/".repeat(200);
        for (name, parts) in [
            (&b"a"[..], Some(1)),
            (b"./a//b/./c", Some(3)),
            (b"a/", Some(1)),
            (b".", Some(0)),
            (b"", Some(0)),
            (b"...", Some(1)),
            (b"\xff", Some(1)),
            (b"/etc/passwd", None),
            (b"..", None),
            (b"a/../../b", None),
            (b"a/..", None),
            (b"a\0b", None),
            (&long, None),
            (&deep, None),
        ] {
            assert_eq!(Name::new(name).ok().map(|it| it.0.len()), parts, "{name:?}");
        }
    }

    #[test]
    fn links_that_may_lead_out_are_known() {
        for (name, link, out) in [
            ("a", "b", false),
            ("d/a", "../b", false),
            ("d/e/a", "../.././b", false),
            ("d/a", "e/./f", false),
            ("a", ".", false),
            ("a", "/b", true),
            ("a", "../b", true),
            ("d/a", "../../b", true),
            ("a", "d/../b", true),
            ("a", "", true),
        ] {
            let name = Name::new(name.as_bytes()).unwrap();
            assert_eq!(leads_out(&name, link.as_bytes()), out, "{name:?} {link}");
        }
    }
}

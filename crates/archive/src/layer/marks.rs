//! Pure. How layers tell what they hide, on the disk and in an archive.

/// What stands before the name that is gone.
pub(super) const GONE: &[u8] = b".wh.";
/// Says in a directory that nothing of it shows from below.
pub(super) const OPAQUE: &[u8] = b".wh..wh..opq";
/// Other names of this beginning are notes of other programs' own.
const NOTE: &[u8] = b".wh..wh.";

/// The attribute of a directory of which nothing below shows.
pub(super) const OPAQUE_ATTRIBUTE: &std::ffi::CStr = c"user.overlay.opaque";

/// Whether an image has a name, the last of a path, for a mark: no entry of it can be called so.
#[must_use]
pub fn is_mark(own: &[u8]) -> bool {
    own.starts_with(GONE)
}

/// What the name of an entry says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mark<'a> {
    /// It is an entry.
    None,
    /// This name is gone.
    Gone(&'a [u8]),
    /// Nothing below shows in the directory that holds it.
    Opaque,
    /// Nothing that concerns us.
    Note,
}

/// Reads the last part of a name.
///
/// # Errors
/// Why it is none.
pub(crate) fn mark(own: &[u8]) -> Result<Mark<'_>, &'static str> {
    if own == OPAQUE {
        return Ok(Mark::Opaque);
    }
    if own.starts_with(NOTE) {
        return Ok(Mark::Note);
    }
    match own.strip_prefix(GONE) {
        None => Ok(Mark::None),
        Some(b"" | b"." | b"..") => Err("it hides a name that there cannot be"),
        Some(gone) => Ok(Mark::Gone(gone)),
    }
}

/// What becomes of an extended attribute on its way into an archive.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It goes under this name.
    Keep(Vec<u8>),
    /// It says that nothing shows from below, unless its value says otherwise.
    Opaque,
    /// It says that its file stands for a name that is gone.
    Whiteout,
    /// It means nothing elsewhere.
    Leave,
    /// Its file is only a part of one.
    Part,
}

/// What overlayfs notes, as a user and as root.
const OVERLAYS: [&[u8]; 2] = [b"user.overlay.", b"trusted.overlay."];
/// What an overlay inside a sandbox notes is kept under this name.
const INNER: &[u8] = b"user.overlay.overlay.";

pub(super) fn outward(name: &[u8]) -> Fate {
    if let Some(word) = name.strip_prefix(INNER) {
        return Fate::Keep([OVERLAYS[0], word].concat());
    }
    let noted = OVERLAYS
        .iter()
        .find_map(|overlay| name.strip_prefix(*overlay));
    match noted {
        Some(b"opaque") => Fate::Opaque,
        Some(b"whiteout") => Fate::Whiteout,
        Some(b"metacopy" | b"redirect") => Fate::Part,
        Some(_) => Fate::Leave,
        None if is_kept(name) => Fate::Keep(name.to_owned()),
        None => Fate::Leave,
    }
}

/// The same of what is seen through an overlay: the kernel shows no marks of its own there, so
/// whatever looks like one is an attribute that somebody inside gave.
pub(super) fn outward_seen(name: &[u8]) -> Fate {
    match is_kept(name) {
        true => Fate::Keep(name.to_owned()),
        false => Fate::Leave,
    }
}

/// The name under which an attribute of an archive is kept; `None` for one that is not.
pub(super) fn inward(name: &[u8]) -> Option<Vec<u8>> {
    match name.strip_prefix(OVERLAYS[0]) {
        Some(word) => Some([INNER, word].concat()),
        None => is_kept(name).then(|| name.to_owned()),
    }
}

/// File capabilities do nothing in a sandbox, but would on the host. An archive has no word for a
/// name with this sign.
fn is_kept(name: &[u8]) -> bool {
    let is_ours = name.starts_with(b"user.") || name.starts_with(b"system.posix_acl_");
    is_ours && !name.contains(&b'=') && !name.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_hidden() {
        for (own, expected) in [
            (&b"file"[..], Ok(Mark::None)),
            (b".who", Ok(Mark::None)),
            (b".wh.file", Ok(Mark::Gone(b"file"))),
            (b".wh..hidden", Ok(Mark::Gone(b".hidden"))),
            (b".wh..wh..opq", Ok(Mark::Opaque)),
            (b".wh..wh.aufs", Ok(Mark::Note)),
            (b".wh.", Err(())),
            (b".wh..", Err(())),
            (b".wh...", Err(())),
        ] {
            assert_eq!(mark(own).map_err(drop), expected, "{own:?}");
        }
    }

    #[test]
    fn attributes_of_overlays_are_told_from_those_of_files() {
        let kept = |name: &[u8]| Fate::Keep(name.to_owned());
        for (name, out) in [
            (&b"user.note"[..], kept(b"user.note")),
            (b"user.overlay.opaque", Fate::Opaque),
            (b"trusted.overlay.opaque", Fate::Opaque),
            (b"user.overlay.whiteout", Fate::Whiteout),
            (b"user.overlay.redirect", Fate::Part),
            (b"user.overlay.origin", Fate::Leave),
            (b"user.overlay.overlay.opaque", kept(b"user.overlay.opaque")),
            (b"user.a=b", Fate::Leave),
            (b"security.capability", Fate::Leave),
            (b"system.posix_acl_access", kept(b"system.posix_acl_access")),
        ] {
            assert_eq!(outward(name), out, "{}", name.escape_ascii());
            if let Fate::Keep(out) = out {
                assert_eq!(inward(&out).as_deref(), Some(name));
            }
            let is_own = name.starts_with(b"user.overlay.");
            assert!(!is_own || outward_seen(name) == kept(name));
        }
        for name in [&b"security.capability"[..], b"trusted.overlay.opaque"] {
            assert_eq!(inward(name), None);
        }
    }
}

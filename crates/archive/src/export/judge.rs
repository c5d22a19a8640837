//! Pure. What is said of one entry by itself: by its name, kind, mode and attributes.

use tar::EntryType;

use super::item::{Kind, LENDING, Reason, Verdict};
use super::names;
use crate::frames::Frame;

/// The attribute with which a program has rights by itself.
const CAPABILITY: &[u8] = b"security.capability";

/// Where an entry goes: the last names of the folder of the host, and the path below it. A folder
/// may be one that tools obey itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) context: &'a [Vec<u8>],
    pub(super) parts: &'a [&'a [u8]],
}

impl<'a> Place<'a> {
    fn topic(self, below: &[&'a [u8]]) -> Option<super::Topic> {
        let context = self.context.iter().map(Vec::as_slice);
        names::topic(context.chain(below.iter().copied()))
    }

    /// What is said of the name.
    fn reason(self) -> Option<Reason> {
        self.topic(self.parts).map(Reason::Obeyed)
    }
}

/// What an entry is, but for other names of files, which only others tell.
pub(super) fn kind(frame: &Frame) -> Kind {
    match frame.kind {
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => Kind::File,
        EntryType::Directory => Kind::Folder,
        EntryType::Symlink => Kind::Symlink(frame.link.clone()),
        _ => Kind::Special,
    }
}

/// Judges an entry that the archive brings.
pub(super) fn entry(frame: &Frame, kind: &Kind, place: Place<'_>) -> Verdict {
    let mut reasons: Vec<Reason> = place.reason().into_iter().collect();
    match kind {
        Kind::Special => return Verdict::Refused(Reason::Special),
        Kind::Symlink(link) => {
            let topic = place.parts.last().and_then(|own| names::place(own));
            let obeyed = topic.map(Reason::LeadsTo);
            reasons.extend(target(link, place).or(obeyed));
        }
        // Of folders these bits stay behind, as they mean something else there.
        Kind::File | Kind::Name(_) if frame.mode & LENDING != 0 => reasons.push(Reason::SetId),
        _ => {}
    }
    let has_rights = |(name, _): &(Vec<u8>, Vec<u8>)| name.eq_ignore_ascii_case(CAPABILITY);
    if frame.attributes.iter().any(has_rights) {
        reasons.push(Reason::Capabilities);
    }
    Verdict::of(reasons)
}

/// Judges that a name is gone.
pub(super) fn gone(place: Place<'_>) -> Verdict {
    Verdict::of(place.reason().into_iter().collect())
}

/// What is said of a link by where it leads. Steps upwards are only counted at the front, where no
/// other link can change what they mean.
fn target(link: &[u8], place: Place<'_>) -> Option<Reason> {
    let above = place.parts.split_last().map_or(&[][..], |(_, above)| above);
    if link.starts_with(b"/") || link.is_empty() || link.contains(&0) {
        return Some(Reason::LeadsOut);
    }
    let parts = link.split(|byte| *byte == b'/');
    let mut parts = parts.filter(|it| !it.is_empty() && *it != b".").peekable();
    let mut left = above.len();
    while parts.next_if(|it| *it == b"..").is_some() {
        match left.checked_sub(1) {
            Some(less) => left = less,
            None => return Some(Reason::LeadsOut),
        }
    }
    let mut whole = above.get(..left).unwrap_or_default().to_vec();
    for part in parts {
        if part == b".." {
            return Some(Reason::LeadsOut);
        }
        whole.push(part);
    }
    place.topic(&whole).map(Reason::LeadsTo)
}

#[cfg(test)]
mod tests {
    use super::super::item::Topic;
    use super::*;

    fn frame(kind: EntryType, link: &str, mode: u32) -> Frame {
        Frame {
            kind,
            name: Vec::new(),
            link: link.as_bytes().to_vec(),
            mode,
            modified: 0,
            nanoseconds: 0,
            owner: (0, 0),
            attributes: Vec::new(),
            stored: 0,
            size: 0,
            segments: None,
        }
    }

    fn judged(frame: &Frame, path: &str, context: &[&str]) -> Verdict {
        let parts: Vec<&[u8]> = path.split('/').map(str::as_bytes).collect();
        let context: Vec<Vec<u8>> = context.iter().map(|it| it.as_bytes().to_vec()).collect();
        let place = Place {
            context: &context,
            parts: &parts,
        };
        entry(frame, &kind(frame), place)
    }

    #[test]
    fn entries_are_judged_by_kind_and_mode() {
        use EntryType as Type;
        let held = |reasons: &[Reason]| Verdict::Held(reasons.to_vec());
        let special = Verdict::Refused(Reason::Special);
        for (kind, mode, expected) in [
            (Type::Regular, 0o777, Verdict::Plain),
            (Type::Regular, 0o4755, held(&[Reason::SetId])),
            (Type::Regular, 0o2644, held(&[Reason::SetId])),
            (Type::Regular, 0o1644, held(&[Reason::SetId])),
            (Type::GNUSparse, 0o4755, held(&[Reason::SetId])),
            (Type::Directory, 0o3777, Verdict::Plain),
            (Type::Char, 0o644, special.clone()),
            (Type::Block, 0o644, special.clone()),
            (Type::Fifo, 0o644, special.clone()),
            (Type::new(b'?'), 0o644, special),
        ] {
            let found = judged(&frame(kind, "", mode), "src/a", &[]);
            assert_eq!(found, expected, "{kind:?} {mode:o}");
        }
    }

    #[test]
    fn programs_with_rights_are_held() {
        let mut frame = frame(EntryType::Regular, "", 0o755);
        for (name, expected) in [
            ("user.note", Verdict::Plain),
            (
                "security.capability",
                Verdict::Held(vec![Reason::Capabilities]),
            ),
        ] {
            frame.attributes = vec![(name.as_bytes().to_vec(), b"x".to_vec())];
            assert_eq!(judged(&frame, "a", &[]), expected, "{name}");
        }
    }

    #[test]
    fn links_are_judged_by_where_they_lead() {
        let out = Some(Reason::LeadsOut);
        for (path, link, expected) in [
            ("a", "b", None),
            ("d/a", "../b", None),
            ("d/a", "..", None),
            ("d/e/a", "../../b", None),
            ("a", ".", None),
            ("a", "/etc/passwd", out),
            ("a", "..", out),
            ("d/a", "../../b", out),
            ("d/a", "e/../../b", out),
            ("a", "", out),
            ("a", "b\0", out),
            ("a", ".git/hooks", Some(Reason::LeadsTo(Topic::Git))),
            ("d/.Config", "cfg", Some(Reason::LeadsTo(Topic::StartUp))),
            (
                "d/a",
                "../.ENVRC",
                Some(Reason::LeadsTo(Topic::Environment)),
            ),
            ("a", "x/.git/../y", out),
        ] {
            let found = judged(&frame(EntryType::Symlink, link, 0o777), path, &[]);
            let expected = Verdict::of(expected.into_iter().collect());
            assert_eq!(found, expected, "{path} {link}");
        }
    }

    #[test]
    fn the_folder_of_the_host_counts_as_well() {
        for (context, path, is_held) in [
            (&["project"][..], "hooks/pre-commit", false),
            (&["project", ".git"], "hooks/pre-commit", true),
            (&[".config", "fish"], "a", true),
            (&[".config", "other"], "a", false),
        ] {
            let found = judged(&frame(EntryType::Regular, "", 0o644), path, context);
            assert_eq!(found != Verdict::Plain, is_held, "{context:?} {path}");
        }
    }
}

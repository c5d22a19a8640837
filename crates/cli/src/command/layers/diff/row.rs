//! Pure. A path that differs, in one line.

use barchan_wire::lifecycle::changes::{Change, Seen};

/// What happened to it, and in what it differs.
pub(super) fn of(change: &Change) -> String {
    let letter = match change.change.as_str() {
        "added" => 'A',
        "deleted" => 'D',
        "changed" => 'M',
        _ => '?',
    };
    let seen = change.new.as_ref().or(change.old.as_ref());
    let mark = seen.map(mark).unwrap_or_default();
    let parts = change.differs.iter();
    let parts: Vec<String> = parts.map(|part| differs(part, change)).collect();
    let how = match parts.is_empty() {
        true => String::new(),
        false => format!("  ({})", parts.join(", ")),
    };
    format!("{letter} {}{mark}{how}", change.path)
}

/// What is behind a name, as it shows that it is no file.
fn mark(seen: &Seen) -> String {
    match seen.kind.as_str() {
        "directory" => "/".to_owned(),
        "symlink" => format!(" -> {}", seen.target.as_deref().unwrap_or_default()),
        _ => String::new(),
    }
}

/// With what it was and is, where that is short.
fn differs(part: &str, change: &Change) -> String {
    let (Some(old), Some(new)) = (&change.old, &change.new) else {
        return part.to_owned();
    };
    match part {
        "type" => format!("{} to {}", old.kind, new.kind),
        "mode" => format!("mode {:04} to {:04}", old.mode, new.mode),
        "owner" => {
            let (was, is) = ((old.uid, old.gid), (new.uid, new.gid));
            format!("owner {}:{} to {}:{}", was.0, was.1, is.0, is.1)
        }
        "content" if change.binary => format!("binary, {} to {} bytes", old.size, new.size),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_what_happened_to_it() {
        let seen = |kind: &str, mode, size| {
            Some(Seen {
                kind: kind.to_owned(),
                mode,
                uid: 0,
                gid: 0,
                size,
                target: (kind == "symlink").then(|| "/etc".to_owned()),
                mtime_ns: 0,
            })
        };
        for (change, old, new, parts, binary, expected) in [
            ("added", None, seen("file", 644, 3), &[][..], false, "A /x"),
            (
                "added",
                None,
                seen("symlink", 777, 0),
                &[],
                false,
                "A /x -> /etc",
            ),
            (
                "deleted",
                seen("directory", 755, 0),
                None,
                &[],
                false,
                "D /x/",
            ),
            (
                "changed",
                seen("file", 644, 3),
                seen("file", 4755, 9),
                &["content", "mode"],
                true,
                "M /x  (binary, 3 to 9 bytes, mode 0644 to 4755)",
            ),
            (
                "changed",
                seen("directory", 755, 0),
                seen("file", 755, 0),
                &["type", "owner"],
                false,
                "M /x  (directory to file, owner 0:0 to 0:0)",
            ),
        ] {
            let change = Change {
                path: "/x".to_owned(),
                change: change.to_owned(),
                differs: parts.iter().map(|part: &&str| (*part).to_owned()).collect(),
                old,
                new,
                diff: None,
                diff_cut: None,
                binary,
            };
            assert_eq!(of(&change), expected);
        }
    }
}

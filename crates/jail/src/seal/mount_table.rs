//! Pure. What is mounted in a sandbox, as `/proc/PID/mountinfo` of proc(5) tells it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// Its number.
    pub(super) id: u64,
    /// The number of what it is mounted on.
    pub(super) parent: u64,
    /// Where, as seen from the root of whoever's table this is.
    pub(super) place: PathBuf,
    /// The layer that it writes to, of an overlay.
    pub(super) upper: Option<String>,
}

/// The mounts of a table, in the order in which they were made; lines that are none are passed
/// over.
pub(super) fn parse(table: &[u8]) -> Vec<Mount> {
    let lines = table.split(|&byte| byte == b'\n');
    lines.filter_map(mount).collect()
}

/// The last overlay on the root's place: what processes have as their root.
pub(super) fn root(mounts: &[Mount]) -> Option<&Mount> {
    let is_root = |mount: &&Mount| mount.place.as_os_str() == "/" && mount.upper.is_some();
    mounts.iter().rfind(is_root)
}

fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&byte| byte == b' ');
    let number = |field: &[u8]| std::str::from_utf8(field).ok()?.parse().ok();
    let (id, parent) = (number(fields.next()?)?, number(fields.next()?)?);
    let place = unescaped(fields.nth(2)?);
    let mut rest = fields.skip_while(|field| *field != b"-").skip(1);
    let kind = rest.next()?;
    let options = rest.nth(1)?;
    let upper = options
        .split(|&byte| byte == b',')
        .find_map(|option| option.strip_prefix(b"upperdir="));
    let upper = upper.filter(|_| kind == b"overlay");
    Some(Mount {
        id,
        parent,
        place: PathBuf::from(OsString::from_vec(place)),
        upper: upper.map(|upper| String::from_utf8_lossy(upper).into_owned()),
    })
}

/// Blanks, tabs, line ends and backslashes stand as three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| first == b'\\');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                plain.push(first);
                rest = after;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_names_places_parents_and_layers() {
        let table =
            b"22 1 0:20 / / rw,nodev - overlay overlay rw,lowerdir=a:b,upperdir=disk/upper\n\
            23 22 0:21 / /with\\040blank\\134 rw shared:1 master:2 - tmpfs tmpfs rw\n\
            nonsense\n\
            40 22 0:30 / / rw - overlay none rw,upperdir=disk/7,workdir=disk/7.work\n\
            41 23 0:31 / /upper rw - tmpfs none rw,upperdir=x\n";
        let found = parse(table);
        let shown: Vec<_> = found
            .iter()
            .map(|it| {
                (
                    it.id,
                    it.parent,
                    it.place.to_str().unwrap(),
                    it.upper.as_deref(),
                )
            })
            .collect();
        let expected = [
            (22, 1, "/", Some("disk/upper")),
            (23, 22, "/with blank\\", None),
            (40, 22, "/", Some("disk/7")),
            (41, 23, "/upper", None),
        ];
        assert_eq!(shown, expected);
        assert_eq!(root(&found).map(|root| root.id), Some(40));
    }
}

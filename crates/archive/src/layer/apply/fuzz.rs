use std::fs;
use std::io::Cursor;

use barchan_testkit::fuzz;
use proptest::prelude::any;
use tempfile::TempDir;

use super::*;

const NAMES: [&str; 12] = [
    "a",
    "a/b",
    "a/b/c",
    "l",
    "l/x",
    "a/.wh.b",
    ".wh.a",
    ".wh.l",
    "a/.wh..wh..opq",
    "l/.wh.x",
    "../x",
    "h",
];
const LINKS: [&str; 6] = ["..", "a", "a/b", "/", "l/x", "h"];
const KINDS: [EntryType; 6] = [
    EntryType::Regular,
    EntryType::Directory,
    EntryType::Symlink,
    EntryType::Link,
    EntryType::Fifo,
    EntryType::XHeader,
];

/// Entries by numbers: kind, name, link; and bytes that are changed afterwards.
fn archive(entries: &[(usize, usize, usize)], changes: &[(usize, u8)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, name, link) in entries {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(KINDS[kind % KINDS.len()]);
        let _ = header.set_link_name_literal(LINKS[link % LINKS.len()]);
        let name = NAMES[name % NAMES.len()].as_bytes();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name);
        header.set_mode(0o755);
        header.set_size(12);
        header.set_cksum();
        bytes.extend_from_slice(header.as_bytes());
        if matches!(
            KINDS[kind % KINDS.len()],
            EntryType::Regular | EntryType::XHeader
        ) {
            bytes.extend_from_slice(b"12 path=h/x\n");
            bytes.resize(bytes.len().next_multiple_of(512), 0);
        }
    }
    bytes.resize(bytes.len() + 1024, 0);
    for (at, byte) in changes {
        let length = bytes.len();
        bytes[at % length] = *byte;
        // Damage behind the sum that guards a header is the interesting one.
        let head = at % length / 512 * 512;
        let mut header = tar::Header::new_old();
        header
            .as_mut_bytes()
            .copy_from_slice(&bytes[head..head + 512]);
        header.set_cksum();
        bytes[head..head + 512].copy_from_slice(header.as_bytes());
    }
    bytes
}

fuzz! {
    /// Whatever layers say, they end in an error or a tree, and nothing is done outside.
    fn layers_stay_in_their_tree(
        one in proptest::collection::vec(any::<(usize, usize, usize)>(), 0..8),
        two in proptest::collection::vec(any::<(usize, usize, usize)>(), 0..8),
        changes in proptest::collection::vec((0_usize..8192, any::<u8>()), 0..3),
        keeps_marks in any::<bool>(),
    ) {
        let home = TempDir::new().unwrap();
        let tree = home.path().join("tree");
        fs::create_dir(&tree).unwrap();
        fs::write(home.path().join("x"), "untouched").unwrap();
        let limits = LayerLimits { entries_max: 100, bytes_max: 1 << 16 };
        let mut into = Applied::new(fs::File::open(&tree).unwrap(), limits, keeps_marks).unwrap();
        let _ = into
            .apply(Cursor::new(archive(&one, &[])))
            .and_then(|()| into.apply(Cursor::new(archive(&two, &changes))))
            .and_then(|()| into.finish());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
        assert_eq!(fs::read(home.path().join("x")).unwrap(), b"untouched");
    }
}

use std::io::Cursor;

use barchan_testkit::fuzz;
use proptest::prelude::any;
use tempfile::TempDir;

use super::*;

fuzz! {
    /// Bytes that were changed anywhere end in an error or a tree, and never outside.
    fn damaged_archives_do_no_harm(
        changes in proptest::collection::vec((0_usize..4096, any::<u8>()), 1..4),
    ) {
        let folder = TempDir::new().unwrap();
        let target = folder.path().join("target");
        std::fs::create_dir(&target).unwrap();
        let mut bytes = Vec::new();
        let mut builder = tar::Builder::new(&mut bytes);
        for (name, kind, link) in [
            ("a", EntryType::Regular, ""),
            ("d/b", EntryType::Symlink, "../a"),
            ("h", EntryType::Link, "a"),
            ("d/e", EntryType::Directory, ""),
        ] {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_mode(0o755);
            header.set_size(if kind == EntryType::Regular { 600 } else { 0 });
            header.set_link_name_literal(link).unwrap();
            let content = vec![7; header.size().unwrap() as usize];
            builder.append_data(&mut header, name, content.as_slice()).unwrap();
        }
        builder.finish().unwrap();
        drop(builder);
        for (at, byte) in changes {
            let length = bytes.len();
            bytes[at % length] = byte;
            // Damage behind the sum that guards a header is the interesting one.
            repair(&mut bytes, at % length / 512 * 512);
        }
        let options = UnpackOptions {
            limits: UnpackLimits { entries_max: 10, bytes_max: 1 << 16 },
            links: Links::Refuse,
            with_root: false,
        };
        let _ = unpack(Cursor::new(&bytes), &target, options, &mut |_| {});
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

/// Makes the sum of a header fit again.
fn repair(bytes: &mut [u8], at: usize) {
    let mut header = tar::Header::new_old();
    header.as_mut_bytes().copy_from_slice(&bytes[at..at + 512]);
    header.set_cksum();
    bytes[at..at + 512].copy_from_slice(header.as_bytes());
}

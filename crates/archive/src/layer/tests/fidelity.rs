use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{FileType, Mode, XattrFlags, lsetxattr};
use tempfile::TempDir;

use super::*;

/// A tree with all that there can be in a layer.
fn furnished(tree: &Path) {
    let at = |name: &str| tree.join(name);
    for folder in ["d", "d/empty", "opaque"] {
        fs::create_dir(at(folder)).unwrap();
    }
    let long = format!("{}é", "n".repeat(200));
    for name in ["a", "d/b", "opaque/c", "set-id", "é", &long, "sp ace\nline"] {
        fs::write(at(name), name).unwrap();
    }
    fs::write(at("empty"), "").unwrap();
    fs::hard_link(at("a"), at("d/a2")).unwrap();
    symlink("../".repeat(60), at("far")).unwrap();
    let sparse = fs::File::create(at("sparse")).unwrap();
    sparse.write_all_at(b"begin", 0).unwrap();
    sparse.write_all_at(b"middle", 10 << 20).unwrap();
    sparse.set_len(40 << 20).unwrap();
    fs::File::create(at("hole"))
        .unwrap()
        .set_len(5_000_000)
        .unwrap();
    let here = opened(tree);
    let mode = Mode::from_raw_mode(0o640);
    rustix::fs::mknodat(&here, "pipe", FileType::Fifo, mode, 0).unwrap();
    let device = FileType::CharacterDevice;
    for gone in ["gone", "d/gone"] {
        rustix::fs::mknodat(&here, gone, device, Mode::empty(), 0).unwrap();
    }
    let set = |name: &str, key: &str, value: &[u8]| {
        lsetxattr(at(name), key, value, XattrFlags::empty()).unwrap();
    };
    set("opaque", "user.overlay.opaque", b"y");
    set("a", "user.note", b"binary \0 and = and \n");
    set("d", "user.of.folder", b"1");
    std::os::unix::fs::chown(at("d/b"), Some(1000), Some(65_535)).unwrap();
    std::os::unix::fs::lchown(at("far"), Some(7), Some(8)).unwrap();
    let modes = [
        ("set-id", 0o6755),
        ("d", 0o1777),
        ("d/b", 0o000),
        ("opaque", 0o2750),
    ];
    for (name, mode) in modes {
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let time = place::times((-5, 250_000_000));
    let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    for name in ["a", "far", "d"] {
        rustix::fs::utimensat(&here, name, &time, flags).unwrap();
    }
}

#[test]
fn a_tree_comes_back_as_it_was() {
    let home = TempDir::new().unwrap();
    furnished(home.path());
    let bytes = packed(home.path());
    assert_eq!(bytes, packed(home.path()), "the same tree, the same bytes");
    assert!(
        bytes.len() < 100_000,
        "holes are not packed: {}",
        bytes.len()
    );
    let (_other, tree) = applied(std::slice::from_ref(&bytes), true).unwrap();
    assert_eq!(names(home.path()), names(&tree));
    let sparse = fs::metadata(tree.join("sparse")).unwrap();
    assert!(sparse.blocks() * 512 < 1 << 20, "{}", sparse.blocks());
    // All that an archive tells, times and owners and attributes too.
    assert!(packed(&tree) == bytes);
}

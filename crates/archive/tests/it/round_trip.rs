//! A tree comes out as it went in.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Cursor;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use barchan_archive::{Links, PackLimits, Report, Root, UnpackLimits, UnpackOptions, unpack};
use tempfile::TempDir;

const OPTIONS: UnpackOptions = UnpackOptions {
    limits: UnpackLimits {
        entries_max: 100,
        bytes_max: 10 << 20,
    },
    links: Links::Refuse,
    with_root: true,
};

/// Every path below a directory, with what is there.
fn look(root: &Path) -> BTreeMap<PathBuf, (u32, i64, u64, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let found = path.symlink_metadata().unwrap();
        let content = match found.file_type() {
            it if it.is_symlink() => path
                .read_link()
                .unwrap()
                .into_os_string()
                .into_encoded_bytes(),
            it if it.is_dir() => {
                open.extend(
                    std::fs::read_dir(&path)
                        .unwrap()
                        .map(|it| it.unwrap().path()),
                );
                Vec::new()
            }
            _ => std::fs::read(&path).unwrap(),
        };
        let size = if found.is_dir() { 0 } else { found.len() };
        let name = path.strip_prefix(root).unwrap().to_owned();
        all.insert(name, (found.mode(), found.mtime(), size, content));
    }
    all
}

fn pack(root: &Path) -> (Vec<u8>, Report) {
    let mut bytes = Vec::new();
    let limits = PackLimits {
        entries_max: 1000,
        depth_max: 50,
    };
    let root = Root::open(root).unwrap();
    let report = root.pack(&mut bytes, limits, &mut |_| {}).unwrap();
    (bytes, report)
}

#[test]
fn a_tree_comes_out_as_it_went_in() {
    use std::os::unix::ffi::OsStrExt;
    let folder = TempDir::new().unwrap();
    let from = folder.path().join("from");
    let deep = from.join("d".repeat(200)).join("e".repeat(200));
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("file"), vec![b'x'; 700_000]).unwrap();
    std::fs::write(from.join(std::ffi::OsStr::from_bytes(b"bad_\xff\n")), "odd").unwrap();
    std::fs::write(from.join("empty"), "").unwrap();
    symlink("l".repeat(300), from.join("long_link")).unwrap();
    symlink("./a//b", from.join("odd_link")).unwrap();
    let sparse = File::create(from.join("sparse")).unwrap();
    sparse.set_len(900_000).unwrap();
    for part in 0..7 {
        sparse.write_all_at(b"data", part * 128 * 1024 + 5).unwrap();
    }
    File::create(from.join("hole"))
        .unwrap()
        .set_len(50_000)
        .unwrap();
    std::fs::set_permissions(from.join("empty"), PermissionsExt::from_mode(0o640)).unwrap();
    std::fs::set_permissions(&deep, PermissionsExt::from_mode(0o500)).unwrap();
    let past = std::fs::FileTimes::new();
    let past = past.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(99));
    File::open(&deep).unwrap().set_times(past).unwrap();
    let (bytes, packed) = pack(&from);
    assert!(
        bytes.len() < 1_000_000,
        "holes are not packed: {}",
        bytes.len()
    );
    let to = folder.path().join("to");
    std::fs::create_dir(&to).unwrap();
    let unpacked = unpack(Cursor::new(&bytes), &to, OPTIONS, &mut |_| {}).unwrap();
    assert_eq!(look(&from), look(&to));
    assert_eq!(
        (packed.entries, packed.bytes),
        (unpacked.entries, unpacked.bytes)
    );
    assert!(to.join("sparse").metadata().unwrap().blocks() * 512 < 900_000);
    // What other programs make of it.
    let listed = std::process::Command::new("tar");
    let mut listed = { listed }
        .arg("-tf")
        .arg("-")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut listed.stdin.take().unwrap(), &bytes).unwrap();
    let listed = listed.wait_with_output().unwrap();
    let lines = listed.stdout.split(|byte| *byte == b'\n').count() as u64;
    assert_eq!((listed.status.code(), lines), (Some(0), packed.entries + 1));
}

#[test]
fn what_cannot_be_packed_is_told_and_the_rest_arrives() {
    let folder = TempDir::new().unwrap();
    let from = folder.path();
    let socket = std::os::unix::net::UnixListener::bind(from.join("socket\x1b[2J")).unwrap();
    let mut deep = from.join("deep");
    for _ in 0..60 {
        deep.push("d");
    }
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(from.join("file"), "x").unwrap();
    let (bytes, packed) = pack(from);
    assert_eq!(packed.skipped, 2);
    // Python's reader refuses an archive in which nothing follows the comment.
    let end = bytes.len() - 2 * 512;
    assert!(bytes[end..].iter().all(|byte| *byte == 0));
    assert_eq!(
        (&bytes[end - 512..][..3], bytes[end - 512..][156]),
        (&b"./\0"[..], b'5')
    );
    let to = TempDir::new().unwrap();
    let report = unpack(Cursor::new(&bytes), to.path(), OPTIONS, &mut |_| {}).unwrap();
    let note = report.note.unwrap();
    assert!(note.starts_with("2 left out:\n"), "{note}");
    assert!(
        note.contains("socket\\u{1b}[2J: it is a pipe, socket or device"),
        "{note}"
    );
    assert!(note.contains("it lies too deep"), "{note}");
    assert_eq!(std::fs::read(to.path().join("file")).unwrap(), b"x");
    drop(socket);
}

#[test]
fn an_archive_of_other_programs_is_unpacked() {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir_all(folder.path().join("s/d")).unwrap();
    std::fs::write(folder.path().join("s/d").join("n".repeat(150)), "content").unwrap();
    for format in ["gnu", "pax", "ustar", "v7"] {
        let to = TempDir::new().unwrap();
        let name = if matches!(format, "gnu" | "pax") {
            "d"
        } else {
            "short"
        };
        std::fs::write(folder.path().join("s/short"), "content").unwrap();
        let packed = std::process::Command::new("tar")
            .args(["-cf", "-", &format!("--format={format}"), "-C"])
            .arg(folder.path().join("s"))
            .arg(name)
            .output()
            .unwrap();
        assert!(packed.status.success(), "{packed:?}");
        let report = unpack(Cursor::new(packed.stdout), to.path(), OPTIONS, &mut |_| {}).unwrap();
        assert_eq!(report.bytes, 7, "{format}");
    }
}

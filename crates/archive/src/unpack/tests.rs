use std::io::Cursor;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;

use tar::Header;
use tempfile::TempDir;

use super::*;

const OPTIONS: UnpackOptions = UnpackOptions {
    limits: UnpackLimits {
        entries_max: 100,
        bytes_max: 1 << 20,
    },
    links: Links::Refuse,
    with_root: false,
};

/// One entry of an archive, as bytes.
fn entry(kind: EntryType, name: &str, link: &str, content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o6755);
    header.set_mtime(1_000_000_000);
    header.set_size(content.len() as u64);
    header.set_cksum();
    let filling = content.len().next_multiple_of(512) - content.len();
    [header.as_bytes(), content, &vec![0; filling]].concat()
}

fn file(name: &str, content: &str) -> Vec<u8> {
    entry(EntryType::Regular, name, "", content.as_bytes())
}

fn link(name: &str, to: &str) -> Vec<u8> {
    entry(EntryType::Symlink, name, to, b"")
}

fn archive(entries: &[Vec<u8>]) -> Vec<u8> {
    [entries.concat(), vec![0; 1024]].concat()
}

struct World {
    folder: TempDir,
}

impl World {
    /// A directory to unpack in, and things around it that nobody may touch.
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let world = Self { folder };
        std::fs::create_dir(world.target()).unwrap();
        std::fs::create_dir(world.outside()).unwrap();
        std::fs::write(world.outside().join("file"), "untouched").unwrap();
        symlink("../outside", world.target().join("way_out")).unwrap();
        symlink("../outside/file", world.target().join("file_out")).unwrap();
        world
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("target")
    }

    fn outside(&self) -> PathBuf {
        self.folder.path().join("outside")
    }

    fn unpack(&self, bytes: &[u8], options: UnpackOptions) -> Result<Report, UnpackError> {
        let done = unpack(Cursor::new(bytes), &self.target(), options, &mut |_| {});
        let outside = std::fs::read_dir(self.outside()).unwrap().count();
        assert_eq!(outside, 1, "something was written outside");
        let kept = std::fs::read(self.outside().join("file")).unwrap();
        assert_eq!(kept, b"untouched");
        let above = std::fs::read_dir(self.folder.path()).unwrap().count();
        assert_eq!(above, 2, "something was written above");
        done
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.target().join(name)).unwrap()
    }
}

/// Unpacks what must be refused, and checks that nothing half-made is left.
fn refused(what: &str, bytes: &[u8], part: &str) {
    let world = World::new();
    let error = world.unpack(bytes, OPTIONS).expect_err(what);
    assert!(error.to_string().contains(part), "{what}: {error}");
    let names = std::fs::read_dir(world.target()).unwrap().flatten();
    let mut names = names.map(|it| it.file_name().into_string().unwrap());
    assert!(names.all(|it| !it.contains(".part")), "{what}");
}

#[test]
fn hostile_archives_are_refused_and_nothing_outside_is_written() {
    let second = |name: &str| entry(EntryType::Link, "h", name, b"");
    let directory = |name: &str| entry(EntryType::Directory, name, "", b"");
    for (what, entries, part) in [
        ("absolute", vec![file("/tmp/barchan-escape", "x")], "root"),
        ("upwards", vec![file("../escape", "x")], "upwards"),
        (
            "upwards inside",
            vec![file("a/../../escape", "x")],
            "upwards",
        ),
        (
            "through a link",
            vec![file("way_out/new", "x")],
            "way_out/new",
        ),
        ("over a link", vec![directory("way_out/d")], "way_out"),
        (
            "own link",
            vec![link("l", "/etc"), file("l/x", "x")],
            "leads out",
        ),
        (
            "chain",
            vec![link("d", "."), link("d2", "d/..")],
            "leads out",
        ),
        ("second name outside", vec![second("way_out/file")], "h"),
        (
            "second name upwards",
            vec![second("../outside/file")],
            "upwards",
        ),
        ("second name of a link", vec![second("file_out")], "no file"),
        (
            "device",
            vec![entry(EntryType::Char, "dev", "", b"")],
            "device",
        ),
        (
            "pipe",
            vec![entry(EntryType::Fifo, "pipe", "", b"")],
            "pipe",
        ),
        (
            "file over directory",
            vec![directory("d"), file("d", "x")],
            "d",
        ),
        (
            "directory over file",
            vec![file("f", "x"), file("f/x", "x")],
            "f/x",
        ),
        (
            "too many",
            vec![file("same", ""); 101],
            "more than 100 entries",
        ),
    ] {
        refused(what, &archive(&entries), part);
    }
}

#[test]
fn archives_that_lie_are_refused() {
    let long = "x".repeat(90_000);
    let mut endless = Header::new_gnu();
    endless.set_path("huge").unwrap();
    endless.set_size(u64::MAX / 2);
    endless.set_mode(0o644);
    endless.set_cksum();
    let endless = endless.as_bytes().to_vec();
    let extended = |kind, text: &str| entry(kind, "l", "", text.as_bytes());
    for (what, one, part) in [
        ("too large", endless, "more than 1048576 bytes"),
        (
            "long name",
            extended(EntryType::GNULongName, &long),
            "too long",
        ),
        (
            "long link",
            extended(EntryType::GNULongLink, &long),
            "too long",
        ),
        (
            "long header",
            extended(EntryType::XHeader, &long),
            "too long",
        ),
        (
            "odd size",
            extended(EntryType::XHeader, "12 size=-1\n"),
            "damaged",
        ),
        (
            "odd length",
            extended(EntryType::XHeader, "99 a=b\n"),
            "damaged",
        ),
        ("no archive", b"PK".repeat(400), "no tar"),
    ] {
        refused(what, &archive(&[one]), part);
    }
    refused("cut", &file("a", "0123456789")[..515], "middle");
    refused("no end", &file("a", "x"), "end mark");
    refused("empty", b"", "end mark");
}

#[test]
fn links_that_lead_out_are_left_out_or_kept_but_never_followed() {
    let bytes = archive(&[
        link("python", "/usr/bin/python3"),
        link("d/in", "../x"),
        file("x", "1"),
    ]);
    for (links, made, skipped) in [(Links::Skip, false, 1), (Links::Keep, true, 0)] {
        let world = World::new();
        let options = UnpackOptions { links, ..OPTIONS };
        let report = world.unpack(&bytes, options).unwrap();
        assert_eq!(report.skipped, skipped);
        assert_eq!(world.target().join("python").is_symlink(), made);
        assert_eq!(world.read("d/in"), "1");
        let through = archive(&[link("l", "/tmp"), file("l/barchan-escape", "x")]);
        assert_eq!(
            world.unpack(&through, options).is_err(),
            links == Links::Keep
        );
        assert!(!PathBuf::from("/tmp/barchan-escape").exists());
    }
}

#[test]
fn what_is_there_is_replaced_and_the_last_of_two_counts() {
    let world = World::new();
    std::fs::write(world.target().join("a"), "old").unwrap();
    std::fs::hard_link(world.target().join("a"), world.target().join("other")).unwrap();
    let bytes = archive(&[
        file("./a", "1"),
        file("a", "2"),
        file("file_out", "here"),
        entry(EntryType::Link, "second", "a", b""),
        entry(EntryType::Link, "a", "a", b""),
        link("other2", "a"),
        link("other2", "second"),
    ]);
    let report = world.unpack(&bytes, OPTIONS).unwrap();
    assert_eq!((report.entries, report.bytes), (7, 6));
    for (name, content) in [
        ("a", "2"),
        ("other", "old"),
        ("file_out", "here"),
        ("second", "2"),
    ] {
        assert_eq!(world.read(name), content, "{name}");
    }
    assert_eq!(
        world.target().join("other2").read_link().unwrap(),
        PathBuf::from("second")
    );
    let found = world.target().join("a").metadata().unwrap();
    assert_eq!(
        (found.mode() & 0o7777, found.mtime()),
        (0o755, 1_000_000_000)
    );
    let names = std::fs::read_dir(world.target()).unwrap().flatten();
    assert_eq!(names.count(), 6);
}

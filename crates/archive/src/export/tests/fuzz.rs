use barchan_testkit::fuzz;
use proptest::prelude::any;

use super::*;

const NAMES: [&str; 14] = [
    "a",
    "a/b",
    "a/b/c",
    "l",
    "l/outside",
    "a/.wh.b",
    ".wh.a",
    ".wh.l",
    "a/.wh..wh..opq",
    "l/.wh.outside",
    "../outside",
    "h",
    ".wh..wh..opq",
    "up/outside",
];
const LINKS: [&str; 6] = ["..", "a", "a/b", "/", "l/outside", "h"];
const KINDS: [EntryType; 6] = [
    EntryType::Regular,
    EntryType::Directory,
    EntryType::Symlink,
    EntryType::Link,
    EntryType::Fifo,
    EntryType::XHeader,
];

fuzz! {
    /// Whatever an archive says, nothing is done outside of the folder.
    fn an_export_stays_in_its_folder(
        numbers in proptest::collection::vec(any::<(usize, usize, usize)>(), 0..10),
        changes in proptest::collection::vec((0_usize..8192, any::<u8>()), 0..3),
        may_remove in any::<bool>(),
    ) {
        // One that tells of a name twice is refused before anything is done.
        let mut names = std::collections::HashSet::new();
        let entries: Vec<Vec<u8>> = numbers
            .iter()
            .filter(|(_, name, _)| names.insert(name % NAMES.len()))
            .map(|(kind, name, link)| {
                let (kind, link) = (KINDS[kind % KINDS.len()], LINKS[link % LINKS.len()]);
                let content: &[u8] = match kind {
                    EntryType::Regular | EntryType::XHeader => b"12 path=h/x\n",
                    _ => b"",
                };
                entry(kind, NAMES[name % NAMES.len()], link, 0o4755, content)
            })
            .collect();
        let mut bytes = archive(&entries);
        for (at, byte) in &changes {
            let length = bytes.len();
            bytes[at % length] = *byte;
            let head = at % length / 512 * 512;
            let mut header = Header::new_old();
            header.as_mut_bytes().copy_from_slice(&bytes[head..head + 512]);
            header.set_cksum();
            bytes[head..head + 512].copy_from_slice(header.as_bytes());
        }
        let host = Host::new().with(&["a/x", "h/y"]);
        symlink("..", host.folder.join("up")).unwrap();
        let consent = Consent { is_for_all: true, may_remove, ..Consent::default() };
        let target = Target::open(&host.folder).unwrap();
        if let Ok(review) = review(&mut Cursor::new(&bytes), wish(Some("/"))) {
            let mut plan = Plan::new(review, &target, &consent).unwrap();
            host.apply(&mut plan, &bytes);
        }
        assert_eq!(fs::read_dir(host.home.path()).unwrap().count(), 2);
        let outside = fs::read(host.home.path().join("outside")).unwrap();
        assert_eq!(outside, b"untouched");
    }
}

use super::*;

/// Whether a disk's file system holds this name.
fn has(disk: &Disk, name: &str) -> bool {
    rustix::fs::statat(&disk.mount, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

#[test]
fn a_file_that_came_back_serves_an_empty_disk() {
    if !rustix::process::geteuid().is_root() {
        // Others cannot mount: their launcher makes no disks.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut maker = Maker::new(folder.path()).unwrap();
    let first = maker.make(64 << 20, 0).unwrap();
    rustix::fs::mkdirat(&first.mount, "upper/left", Mode::RWXU).unwrap();
    let inode = name_of(&File::from(first.file.try_clone().unwrap())).unwrap();
    maker.take_back(vec![first.file, first.mount]);
    let second = maker.make(128 << 20, 0).unwrap();
    let again = name_of(&File::from(second.file.try_clone().unwrap())).unwrap();
    assert_eq!(inode, again);
    assert!(has(&second, "upper") && !has(&second, "upper/left"));
}

/// What lies in a folder of disks and is not finished.
fn unfinished_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let paths = entries.map(|entry| entry.path());
    let is_unfinished = |path: &PathBuf| path.extension().is_some_and(|it| it == "new");
    paths.filter(is_unfinished).collect()
}

#[test]
fn a_disk_that_cannot_be_made_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut maker = Maker::new(folder.path()).unwrap();
    for bytes in [BYTES_MAX + 1, 1 << 63, u64::MAX] {
        let error = maker.make(bytes, 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{error}");
        let error = try_size(folder.path(), bytes).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{error}");
        let place = folder.path().join("image");
        let error = make_lasting(&place, bytes, folder.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{error}");
    }
    assert!(unfinished_in(folder.path()).is_empty());
    // Whatever it is that fails.
    fs::write(folder.path().join("content"), "no folder").unwrap();
    assert!(maker.make(64 << 20, 0).is_err());
    assert!(unfinished_in(folder.path()).is_empty());
}

#[test]
fn what_the_host_has_no_files_of_is_told_as_such() {
    const EXT4: i64 = 0xef53;
    let folder = tempfile::tempdir().unwrap();
    let found = rustix::fs::statfs(folder.path()).unwrap();
    let tried = try_size(folder.path(), BYTES_MAX);
    match found.f_type == EXT4 {
        true => assert_eq!(tried.unwrap_err().kind(), io::ErrorKind::FileTooLarge),
        // Others have larger files.
        false => tried.unwrap(),
    }
    try_size(folder.path(), 1 << 40).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_maker_removes_what_an_earlier_one_did_not_finish() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["template-1-0.new", "template-1-0.ext4"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    Maker::new(folder.path()).unwrap();
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].file_name(), "template-1-0.ext4");
}

#[test]
fn a_file_that_is_still_mounted_serves_nobody_else() {
    if !rustix::process::geteuid().is_root() {
        // Others cannot mount: their launcher makes no disks.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut maker = Maker::new(folder.path()).unwrap();
    let first = maker.make(64 << 20, 0).unwrap();
    let still = first.mount.try_clone().unwrap();
    maker.take_back(vec![first.file, first.mount]);
    assert!(maker.spares.is_empty());
    drop(still);
}

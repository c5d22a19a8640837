//! Folders that are their owner's alone, and files in those of others.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Makes a folder that nobody else may enter, where it is missing. Those above it are made as
/// folders usually are: who may come through to it is theirs to say.
///
/// # Errors
/// The system's, unchanged.
pub fn make_private(path: &Path) -> io::Result<()> {
    if let Some(above) = path.parent() {
        fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Opens a file for reading where another user may have put anything: a link at its name is not
/// followed, and what is no file is an error that nobody waits for.
///
/// # Errors
/// The system's, unchanged; `InvalidData` for what is no file.
pub fn open_foreign(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = File::options();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_the_last_folder_is_closed_to_others() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a/b/c");
        for _ in 0..2 {
            make_private(&path).unwrap();
        }
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        assert_ne!(mode(&home.path().join("a")), 0o700);
    }

    #[test]
    fn what_another_user_puts_in_the_place_of_a_file_is_no_file() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::write(at("file"), "text").unwrap();
        symlink(at("file"), at("link")).unwrap();
        let _listener = UnixListener::bind(at("socket")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        for (name, is_file) in [
            ("file", true),
            ("link", false),
            ("socket", false),
            ("pipe", false),
            ("", false),
        ] {
            assert_eq!(open_foreign(&at(name)).is_ok(), is_file, "{name}");
        }
    }
}

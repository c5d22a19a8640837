//! Folders that are their owner's alone, and files in those of others.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Access, OFlags};

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
    regular(options.open(path)?)
}

/// Opens a file for reading, also over a link. A pipe, of which nobody writes the other end, is an
/// error that nobody waits for.
///
/// # Errors
/// The system's, unchanged; `InvalidData` for what is no file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open_regular_with(File::options().read(true), path)
}

/// The same, opened in another way.
///
/// # Errors
/// As above.
pub fn open_regular_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    regular(options.custom_flags(flags).open(path)?)
}

fn regular(file: File) -> io::Result<File> {
    let words = "it is no file, but a folder, a pipe or a device";
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(ErrorKind::InvalidData, words)),
    }
}

/// Whether this process may make files in a folder; root may anywhere but where nobody can.
///
/// # Errors
/// Why it may not.
pub fn check_writable(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(path, Access::WRITE_OK)?)
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
        for (name, is_file, is_followed) in [
            ("file", true, true),
            ("link", false, true),
            ("socket", false, false),
            ("pipe", false, false),
            ("", false, false),
        ] {
            assert_eq!(open_foreign(&at(name)).is_ok(), is_file, "{name}");
            assert_eq!(open_regular(&at(name)).is_ok(), is_followed, "{name}");
        }
    }
}

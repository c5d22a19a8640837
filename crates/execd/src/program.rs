//! Finds the program that a command names, as a shell would.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, FileType, accessat, stat};

/// Why there is no program to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// There is no such file.
    NotFound,
    /// There is one, but it cannot be run.
    NotExecutable,
}

impl Missing {
    /// The exit code that shells give it.
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::NotFound => 127,
            Self::NotExecutable => 126,
        }
    }

    /// In words.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::NotFound => "not found",
            Self::NotExecutable => "permission denied",
        }
    }
}

/// The absolute path of `name`: looked for in the absolute entries of `path` when it has no slash,
/// else taken from `cwd`.
pub(crate) fn find(name: &str, path: &str, cwd: &Path) -> Result<CString, Missing> {
    if name.is_empty() {
        return Err(Missing::NotFound);
    }
    if name.contains('/') {
        let whole = cwd.join(name);
        return check(&whole).map(|()| to_c(&whole));
    }
    let mut missing = Missing::NotFound;
    for folder in path.split(':').filter(|folder| folder.starts_with('/')) {
        let candidate = PathBuf::from(folder).join(name);
        match check(&candidate) {
            Ok(()) => return Ok(to_c(&candidate)),
            Err(Missing::NotExecutable) => missing = Missing::NotExecutable,
            Err(Missing::NotFound) => {}
        }
    }
    Err(missing)
}

/// The shell for scripts: bash where the image has it, else sh.
pub(crate) fn shell(path: &str) -> Option<CString> {
    let usual = ["/bin/bash", "/usr/bin/bash"].map(Path::new);
    let bash = usual.into_iter().find(|path| check(path).is_ok()).map(to_c);
    let named = |name| find(name, path, Path::new("/")).ok();
    let sh = || {
        check(Path::new("/bin/sh"))
            .ok()
            .map(|()| c"/bin/sh".to_owned())
    };
    bash.or_else(|| named("bash"))
        .or_else(sh)
        .or_else(|| named("sh"))
}

fn check(path: &Path) -> Result<(), Missing> {
    let found = stat(path).map_err(|_| Missing::NotFound)?;
    let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    if is_file && accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_ok() {
        Ok(())
    } else {
        Err(Missing::NotExecutable)
    }
}

/// A path came from a JSON text or a directory, where a NUL was refused before.
fn to_c(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let cwd = Path::new("/");
        for (name, path, wanted) in [
            ("sh", "/nowhere:bin:/bin", Ok("/bin/sh")),
            ("bin/sh", "", Ok("/bin/sh")),
            ("/bin/sh", "", Ok("/bin/sh")),
            ("sh", "bin:", Err(Missing::NotFound)),
            ("passwd", "/etc", Err(Missing::NotExecutable)),
            ("/etc", "", Err(Missing::NotExecutable)),
            ("no_such_program", "/bin:/usr/bin", Err(Missing::NotFound)),
            ("", "/bin", Err(Missing::NotFound)),
        ] {
            let found = find(name, path, cwd).map(|path| path.into_string().unwrap());
            assert_eq!(found, wanted.map(str::to_owned), "{name} in {path}");
        }
        assert!(shell("").is_some());
    }
}

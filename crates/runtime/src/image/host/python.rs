//! Which Python of the host's own `/usr` sandboxes use, told from names without running anything.

use std::fs;
use std::path::{Path, PathBuf};

/// The oldest minor version of Python 3 that recipes build on.
pub(in crate::image) const PYTHON_MIN: u32 = 11;
/// The oldest that `host` itself makes an environment for.
const PYTHON_ANY: u32 = 7;
/// No minor version this high will be met.
const PYTHON_MAX: u32 = 40;

/// A Python 3 in the host's `/usr`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::image) struct HostPython {
    /// Absolute path, the same on the host and inside.
    pub exe: PathBuf,
    /// The minor version.
    pub minor: u32,
}

/// The first in the order of PATH that is at least `min`: `python3` itself, then the highest
/// `python3.N`.
pub(in crate::image) fn find(root: &Path, min: u32) -> Option<HostPython> {
    ["usr/local/bin", "usr/bin"].iter().find_map(|folder| {
        let named = std::iter::once("python3".to_owned());
        let numbered = (min..=PYTHON_MAX)
            .rev()
            .map(|minor| format!("python3.{minor}"));
        named.chain(numbered).find_map(|name| {
            let inside = Path::new("/").join(folder).join(&name);
            let real = fs::canonicalize(root.join(folder).join(&name)).ok()?;
            // A link out of /usr, as version managers make them, would dangle in a sandbox.
            real.strip_prefix(fs::canonicalize(root.join("usr")).ok()?)
                .ok()?;
            let minor =
                minor_of(&real.file_name()?.to_string_lossy()).or_else(|| minor_of(&name))?;
            (minor >= min).then_some(HostPython { exe: inside, minor })
        })
    })
}

/// As [`find`], with any version if there is none of the wanted ones.
pub(super) fn find_any(root: &Path) -> Option<HostPython> {
    find(root, PYTHON_MIN).or_else(|| find(root, PYTHON_ANY))
}

fn minor_of(name: &str) -> Option<u32> {
    name.strip_prefix("python3.")?.parse().ok()
}

/// Where that Python's pip is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::image) enum Pip {
    /// Among the system's packages.
    Installed,
    /// As a wheel that the distribution ships for new environments.
    Wheel(PathBuf),
    /// Nowhere.
    Missing,
}

/// Looks for pip where distributions put it.
pub(in crate::image) fn pip(root: &Path, python: &HostPython) -> Pip {
    let minor = python.minor;
    let mut packages = vec![format!("usr/lib/python3.{minor}/site-packages")];
    packages.push(format!("usr/lib64/python3.{minor}/site-packages"));
    packages.push(format!("usr/local/lib/python3.{minor}/site-packages"));
    packages.push(format!("usr/local/lib/python3.{minor}/dist-packages"));
    if python.exe.starts_with("/usr/bin") {
        packages.push("usr/lib/python3/dist-packages".to_owned());
    }
    if packages
        .iter()
        .any(|folder| root.join(folder).join("pip/__init__.py").is_file())
    {
        return Pip::Installed;
    }
    let prefix = if python.exe.starts_with("/usr/local") {
        "usr/local"
    } else {
        "usr"
    };
    let bundled = format!("{prefix}/lib/python3.{minor}/ensurepip/_bundled");
    let wheel = [bundled.as_str(), "usr/share/python-wheels"]
        .iter()
        .find_map(|folder| {
            let names = fs::read_dir(root.join(folder)).ok()?.flatten();
            let mut names = names.filter_map(|entry| entry.file_name().into_string().ok());
            let name = names.find(|name| name.starts_with("pip-") && name.ends_with(".whl"))?;
            Some(Path::new("/").join(folder).join(name))
        });
    wheel.map_or(Pip::Missing, Pip::Wheel)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn host(files: &[&str], links: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files.iter().chain(links.iter().map(|(link, _)| link)) {
            fs::create_dir_all(root.path().join(file).parent().unwrap()).unwrap();
        }
        files
            .iter()
            .for_each(|file| fs::write(root.path().join(file), "").unwrap());
        links
            .iter()
            .for_each(|(link, to)| symlink(to, root.path().join(link)).unwrap());
        root
    }

    #[test]
    fn the_default_python_comes_first_if_it_is_new_enough() {
        let files = [
            "usr/bin/python3.12",
            "usr/bin/python3.9",
            "usr/bin/python3.13",
        ];
        let root = host(&files, &[("usr/bin/python3", "python3.12")]);
        let found = find(root.path(), PYTHON_MIN).unwrap();
        assert_eq!(
            (found.exe.to_str().unwrap(), found.minor),
            ("/usr/bin/python3", 12)
        );
        let old = host(&files, &[("usr/bin/python3", "python3.9")]);
        let found = find(old.path(), PYTHON_MIN).unwrap();
        assert_eq!(
            (found.exe.to_str().unwrap(), found.minor),
            ("/usr/bin/python3.13", 13)
        );
    }

    #[test]
    fn a_python_outside_usr_does_not_count() {
        let root = host(&["home/me/python3.12"], &[]);
        fs::create_dir_all(root.path().join("usr/bin")).unwrap();
        symlink(
            "../../home/me/python3.12",
            root.path().join("usr/bin/python3"),
        )
        .unwrap();
        assert_eq!(find(root.path(), PYTHON_MIN), None);
        assert_eq!(find_any(root.path()), None);
    }

    #[test]
    fn pip_is_found_installed_as_a_wheel_or_not_at_all() {
        let python = HostPython {
            exe: "/usr/bin/python3".into(),
            minor: 11,
        };
        let none = host(&["usr/bin/python3.11"], &[]);
        assert_eq!(pip(none.path(), &python), Pip::Missing);
        let wheel = host(&["usr/share/python-wheels/pip-23.0-py3-none-any.whl"], &[]);
        let path = "/usr/share/python-wheels/pip-23.0-py3-none-any.whl";
        assert_eq!(pip(wheel.path(), &python), Pip::Wheel(path.into()));
        let there = host(&["usr/lib/python3/dist-packages/pip/__init__.py"], &[]);
        assert_eq!(pip(there.path(), &python), Pip::Installed);
    }
}

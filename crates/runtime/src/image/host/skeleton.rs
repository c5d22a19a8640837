//! The layer beneath every sandbox on `host`: folders, accounts, and what programs need of `/etc`.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

use super::python::{self, Pip};
use super::tree::{self, copy, file, folder, link};
use crate::image::VENV;
use crate::image::error::ImageError;

/// To be raised whenever what is written below changes.
pub(super) const VERSION: &str = "1";

/// All that a sandbox sees of the host's `/etc`. Nothing here is particular to its owner: no
/// accounts, keys, hosts or settings of services.
const FROM_ETC: [&str; 19] = [
    "etc/alternatives",
    "etc/ld.so.cache",
    "etc/ld.so.conf",
    "etc/ld.so.conf.d",
    "etc/ld-musl-x86_64.path",
    "etc/ssl/openssl.cnf",
    "etc/ssl/certs/ca-certificates.crt",
    "etc/ssl/certs/java/cacerts",
    "etc/ssl/cert.pem",
    "etc/pki/ca-trust/extracted",
    "etc/pki/tls/certs",
    "etc/fonts",
    "etc/localtime",
    "etc/timezone",
    "etc/terminfo",
    "etc/mime.types",
    "etc/protocols",
    "etc/services",
    "etc/debian_version",
];

/// Folders with their modes. The last ones are where agents put what they make.
const FOLDERS: [(&str, u32); 24] = [
    ("boot", 0o755),
    ("dev", 0o755),
    ("etc", 0o755),
    ("home", 0o755),
    ("mnt", 0o755),
    ("opt", 0o755),
    ("opt/opensandbox", 0o755),
    ("proc", 0o755),
    ("root", 0o700),
    ("run", 0o755),
    ("run/lock", 0o1777),
    ("srv", 0o755),
    ("sys", 0o755),
    ("tmp", 0o1777),
    ("usr", 0o755),
    ("var", 0o755),
    ("var/cache", 0o755),
    ("var/lib", 0o755),
    ("var/log", 0o755),
    ("var/tmp", 0o1777),
    ("workspace", 0o1777),
    ("large_tool_results", 0o1777),
    ("conversation_history", 0o1777),
    ("blobs", 0o1777),
];

const FILES: [(&str, &str); 8] = [
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/bash\n\
         user:x:1000:1000:user:/home/user:/bin/bash\n\
         nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    ),
    (
        "etc/group",
        "root:x:0:\ntty:x:5:\nuser:x:1000:\nnogroup:x:65534:\n",
    ),
    (
        "etc/hosts",
        "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost\n",
    ),
    ("etc/hostname", "sandbox\n"),
    (
        "etc/nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files dns\nservices: files\n",
    ),
    (
        "etc/resolv.conf",
        "# No name server: this sandbox has no network.\n",
    ),
    ("etc/shells", "/bin/sh\n/bin/bash\n"),
    (
        "etc/profile",
        "if [ \"${PS1-}\" ]; then PS1='\\u@\\h:\\w\\$ '; fi\n",
    ),
];

/// Writes the skeleton of a host into a new folder.
pub(super) fn write(root: &Path, to: &Path) -> Result<(), ImageError> {
    folder(to, 0o755)?;
    for (path, mode) in FOLDERS {
        folder(&to.join(path), mode)?;
    }
    for path in FROM_ETC {
        copy(root, to, path)?;
    }
    for (path, text) in FILES {
        file(&to.join(path), text.as_bytes(), 0o644)?;
    }
    certificates(root, to)?;
    release(root, to)?;
    link(Path::new("/proc/self/mounts"), &to.join("etc/mtab"))?;
    let (links, binds) = tree::system_folders(root)?;
    for (name, leads) in links {
        link(&leads, &to.join(name))?;
    }
    for bind in binds {
        folder(
            &to.join(bind.target.strip_prefix("/").unwrap_or(&bind.target)),
            0o755,
        )?;
    }
    home(to)?;
    environment(root, to)?;
    tree::prune(root, to, "etc")
}

/// Links to the certificates that the system ships, which lie under `/usr`; of files only the
/// bundle is copied above, as others may name the host.
fn certificates(root: &Path, to: &Path) -> Result<(), ImageError> {
    let certs = root.join("etc/ssl/certs");
    if !certs.is_dir() {
        return Ok(());
    }
    for name in crate::image::store::entries(&certs)? {
        if let Ok(leads) = fs::read_link(certs.join(&name)) {
            link(&leads, &to.join("etc/ssl/certs").join(name))?;
        }
    }
    Ok(())
}

fn release(root: &Path, to: &Path) -> Result<(), ImageError> {
    if root.join("usr/lib/os-release").is_file() {
        link(
            Path::new("../usr/lib/os-release"),
            &to.join("etc/os-release"),
        )
    } else {
        copy(root, to, "etc/os-release")
    }
}

/// The ordinary user's home. Without privileges there is no other owner than root inside.
fn home(to: &Path) -> Result<(), ImageError> {
    let home = to.join("home/user");
    folder(&home, 0o755)?;
    if rustix::process::geteuid().is_root() {
        chown(&home, Some(1000), Some(1000)).map_err(ImageError::disk("change", &home))?;
    }
    Ok(())
}

/// A Python environment that can be written to, so that `pip install` works although `/usr` is
/// read-only. It sees the system's packages, and pip among them; where the distribution has pip
/// only as a wheel for new environments, it is used as such.
fn environment(root: &Path, to: &Path) -> Result<(), ImageError> {
    let Some(found) = python::find_any(root) else {
        return Ok(());
    };
    let venv = to.join(VENV.trim_start_matches('/'));
    let version = format!("python3.{}", found.minor);
    let packages = venv.join("lib").join(&version).join("site-packages");
    folder(&packages, 0o755)?;
    folder(&venv.join("bin"), 0o755)?;
    let home = found
        .exe
        .parent()
        .unwrap_or(Path::new("/usr/bin"))
        .display();
    let config = format!(
        "home = {home}\ninclude-system-site-packages = true\nversion = 3.{}\n",
        found.minor
    );
    file(&venv.join("pyvenv.cfg"), config.as_bytes(), 0o644)?;
    link(Path::new("lib"), &venv.join("lib64"))?;
    link(&found.exe, &venv.join("bin/python3"))?;
    for name in ["python", &version] {
        link(Path::new("python3"), &venv.join("bin").join(name))?;
    }
    let pip = python::pip(root, &found);
    if let Pip::Wheel(wheel) = &pip {
        let line = format!("{}\n", wheel.display());
        file(&packages.join("pip.pth"), line.as_bytes(), 0o644)?;
    }
    let script = pip_script(&pip);
    for name in ["pip", "pip3"] {
        file(&venv.join("bin").join(name), script.as_bytes(), 0o755)?;
    }
    Ok(())
}

fn pip_script(pip: &Pip) -> String {
    match pip {
        Pip::Installed | Pip::Wheel(_) => {
            format!("#!/bin/sh\nexec {VENV}/bin/python3 -m pip \"$@\"\n")
        }
        Pip::Missing => {
            "#!/bin/sh\necho \"pip: the host's Python has none; install python3-pip or \
                         python3-venv on the host, or use an image that has it\" >&2\nexit 1\n"
                .to_owned()
        }
    }
}

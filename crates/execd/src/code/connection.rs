//! What a kernel is told before it starts: where to listen, and the key that it signs with.

use std::fs::File;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::rand::GetRandomFlags;
use serde_json::json;

use crate::environment::Variables;

/// The ports of a kernel, all on the sandbox's own loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ports {
    /// Where it is asked.
    pub(crate) shell: u16,
    /// Where it publishes.
    pub(crate) iopub: u16,
    /// Where it asks for input, which nobody gives.
    pub(crate) stdin: u16,
    /// Where it is asked while it works.
    pub(crate) control: u16,
    /// Where it shows that it lives; its process tells that better.
    pub(crate) heartbeat: u16,
}

impl Ports {
    fn all(self) -> [u16; 5] {
        [
            self.shell,
            self.iopub,
            self.stdin,
            self.control,
            self.heartbeat,
        ]
    }

    /// Whether one of them is this port.
    pub(crate) fn contain(self, port: u16) -> bool {
        self.all().contains(&port)
    }
}

/// Ports that were free, held until this is dropped, right after the kernel was started.
#[derive(Debug)]
pub(crate) struct Reserved {
    /// The ports.
    pub(crate) ports: Ports,
    _listeners: Vec<TcpListener>,
}

/// Where ports are looked for: below those that connections get when they name none, or such a
/// connection could take one before its kernel, which starts for a third of a second, does.
const PORTS: Range<u16> = 20_000..32_768;

impl Reserved {
    /// Finds five ports, none of which another kernel has been given and may not have taken yet.
    ///
    /// # Errors
    /// When there are none, or no loopback.
    pub(crate) fn new(is_given: impl Fn(u16) -> bool) -> io::Result<Self> {
        let mut listeners = Vec::new();
        let mut ports = Vec::new();
        let count = PORTS.end - PORTS.start;
        let mut seed = [0; 2];
        rustix::rand::getrandom(&mut seed, GetRandomFlags::empty())?;
        let first = u16::from_le_bytes(seed) % count;
        for offset in 0..count {
            let port = PORTS.start + (first + offset) % count;
            if is_given(port) {
                continue;
            }
            match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                Ok(listener) => listeners.push(listener),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => continue,
                Err(error) => return Err(error),
            }
            ports.push(port);
            if let [shell, iopub, stdin, control, heartbeat] = *ports.as_slice() {
                let ports = Ports {
                    shell,
                    iopub,
                    stdin,
                    control,
                    heartbeat,
                };
                return Ok(Self {
                    ports,
                    _listeners: listeners,
                });
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }
}

/// The file that tells a kernel its ports and its key. Only its user can read it, and it goes with
/// the kernel.
#[derive(Debug)]
pub(crate) struct ConnectionFile(PathBuf);

impl ConnectionFile {
    /// Writes the file for a kernel of this id, which nobody can guess.
    ///
    /// # Errors
    /// When no place for it can be written to.
    pub(crate) fn write(
        variables: &Variables,
        id: &str,
        ports: Ports,
        key: &str,
    ) -> io::Result<Self> {
        let text = json!({
            "transport": "tcp",
            "ip": "127.0.0.1",
            "shell_port": ports.shell,
            "iopub_port": ports.iopub,
            "stdin_port": ports.stdin,
            "control_port": ports.control,
            "hb_port": ports.heartbeat,
            "key": key,
            "signature_scheme": "hmac-sha256",
        });
        let own = variables.get("JUPYTER_RUNTIME_DIR").map(String::as_str);
        // Memory in every sandbox of ours; elsewhere perhaps not writable, and then what always is.
        let places = own.into_iter().chain(["/run", "/tmp"]);
        let mut failure = io::ErrorKind::NotFound.into();
        for place in places {
            let path = Path::new(place).join(format!("kernel-{id}.json"));
            match create(&path, text.to_string().as_bytes()) {
                Ok(()) => return Ok(Self(path)),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ConnectionFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn create(path: &Path, text: &[u8]) -> io::Result<()> {
    // New, so that neither a link nor somebody else's file can stand in its place.
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn ports_that_were_given_are_not_given_again() {
        let first = Reserved::new(|_| false).unwrap();
        let ports = first.ports;
        drop(first);
        let second = Reserved::new(|port| ports.contain(port)).unwrap();
        assert!(second.ports.all().iter().all(|port| !ports.contain(*port)));
        assert!(second.ports.all().iter().all(|port| PORTS.contains(port)));
        assert!(Reserved::new(|_| true).is_err());
    }

    #[test]
    fn the_file_is_its_users_alone_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_str().unwrap().to_owned();
        let variables = Variables::from([("JUPYTER_RUNTIME_DIR".to_owned(), place)]);
        let ports = Reserved::new(|_| false).unwrap().ports;
        let file = ConnectionFile::write(&variables, "i", ports, "secret").unwrap();
        let path = file.path().to_owned();
        assert_eq!(path, folder.path().join("kernel-i.json"));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(
            std::fs::read_to_string(&path)
                .unwrap()
                .contains("\"secret\"")
        );
        drop(file);
        assert!(!path.exists());
    }
}

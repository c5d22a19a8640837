//! How this program is started: by the launcher as a spare that waits for its sandbox, by a
//! sandbox's daemon for an isolated session, or by hand with paths.

use std::ffi::OsString;
use std::path::PathBuf;

use barchan_jail::guest::{SESSION, STAND_BY};

/// Where the daemon finds what it needs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Config {
    /// From the launcher, once it asks; see `barchan_jail::standby`.
    StandBy,
    /// From the daemon of the sandbox, as PID 1 of an isolated session.
    Session,
    /// By path, outside the launcher.
    Paths {
        /// Where to listen.
        socket: PathBuf,
        /// The boot file.
        boot: PathBuf,
        /// The log ring, if any.
        log: Option<PathBuf>,
        /// Start children without the sandbox's confinement: this host is no sandbox.
        unconfined: bool,
    },
}

/// What the arguments may be.
pub(crate) const USAGE: &str =
    "usage: barchan-execd --socket PATH --boot FILE [--log FILE] [--unconfined]\n";

/// Reads the arguments behind the program's name; `None` when they make no sense.
pub(crate) fn read(arguments: impl IntoIterator<Item = OsString>) -> Option<Config> {
    let (mut socket, mut boot, mut log, mut unconfined) = (None, None, None, false);
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.to_str()? {
            name if name.as_bytes() == STAND_BY.to_bytes() => {
                return arguments.next().is_none().then_some(Config::StandBy);
            }
            name if name.as_bytes() == SESSION.to_bytes() => {
                return arguments.next().is_none().then_some(Config::Session);
            }
            "--socket" => socket = Some(arguments.next()?.into()),
            "--boot" => boot = Some(arguments.next()?.into()),
            "--log" => log = Some(arguments.next()?.into()),
            "--unconfined" => unconfined = true,
            _ => return None,
        }
    }
    Some(Config::Paths {
        socket: socket?,
        boot: boot?,
        log,
        unconfined,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_all_or_nothing() {
        let read = |text: &str| read(text.split_whitespace().map(OsString::from));
        assert_eq!(read("--stand-by"), Some(Config::StandBy));
        assert_eq!(read("--session"), Some(Config::Session));
        let wanted = Config::Paths {
            socket: "/s".into(),
            boot: "/b".into(),
            log: None,
            unconfined: true,
        };
        assert_eq!(read("--socket /s --boot /b --unconfined"), Some(wanted));
        for text in [
            "",
            "--stand-by --socket",
            "--socket /s",
            "--boot /b",
            "--socket",
            "--socket /s --boot /b x",
            "-h",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}

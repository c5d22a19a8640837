//! Pure. How this program is started: with the numbers of descriptors that are open already.

use std::ffi::OsString;

/// The descriptors that this program is started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Config {
    /// The socket on which the launcher hands over what it makes in sandboxes.
    pub(crate) handover: i32,
    /// The socket on which the server is served.
    pub(crate) listen: i32,
}

/// What the arguments may be.
pub(crate) const USAGE: &str = "usage: barchan-egress --handover FD --listen FD";

/// Reads the arguments behind the program's name; `None` when they make no sense.
pub(crate) fn read(arguments: impl IntoIterator<Item = OsString>) -> Option<Config> {
    let (mut handover, mut listen) = (None, None);
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let place = match argument.to_str()? {
            "--handover" => &mut handover,
            "--listen" => &mut listen,
            _ => return None,
        };
        let number: u16 = arguments.next()?.to_str()?.parse().ok()?;
        *place = Some(i32::from(number));
    }
    Some(Config {
        handover: handover?,
        listen: listen?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_two_numbers() {
        let read = |text: &str| read(text.split_whitespace().map(OsString::from));
        let wanted = Config {
            handover: 3,
            listen: 4,
        };
        assert_eq!(read("--handover 3 --listen 4"), Some(wanted));
        for text in [
            "",
            "--handover 3",
            "--handover 3 --listen",
            "--handover 3 --listen x",
            "--handover -1 --listen 4",
            "--handover 3 --listen 4 x",
            "-h",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}

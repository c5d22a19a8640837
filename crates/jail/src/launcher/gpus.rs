//! The host's graphics processors.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::Launcher;
use crate::blank;
use crate::devices::{self, Gpus};
use crate::mounts::{self, Device};

impl Launcher {
    /// How many there are at this moment.
    pub(super) fn gpus(&self) -> u32 {
        devices::count(&names(&self.options.devices))
    }

    /// A /dev of a sandbox's own, with what it asked for.
    pub(super) fn devices_with(&self, gpus: Gpus) -> io::Result<OwnedFd> {
        let folder = &self.options.devices;
        let chosen = devices::choose(&names(folder), gpus).ok_or_else(|| {
            let words = format!("this host has {} graphics processors", self.gpus());
            io::Error::new(io::ErrorKind::Unsupported, words)
        })?;
        let chosen = chosen.into_iter().map(|name| {
            let source = folder.join(&name);
            let number = fs::metadata(&source)?.rdev();
            Ok(Device {
                name,
                source,
                number,
            })
        });
        let chosen = chosen.collect::<io::Result<Vec<_>>>()?;
        mounts::device_tree(blank::STAGING, &chosen)
    }
}

/// The names of character devices in a folder like /dev, those of `dri` included.
fn names(folder: &Path) -> Vec<String> {
    let inside = |below: &str| {
        let entries = fs::read_dir(folder.join(below))
            .into_iter()
            .flatten()
            .flatten();
        let below = below.to_owned();
        entries.filter_map(move |entry| {
            // A link would lead to whatever its name says.
            let is_device = entry.file_type().is_ok_and(|kind| kind.is_char_device());
            let name = entry.file_name().into_string().ok().filter(|_| is_device)?;
            Some(format!("{below}{name}"))
        })
    };
    inside("").chain(inside("dri/")).collect()
}

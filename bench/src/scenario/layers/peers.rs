//! Other ways to keep what was written: a full copy, and a snapshot of a btrfs subvolume.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::MUCH_ROUNDS;
use crate::samples::Samples;
use crate::ticker;

/// As much as the sandbox writes: 500 MB in 20,000 files of 200 folders.
const FOLDERS: usize = 200;
const FILES_EACH: usize = 100;
const FILE_BYTES: usize = 25_000;
/// Size of the sparse file that holds a btrfs.
const DISK_BYTES: u64 = 4 << 30;

pub(super) fn measure() -> Vec<Samples> {
    let ms = |id, title| Samples::new(id, title, "ms");
    let mut copy = ms("layer_copy", "cp -a of as much on this disk");
    let mut snapshot = ms(
        "layer_btrfs",
        "btrfs subvolume snapshot of as much, on a loop device",
    );
    if let Err(error) = copies(&mut copy) {
        copy.add(Err(format!("{error:#}")));
    }
    if let Err(error) = snapshots(&mut snapshot) {
        snapshot.add(Err(format!("{error:#}")));
    }
    vec![copy, snapshot]
}

fn copies(samples: &mut Samples) -> Result<()> {
    let home = TempDir::new()?;
    let tree = home.path().join("tree");
    write(&tree)?;
    for round in 0..MUCH_ROUNDS {
        let copy = home.path().join(format!("copy{round}"));
        samples.add(Ok(timed(
            Command::new("cp").arg("-a").arg(&tree).arg(&copy),
        )?));
        fs::remove_dir_all(copy)?;
    }
    Ok(())
}

fn snapshots(samples: &mut Samples) -> Result<()> {
    let home = TempDir::new()?;
    let (image, place) = (home.path().join("image"), home.path().join("mnt"));
    fs::create_dir(&place)?;
    fs::File::create(&image)?.set_len(DISK_BYTES)?;
    timed(Command::new("mkfs.btrfs").arg("-q").arg(&image))?;
    timed(
        Command::new("mount")
            .args(["-o", "loop"])
            .arg(&image)
            .arg(&place),
    )?;
    let measured = snapshots_at(&place, samples);
    timed(Command::new("umount").arg(&place))?;
    measured
}

fn snapshots_at(place: &Path, samples: &mut Samples) -> Result<()> {
    let tree = place.join("tree");
    let subvolume = |words: &[&str]| {
        let mut command = Command::new("btrfs");
        command.arg("subvolume").args(words);
        command
    };
    timed(subvolume(&["create"]).arg(&tree))?;
    for round in 0..MUCH_ROUNDS {
        // Written anew, as a sandbox has done when it is sealed.
        write(&tree)?;
        let copy = place.join(format!("copy{round}"));
        samples.add(Ok(timed(subvolume(&["snapshot"]).arg(&tree).arg(&copy))?));
        timed(subvolume(&["delete"]).arg(&copy))?;
    }
    Ok(())
}

fn write(tree: &Path) -> Result<()> {
    let content = vec![0; FILE_BYTES];
    for folder in 0..FOLDERS {
        let folder = tree.join(format!("d{folder}"));
        fs::create_dir_all(&folder)?;
        for file in 0..FILES_EACH {
            fs::write(folder.join(file.to_string()), &content)?;
        }
    }
    Ok(())
}

/// Runs a program, and how many milliseconds it took.
fn timed(command: &mut Command) -> Result<f64> {
    let name = command.get_program().to_string_lossy().into_owned();
    let start = ticker::now();
    let output = command
        .output()
        .with_context(|| format!("{name} cannot be run"))?;
    let ms = ticker::ms_since(start);
    match output.status.success() {
        true => Ok(ms),
        false => bail!("{name}: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

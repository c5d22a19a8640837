//! Pure. What follows `barchan layers`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args as Flags, Subcommand};

/// What to do with the layers of sandboxes.
#[derive(Debug, Subcommand)]
pub(crate) enum Layers {
    /// Seal what a running sandbox has written, and print the layer's number
    Seal {
        /// What to call it: the command that wrote it, say
        #[arg(long, value_name = "TEXT")]
        label: Option<String>,
        /// Seal nothing while a process uses the files, instead of copying them
        #[arg(long)]
        no_copy: bool,
        /// Sandbox, by id or the beginning of one
        sandbox: String,
    },
    /// Show the layers of a sandbox
    #[command(visible_alias = "ls")]
    List {
        /// Print numbers only
        #[arg(long, short)]
        quiet: bool,
        /// Sandbox, by id or the beginning of one
        sandbox: String,
    },
    /// Show a layer with its digest, as JSON
    Inspect {
        /// Sandbox, by id or the beginning of one
        sandbox: String,
        /// Layer, by its number
        layer: u32,
    },
    /// Show what differs between two layers; without TO, between a layer and how the sandbox is now
    Diff {
        /// Print the lines that differ, as `patch -p1` and `git apply` take them
        #[arg(long, short, conflicts_with = "tar")]
        patch: bool,
        /// Write what was added or changed as a layer of an image; `-` for the standard output
        #[arg(long, value_name = "FILE")]
        tar: Option<PathBuf>,
        /// Overwrite that file
        #[arg(long, requires = "tar")]
        force: bool,
        /// Sandbox, by id or the beginning of one
        sandbox: String,
        /// Layer to begin with, by its number; 0: how the sandbox was made; the one before TO when
        /// not given
        from: Option<u32>,
        /// Layer of which is shown what differs in it; how the sandbox is now when not given, and
        /// its last layer if it does not run
        to: Option<u32>,
    },
    /// Make a snapshot of a layer, and print its id; `barchan snapshot export` packs it as an image
    Commit {
        /// Layer, by its number; one that is sealed now when not given
        #[arg(long, value_name = "NUMBER")]
        layer: Option<u32>,
        /// What to call the snapshot
        #[arg(long, value_name = "TEXT")]
        name: Option<String>,
        /// Return before it is ready
        #[arg(long)]
        no_wait: bool,
        /// Sandbox, by id or the beginning of one
        sandbox: String,
    },
    /// Start a sandbox anew with its files as they were; what runs in it is killed
    Undo {
        /// Do nothing while a command runs
        #[arg(long)]
        no_kill: bool,
        /// Sandbox, by id or the beginning of one
        sandbox: String,
        /// Layer, by its number; 0: how the sandbox was made
        layer: u32,
    },
    /// Make sandboxes of a layer, which they share, and print their ids
    Fork {
        /// Layer, by its number; one that is sealed now when not given
        #[arg(long, value_name = "NUMBER")]
        layer: Option<u32>,
        /// How many sandboxes
        #[arg(long, short, value_name = "COUNT", default_value_t = 1)]
        count: u32,
        /// Time to live in seconds; what is left of the sandbox's own when not given
        #[arg(long, value_name = "SECONDS")]
        timeout: Option<u64>,
        /// Sandbox, by id or the beginning of one
        sandbox: String,
    },
    /// Bring what a sandbox wrote to a folder of this machine, under review
    ///
    /// What tools of this machine would obey without being asked is held until it is approved:
    /// hooks, settings of editors and shells, words to coding agents. The exit code is 0 when the
    /// folder is as the sandbox has it, and 3 when something was held back.
    #[command(allow_missing_positional = true)]
    Export(Export),
    /// Forget layers
    Rm {
        /// Sandbox, by id or the beginning of one
        sandbox: String,
        /// Layers, by their numbers
        #[arg(required = true, value_name = "NUMBER")]
        layers: Vec<u32>,
    },
}

#[derive(Debug, Flags)]
pub(crate) struct Export {
    /// Layer to begin with; 0, how the sandbox was made, when not given
    #[arg(long, value_name = "NUMBER", conflicts_with = "archive")]
    pub(crate) from: Option<u32>,
    /// Layer to end with; one that is sealed for it, and kept, when not given, and the last of a
    /// sandbox that does not run
    #[arg(long, value_name = "NUMBER", conflicts_with = "archive")]
    pub(crate) to: Option<u32>,
    /// Folder of the sandbox that is brought; when not given, /workspace if it changed, else /
    #[arg(long, value_name = "PATH")]
    pub(crate) root: Option<OsString>,
    /// Bring a held entry as well, by its exact path in the table, behind `link:`, `set_id:` or
    /// `gone:` if it is that; may repeat
    #[arg(long, value_name = "PATH")]
    pub(crate) approve: Vec<OsString>,
    /// Bring all held entries
    #[arg(long)]
    pub(crate) approve_all: bool,
    /// Remove what the sandbox removed
    #[arg(long)]
    pub(crate) delete: bool,
    /// Tell what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Most that is taken, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 30)]
    pub(crate) max_bytes: u64,
    /// Take this layer in a tar archive, in the place of a sandbox's; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) archive: Option<PathBuf>,
    /// Sandbox, by id or the beginning of one, which an archive takes the place of; and a folder of
    /// this machine, made when it is missing
    #[arg(required = true, value_names = ["SANDBOX", "DIR"], num_args = 1..=2)]
    places: Vec<PathBuf>,
}

impl Export {
    /// The folder of this machine.
    pub(crate) fn dir(&self) -> &Path {
        self.places.last().map_or(Path::new(""), PathBuf::as_path)
    }

    /// What is exported.
    pub(crate) fn source(&self) -> Result<Source<'_>> {
        match (self.places.as_slice(), &self.archive) {
            ([_], Some(archive)) => Ok(Source::Archive(archive)),
            ([sandbox, _], None) => {
                let sandbox = sandbox.to_str().context("the sandbox's id is no text")?;
                Ok(Source::Sandbox(sandbox))
            }
            _ => bail!("name a sandbox and a folder, or with --archive a folder alone"),
        }
    }
}

/// What is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source<'a> {
    /// Layers of a sandbox.
    Sandbox(&'a str),
    /// A layer in a file.
    Archive(&'a Path),
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command};

    #[test]
    fn an_export_is_of_a_sandbox_or_of_an_archive() {
        let sandbox = Some(Source::Sandbox("0b0e"));
        for (line, expected) in [
            ("0b0e here", sandbox),
            ("0b0e --from 1 here --delete", sandbox),
            ("--from 1 --to 2 --approve a 0b0e here", sandbox),
            (
                "--archive a.tar here",
                Some(Source::Archive(Path::new("a.tar"))),
            ),
            ("here", None),
            ("--archive a.tar 0b0e here", None),
            ("--archive a.tar --from 1 here", None),
            ("0b0e here there", None),
            ("", None),
        ] {
            let words = ["barchan", "layers", "export"].into_iter();
            let parsed = Args::try_parse_from(words.chain(line.split_whitespace()));
            let export = parsed.ok().map(|args| match args.command {
                Command::Layers(Layers::Export(export)) => export,
                other => panic!("{other:?}"),
            });
            let found = export.as_ref().and_then(|export| export.source().ok());
            assert_eq!(found, expected, "{line}");
            let dir = export.as_ref().filter(|_| found.is_some());
            assert!(
                dir.is_none_or(|export| export.dir() == Path::new("here")),
                "{line}"
            );
        }
    }
}

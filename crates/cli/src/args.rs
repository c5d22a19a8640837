//! The command line: every command with its flags.

mod access;
mod exec;
mod layers;
mod outbound;
mod ports;
mod snapshot;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as Flags, Parser, Subcommand};

use crate::parse;
pub(crate) use access::{Audit, Key, NewKey as NewKeyFlags, Tenant, Terms};
pub(crate) use exec::Exec;
pub(crate) use layers::{Export, Layers, Source};
pub(crate) use outbound::{Approvals, Connections};
pub(crate) use ports::PortForward;
pub(crate) use snapshot::Snapshot;

/// Sandboxes for AI agents: start in milliseconds, run anything, throw away.
#[derive(Debug, Parser)]
#[command(
    name = "barchan",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command understands.
#[derive(Debug, Clone, Flags)]
pub(crate) struct Global {
    /// Server to use: http://host:port or unix:/path. Without one, a private server is started
    #[arg(long, global = true, env = "BARCHAN_SERVER", value_name = "ADDRESS")]
    pub(crate) server: Option<String>,
    /// Key of that server
    #[arg(
        long,
        global = true,
        env = "BARCHAN_API_KEY",
        hide_env_values = true,
        value_name = "KEY"
    )]
    pub(crate) api_key: Option<String>,
    /// Folder of a server's state: of the private one, of `serve`, and of commands about this host
    #[arg(long, global = true, env = barchan_wire::local::STATE_DIR_ENV, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Print data as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command in a fresh sandbox and delete it afterwards
    Run(Run),
    /// Make a sandbox that stays, and print its id
    Create(Create),
    /// Show sandboxes
    #[command(visible_alias = "ls")]
    List(List),
    /// Run a command in a sandbox
    Exec(Exec),
    /// Open a shell in a sandbox, on this terminal
    Shell(Shell),
    /// Copy files into a sandbox or out of it
    Cp(Cp),
    /// Lead ports of this machine to ports of a sandbox, until Ctrl-C
    PortForward(PortForward),
    /// Let sandboxes stand still, or rest on disk
    Pause(Pause),
    /// Let paused sandboxes run on, or start anew from disk
    Resume(Resume),
    /// Delete sandboxes
    #[command(visible_alias = "rm")]
    Kill(Kill),
    /// Build, show and remove images
    #[command(subcommand)]
    Image(Image),
    /// Show and remove named volumes
    #[command(subcommand)]
    Volume(Volume),
    /// Make, show, rotate and revoke keys of a server's API
    #[command(subcommand)]
    Key(Key),
    /// Make, show, change and remove tenants: who shares a server, and how much of it
    #[command(subcommand)]
    Tenant(Tenant),
    /// Tell who changed what on this host's server, and who was refused
    Audit(Audit),
    /// Seal what sandboxes write, go back to it, and make others of it
    #[command(subcommand)]
    Layers(Layers),
    /// Show what a sandbox reached, and what it was refused
    Connections(Connections),
    /// Show what waits for somebody's word, and allow or refuse it
    #[command(subcommand)]
    Approvals(Approvals),
    /// Save running sandboxes, show and remove what was saved
    #[command(subcommand)]
    Snapshot(Snapshot),
    /// Run a server
    Serve(Serve),
    /// Write a settings file with every setting explained
    InitConfig(InitConfig),
    /// Check, show, import and reload settings of a server
    #[command(subcommand)]
    Config(Settings),
    /// Tell what isolation this host offers and what is missing
    Doctor,
    /// Print the completion script of a shell
    Completion(Completion),
}

impl Command {
    /// Whether this process is a server whose keeper is another one.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self, Self::Serve(flags) if flags.kept)
    }
}

/// What a sandbox is made of and what it may use.
#[derive(Debug, Clone, Flags)]
pub(crate) struct Sandbox {
    /// Image to start from
    #[arg(long, short, default_value = "host", value_name = "NAME")]
    pub(crate) image: String,
    /// Snapshot to start from, in the place of an image
    #[arg(long, value_name = "ID", conflicts_with = "image")]
    pub(crate) snapshot: Option<String>,
    /// Environment of the sandbox; may repeat
    #[arg(long, short, value_parser = parse::pair, value_name = "KEY=VALUE")]
    pub(crate) env: Vec<(String, String)>,
    /// CPU limit in cores, such as 0.5 or 2
    #[arg(long, value_name = "CORES")]
    pub(crate) cpu: Option<String>,
    /// Memory limit, such as 512Mi or 2Gi
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Limit of what it may write to its file system, such as 1Gi
    #[arg(long, value_name = "SIZE")]
    pub(crate) disk: Option<String>,
}

#[derive(Debug, Flags)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) sandbox: Sandbox,
    /// Longest the command may take, such as 30s, 5m or 1h
    #[arg(long, default_value = "1h", value_parser = parse::duration, value_name = "TIME")]
    pub(crate) timeout: Duration,
    /// Folder in which the command starts
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// Pass standard input on to the command; else its input is at its end
    #[arg(long = "stdin")]
    pub(crate) stdin: bool,
    /// Command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Flags)]
pub(crate) struct Create {
    #[command(flatten)]
    pub(crate) sandbox: Sandbox,
    /// When it deletes itself, such as 10m or 2h (at least 1m); `never` keeps it
    #[arg(long, default_value = "1h", value_parser = parse::lifetime, value_name = "TIME")]
    pub(crate) timeout: parse::Lifetime,
    /// Label to find it by; may repeat
    #[arg(long, short, value_parser = parse::pair, value_name = "KEY=VALUE")]
    pub(crate) label: Vec<(String, String)>,
    /// First program and its arguments; the sandbox ends when it does
    #[arg(trailing_var_arg = true, value_name = "CMD")]
    pub(crate) entrypoint: Vec<String>,
}

#[derive(Debug, Flags)]
pub(crate) struct List {
    /// Only this state, such as Running; may repeat
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Vec<String>,
    /// Only with this label; may repeat
    #[arg(long, short, value_parser = parse::pair, value_name = "KEY=VALUE")]
    pub(crate) label: Vec<(String, String)>,
    /// Print ids only
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Flags)]
pub(crate) struct Shell {
    /// Folder in which the shell starts; made when it is missing
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// Sandbox, by id or the beginning of one
    pub(crate) id: String,
}

#[derive(Debug, Flags)]
pub(crate) struct Cp {
    /// Copy directories with all that is in them, modes and times kept
    #[arg(long, short)]
    pub(crate) recursive: bool,
    /// Largest directory that is copied out of a sandbox, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 30)]
    pub(crate) max_bytes: u64,
    /// Where from: a local path, or ID:/path in a sandbox
    pub(crate) source: String,
    /// Where to: a local path, or ID:/path in a sandbox
    pub(crate) destination: String,
}

#[derive(Debug, Flags)]
pub(crate) struct Pause {
    /// Keep what they have written, end all that runs in them, and take nothing but disk
    #[arg(long)]
    pub(crate) to_disk: bool,
    /// Sandboxes, by id or the beginning of one
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
}

#[derive(Debug, Flags)]
pub(crate) struct Resume {
    /// Sandboxes, by id or the beginning of one
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
}

#[derive(Debug, Flags)]
pub(crate) struct Kill {
    /// Sandboxes, by id or the beginning of one
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Image {
    /// Build an image from a recipe; what is built already is not built again
    Build {
        /// Name of a recipe that comes with the program, or path of a TOML file
        recipe: String,
        /// Build even what is built already
        #[arg(long)]
        fresh: bool,
    },
    /// Show the images in the store
    #[command(visible_alias = "ls")]
    List,
    /// Remove images from the store
    Rm {
        /// Names of images
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Volume {
    /// Show the named volumes and who has them mounted
    #[command(visible_alias = "ls")]
    List,
    /// Remove named volumes with all that is in them
    Rm {
        /// Names of volumes
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

#[derive(Debug, Flags)]
pub(crate) struct Serve {
    /// Settings file
    #[arg(long, short, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// For one user: the Unix socket only, and an end when nothing is left to do
    #[arg(long)]
    pub(crate) private: bool,
    /// Started by a process that keeps root, over a channel on standard input
    #[arg(long, hide = true)]
    pub(crate) kept: bool,
}

#[derive(Debug, Flags)]
pub(crate) struct InitConfig {
    /// File to write
    #[arg(default_value = "barchan.toml")]
    pub(crate) path: PathBuf,
    /// What the settings are for
    #[arg(long, default_value = "native", value_name = "NAME")]
    pub(crate) example: String,
    /// Overwrite the file when it exists
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Settings {
    /// Tell every fault of a settings file with its line, and what is doubtful
    Check {
        /// Settings file; without one, the usual place
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Show every setting that is in effect and where it comes from; secrets are masked
    Show {
        /// Settings file; without one, the usual place
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Print the reference of all settings
    Reference,
    /// Print the reference of the server's figures
    Metrics,
    /// Have a running server read its settings again
    Reload,
    /// Tell what the settings of OpenSandbox's server mean here, line by line
    Import {
        /// Their file; without one, what SANDBOX_CONFIG_PATH names, else ~/.sandbox.toml
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Settings file to write
        #[arg(long, value_name = "PATH")]
        write: Option<PathBuf>,
        /// Write it even without what is refused
        #[arg(long, requires = "write")]
        skip_refused: bool,
        /// Overwrite the file when it exists
        #[arg(long, requires = "write")]
        force: bool,
    },
}

#[derive(Debug, Flags)]
pub(crate) struct Completion {
    /// Shell to complete for
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn what_follows_the_command_is_its_own() {
        for line in [
            "barchan run -- sh -c x --json",
            "barchan run sh -c x --json",
            "barchan run --image a sh -c x --json",
        ] {
            let args = Args::parse_from(line.split(' '));
            let Command::Run(run) = args.command else {
                panic!("{line}")
            };
            assert_eq!(run.command, ["sh", "-c", "x", "--json"], "{line}");
            assert!(!args.global.json, "{line}");
        }
    }

    #[test]
    fn a_key_of_the_environment_is_not_shown_in_help() {
        let help = Args::command().render_long_help().to_string();
        assert!(help.contains("BARCHAN_API_KEY]"), "{help}");
    }
}

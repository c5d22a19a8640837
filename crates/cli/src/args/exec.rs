//! Pure. What follows `barchan exec`.

use std::time::Duration;

use clap::Args as Flags;

use crate::parse;

#[derive(Debug, Flags)]
pub(crate) struct Exec {
    /// Give the command a terminal: this one, input included
    #[arg(long, short, conflicts_with = "timeout")]
    pub(crate) tty: bool,
    /// Environment of the command; may repeat
    #[arg(long, short, value_parser = parse::pair, value_name = "KEY=VALUE")]
    pub(crate) env: Vec<(String, String)>,
    /// Longest the command may take, such as 30s or 5m
    #[arg(long, value_parser = parse::duration, value_name = "TIME")]
    pub(crate) timeout: Option<Duration>,
    /// Folder in which the command starts
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// Seal what the command writes when it has ended, under a label or else the command, and print
    /// the layer's number to standard error
    #[arg(
        long,
        value_name = "LABEL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with = "tty"
    )]
    pub(crate) seal: Option<String>,
    /// Sandbox, by id or the beginning of one
    pub(crate) id: String,
    /// Pass standard input on to the command; else its input is at its end
    #[arg(long = "stdin", short = 'i')]
    pub(crate) stdin: bool,
    /// Command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::{Args, Command};

    #[test]
    fn a_seals_label_is_no_sandbox() {
        for (line, seal) in [
            ("barchan exec a -- ls", None),
            ("barchan exec --seal a -- ls", Some("")),
            ("barchan exec --seal=make a ls", Some("make")),
        ] {
            let args = Args::parse_from(line.split(' '));
            let Command::Exec(exec) = args.command else {
                panic!("{line}")
            };
            assert_eq!(
                (exec.seal.as_deref(), exec.id.as_str()),
                (seal, "a"),
                "{line}"
            );
        }
    }
}

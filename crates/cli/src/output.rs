//! All that the program prints. Data goes to standard output, everything else to standard error.
//!
//! Whatever is printed may hold words of strangers: names, labels, reasons. Only what a command in
//! a sandbox writes is passed on as it is.

mod errors;
mod words;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Error;
use comfy_table::{Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

pub(crate) use self::words::Words;
use crate::config::Terminal;

/// How to print.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    is_json: bool,
    terminal: Terminal,
}

impl Output {
    pub(crate) fn new(is_json: bool, terminal: &Terminal) -> Self {
        Self {
            is_json,
            terminal: *terminal,
        }
    }

    /// Whether data is to be JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.is_json
    }

    /// A line of data.
    pub(crate) fn line(&self, words: impl Into<Words>) -> io::Result<()> {
        writeln!(io::stdout().lock(), "{}", words.into().as_str())
    }

    /// Lines of our own, such as a page of a manual.
    pub(crate) fn page(&self, text: &str) -> io::Result<()> {
        writeln!(io::stdout().lock(), "{text}")
    }

    /// Data as JSON, indented for people who look at it.
    pub(crate) fn json<T: Serialize>(&self, value: &T) -> io::Result<()> {
        self.page(&words::harmless_json(&serde_json::to_string_pretty(value)?))
    }

    /// Data as JSON in one line.
    pub(crate) fn json_line<T: Serialize>(&self, value: &T) -> io::Result<()> {
        self.page(&words::harmless_json(&serde_json::to_string(value)?))
    }

    /// Rows under a heading; on a terminal no wider than it.
    pub(crate) fn table(&self, heading: &[&str], rows: Vec<Vec<String>>) -> io::Result<()> {
        let cells = |row: Vec<String>| row.into_iter().map(|cell| words::harmless(&cell).into());
        let rows = rows
            .into_iter()
            .map(|row| cells(row).collect::<Vec<String>>());
        let mut table = Table::new();
        table
            .load_preset(presets::NOTHING)
            .set_header(heading)
            .add_rows(rows);
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        if !io::stdout().is_terminal() {
            table.set_content_arrangement(comfy_table::ContentArrangement::Disabled);
        }
        let lines = table.lines().map(|line| line.trim_end().to_owned());
        self.page(&lines.collect::<Vec<_>>().join("\n"))
    }

    /// Text of strangers: as it is for a program, as lines that steer no terminal for people.
    pub(crate) fn text(&self, text: &str) -> io::Result<()> {
        if !io::stdout().is_terminal() {
            return self.stdout(text.as_bytes());
        }
        text.lines().try_for_each(|line| self.line(line))
    }

    /// A piece of a command's standard output, at once and unchanged.
    pub(crate) fn stdout(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    /// A piece of a command's standard error, at once and unchanged.
    pub(crate) fn stderr(&self, bytes: &[u8]) -> io::Result<()> {
        io::stderr().lock().write_all(bytes)
    }

    /// Standard output for bytes that come as a stream.
    pub(crate) fn pipe(&self) -> tokio::io::Stdout {
        tokio::io::stdout()
    }

    /// A note for whoever watches. That nobody can read it is no reason to stop.
    pub(crate) fn note(&self, words: impl Into<Words>) {
        drop(writeln!(io::stderr().lock(), "{}", words.into().as_str()));
    }

    /// Tells an error with its causes, and gives the exit code.
    pub(crate) fn fail(&self, error: &Error, code: u8) -> ExitCode {
        if !is_broken_pipe(error) {
            self.tell(error);
        }
        ExitCode::from(code)
    }

    /// Tells an error with its causes, after which the program goes on.
    pub(crate) fn tell(&self, error: &Error) {
        let mark = self.red("error:").and(" ");
        self.note(mark.and(Words::lines(&errors::sentence(error))));
    }

    /// A note that something may be other than was meant.
    pub(crate) fn warn(&self, text: &str) {
        self.note(self.yellow("warning:").and(" ").and(text));
    }

    /// Red on a terminal that likes colours.
    pub(crate) fn red(&self, text: &str) -> Words {
        self.coloured("1;31", text)
    }

    /// Green likewise.
    pub(crate) fn green(&self, text: &str) -> Words {
        self.coloured("32", text)
    }

    /// Yellow likewise.
    pub(crate) fn yellow(&self, text: &str) -> Words {
        self.coloured("33", text)
    }

    fn coloured(&self, code: &str, text: &str) -> Words {
        Words::coloured(text, self.terminal.has_colour.then_some(code))
    }

    /// A bar for a transfer; without a size it counts. Silent where nobody watches.
    pub(crate) fn transfer(&self, size_bytes: Option<u64>) -> Arc<ProgressBar> {
        let shape = match size_bytes {
            Some(_) => "{bar:30} {bytes}/{total_bytes}  {bytes_per_sec}  {eta}",
            None => "{spinner} {bytes}  {bytes_per_sec}",
        };
        let bar = size_bytes.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
        self.shown(bar, shape)
    }

    /// A bar for work in steps. Where nobody watches, `note` each step instead.
    pub(crate) fn steps(&self) -> Arc<ProgressBar> {
        let bar = self.shown(
            ProgressBar::new(0),
            "{spinner} {pos}/{len} {elapsed} {wide_msg}",
        );
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    }

    /// Whether somebody watches progress.
    pub(crate) fn is_watched(&self) -> bool {
        self.terminal.is_interactive
    }

    fn shown(&self, bar: ProgressBar, shape: &str) -> Arc<ProgressBar> {
        let target = match self.terminal.is_interactive {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        bar.set_draw_target(target);
        if let Ok(style) = ProgressStyle::with_template(shape) {
            bar.set_style(style);
        }
        Arc::new(bar)
    }
}

/// Whether the reader of our output went away, which is its right.
pub(crate) fn is_broken_pipe(error: &Error) -> bool {
    let is_pipe = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
    error.downcast_ref::<io::Error>().is_some_and(is_pipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_terminals_that_like_them_get_colours() {
        for (has_colour, expected) in [(true, "\x1b[1;31merror:\x1b[0m"), (false, "error:")] {
            let terminal = Terminal {
                is_interactive: true,
                has_colour,
            };
            assert_eq!(
                Output::new(false, &terminal).red("error:").as_str(),
                expected
            );
        }
    }
}

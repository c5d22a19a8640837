//! The table for people and the file for programs.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::host::Host;
use crate::samples::{Bound, Figure, Goal, Statistic};

/// Everything that one run found.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) started: String,
    pub(crate) version: String,
    pub(crate) host: Host,
    /// Whether it ran at real-time priority.
    pub(crate) fifo: bool,
    pub(crate) groups: Vec<Group>,
}

/// Figures that were measured by turns, and so can be compared.
#[derive(Debug, Serialize)]
pub(crate) struct Group {
    pub(crate) title: &'static str,
    /// Programs that wanted to run on average over a minute, before and after.
    pub(crate) load: (f64, f64),
    pub(crate) figures: Vec<Figure>,
    pub(crate) notes: Vec<String>,
}

impl Report {
    /// Writes the file for programs.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let text = serde_json::to_string_pretty(self)?;
        fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
    }

    /// Whether something failed or a goal was missed.
    pub(crate) fn has_faults(&self) -> bool {
        let mut figures = self.groups.iter().flat_map(|group| &group.figures);
        figures.any(|figure| figure.failures > 0 || figure.reached == Some(false))
    }

    /// Prints what the run was made on.
    pub(crate) fn print_head(&self) -> io::Result<()> {
        let priority = if self.fifo {
            ", at real-time priority"
        } else {
            ""
        };
        writeln!(io::stdout(), "{} on {}{priority}", self.version, self.host)
    }
}

impl Group {
    /// Prints the table.
    pub(crate) fn print(&self) -> io::Result<()> {
        let mut table = Table::new();
        table
            .load_preset(presets::NOTHING)
            .set_header(["", "min", "p50", "p99", "unit", "n", "failed", "goal", ""]);
        for figure in &self.figures {
            let goals: Vec<_> = figure.goals.iter().map(goal).collect();
            table.add_row([
                figure.title.to_owned(),
                number(figure.min),
                number(figure.p50),
                number(figure.p99),
                figure.unit.to_owned(),
                figure.count.to_string(),
                figure.failures.to_string(),
                goals.join(", "),
                verdict(figure.reached).to_owned(),
            ]);
        }
        for column in table.column_iter_mut().skip(1).take(3) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let mut out = io::stdout().lock();
        let (before, after) = self.load;
        writeln!(out, "\n{} (load {before:.2} to {after:.2})", self.title)?;
        for line in table.lines() {
            writeln!(out, "{}", line.trim_end())?;
        }
        let failed = self
            .figures
            .iter()
            .flat_map(|it| it.reasons.iter().map(|why| (it.id, why)));
        for (id, why) in failed {
            writeln!(out, "  {id} failed: {why}")?;
        }
        for note in &self.notes {
            writeln!(out, "  {note}")?;
        }
        Ok(())
    }
}

/// Tells an error with its causes.
pub(crate) fn complain(error: &anyhow::Error) {
    let _ = writeln!(io::stderr(), "barchan-bench: {error:#}");
}

/// Says on standard error what is being measured, which takes a while.
pub(crate) fn progress(what: &str) {
    let _ = writeln!(io::stderr(), "barchan-bench: {what}");
}

fn verdict(reached: Option<bool>) -> &'static str {
    match reached {
        Some(true) => "ok",
        Some(false) => "MISSED",
        None => "",
    }
}

fn goal(goal: &Goal) -> String {
    let statistic = match goal.statistic {
        Statistic::P50 => "p50",
        Statistic::P99 => "p99",
    };
    let bound = match goal.bound {
        Bound::AtMost => "≤",
        Bound::AtLeast => "≥",
    };
    format!("{statistic} {bound} {}", goal.value)
}

fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value.abs() >= 100.0 => format!("{value:.0}"),
        Some(value) => format!("{value:.2}"),
    }
}

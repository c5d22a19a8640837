//! `barchan config import`: what the settings of OpenSandbox's server mean here.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use barchan_server::config::{Import, Line, Outcome, foreign_path, import};

use crate::config::variables;
use crate::output::{Output, Words};
use crate::owned;

/// The exit code when something is refused.
const REFUSED: u8 = 1;

/// The file that is to be written.
pub(super) struct Wish {
    pub(super) path: PathBuf,
    pub(super) skip_refused: bool,
    pub(super) force: bool,
}

pub(super) fn run(file: Option<PathBuf>, wish: Option<&Wish>, output: &Output) -> Result<u8> {
    let file = file.unwrap_or_else(foreign_path);
    let text = crate::config::small_file(&file)?;
    let import = import(&text, &variables()).map_err(|faults| unreadable(&file, &faults))?;
    if output.is_json() {
        output.json(&import.lines)?;
    } else {
        for line in &import.lines {
            output.line(told(&file, line, output))?;
        }
    }
    let refused = import.lines.iter().filter(|line| is_refused(line)).count();
    if let Some(wish) = wish {
        if refused > 0 && !wish.skip_refused {
            bail!(
                "{} is not written: {refused} of their settings are refused; take them out of {}, \
                 or go without them with --skip-refused",
                wish.path.display(),
                file.display()
            );
        }
        write(&import, wish, output)?;
        return Ok(0);
    }
    Ok(if refused > 0 { REFUSED } else { 0 })
}

fn write(import: &Import, wish: &Wish, output: &Output) -> Result<()> {
    owned::write(&wish.path, &import.text, wish.force)?;
    let path = wish.path.display();
    output.note(&format!(
        "wrote {path}; look at it with: barchan config check {path}"
    ));
    Ok(())
}

fn is_refused(line: &Line) -> bool {
    matches!(line.outcome, Outcome::Refused { .. })
}

fn unreadable(file: &Path, faults: &[(usize, String)]) -> anyhow::Error {
    let lines = faults
        .iter()
        .map(|(line, what)| format!("\n  {}:{line}: {what}", file.display()));
    anyhow::anyhow!(
        "their settings cannot be read: {}",
        lines.collect::<String>()
    )
}

fn told(file: &Path, line: &Line, output: &Output) -> Words {
    let place = match line.line {
        Some(number) => format!("{}:{number}: ", file.display()),
        None => String::new(),
    };
    let theirs = &line.theirs;
    match &line.outcome {
        Outcome::Mapped { ours, note } => {
            let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
            let ours = ours.join(", ");
            Words::from(&format!("{place}{theirs} "))
                .and(output.green("means"))
                .and(&format!(" {ours}{note}"))
        }
        Outcome::Ignored { why } => Words::from(&format!("{place}{theirs} is ignored: {why}")),
        Outcome::Refused { why } => Words::from(&format!("{place}{theirs} is "))
            .and(output.red("refused"))
            .and(&format!(": {why}")),
    }
}

//! `barchan config`: settings of a server, checked, shown, imported, read again.

mod import;

use std::path::Path;

use anyhow::Result;
use barchan_server::config::{self as server, Finding, SettingsError, Shown};
use barchan_wire::lifecycle::ReloadReport;
use serde::Serialize;

use crate::args::{Global, Settings};
use crate::config::server_settings;
use crate::output::{Output, Words};
use crate::server::connect_running;

/// The exit code when there are faults.
const FAULTY: u8 = 1;
/// Width of what stands before the origin of a setting.
const LINE_WIDTH: usize = 56;

pub(super) async fn run(global: &Global, command: Settings, output: &Output) -> Result<u8> {
    match command {
        Settings::Check { file } => check(global, file.as_deref(), output),
        Settings::Show { file } => show(global, file.as_deref(), output).map(|()| 0),
        Settings::Reference => {
            output.page(server::reference().trim_end())?;
            Ok(0)
        }
        Settings::Metrics => {
            output.page(barchan_server::observe::reference().trim_end())?;
            Ok(0)
        }
        Settings::Reload => reload(global, output).await.map(|()| 0),
        Settings::Import {
            file,
            write,
            skip_refused,
            force,
        } => {
            let wish = write.map(|path| import::Wish {
                path,
                skip_refused,
                force,
            });
            import::run(file, wish.as_ref(), output)
        }
    }
}

/// What a check found, as scripts read it.
#[derive(Serialize)]
struct Checked<'a> {
    ok: bool,
    file: Option<&'a Path>,
    findings: &'a [Finding],
}

fn check(global: &Global, file: Option<&Path>, output: &Output) -> Result<u8> {
    let (read, findings) = match server_settings(global, file) {
        Ok(loaded) => (loaded.file, loaded.warnings),
        Err(SettingsError::Faulty(findings)) => (file.map(Path::to_owned), findings),
        Err(other) => return Err(other.into()),
    };
    let errors = findings.iter().filter(|finding| finding.is_error()).count();
    if output.is_json() {
        output.json(&Checked {
            ok: errors == 0,
            file: read.as_deref(),
            findings: &findings,
        })?;
        return Ok(if errors == 0 { 0 } else { FAULTY });
    }
    for finding in &findings {
        let mark = match finding.is_error() {
            true => output.red("error:"),
            false => output.yellow("warning:"),
        };
        output.line(mark.and(&format!(" {finding}")))?;
    }
    let what = match &read {
        Some(file) => file.display().to_string(),
        None => format!(
            "no file at {}; the environment and the defaults",
            server::settings_path().display()
        ),
    };
    let warnings = findings.len() - errors;
    let counts = format!("{}, {}", count(errors, "error"), count(warnings, "warning"));
    let verdict = match (errors, warnings) {
        (0, 0) => output.green("good"),
        (0, _) => output.yellow(&format!("usable, {}", count(warnings, "warning"))),
        _ => output.red(&counts),
    };
    output.line(Words::from(&format!("{what}: ")).and(verdict))?;
    Ok(if errors == 0 { 0 } else { FAULTY })
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

fn show(global: &Global, file: Option<&Path>, output: &Output) -> Result<()> {
    let loaded = server_settings(global, file)?;
    let shown = loaded.shown();
    if output.is_json() {
        output.json(&shown)?;
        return Ok(());
    }
    for setting in &shown {
        output.line(&line(setting))?;
    }
    Ok(())
}

/// A line of a settings file, with the origin as its comment.
fn line(setting: &Shown) -> String {
    let (line, origin) = (setting.line(), &setting.origin);
    match setting.value.is_null() {
        true => line,
        false => format!("{line:LINE_WIDTH$} # {origin}"),
    }
}

async fn reload(global: &Global, output: &Output) -> Result<()> {
    let client = connect_running(global)?;
    let report = client.reload().await?;
    if output.is_json() {
        output.json(&report)?;
        return Ok(());
    }
    let ReloadReport {
        changed,
        needs_restart,
        warnings,
        ..
    } = report;
    for warning in warnings {
        output.warn(&warning);
    }
    if changed.is_empty() && needs_restart.is_empty() {
        output.line("nothing has changed")?;
    }
    for key in changed {
        output.line(&format!("changed        {key}"))?;
    }
    for key in needs_restart {
        output.line(&format!("needs restart  {key}"))?;
    }
    Ok(())
}

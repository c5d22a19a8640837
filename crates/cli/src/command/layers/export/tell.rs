//! What came of an export, for people and for programs.

use anyhow::Result;
use barchan_archive::export::{Fate, Item, Kind, Line, Plan, Reason, Sort};
use barchan_archive::shown;
use serde::Serialize;

use crate::args::Export;
use crate::output::Output;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    root: String,
    dry_run: bool,
    /// Whether the folder is, or would be, as the sandbox has it.
    whole: bool,
    /// Entries that lie elsewhere in the sandbox.
    outside: u64,
    entries: Vec<Entry>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    path: String,
    /// Said of a path that is no text: then it is written out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    escaped: bool,
    kind: &'static str,
    action: &'static str,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// How many entries of the folder go.
    #[serde(skip_serializing_if = "Option::is_none")]
    removes: Option<u64>,
    /// What is in its way.
    #[serde(skip_serializing_if = "Option::is_none")]
    obstacle: Option<String>,
    reasons: Vec<Why>,
    /// What approves it, if it is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    approve: Option<String>,
}

#[derive(Serialize)]
struct Why {
    code: &'static str,
    text: String,
}

/// Tells what became of every entry, and what can be done about the others.
pub(super) fn tell(
    root: &[u8],
    outside: u64,
    plan: &Plan,
    flags: &Export,
    output: &Output,
) -> Result<()> {
    let lines = plan.told();
    if output.is_json() {
        return Ok(output.json(&Told {
            root: text(root),
            dry_run: flags.dry_run,
            whole: plan.is_whole(),
            outside,
            entries: lines.iter().map(|line| entry(line)).collect(),
        })?);
    }
    if !lines.is_empty() {
        let rows = lines.iter().map(|line| row(line)).collect();
        output.table(&["WHAT", "PATH", "WHY"], rows)?;
    }
    let (root, dir) = (shown(root), flags.dir().display());
    let elsewhere = match outside {
        0 => String::new(),
        outside => format!("; {outside} entries elsewhere in the sandbox are left"),
    };
    output.note(&format!("{root} of the sandbox, to {dir}{elsewhere}"));
    for note in advice(&lines, flags.to) {
        output.note(&note);
    }
    if flags.dry_run {
        output.note("nothing was changed: this was a dry run");
    }
    Ok(())
}

/// What to do about what was held back.
fn advice(lines: &[&Line], to: Option<u32>) -> Vec<String> {
    let count = |is_one: fn(&Fate) -> bool| lines.iter().filter(|it| is_one(&it.fate)).count();
    let held = count(|fate| *fate == Fate::Held);
    let unasked = count(|fate| matches!(fate, Fate::Unasked(_)));
    let others = count(|fate| matches!(fate, Fate::Refused | Fate::Blocked(_)));
    let mut notes = Vec::new();
    if held > 0 {
        let pin = to.map(|layer| format!("--to {layer} and "));
        notes.push(format!(
            "{held} held: read them in the sandbox, then add {}--approve PATH for each, \
             or --approve-all",
            pin.unwrap_or_default()
        ));
        let held = lines.iter().filter(|line| line.fate == Fate::Held);
        let sorts: Vec<Sort> = held.map(|line| line.item.sort()).collect();
        for (sort, what) in [
            (Sort::Link, "a link"),
            (Sort::SetId, "a set-id file"),
            (Sort::Gone, "what is gone"),
        ] {
            if let Some(word) = sort.word().filter(|_| sorts.contains(&sort)) {
                notes.push(format!("{what} is approved as --approve {word}:PATH"));
            }
        }
    }
    if unasked > 0 {
        notes.push(format!(
            "{unasked} gone in the sandbox: --delete removes them here"
        ));
    }
    if others > 0 {
        notes.push(format!("{others} not brought, for the reasons above"));
    }
    notes
}

fn row(line: &Line) -> Vec<String> {
    let item = &line.item;
    let path = shown(&item.path);
    let path = match &item.kind {
        Kind::Folder => format!("{path}/"),
        Kind::Symlink(target) => format!("{path} -> {}", shown(target)),
        _ if path.is_empty() => "./".to_owned(),
        _ => path,
    };
    let reasons = item.verdict.reasons().iter().map(|reason| reason.text());
    let why = match &line.fate {
        Fate::Blocked(obstacle) => obstacle.clone(),
        Fate::Removes(entries) | Fate::Unasked(entries) if *entries > 1 => {
            let counted = format!("{entries} entries");
            std::iter::once(counted)
                .chain(reasons)
                .collect::<Vec<_>>()
                .join("; ")
        }
        _ => reasons.collect::<Vec<_>>().join("; "),
    };
    vec![action(&line.fate).to_owned(), path, why]
}

fn entry(line: &Line) -> Entry {
    let item = &line.item;
    let why = |reason: &Reason| Why {
        code: reason.code(),
        text: reason.text(),
    };
    Entry {
        path: text(&item.path),
        escaped: std::str::from_utf8(&item.path).is_err(),
        kind: kind(item),
        action: action(&line.fate),
        size: item.size,
        target: match &item.kind {
            Kind::Symlink(target) => Some(text(target)),
            _ => None,
        },
        removes: match line.fate {
            Fate::Removes(entries) | Fate::Unasked(entries) => Some(entries),
            _ => None,
        },
        obstacle: match &line.fate {
            Fate::Blocked(obstacle) => Some(obstacle.clone()),
            _ => None,
        },
        reasons: item.verdict.reasons().iter().map(why).collect(),
        approve: (line.fate == Fate::Held).then(|| approval(item)).flatten(),
    }
}

/// What `--approve` takes for it; none for a path that is no text, or that no approval is of.
fn approval(item: &Item) -> Option<String> {
    let path = std::str::from_utf8(&item.path).ok()?;
    if item.verdict.reasons().contains(&Reason::SecondName) {
        return None;
    }
    Some(match item.sort().word() {
        Some(word) => format!("{word}:{path}"),
        None => format!("./{path}"),
    })
}

/// A name as it is where it is text.
fn text(name: &[u8]) -> String {
    std::str::from_utf8(name).map_or_else(|_| shown(name), str::to_owned)
}

fn action(fate: &Fate) -> &'static str {
    match fate {
        Fate::New => "new",
        Fate::Replaces => "changed",
        Fate::Removes(_) => "removed",
        Fate::Nothing => "same",
        Fate::Held => "held",
        Fate::Refused => "refused",
        Fate::Unasked(_) => "gone",
        Fate::Blocked(_) => "blocked",
    }
}

fn kind(item: &Item) -> &'static str {
    match item.kind {
        Kind::File | Kind::Name(_) => "file",
        Kind::Folder => "folder",
        Kind::Symlink(_) => "link",
        Kind::Special => "other",
        Kind::Gone | Kind::Emptied => "gone",
    }
}

//! Pure. What is known of a sandbox, as text for people. Words of callers and of programs in
//! sandboxes stand in it with all that a terminal would obey made visible.

use std::fmt::Write;

use barchan_wire::execd::metrics::Metrics;
use barchan_wire::id::SandboxId;

use crate::lifecycle::state::{Granted, Happening, Policy, Record, Source, State, Volume};
use crate::lifecycle::word;

/// Longest text of one line, in bytes.
const LINE_BYTES_MAX: usize = 2048;
/// The largest number that a daemon is believed.
const NUMBER_MAX: f64 = 1e12;

/// A text of which the beginning may be left out.
pub(super) struct Cut {
    pub(super) content: String,
    pub(super) is_cut: bool,
}

/// What a sandbox uses at this moment.
#[derive(Debug, Clone, Copy)]
pub(super) enum Usage {
    Of(Metrics),
    /// Why nobody knows.
    Unknown(&'static str),
}

/// The last lines of an output.
pub(super) fn last_lines(output: &[u8], lines: usize) -> Cut {
    let text = String::from_utf8_lossy(output);
    let all: Vec<&str> = text.lines().collect();
    let first = all.len().saturating_sub(lines);
    Cut {
        content: all.get(first..).unwrap_or_default().join("\n"),
        is_cut: first > 0,
    }
}

/// The last happenings, the oldest of them first.
pub(super) fn events(record: &Record, most: usize) -> Cut {
    let all = record.history();
    let first = all.len().saturating_sub(most);
    let lines: Vec<String> = all.iter().skip(first).map(event).collect();
    Cut {
        content: lines.join("\n"),
        is_cut: first > 0,
    }
}

fn event(happening: &Happening) -> String {
    let (at, what) = (happening.at, happening.what.as_str());
    match happening.message.as_str() {
        "" => format!("{at} {what}"),
        message => format!("{at} {what}: {}", plain(message)),
    }
}

/// What it is, where it stands, what it may use and what it does.
pub(super) fn inspected(record: &Record, is_gone: bool, usage: Usage) -> String {
    let mut page = Page::default();
    let origin = record.origin();
    page.line("Sandbox", record.id().as_str());
    let state = match (is_gone, record.state()) {
        (true, _) => "gone",
        (false, state) => word(state),
    };
    page.line("State", &format!("{state}, since {}", record.since()));
    if let Some(end) = record.end() {
        let kind = format!("{:?}", end.kind).to_ascii_lowercase();
        page.line(
            "End",
            &format!("{} ({kind}): {}", end.cause.as_str(), plain(&end.message)),
        );
    }
    page.line("Created", &record.created_at().to_string());
    let expires = record.expires_at().map(|at| at.to_string());
    page.line("Expires", expires.as_deref().unwrap_or("never"));
    page.line("Image", &plain(&origin.image));
    page.some("Digest", &plain(record.image_digest()));
    let words: Vec<String> = origin
        .entrypoint
        .iter()
        .map(|it| format!("{it:?}"))
        .collect();
    page.line("Entrypoint", &words.join(" "));
    let platform = origin.platform.as_ref();
    let platform = platform.map(|(os, arch)| plain(&format!("{os}/{arch}")));
    page.some("Platform", &platform.unwrap_or_default());
    page.some("Pool", &plain(origin.pool.as_deref().unwrap_or_default()));
    page.line("Limits", &limits(origin.granted));
    page.some("Unenforced", &record.unenforced().join(", "));
    page.line("Usage", &used(usage));
    let policy = record.policy().map(Policy::in_words);
    page.some("Policy", &plain(&policy.unwrap_or_default()));
    let may = "it may have credentials";
    page.some("Vault", if origin.credential_proxy { may } else { "" });
    let idle = origin.idle_timeout_s.map(|seconds| format!("{seconds} s"));
    page.some("Idle limit", &idle.unwrap_or_default());
    page.pairs("Metadata", record.metadata());
    page.pairs("Extensions", &origin.extensions);
    let volumes: Vec<String> = origin.volumes.iter().map(volume).collect();
    page.some("Volumes", &volumes.join(", "));
    if let State::Creating = record.state() {
        page.line("Note", "it is still being made");
    }
    page.0
}

fn limits(granted: Granted) -> String {
    let cpu = granted.cpu_millis.map(|millis| format!("cpu {millis}m"));
    let memory = granted
        .memory_bytes
        .map(|bytes| format!("memory {bytes} bytes"));
    let pids = granted.pids.map(|pids| format!("processes {pids}"));
    let disk = granted
        .disk_bytes
        .map(|bytes| format!("disk {bytes} bytes"));
    let known: Vec<String> = [cpu, memory, pids, disk].into_iter().flatten().collect();
    match known.is_empty() {
        true => "none".to_owned(),
        false => known.join(", "),
    }
}

fn used(usage: Usage) -> String {
    let metrics = match usage {
        Usage::Of(metrics) => metrics,
        Usage::Unknown(why) => return format!("not known: {why}"),
    };
    let fit = |number: f64| number.clamp(0.0, NUMBER_MAX);
    format!(
        "cpu {:.1} % of {:.2} cores, memory {:.1} of {:.1} MiB",
        fit(metrics.cpu_used_pct),
        fit(metrics.cpu_count),
        fit(metrics.mem_used_mib),
        fit(metrics.mem_total_mib),
    )
}

fn volume(volume: &Volume) -> String {
    let (name, at) = (plain(&volume.name), plain(&volume.mount_path));
    let access = if volume.read_only {
        "read-only"
    } else {
        "read-write"
    };
    let kind = match volume.source {
        Source::HostPath(_) => "a folder of the host",
        Source::Named { .. } => "a named volume",
    };
    format!("{name} at {at} ({kind}, {access})")
}

/// Texts under banners.
pub(super) fn summary(id: &SandboxId, sections: &[(&str, &str)]) -> String {
    let mut text = format!("Diagnostics of sandbox {id}\n");
    for (name, section) in sections {
        // Writing to a text never fails.
        let _ = write!(text, "\n===== {name} =====\n{}\n", section.trim_end());
    }
    text
}

/// The same lines without what a terminal would obey.
pub(super) fn tamed(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n")
}

/// One line without what a terminal would obey, and not endless.
fn plain(text: &str) -> String {
    let end = text.floor_char_boundary(LINE_BYTES_MAX);
    let shown = text.get(..end).unwrap_or_default();
    let visible = |letter: char| match letter {
        '\t' | '"' | '\'' | '\\' => letter.to_string(),
        other => other.escape_debug().to_string(),
    };
    let mut plain: String = shown.chars().map(visible).collect();
    if end < text.len() {
        plain.push_str(" (cut)");
    }
    plain
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn line(&mut self, name: &str, value: &str) {
        // Writing to a text never fails.
        let _ = writeln!(self.0, "{:<12}{value}", format!("{name}:"));
    }

    fn some(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.line(name, value);
        }
    }

    fn pairs(&mut self, name: &str, pairs: &std::collections::BTreeMap<String, String>) {
        let pair = |(key, value): (&String, &String)| format!("{}={}", plain(key), plain(value));
        let all: Vec<String> = pairs.iter().map(pair).collect();
        self.some(name, &all.join(" "));
    }
}

//! Pure. The reference page of all settings, as `docs/reference/settings.md` holds it.

use confique::meta::Expr;

use super::catalog::{self, Entry, Section};
use super::live::is_fixed;
use super::{ranges, show};

const HEAD: &str = "\
# Settings of the server

Written by `barchan config reference`; a test holds this page to the code.

A setting comes from, the strongest first: a flag of the command, an environment variable, the
settings file, its default. The file is the one that `--config` names, else
`/etc/barchan/barchan.toml` for root and `~/.config/barchan/barchan.toml` for others. A key that is
not listed here is refused. `barchan init-config` writes a file with all of them,
`barchan config check` tells every fault of one, and `barchan config show` tells what is in effect
and why.

**Variables.** Every setting has one: `BARCHAN_`, then its key in capitals with `__` for each dot.
Short names stand beside it, and the first of a row wins. A value is read as TOML if that fits the
setting, else as text, else as a list with commas. An empty variable counts as not set. A variable
that begins with `BARCHAN_` and that nobody reads is told as a warning.

**Secrets.** Where a secret may stand, so may `{ file = \"/run/secrets/key\" }` or
`{ env = \"NAME\" }`, also as the value of a variable. The file belongs to the server's user or
root, may be read by its owner alone (`chmod go=`), and its last line end does not count. Secrets
are never shown.

**Changes.** SIGHUP, `barchan config reload` and `POST /x/reload` read everything again, and take
over all that can change at once, or nothing when there is a fault. Requests that have begun end by
the settings that they began with. Settings marked *at start* need a restart, and are named in the
answer when they differ.
";

/// The page.
#[must_use]
pub fn reference() -> String {
    let mut page = HEAD.to_owned();
    let filled = |section: &&Section| !section.entries.is_empty();
    for section in catalog::sections().iter().filter(filled) {
        page.push_str(&format!("\n## `[{}]`\n\n", section.name));
        page.push_str(&prose(section.doc));
        page.push_str("\n\n| setting | default | variables | means |\n|---|---|---|---|\n");
        for entry in &section.entries {
            page.push_str(&row(&section.name, entry));
        }
    }
    page
}

fn row(section: &str, entry: &Entry) -> String {
    let prefix = format!("{section}.");
    let name = entry.key.strip_prefix(&prefix).unwrap_or(&entry.key);
    let default = entry.default.as_ref().and_then(default);
    let default = default.map_or_else(|| "–".to_owned(), |value| format!("`{value}`"));
    let variables: Vec<String> = entry.variables.iter().map(|it| format!("`{it}`")).collect();
    let variables = variables.join(" ");
    let at_start = if is_fixed(&entry.key) {
        " *At start.*"
    } else {
        ""
    };
    let means = prose(entry.doc).replace('|', "\\|");
    let range = ranges::told(&entry.key).map(|range| format!(" A number {range}."));
    let range = range.unwrap_or_default();
    format!("| `{name}` | {default} | {variables} | {means}{range}{at_start} |\n")
}

fn default(value: &Expr) -> Option<String> {
    show::toml(&serde_json::to_value(value).ok()?)
}

/// A comment's lines as one.
fn prose(doc: &[&str]) -> String {
    let lines: Vec<&str> = doc.iter().map(|line| line.trim()).collect();
    lines.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_setting_once() {
        let page = reference();
        for entry in catalog::entries() {
            for variable in &entry.variables {
                let times = page.matches(&format!("`{variable}`")).count();
                assert_eq!(times, 1, "{variable}");
            }
        }
    }
}

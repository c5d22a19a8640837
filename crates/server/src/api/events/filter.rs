//! Pure. Which changes a watcher is told.

use std::collections::BTreeMap;

use barchan_wire::id::SandboxId;

use crate::api::errors::Refusal;
use crate::api::query::{Query, labels};
use crate::lifecycle::state::Happened;
use crate::lifecycle::{Change, word};
use crate::observe::STATES;

/// Most values of one filter.
const VALUES_MAX: usize = 64;

/// What a watcher wants to be told; all of it that is not named.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    /// Any of these sandboxes.
    sandboxes: Vec<SandboxId>,
    /// Any of these states after the change.
    states: Vec<&'static str>,
    /// Any of these happenings.
    events: Vec<&'static str>,
    /// All of these labels, exactly.
    metadata: BTreeMap<String, String>,
}

impl Filter {
    /// Reads `sandboxId`, `state`, `event` and `metadata`. A word that no change can have is
    /// refused: whoever waits for it would wait for ever.
    pub(super) fn read(query: Option<&str>) -> Result<Self, Refusal> {
        let query = Query::read(query);
        let id = |text: &str| {
            let id: Option<SandboxId> = text.parse().ok();
            id.ok_or_else(|| wrong("sandboxId", text, "ids of sandboxes"))
        };
        let state = |text: &str| known("state", text, &STATES);
        let event = |text: &str| known("event", text, &Happened::ALL.map(Happened::as_str));
        let metadata = query.last("metadata").map(labels).transpose()?;
        Ok(Self {
            sandboxes: values(&query, "sandboxId", id)?,
            states: values(&query, "state", state)?,
            events: values(&query, "event", event)?,
            metadata: metadata.unwrap_or_default(),
        })
    }

    /// Whether a change is told.
    pub(super) fn shows(&self, change: &Change) -> bool {
        let (record, what) = (&change.record, change.happening.what.as_str());
        let has = |(key, value): (&String, &String)| record.metadata().get(key) == Some(value);
        (self.sandboxes.is_empty() || self.sandboxes.contains(record.id()))
            && (self.states.is_empty() || self.states.contains(&word(record.state())))
            && (self.events.is_empty() || self.events.contains(&what))
            && self.metadata.iter().all(has)
    }
}

fn values<T>(
    query: &Query,
    name: &str,
    read: impl Fn(&str) -> Result<T, Refusal>,
) -> Result<Vec<T>, Refusal> {
    if query.all(name).nth(VALUES_MAX).is_some() {
        let message = format!("`{name}` is given more than {VALUES_MAX} times");
        return Err(Refusal::parameter(message));
    }
    query.all(name).map(read).collect()
}

/// A word of a list, in any case.
fn known(name: &str, text: &str, all: &[&'static str]) -> Result<&'static str, Refusal> {
    let found = all.iter().find(|word| word.eq_ignore_ascii_case(text));
    found
        .copied()
        .ok_or_else(|| wrong(name, text, &all.join(", ")))
}

fn wrong(name: &str, text: &str, instead: &str) -> Refusal {
    let shown: String = text.chars().take(64).collect();
    Refusal::parameter(format!("`{name}` is {shown:?}, and takes {instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_no_change_has_are_refused() {
        let id = "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f";
        let many = "state=running&".repeat(VALUES_MAX);
        for (query, refused) in [
            (String::new(), None),
            (
                "state=RUNNING&state=paused&event=Ended&unknown=1".to_owned(),
                None,
            ),
            (format!("sandboxId={id}&metadata=a%3D1%26b%3D"), None),
            ("metadata=".to_owned(), None),
            (many.clone(), None),
            (
                "state=run".to_owned(),
                Some("400 SANDBOX::INVALID_PARAMETER"),
            ),
            ("state=".to_owned(), Some("400 SANDBOX::INVALID_PARAMETER")),
            (
                "event=exploded".to_owned(),
                Some("400 SANDBOX::INVALID_PARAMETER"),
            ),
            (
                "sandboxId=../..".to_owned(),
                Some("400 SANDBOX::INVALID_PARAMETER"),
            ),
            ("metadata=a".to_owned(), Some("400 INVALID_METADATA_FORMAT")),
            (
                format!("{many}state=paused"),
                Some("400 SANDBOX::INVALID_PARAMETER"),
            ),
        ] {
            let read = Filter::read(Some(&query));
            let found = read
                .err()
                .map(|it| format!("{} {}", it.status(), it.code()));
            assert_eq!(found.as_deref(), refused, "{query}");
        }
        let hostile = format!("state={}%0a", "x".repeat(10_000));
        let message = Filter::read(Some(&hostile)).unwrap_err().message();
        assert!(message.len() < 300 && !message.contains('\n'), "{message}");
    }
}

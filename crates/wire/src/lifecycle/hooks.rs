//! Pure. Programs that a caller wants run before a sandbox's start and at intervals.

use serde::{Deserialize, Serialize};

use super::lax::Need::{May, Must};
use super::lax::Reader;
use super::schedule::Schedule;

/// The hooks of a sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hooks {
    /// Run once, before the entrypoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_start: Option<PreStart>,
    /// Run again and again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub periodic: Vec<Periodic>,
}

/// A program that is run once, before the entrypoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreStart {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Most seconds it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
}

/// A program that is run again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Periodic {
    /// Its name among the others.
    pub name: String,
    /// When, as a cron line.
    pub schedule: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Most seconds it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
}

impl Hooks {
    /// Reads hooks. Unknown fields are faults here: a hook that is misread is a hook not run.
    pub(super) fn read(reader: &mut Reader<'_, '_>) -> Self {
        reader.closed(&["preStart", "periodic"]);
        let pre_start = reader.object("preStart", May).and_then(|mut hook| {
            hook.closed(&["command", "timeoutSeconds"]);
            let command = hook.strings("command", Must, 1);
            let timeout_seconds = hook.integer("timeoutSeconds", May, 1, 10_800);
            Some(PreStart {
                command: command?,
                timeout_seconds,
            })
        });
        let mut periodic: Vec<Periodic> = Vec::new();
        for (at, item) in reader
            .list("periodic", May)
            .into_iter()
            .flatten()
            .enumerate()
        {
            let Some(mut hook) = reader.item("periodic", at, item) else {
                continue;
            };
            hook.closed(&["name", "schedule", "command", "timeoutSeconds"]);
            let name = hook.string("name", Must);
            let schedule = hook.string("schedule", Must);
            let command = hook.strings("command", Must, 1);
            let timeout_seconds = hook.integer("timeoutSeconds", May, 1, 300);
            let (Some(name), Some(schedule), Some(command)) = (name, schedule, command) else {
                continue;
            };
            if periodic.iter().any(|other| other.name == name) {
                hook.refuse(
                    "value_error",
                    "name",
                    "must differ from the other hooks' names",
                );
            }
            if Schedule::parse(&schedule).is_err() {
                hook.refuse(
                    "value_error",
                    "schedule",
                    "must be a cron line of five fields, @hourly and the like, or @every 90s",
                );
            }
            periodic.push(Periodic {
                name,
                schedule,
                command,
                timeout_seconds,
            });
        }
        Self {
            pre_start,
            periodic,
        }
    }
}

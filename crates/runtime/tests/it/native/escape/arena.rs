//! Runs attacks in a sandbox and where the defence is off, and compares.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use barchan_runtime::{Limits, Plan};
use serde_json::{Value, json};
use tokio::process::Command;

use super::facts::Facts;
use super::row::{Control, Outcome, Row, Verdict, is_root};
use crate::native::world::{World, plan};

/// The attacks: one program, so that both sides run the same text.
const ATTACKS: &str = concat!(
    include_str!("attacks/engine.py"),
    include_str!("attacks/files.py"),
    include_str!("attacks/processes.py"),
    include_str!("attacks/kernel.py"),
    include_str!("attacks/network.py"),
    "\nmain()\n",
);

/// Longest time for all attacks of a table in one place.
const PATIENCE: Duration = Duration::from_secs(60);

/// A sandbox's runtime and the host's things around it.
pub(crate) struct Arena {
    pub(crate) world: World,
    pub(crate) facts: Facts,
}

impl Arena {
    pub(crate) async fn new() -> Self {
        Self {
            world: World::new().await,
            facts: Facts::new().await,
        }
    }

    /// Holds every row to what it says.
    pub(crate) async fn check(&self, rows: &[Row]) {
        let inside = self.inside(&names(rows.iter())).await;
        let mut failures = Vec::new();
        for control in [
            Control::Host,
            Control::Root,
            Control::Namespaces,
            Control::RootNamespaces,
        ] {
            let rows: Vec<_> = rows.iter().filter(|row| row.control == control).collect();
            let outside = match control.is_possible() {
                true => self.outside(control, &names(rows.iter().copied())).await,
                false => Vec::new(),
            };
            for row in rows {
                let of = |all: &[Outcome]| all.iter().find(|it| it.attack == row.attack).cloned();
                let inside = of(&inside).unwrap_or_else(|| panic!("{} did not run", row.attack));
                match row.judge(&inside, of(&outside).as_ref()) {
                    Verdict::Counts => {}
                    Verdict::DoesNotCount(why) => eprintln!("{} does not count: {why}", row.attack),
                    Verdict::Fails(why) => failures.push(why),
                }
            }
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }

    /// Runs attacks as the entrypoint of a sandbox.
    pub(crate) async fn inside(&self, attacks: &[&str]) -> Vec<Outcome> {
        let (reason, log) = self.world.run_plan(self.plan(attacks, &[])).await;
        let found = outcomes(&log).filter(|all| all.len() == attacks.len());
        found.unwrap_or_else(|| panic!("{reason:?}: {log}"))
    }

    /// A sandbox whose entrypoint is these attacks.
    fn plan(&self, attacks: &[&str], more: &[(&str, Value)]) -> Plan {
        let python = python().display().to_string();
        let order = self.order(attacks, more);
        plan("host", &[&python, "-c", ATTACKS, &order], Limits::default())
    }

    /// A sandbox that leaves something wherever two could meet, says "left", and stays.
    pub(crate) fn neighbour(&self) -> Plan {
        let stay = [("stay", json!(true))];
        self.plan(&[], &[&self.leave_first()[..], &stay].concat())
    }

    /// What makes a run leave those things, and carry the token backwards to be found by.
    fn leave_first(&self) -> [(&'static str, Value); 2] {
        let mark: String = self.facts.token().chars().rev().collect();
        [("leave_first", json!(true)), ("mark", json!(mark))]
    }

    /// Runs attacks where the defence is off.
    pub(crate) async fn outside(&self, control: Control, attacks: &[&str]) -> Vec<Outcome> {
        if attacks.is_empty() {
            return Vec::new();
        }
        // Only there does what is left go with the namespaces.
        let more = match control {
            Control::Namespaces => &self.leave_first()[..],
            _ => &[],
        };
        let order = self.order(attacks, more);
        let run = host_command(control)
            .arg(python())
            .args(["-c", ATTACKS, &order])
            .current_dir(self.facts.scratch.path())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(PATIENCE, run).await;
        let output = output.expect("the control run does not end").unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let words = String::from_utf8_lossy(&output.stderr);
        let found = outcomes(&text).filter(|all| all.len() == attacks.len());
        found.unwrap_or_else(|| panic!("{control:?}: {text}{words}"))
    }

    fn order(&self, attacks: &[&str], more: &[(&str, Value)]) -> String {
        let mut facts = self.facts.values.clone();
        for (name, value) in more {
            facts.insert((*name).to_owned(), value.clone());
        }
        json!({"attacks": attacks, "facts": facts}).to_string()
    }
}

fn names<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<&'static str> {
    rows.map(|row| row.attack).collect()
}

fn outcomes(text: &str) -> Option<Vec<Outcome>> {
    let lines = text.lines();
    lines.map(|line| serde_json::from_str(line).ok()).collect()
}

/// A Python that both sides have under the same path.
pub(crate) fn python() -> PathBuf {
    let known = ["/usr/bin/python3", "/usr/local/bin/python3"].map(PathBuf::from);
    let found = known.into_iter().find(|path| path.exists());
    found.expect("a Python of the system's: install python3")
}

/// What starts a program where a defence is off. On the bare host somebody forgot a descriptor.
fn host_command(control: Control) -> Command {
    let mut command = match control {
        Control::Host | Control::Root => Command::new("sh"),
        Control::Namespaces | Control::RootNamespaces => Command::new("unshare"),
    };
    match control {
        Control::Host | Control::Root => {
            command.args(["-c", "exec 7</dev/null; exec \"$@\"", "sh"]);
        }
        Control::Namespaces | Control::RootNamespaces => {
            let kinds = ["--mount", "--ipc", "--uts", "--net", "--cgroup", "--pid"];
            command.args(kinds).args(["--fork", "--mount-proc"]);
            if !is_root() {
                command.args(["--user", "--map-root-user"]);
            }
        }
    }
    command
}

//! Pure. What a running server takes over from settings that were read again, and what it cannot.

use serde_json::Value;

use super::{Settings, catalog};

/// Settings that a server can only take at its start.
macro_rules! fixed {
    ($($section:ident . $field:ident),* $(,)?) => {
        /// Their keys.
        const FIXED: &[&str] = &[$(concat!(stringify!($section), ".", stringify!($field))),*];

        /// Puts them back to what they were.
        fn keep_fixed(settings: &mut Settings, running: &Settings) {
            $(settings.$section.$field.clone_from(&running.$section.$field);)*
        }
    };
}

fixed! {
    server.host,
    server.port,
    server.tcp,
    server.socket,
    server.connections_max,
    server.user,
    store.state_dir,
    runtime.kind,
    runtime.aliases,
    runtime.spares,
    storage.allowed_host_paths,
    egress.enabled,
    audit.enabled,
    audit.file_size_max,
    audit.files_max,
    log.json,
    observe.otlp_endpoint,
    observe.otlp_headers,
    observe.otlp_ca_file,
    observe.otlp_traces,
    observe.otlp_metrics_interval_s,
    observe.trace_ratio,
    observe.service_name,
}

/// Whether a change of the setting needs a restart.
pub(super) fn is_fixed(key: &str) -> bool {
    FIXED.contains(&key)
}

/// What another reading of the settings means for a running server.
#[derive(Debug)]
pub(crate) struct Change {
    /// What the server goes on with.
    pub(crate) settings: Settings,
    /// The settings that are other than before.
    pub(crate) changed: Vec<String>,
    /// Those that would be, but need a restart.
    pub(crate) needs_restart: Vec<String>,
}

/// Takes over what can change.
pub(crate) fn merge(running: &Settings, read: &Settings) -> Change {
    let mut settings = read.clone();
    keep_fixed(&mut settings, running);
    let needs_restart = differing(&settings, read);
    let mut changed = differing(running, &settings);
    // A key does not show that it is another one.
    for (key, is_other) in [
        (
            "server.api_key",
            running.server.api_key != settings.server.api_key,
        ),
        (
            "proxy.osep_keys",
            running.proxy.osep_keys != settings.proxy.osep_keys,
        ),
    ] {
        if is_other && !changed.iter().any(|told| told == key) {
            changed.push(key.to_owned());
        }
    }
    Change {
        settings,
        changed,
        needs_restart,
    }
}

fn differing(one: &Settings, other: &Settings) -> Vec<String> {
    let (one, other) = (values(one), values(other));
    let keys = catalog::entries().map(|entry| entry.key.as_str());
    let differ = |key: &&str| lookup(&one, key) != lookup(&other, key);
    keys.filter(differ).map(str::to_owned).collect()
}

/// All settings as a tree, secrets masked.
pub(super) fn values(settings: &Settings) -> Value {
    // Our own types always are JSON.
    serde_json::to_value(settings).unwrap_or_default()
}

/// The value of a setting in that tree.
pub(super) fn lookup<'a>(values: &'a Value, key: &str) -> &'a Value {
    let mut found = values;
    for part in key.split('.') {
        found = found.get(part).unwrap_or(&Value::Null);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_change_changes_and_the_rest_is_told() {
        let parse = |text: &str| Settings::parse(text).unwrap();
        let key = |key: &str| format!("[server]\napi_key = \"{key}\"\n");
        let (one, other) = (key("0123456789abcdef"), key("0123456789abcdeg"));
        for (running, read, changed, needs_restart) in [
            ("", "", "", ""),
            ("", "[server]\nport = 9\n", "", "server.port"),
            (
                "",
                "[limits]\nsandboxes_max = 5\n[limits.default]\ndisk = \"1Gi\"\n",
                "limits.sandboxes_max limits.default.disk",
                "",
            ),
            (
                "[proxy]\nidle_s = 3\n",
                "[server]\ntcp = false\n",
                "proxy.idle_s",
                "server.tcp",
            ),
            (&one, &one, "", ""),
            (&one, &other, "server.api_key", ""),
            (&one, "", "server.api_key", ""),
        ] {
            let change = merge(&parse(running), &parse(read));
            assert_eq!(change.changed.join(" "), changed, "{running} → {read}");
            assert_eq!(change.needs_restart.join(" "), needs_restart, "{read}");
        }
    }

    #[test]
    fn every_fixed_setting_exists() {
        for key in FIXED {
            assert!(catalog::entry(key).is_some(), "{key}");
        }
    }
}

//! Pure. Settings as they are in effect, each with its origin and none of its secrets.

use serde::Serialize;
use serde_json::Value;

use super::live::{is_fixed, lookup, values};
use super::secret::MASK;
use super::{Loaded, Origin, catalog};

/// One setting as it is in effect.
#[derive(Debug, Clone, Serialize)]
pub struct Shown {
    /// Its key, such as `limits.default.disk`.
    pub key: &'static str,
    /// Its value, `null` when nothing is set; a secret is masked.
    pub value: Value,
    /// Where the value comes from.
    pub origin: Origin,
    /// Whether a running server takes another value only at its next start.
    pub needs_restart: bool,
}

impl Loaded {
    /// Every setting, in the order of the file.
    #[must_use]
    pub fn shown(&self) -> Vec<Shown> {
        let values = values(&self.settings);
        let shown = |entry: &'static catalog::Entry| Shown {
            key: &entry.key,
            value: lookup(&values, &entry.key).clone(),
            origin: self.origin(&entry.key),
            needs_restart: is_fixed(&entry.key),
        };
        catalog::entries().map(shown).collect()
    }
}

impl Shown {
    /// A line that can stand in a settings file; a comment where there is nothing to write down.
    #[must_use]
    pub fn line(&self) -> String {
        let key = self.key;
        match toml(&self.value) {
            None => format!("# {key} is not set"),
            Some(value) if is_masked(&self.value) => {
                format!("# {key} = {}", value.replace('"', ""))
            }
            Some(value) => format!("{key} = {value}"),
        }
    }
}

/// Whether a secret stands in it that is not shown.
fn is_masked(value: &Value) -> bool {
    match value {
        Value::String(text) => text == MASK,
        Value::Array(items) => items.iter().any(is_masked),
        Value::Object(fields) => fields.values().any(is_masked),
        _ => false,
    }
}

/// A value as TOML writes it on one line.
pub(super) fn toml(value: &Value) -> Option<String> {
    if value.is_null() {
        return None;
    }
    let value = toml::Value::try_from(value).ok()?;
    Some(value.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Settings, Surroundings};
    use super::*;

    /// What is shown of settings, as a settings file.
    fn file(loaded: &Loaded) -> String {
        let lines = loaded.shown().into_iter().map(|shown| shown.line() + "\n");
        lines.collect()
    }

    /// A line for a few settings of every type, or none.
    fn any_line() -> impl Strategy<Value = String> {
        let text = "[ -~]{0,12}";
        prop_oneof![
            any::<u16>().prop_map(|port| format!("server.port = {port}")),
            any::<bool>().prop_map(|tcp| format!("server.tcp = {tcp}")),
            (0..=31_536_000_u32).prop_map(|s| format!("server.idle_exit_s = {s}")),
            prop::collection::vec(text, 0..4)
                .prop_map(|names| format!("server.allowed_hosts = {names:?}")),
            text.prop_map(|path| format!("store.state_dir = {path:?}")),
            (text, prop::collection::vec(text, 0..3)).prop_map(|(name, images)| format!(
                "runtime.aliases = [{{ pattern = {name:?}, images = {images:?} }}]"
            )),
            "[1-9][0-9]{0,3}(Ki|Mi|Gi|k|M|G)"
                .prop_map(|size| format!("limits.default.disk = {size:?}")),
            any::<bool>().prop_map(|on| format!("features.events = {on}")),
        ]
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_as_the_same_settings(
            lines in prop::collection::hash_map(0..8_u8, any_line(), 0..8)
        ) {
            let mut lines: Vec<String> = lines.into_values().collect();
            lines.sort();
            lines.dedup_by_key(|line| line.split(' ').next().unwrap_or_default().to_owned());
            let loaded = Surroundings::text(&lines.join("\n")).read().unwrap();
            let again = Surroundings::text(&file(&loaded)).read().unwrap();
            prop_assert_eq!(values(&again.settings), values(&loaded.settings));
            let third = Surroundings::text(&file(&again)).read().unwrap();
            prop_assert_eq!(file(&third), file(&again));
        }
    }

    #[test]
    fn a_list_of_secrets_is_masked() {
        let key = "a=a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5";
        let text = format!("proxy.osep_keys = [\"{key}\"]");
        let loaded = Surroundings::text(&text).read().unwrap();
        let shown = file(&loaded);
        assert!(shown.contains("# proxy.osep_keys = [[secret]]"), "{shown}");
        assert!(!shown.contains(key) && !format!("{loaded:?}").contains(key));
        assert!(Settings::parse(&shown).is_ok());
    }

    #[test]
    fn secrets_are_masked_and_references_shown() {
        let key = "0123456789abcdef";
        let text = format!("[server]\napi_key = \"{key}\"\n");
        let loaded = Surroundings::text(&text).read().unwrap();
        let shown = file(&loaded) + &serde_json::to_string(&loaded.shown()).unwrap();
        assert!(shown.contains("# server.api_key = [secret]") && !shown.contains(key));
        let text = "server.api_key = { env = \"CARGO_MANIFEST_DIR\" }";
        let loaded = Surroundings::text(text).read().unwrap();
        let shown = file(&loaded);
        let line = "server.api_key = { env = \"CARGO_MANIFEST_DIR\" }";
        assert!(shown.lines().any(|it| it == line), "{shown}");
        assert!(!shown.contains(env!("CARGO_MANIFEST_DIR")));
        assert!(Settings::parse(&shown).is_ok());
    }
}

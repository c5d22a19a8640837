//! What operators see of the server.

use std::path::PathBuf;

use confique::Config;
use serde::Serialize;

use super::SecretSetting;

/// What operators see of the server: figures and traces.
#[derive(Debug, Clone, Config, Serialize)]
#[config(layer_attr(serde(deny_unknown_fields)))]
pub struct Observe {
    /// Who may read `GET /metrics`: `key` for admins, `open` for everybody who reaches the server,
    /// `off` for nobody.
    #[config(default = "key")]
    pub metrics: String,
    /// Where a collector takes spans and figures by OTLP over HTTP or HTTPS, such as
    /// `http://127.0.0.1:4318`. Left out, nothing is sent.
    #[config(env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub otlp_endpoint: Option<String>,
    /// Headers that are sent along, each a text `name=value`, or `{ file = "/path" }` or
    /// `{ env = "NAME" }` that holds one.
    #[config(default = [])]
    pub otlp_headers: Vec<SecretSetting>,
    /// A file of certificates as PEM: authorities that may vouch for a collector at `https`,
    /// besides those of this host. The server's user must be able to read it.
    pub otlp_ca_file: Option<PathBuf>,
    /// Send spans: one for each request, and for what is done with sandboxes.
    #[config(default = true)]
    pub otlp_traces: bool,
    /// Send figures so often, in seconds; 0 sends none.
    #[config(default = 60)]
    pub otlp_metrics_interval_s: u64,
    /// Which share of the traces that begin here is sent, from 0 to 1. Callers who send a
    /// `traceparent` decide for theirs.
    #[config(default = 1.0)]
    pub trace_ratio: f64,
    /// The name under which the collector knows this server.
    #[config(default = "barchan", env = "OTEL_SERVICE_NAME")]
    pub service_name: String,
}

#[cfg(test)]
mod tests {
    use super::super::{SettingsError, Surroundings};

    #[test]
    fn an_environment_for_other_programs_does_not_keep_the_server_from_starting() {
        for (address, is_doubted) in [
            ("http://127.0.0.1:4318", false),
            ("https://user:word@collector.example", true),
            ("localhost:4317", true),
            ("", false),
        ] {
            let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", address)];
            let loaded = Surroundings::text("")
                .with_variables(variables)
                .read()
                .unwrap();
            assert_eq!(!loaded.warnings.is_empty(), is_doubted, "{address}");
            let found = loaded.settings.observe.otlp_endpoint.unwrap_or_default();
            assert_eq!(found, address);
        }
    }

    #[test]
    fn wrong_words_are_refused_and_no_secret_is_shown() {
        for text in [
            "observe.metrics = \"everybody\"",
            "log.access = \"loud\"",
            "observe.trace_ratio = 1.5",
            "observe.trace_ratio = -0.1",
            "observe.trace_ratio = nan",
            "observe.service_name = \"\"",
            "observe.otlp_endpoint = \"http://c\"\nobserve.otlp_headers = [\"hunter2\"]",
            "observe.otlp_endpoint = \"https://c\"\nobserve.otlp_ca_file = \"/nowhere/ca.pem\"",
        ] {
            let read = Surroundings::text(text).read();
            let shown = format!("{read:?}");
            assert!(matches!(read, Err(SettingsError::Faulty(_))), "{text}");
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }
}

//! Pure. What `POST /x/reload` tells: which settings of a running server are other than before.

use serde::{Deserialize, Serialize};

/// What reading the settings again came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReloadReport {
    /// How many times the settings were taken over since the server's start.
    pub revision: u64,
    /// The settings that are other than before, such as `limits.default.disk`.
    pub changed: Vec<String>,
    /// Those that stay as they are until the server is restarted.
    pub needs_restart: Vec<String>,
    /// What is legal and doubtful, each with its place.
    pub warnings: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_as_it_was_written() {
        let report = ReloadReport {
            revision: 2,
            changed: vec!["log.level".to_owned()],
            needs_restart: vec!["server.port".to_owned()],
            warnings: Vec::new(),
        };
        let text = serde_json::to_string(&report).unwrap();
        let changed = r#""changed":["log.level"],"needsRestart":["server.port"]"#;
        assert_eq!(
            text,
            format!("{{\"revision\":2,{changed},\"warnings\":[]}}")
        );
        assert_eq!(serde_json::from_str::<ReloadReport>(&text).unwrap(), report);
    }
}

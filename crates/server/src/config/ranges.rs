//! Pure. Which numbers a setting can have. Beyond them moments could not be told, or a slip of the
//! hand would go unnoticed.

use super::Settings;
use super::live::{lookup, values};

const DAY_S: u64 = 86_400;
const YEAR_S: u64 = 365 * DAY_S;
/// The most processes and threads of a Linux machine of 64 bits.
const PIDS_MAX: u64 = 4_194_304;

/// Every setting that is a number, with the least and the most that it can be.
const RANGES: [(&str, u64, u64); 34] = [
    ("server.port", 0, 65_535),
    // No calendar reaches much further.
    ("server.max_sandbox_timeout_seconds", 60, 250_000_000_000),
    ("server.connections_max", 0, 1_000_000),
    ("server.head_wait_s", 0, DAY_S),
    ("server.body_wait_s", 0, DAY_S),
    ("server.shutdown_grace_s", 0, DAY_S),
    ("server.idle_exit_s", 0, YEAR_S),
    ("store.ended_retention_s", 0, 10 * YEAR_S),
    ("runtime.reconcile_interval_s", 0, DAY_S),
    ("runtime.verb_wait_s", 0, DAY_S),
    ("runtime.snapshot_wait_s", 0, 7 * DAY_S),
    // More take more than they save.
    ("runtime.spares", 0, 1024),
    ("limits.sandboxes_max", 0, 1_000_000),
    ("limits.snapshots_max", 0, 1_000_000),
    ("limits.layers_max", 0, 1_000_000),
    ("limits.layers_bytes_max", 0, 1 << 60),
    ("limits.layers_age_s", 0, 10 * YEAR_S),
    ("limits.idle_timeout_s", 0, YEAR_S),
    ("limits.default.pids", 0, PIDS_MAX),
    ("limits.max.pids", 0, PIDS_MAX),
    ("pools.acquire_wait_s", 0, DAY_S),
    ("proxy.connect_wait_ms", 0, DAY_S * 1000),
    ("proxy.answer_wait_s", 0, DAY_S),
    ("proxy.idle_s", 0, DAY_S),
    ("egress.ask_s", 1, 3600),
    ("egress.connections_max", 1, 1_000_000),
    // Less lets nothing through that is worth it.
    ("egress.bytes_per_second_max", 1024, 1 << 40),
    ("egress.total_bytes_max", 1024, 1 << 60),
    ("access.admin_rate_per_s", 1, 1_000_000),
    ("access.admin_burst", 0, 1_000_000),
    ("access.tenant_rate_per_s", 0, 1_000_000),
    ("access.tenant_burst", 0, 1_000_000),
    ("audit.files_max", 1, 10_000),
    ("observe.otlp_metrics_interval_s", 0, DAY_S),
];

/// The range of a setting, in words; `None` for what is no number.
pub(super) fn told(key: &str) -> Option<String> {
    let (_, least, most) = RANGES.iter().find(|(name, ..)| *name == key)?;
    Some(format!("from {least} to {most}"))
}

/// Settings whose numbers lie beyond, and what is said of them.
pub(super) fn faults(settings: &Settings) -> impl Iterator<Item = (&'static str, String)> {
    let values = values(settings);
    RANGES.into_iter().filter_map(move |(key, least, most)| {
        let value = lookup(&values, key).as_u64()?;
        let is_within = (least..=most).contains(&value);
        (!is_within).then(|| {
            let hint = match (key, value) {
                ("access.admin_rate_per_s", 0) => "; leave it out for no limit",
                _ => "",
            };
            (
                key,
                format!("{value} is no number from {least} to {most}{hint}"),
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::super::{catalog, reading};
    use super::*;

    #[test]
    fn every_number_has_a_range() {
        for entry in catalog::entries() {
            let document = toml::de::DeValue::parse("7").unwrap();
            let takes_numbers = reading::alone(&entry.key, document).is_ok();
            // A share, which has a check of its own.
            let is_number = takes_numbers && entry.key != "observe.trace_ratio";
            assert_eq!(told(&entry.key).is_some(), is_number, "{}", entry.key);
        }
    }

    #[test]
    fn both_ends_can_be_set_and_nothing_beyond() {
        for (key, least, most) in RANGES {
            for (value, is_good) in [
                (Some(least), true),
                (Some(most), true),
                (least.checked_sub(1), false),
                (Some(most + 1), false),
                (Some(i64::MAX.unsigned_abs()), false),
            ] {
                let Some(value) = value else { continue };
                let (settings, told) = findings(&format!("{key} = {value}\n"), &[]);
                assert_eq!(settings.is_some(), is_good, "{key} = {value}: {told}");
                assert!(is_good || told.contains(key), "{told}");
            }
        }
    }

    #[test]
    fn what_is_beyond_is_told_with_the_range() {
        for (variable, value) in [
            ("BARCHAN_SERVER__HEAD_WAIT_S", "18446744073709551615"),
            ("BARCHAN_RUNTIME__SNAPSHOT_WAIT_S", "18446744073709551615"),
            (
                "BARCHAN_RUNTIME__RECONCILE_INTERVAL_S",
                "18446744073709551615",
            ),
        ] {
            let (settings, told) = findings("", &[(variable, value)]);
            assert!(settings.is_none() && told.contains(variable), "{told}");
        }
        let (_, told) = findings("[server]\nhead_wait_s = 86401\n", &[]);
        assert!(
            told.contains("86401 is no number from 0 to 86400"),
            "{told}"
        );
    }
}

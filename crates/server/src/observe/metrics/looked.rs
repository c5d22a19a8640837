//! Figures that are not counted but looked up, when somebody asks.

use std::borrow::Cow;

use barchan_daemon::clock::Now;
use prometheus::{IntGauge, IntGaugeVec, Result};

use super::make::Maker;
use crate::observe::process;

/// States of sandboxes, as callers know them.
pub(crate) const STATES: [&str; 6] = [
    "Pending",
    "Running",
    "Paused",
    "Terminated",
    "Failed",
    "Stopping",
];

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Looked {
    /// Sandboxes that are somebody's, by the number of their state in [`STATES`].
    pub(crate) sandboxes: [u64; STATES.len()],
    pub(crate) pools: u64,
    /// Sandboxes of all pools.
    pub(crate) pool_ready: u64,
    pub(crate) pool_starting: u64,
    pub(crate) pool_in_use: u64,
    /// Named volumes; `None` when the runtime did not say in time.
    pub(crate) volumes: Option<Volumes>,
    pub(crate) watchers: u64,
    /// Changes that wait for the store.
    pub(crate) store_waiting: u64,
    /// Connections into sandboxes that wait for their next request.
    pub(crate) idle_links: u64,
    /// What makes the sandboxes.
    pub(crate) runtime: Cow<'static, str>,
}

/// Named volumes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Volumes {
    pub(crate) mounted: u64,
    pub(crate) idle: u64,
}

/// The same as figures.
pub(super) struct Gauges {
    sandboxes: IntGaugeVec,
    pools: IntGauge,
    pool_sandboxes: IntGaugeVec,
    volumes: IntGaugeVec,
    watchers: IntGauge,
    store_waiting: IntGauge,
    idle_links: IntGauge,
    resident_bytes: IntGauge,
    descriptors: IntGauge,
    started: IntGauge,
    uptime: IntGauge,
    build: IntGaugeVec,
}

impl Gauges {
    pub(super) fn new(maker: &mut Maker) -> Result<Self> {
        let made = Self {
            sandboxes: maker.gauges(
                "barchan_sandboxes",
                "Sandboxes that are somebody's, by state; ended ones for as long as they are kept.",
                &["state"],
            )?,
            pools: maker.gauge("barchan_pools", "Pools.")?,
            pool_sandboxes: maker.gauges(
                "barchan_pool_sandboxes",
                "Sandboxes of all pools: `ready` for a caller, `starting`, or `in_use`.",
                &["state"],
            )?,
            volumes: maker.gauges(
                "barchan_volumes",
                "Named volumes, `mounted` by a sandbox or `idle`, as the runtime said last.",
                &["state"],
            )?,
            watchers: maker.gauge("barchan_event_watchers", "Open streams of `GET /x/events`.")?,
            store_waiting: maker.gauge(
                "barchan_store_queue",
                "Changes that wait to be written by the store.",
            )?,
            idle_links: maker.gauge(
                "barchan_proxy_idle_connections",
                "Connections into sandboxes that are kept for the next request.",
            )?,
            resident_bytes: maker.gauge(
                "process_resident_memory_bytes",
                "Memory of this process, in bytes.",
            )?,
            descriptors: maker.gauge("process_open_fds", "Open descriptors of this process.")?,
            started: maker.gauge(
                "process_start_time_seconds",
                "When this server began, in seconds since 1970.",
            )?,
            uptime: maker.gauge(
                "barchan_uptime_seconds",
                "For how long this server has been up.",
            )?,
            build: maker.gauges(
                "barchan_build_info",
                "Always 1: what this server is.",
                &["version", "runtime"],
            )?,
        };
        // There from the start, whatever the runtime says.
        for state in ["mounted", "idle"] {
            made.volumes.get_metric_with_label_values(&[state])?;
        }
        Ok(made)
    }

    pub(super) fn set(&self, looked: &Looked, started: Now, now: Now) {
        let by = |gauges: &IntGaugeVec, labels: &[&str], count: u64| {
            if let Ok(gauge) = gauges.get_metric_with_label_values(labels) {
                set(&gauge, count);
            }
        };
        for (state, count) in STATES.iter().zip(looked.sandboxes) {
            by(&self.sandboxes, &[state], count);
        }
        set(&self.pools, looked.pools);
        by(&self.pool_sandboxes, &["ready"], looked.pool_ready);
        by(&self.pool_sandboxes, &["starting"], looked.pool_starting);
        by(&self.pool_sandboxes, &["in_use"], looked.pool_in_use);
        if let Some(volumes) = looked.volumes {
            by(&self.volumes, &["mounted"], volumes.mounted);
            by(&self.volumes, &["idle"], volumes.idle);
        }
        set(&self.watchers, looked.watchers);
        set(&self.store_waiting, looked.store_waiting);
        set(&self.idle_links, looked.idle_links);
        let usage = process::usage();
        set(&self.resident_bytes, usage.resident_bytes);
        set(&self.descriptors, usage.descriptors);
        self.started.set(started.wall.as_second());
        let uptime = now.uptime.saturating_sub(started.uptime);
        set(&self.uptime, uptime.as_secs());
        let version = env!("CARGO_PKG_VERSION");
        by(&self.build, &[version, &looked.runtime], 1);
    }
}

fn set(gauge: &IntGauge, count: u64) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}

//! What of the settings each part of the server goes by.

use std::time::Duration;

use barchan_daemon::clock::Clock;
use barchan_runtime::Limits;
use barchan_wire::egress;
use barchan_wire::lifecycle::{Rate, resources};

use crate::api::{AccessLog, Admission, Domain, Guard, Pool, Proxy, Rates, Readers, Waits};
use crate::audit::Sizes;
use crate::config::{self, Settings};
use crate::egress::{Range, Terms, roots};
use crate::lifecycle::state::Spans;
use crate::lifecycle::{Retention, Rules};
use crate::observe::{Observe, Plan};
use crate::store::Meter;

pub(super) fn rules(settings: &Settings) -> Rules {
    let spans = Spans {
        ended_retention: Duration::from_secs(settings.store.ended_retention_s),
    };
    Rules {
        spans,
        sandboxes_max: settings.limits.sandboxes_max,
        snapshots_max: settings.limits.snapshots_max,
        retention: Retention {
            count: settings.limits.layers_max.max(1) as usize,
            bytes: settings.limits.layers_bytes_max,
            age: settings.limits.layers_age_s.map(Duration::from_secs),
        },
        snapshot_bytes_max: resources::bytes(&settings.storage.snapshot_max_size)
            .unwrap_or_default(),
        snapshot_wait: Duration::from_secs(settings.runtime.snapshot_wait_s.max(1)),
        pool_wait: Duration::from_secs(settings.pools.acquire_wait_s),
        verb_wait: Duration::from_secs(settings.runtime.verb_wait_s.max(1)),
        reconcile_interval: Duration::from_secs(settings.runtime.reconcile_interval_s.max(1)),
    }
}

/// What sandboxes may use of the network, if they have one.
pub(super) fn terms(settings: &Settings) -> Option<Terms> {
    let egress = &settings.egress;
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    egress.enabled.then(|| Terms {
        resolvers: egress.resolvers.clone(),
        deny_always: egress.deny_always.clone(),
        allow_always: egress.allow_always.clone(),
        ask_s: small(egress.ask_s),
        limits: egress::Limits {
            connections: Some(small(egress.connections_max)),
            total_bytes: egress.total_bytes_max,
            bytes_per_second: egress.bytes_per_second_max,
        },
        roots: roots(egress.extra_ca_file.as_deref()),
    })
}

/// Times the store.
pub(super) fn meter(clock: &Clock, observe: &Observe) -> Meter {
    Meter {
        clock: clock.clone(),
        seconds: observe.metrics().store_seconds.clone(),
    }
}

/// Ways into sandboxes.
pub(super) fn proxy(settings: &Settings, clock: &Clock) -> Proxy {
    Proxy {
        pool: Pool::new(clock.clone(), keep(settings)),
        waits: waits(settings),
        domain: domain(settings),
    }
}

pub(super) fn waits(settings: &Settings) -> Waits {
    Waits {
        connect: Duration::from_millis(settings.proxy.connect_wait_ms),
        answer: Duration::from_secs(settings.proxy.answer_wait_s.max(1)),
    }
}

pub(super) fn admission(settings: &Settings) -> Admission {
    let (default, max) = (&settings.limits.default, &settings.limits.max);
    let cpu = |text: &Option<String>| text.as_deref().and_then(resources::cpu_millis);
    let bytes = |text: &Option<String>| text.as_deref().and_then(resources::bytes);
    Admission {
        timeout_s_max: settings.server.max_sandbox_timeout_seconds,
        idle_timeout_s: settings.limits.idle_timeout_s,
        default: Limits {
            cpu_millis: cpu(&default.cpu),
            memory_bytes: bytes(&default.memory),
            pids: Some(default.pids),
            disk_bytes: resources::bytes(&default.disk),
        },
        max: Limits {
            cpu_millis: cpu(&max.cpu),
            memory_bytes: bytes(&max.memory),
            pids: max.pids,
            disk_bytes: bytes(&max.disk),
        },
        strict: settings.limits.strict.unwrap_or_else(config::is_root),
        has_host_paths: !settings.storage.allowed_host_paths.is_empty(),
        volume_default_bytes: resources::bytes(&settings.storage.volume_default_size)
            .unwrap_or_default(),
        volume_bytes_max: bytes(&settings.storage.volume_max_size),
        vault_proxies: {
            let proxies = settings.egress.vault_trusted_proxies.iter();
            proxies.filter_map(|it| Range::parse(it)).collect()
        },
        arch: if cfg!(target_arch = "aarch64") {
            "arm64"
        } else {
            "amd64"
        },
    }
}

pub(super) fn guard(settings: &Settings) -> Guard {
    let server = &settings.server;
    Guard::new(server.host.is_loopback(), &server.allowed_hosts)
}

/// The domain whose hosts are ports of sandboxes.
pub(super) fn domain(settings: &Settings) -> Option<Domain> {
    settings.server.domain.as_deref().and_then(Domain::parse)
}

/// How long an unused connection into a sandbox is kept.
pub(super) fn keep(settings: &Settings) -> Duration {
    Duration::from_secs(settings.proxy.idle_s.max(1))
}

pub(super) fn body_wait(settings: &Settings) -> Duration {
    Duration::from_secs(settings.server.body_wait_s.max(1))
}

/// How many requests keys may make.
pub(super) fn rates(settings: &Settings) -> Rates {
    let access = &settings.access;
    let rate = |per_second: u64, burst: Option<u64>| Rate {
        per_second,
        burst: burst.unwrap_or(per_second).max(1),
    };
    let tenant = rate(access.tenant_rate_per_s, Some(access.tenant_burst));
    Rates {
        admin: access
            .admin_rate_per_s
            .map(|it| rate(it, access.admin_burst)),
        tenant: (tenant.per_second > 0).then_some(tenant),
    }
}

/// How large the files of the audit log become.
pub(super) fn audit_sizes(settings: &Settings) -> Sizes {
    let size = resources::bytes(&settings.audit.file_size_max);
    Sizes {
        file_bytes_max: size.unwrap_or_default(),
        files_max: settings.audit.files_max,
    }
}

/// Who may read the figures. The setting was checked with the others.
pub(super) fn readers(settings: &Settings) -> Readers {
    Readers::parse(&settings.observe.metrics).unwrap_or(Readers::WithKey)
}

/// How loud the line of each request is.
pub(super) fn access_log(settings: &Settings) -> AccessLog {
    AccessLog::parse(&settings.log.access).unwrap_or(AccessLog::Debug)
}

/// What is sent to a collector, if there is one.
pub(super) fn plan(settings: &Settings) -> Option<Plan> {
    let observe = &settings.observe;
    let every = Duration::from_secs(observe.otlp_metrics_interval_s);
    Some(Plan {
        endpoint: config::endpoint(settings).ok().flatten()?,
        service: observe.service_name.clone(),
        ratio: observe.otlp_traces.then_some(observe.trace_ratio),
        metrics_every: (!every.is_zero()).then_some(every),
    })
}

//! Pure. Whether settings make sense together.

use barchan_wire::lifecycle::create::TIMEOUT_S_MIN;
use barchan_wire::lifecycle::resources;

use super::{Settings, SettingsError};

/// Most spare processes: beyond it they take more than they save.
const SPARES_MAX: usize = 1024;
/// Shortest key that is no invitation to guess, in bytes.
const KEY_BYTES_MIN: usize = 16;

pub(super) fn check(settings: &Settings) -> Result<(), SettingsError> {
    let bad = |key, why: &str| {
        Err(SettingsError::BadValue {
            key,
            why: why.to_owned(),
        })
    };
    if let Some(key) = &settings.server.api_key {
        let key = key.reveal();
        if key.is_empty() && settings.server.tcp && !settings.server.host.is_loopback() {
            return bad(
                "server.api_key",
                "a server off loopback needs a key; leave the setting out \
                                          and one is made",
            );
        }
        if !key.is_empty() && key.len() < KEY_BYTES_MIN {
            return bad("server.api_key", "a key has at least 16 characters");
        }
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return bad("server.api_key", "a key has only visible ASCII characters");
        }
    }
    if settings
        .server
        .max_sandbox_timeout_seconds
        .is_some_and(|s| s < TIMEOUT_S_MIN.unsigned_abs())
    {
        return bad(
            "server.max_sandbox_timeout_seconds",
            "the least time to live is 60 seconds",
        );
    }
    if let Some(host) = &settings.server.public_host {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte);
        if host.is_empty() || !host.bytes().all(plain) {
            return bad(
                "server.public_host",
                "write host or host:port, without scheme and path",
            );
        }
    }
    if settings.runtime.kind != "native" {
        return bad("runtime.kind", "the only runtime is `native`");
    }
    if settings.runtime.spares > SPARES_MAX {
        return bad("runtime.spares", "at most 1024 processes are kept ready");
    }
    amounts(settings)
}

fn amounts(settings: &Settings) -> Result<(), SettingsError> {
    let (default, max) = (&settings.limits.default, &settings.limits.max);
    let cpu = [
        ("limits.default.cpu", &default.cpu),
        ("limits.max.cpu", &max.cpu),
    ];
    for (key, amount) in cpu {
        if amount
            .as_deref()
            .is_some_and(|text| resources::cpu_millis(text).is_none())
        {
            let why = "write cores or thousandths of a core: 1.5 or 500m".to_owned();
            return Err(SettingsError::BadValue { key, why });
        }
    }
    let bytes = [
        ("limits.default.memory", default.memory.as_deref()),
        ("limits.default.disk", Some(default.disk.as_str())),
        ("limits.max.memory", max.memory.as_deref()),
        ("limits.max.disk", max.disk.as_deref()),
    ];
    for (key, amount) in bytes {
        if amount.is_some_and(|text| resources::bytes(text).is_none()) {
            let why = "write bytes with a unit: 512Mi or 1G".to_owned();
            return Err(SettingsError::BadValue { key, why });
        }
    }
    Ok(())
}

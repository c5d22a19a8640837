//! Assembles the native runtime from the server's settings.

use std::sync::Arc;

use anyhow::{Context, Result};
use barchan_runtime::image::Aliases;
use barchan_runtime::image::alias::ALIASES_DEFAULT;
use barchan_runtime::native::{self, Native};
use barchan_server::config::{self, Settings};
use barchan_wire::lifecycle::resources;

use crate::guests;

/// Who asks for a launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The server of the state directory, whose settings the launcher follows.
    Server,
    /// A command that needs it for a moment and takes it as it is.
    Guest,
}

/// Finds or starts the launcher of the state directory. The future hears the launcher and must run
/// for as long as the runtime is used.
pub(crate) async fn start(
    settings: &Settings,
    role: Role,
) -> Result<(Arc<Native>, impl Future<Output = ()> + Send + use<>)> {
    let state = config::state_dir(settings);
    let guests = guests::find(&state)?;
    let disk = &settings.limits.default.disk;
    let settings = native::Settings {
        blanks: settings.runtime.spares,
        state,
        jail: guests.jail,
        execd: guests.execd,
        egress: settings.egress.enabled.then_some(guests.egress),
        disk_bytes: resources::bytes(disk)
            .with_context(|| format!("limits.default.disk: `{disk}` is no size"))?,
        aliases: aliases(settings)?,
        host_paths: match role {
            Role::Server => Some(settings.storage.allowed_host_paths.clone()),
            Role::Guest => None,
        },
        devices: "/dev".into(),
    };
    Ok(Native::start(settings).await?)
}

/// The names that stand for local images: the operator's, or the built-in ones.
fn aliases(settings: &Settings) -> Result<Aliases> {
    let own = &settings.runtime.aliases;
    let aliases = if own.is_empty() {
        Aliases::new(ALIASES_DEFAULT.map(|(pattern, images)| (pattern, images.iter().copied())))
    } else {
        Aliases::new(own.iter().map(|it| (&it.pattern, it.images.clone())))
    };
    Ok(aliases?)
}

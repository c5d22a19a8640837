//! Which server a command talks to: the named one, or the user's own.

mod private;

use std::path::Path;

use anyhow::{Context, Result, bail};
use barchan_client::{Client, Filter, Limits, SnapshotFilter, Target};
use barchan_wire::id::{SandboxId, SnapshotId};
use barchan_wire::local;
use barchan_wire::secret::Secret;

use crate::args::Global;
use crate::config::Choice;
use crate::parse::is_id_like;

/// A client of the server to use; the user's own is started when it is not running.
pub(crate) async fn connect(global: &Global) -> Result<Client> {
    match Choice::of(global)? {
        Choice::Named { address, key } => named(&address, key.as_ref()),
        Choice::Private(state_dir) => {
            private::ensure(&state_dir).await.with_context(|| {
                format!("cannot start a private server in {}", state_dir.display())
            })?;
            private_client(&state_dir)
        }
    }
}

/// A client of the server to use, which is not started when it does not run.
pub(crate) fn connect_running(global: &Global) -> Result<Client> {
    match Choice::of(global)? {
        Choice::Named { address, key } => named(&address, key.as_ref()),
        Choice::Private(state_dir) => private_client(&state_dir),
    }
}

fn named(address: &str, key: Option<&Secret>) -> Result<Client> {
    Ok(Client::new(address.parse()?, key, Limits::default())?)
}

/// A client of the user's own server, running or not.
fn private_client(state_dir: &Path) -> Result<Client> {
    let socket = state_dir.join(local::API_SOCKET);
    Ok(Client::new(Target::Unix(socket), None, Limits::default())?)
}

/// The sandbox that an id, or the beginning of one, names.
pub(crate) async fn find(client: &Client, text: &str) -> Result<SandboxId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    if !is_id_like(text) {
        bail!("`{text}` is no sandbox id; `barchan list` shows them");
    }
    let all = client.list(&Filter::default()).await?;
    the_one(text, "sandbox", all.into_iter().map(|it| it.id))
}

/// The snapshot that an id, or the beginning of one, names.
pub(crate) async fn find_snapshot(client: &Client, text: &str) -> Result<SnapshotId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    if !is_id_like(text) {
        bail!("`{text}` is no snapshot id; `barchan snapshot list` shows them");
    }
    let all = client.snapshots(&SnapshotFilter::default()).await?;
    the_one(text, "snapshot", all.into_iter().map(|it| it.id))
}

/// The approval that an id, or the beginning of one, names.
pub(crate) async fn find_approval(client: &Client, text: &str) -> Result<String> {
    if !is_id_like(text) {
        bail!("`{text}` is no approval's id; `barchan approvals list --all` shows them");
    }
    let all = client.approvals(&[]).await?;
    the_one(text, "approval", all.into_iter().map(|it| it.id))
}

/// The id that begins so, if it is one alone.
fn the_one<T: ToString>(text: &str, what: &str, ids: impl Iterator<Item = T>) -> Result<T> {
    let mut found = ids.filter(|id| id.to_string().starts_with(text));
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(id),
        (None, _) => bail!("no {what} has an id that begins with `{text}`"),
        (Some(_), Some(_)) => bail!("several {what}s begin with `{text}`; write more of the id"),
    }
}

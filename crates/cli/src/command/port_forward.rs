//! `barchan port-forward`: ports of this machine that lead to ports of a sandbox.

mod door;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use barchan_client::{Client, ClientError};
use barchan_wire::id::SandboxId;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::door::Door;
use crate::args::{Global, PortForward};
use crate::output::Output;
use crate::server;
use crate::stop::Stop;

/// Between two tries to hear of a sandbox's end from a server that went away.
const RETRY: Duration = Duration::from_secs(1);

/// What connections share.
struct Forwarding {
    client: Client,
    id: SandboxId,
    output: Output,
    /// Whoever finds out that the sandbox has ended says so here.
    ended: mpsc::Sender<String>,
}

/// What is told of a port that leads inside.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    local: String,
    sandbox_id: &'a SandboxId,
    port: u16,
}

pub(super) async fn run(global: &Global, flags: PortForward, output: &Output) -> Result<u8> {
    let client = server::connect(global).await?;
    let id = server::find(&client, &flags.id).await?;
    let mut stop = Stop::listen().context("cannot listen for signals")?;
    if let Some(why) = client.end_of(&id).await? {
        bail!("{why}");
    }
    let mut doors = Vec::new();
    for ports in flags.ports {
        doors.push(Door::open(flags.address, ports).await?);
    }
    if !flags.address.is_loopback() {
        let address = flags.address;
        output.warn(&format!(
            "whoever reaches {address} reaches these ports of the sandbox, without a key"
        ));
    }
    for door in &doors {
        tell(door, &id, output)?;
    }
    let (ended, mut end) = mpsc::channel(1);
    let forwarding = Arc::new(Forwarding {
        client,
        id,
        output: *output,
        ended,
    });
    // What is left of them ends with this function.
    let mut tasks = JoinSet::new();
    for door in doors {
        tasks.spawn(door.serve(Arc::clone(&forwarding)));
    }
    tasks.spawn(watch(forwarding));
    tokio::select! {
        code = stop.asked() => Ok(code),
        Some(why) = end.recv() => bail!("{why}"),
    }
}

fn tell(door: &Door, id: &SandboxId, output: &Output) -> Result<()> {
    let (local, port) = (door.local().to_string(), door.port());
    if output.is_json() {
        let sandbox_id = id;
        let told = Told {
            local,
            sandbox_id,
            port,
        };
        return Ok(output.json_line(&told)?);
    }
    Ok(output.line(&format!("forwarding {local} → {id}:{port}"))?)
}

/// Waits for the sandbox to end, as long as the server tells of such things. Where it does not, the
/// next connection finds out.
async fn watch(forwarding: Arc<Forwarding>) {
    let Forwarding { client, id, .. } = &*forwarding;
    loop {
        match client.wait_for_end_of(id).await {
            Ok(Some(why)) => return forwarding.end(why),
            Err(ClientError::Api(error)) if error.status < 500 => return,
            Ok(None) | Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}

impl Forwarding {
    /// Ends everything, because the sandbox has ended.
    fn end(&self, why: String) {
        // Somebody may have said so already.
        let _ = self.ended.try_send(why);
    }

    /// Tells why a connection leads nowhere.
    async fn refuse(&self, port: u16, error: ClientError) {
        if let ClientError::Api(_) = &error
            && let Ok(Some(why)) = self.client.end_of(&self.id).await
        {
            return self.end(why);
        }
        let error = anyhow::Error::new(error).context(format!("connection to port {port}"));
        self.output.tell(&error);
    }
}

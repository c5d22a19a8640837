//! A connection to a peer: the server brings the way there, since it knows where the peer is.

use std::net::SocketAddr;
use std::time::Duration;

use barchan_daemon::splice::{self, Terms};
use barchan_egress::policy::Action;
use barchan_wire::egress::{PeerCall, Verdict, What};
use barchan_wire::id::SandboxId;
use barchan_wire::limits::PORT_STREAM_SILENCE_MS;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::app::App;
use crate::dial;
use crate::limits::CALL_WAIT;
use crate::line::Line;
use crate::meter::Way;
use crate::ruling::Ruling;
use crate::sandbox::Sandbox;

/// Serves such a connection until its end.
pub(crate) async fn serve(
    app: &App,
    sandbox: &Sandbox,
    line: &Line,
    (peer, to): (SandboxId, SocketAddr),
    mut client: TcpStream,
) {
    let _ = client.set_nodelay(true);
    let ended = tokio::select! {
        ended = carry(app, sandbox, line, (peer, to.port()), &mut client) => ended,
        why = line.is_cut() => Err(Some(why)),
    };
    let Err(why) = ended else { return };
    dial::reset_on_close(&client);
    if let Some(why) = why {
        line.settle(Verdict::Deny, why);
    }
}

/// Why it ended out of order, as a stable code where it is not the ends' own doing.
async fn carry(
    app: &App,
    sandbox: &Sandbox,
    line: &Line,
    (peer, port): (SandboxId, u16),
    client: &mut TcpStream,
) -> Result<(), Option<&'static str>> {
    let ruling = Ruling::new(Action::Allow, "network", None);
    line.rule(Some(peer.to_string()), &ruling, None);
    app.happened(sandbox, What::Verdict, line, None);
    let mut calling = app.calls.wait().ok_or(Some("peer_too_many"))?;
    let call = PeerCall {
        id: calling.id.clone(),
        peer: peer.to_string(),
        port,
    };
    app.called(sandbox, line, call);
    let brought = timeout(CALL_WAIT, calling.stream()).await;
    let stream = brought.map_err(|_| Some("peer_timeout"))?;
    let stream = stream.ok_or(Some("peer_refused"))?;
    let stream = stream.await.map_err(|_| Some("peer_refused"))?;
    let terms = Terms {
        silence: Duration::from_millis(PORT_STREAM_SILENCE_MS),
        listens: async { true },
    };
    let count = |way, bytes| {
        let way = match way {
            splice::Way::Far => Way::Out,
            splice::Way::Near => Way::In,
        };
        line.count(way, bytes as u64);
    };
    let joined = splice::splice(client, TokioIo::new(stream), terms, count);
    joined.await.map_err(|_| None)
}

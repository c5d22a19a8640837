//! Connections to hosts whose requests get credentials on their way: TLS ends here and begins anew
//! towards the server, and each request in between is looked at.
//!
//! The sandbox is shown a certificate that its own authority signed; the server's is verified as
//! any client would. Both sides speak one protocol, HTTP/1 or HTTP/2, whichever they agree on.

mod body;
mod exchange;
mod hops;
mod http1;
mod http2;
mod metered;
mod refuse;
mod signer;
mod tls;
mod upstream;

use std::rc::Rc;

use barchan_egress::name::Name;
use barchan_egress::policy::Policy;
use barchan_egress::rules::Overlay;
use barchan_egress::vault;
use barchan_wire::egress::Verdict;
use barchan_wire::egress::vault as wire;
use barchan_wire::egress::vault::Scheme;
use tokio::net::TcpStream;

pub(crate) use upstream::Upstream;

use crate::app::App;
use crate::dial;
use crate::limits::INTERCEPTED_MAX;
use crate::line::Line;
use crate::sandbox::{Place, Sandbox};
use metered::{Meters, Stream};
use signer::Signer;

/// What the requests of a sandbox get, and who signs for the hosts they go to.
#[derive(Debug)]
pub(crate) struct Vault {
    /// Which requests get what.
    pub(crate) table: vault::Vault,
    signer: Rc<Signer>,
}

/// Both ends of a connection.
pub(crate) struct Ends {
    client: Rc<TcpStream>,
    server: Option<Rc<TcpStream>>,
}

/// A connection that is to be looked into.
pub(crate) struct Handed {
    /// How requests travel on it.
    pub(crate) scheme: Scheme,
    /// Whom they are for.
    pub(crate) host: Name,
    /// What the client has said.
    pub(crate) first: Vec<u8>,
}

/// Whose it is.
pub(crate) type Of = (Rc<App>, Rc<Sandbox>, Rc<Line>);

impl Vault {
    /// Reads what the server says, for a sandbox with a policy; what was known before is kept where
    /// it is the same.
    ///
    /// # Errors
    /// What is wrong with it, in words without a value.
    pub(crate) fn new(
        wire: &wire::Vault,
        (overlay, policy): (&Overlay, &Policy),
        known: Option<&Self>,
    ) -> Result<Self, String> {
        let table = vault::Vault::read(wire, overlay, policy).map_err(|it| it.to_string())?;
        let signer = match known.filter(|it| it.signer.is_of(&wire.authority)) {
            Some(known) => Rc::clone(&known.signer),
            None => Rc::new(Signer::new(&wire.authority)?),
        };
        Ok(Self { table, signer })
    }
}

impl Ends {
    /// Both ends, of which the second may be gone.
    pub(crate) fn new(client: TcpStream, server: Option<TcpStream>) -> Self {
        Self {
            client: Rc::new(client),
            server: server.map(Rc::new),
        }
    }

    fn reset(&self) {
        dial::reset_on_close(&self.client);
        if let Some(server) = &self.server {
            dial::reset_on_close(server);
        }
    }
}

/// Serves a connection until its end.
pub(crate) async fn serve(of: Of, ends: Ends, handed: Handed) {
    let (_, sandbox, line) = &of;
    let place = Place::take(&sandbox.intercepted, INTERCEPTED_MAX);
    let ended = tokio::select! {
        ended = carry(&of, &ends, handed), if place.is_some() => ended,
        why = line.is_cut() => Err(why),
        () = std::future::ready(()), if place.is_none() => Err("limit_intercepted"),
    };
    // What runs into a limit ends by itself, in the same moment.
    let ended = line.why_cut().map_or(ended, Err);
    if let Err(reason) = ended {
        line.settle(Verdict::Deny, reason);
        ends.reset();
    }
}

/// Why a connection ends before its time, as a stable code.
type Reason = &'static str;

async fn carry(of: &Of, ends: &Ends, handed: Handed) -> Result<(), Reason> {
    let meters = Meters::new(of, handed.first);
    let client = Stream::new(Rc::clone(&ends.client), Some(meters));
    let server = ends.server.as_ref().ok_or("dial_failed")?;
    let server = Stream::new(Rc::clone(server), None);
    let context = exchange::Context::new(of, handed.scheme, handed.host);
    match handed.scheme {
        Scheme::Http => http1::carry(Rc::new(context), client, server).await,
        Scheme::Https => tls::carry(Rc::new(context), client, server).await,
    }
}

//! The life of one connection of a sandbox.
//!
//! Where silence is allowed, the way to the outside is made at once and what the server says goes
//! in; what the client says first is looked at before any of it goes out. Else its first bytes are
//! awaited before anything is done.

use std::cell::{OnceCell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

use barchan_egress::name::Name;
use barchan_egress::policy::Action;
use barchan_egress::verdict::Said;
use barchan_wire::egress::vault::Scheme;
use barchan_wire::egress::{Protocol, Verdict, What};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::app::App;
use crate::beginning::{self, Beginning};
use crate::framing::{Shape, Switch};
use crate::intercept::{self, Ends, Handed};
use crate::limits::PATIENCE;
use crate::line::{Facts, Line};
use crate::meter::Way;
use crate::relay::{End, Flow, Half};
use crate::requests::{self, Switched};
use crate::ruling::Ruling;
use crate::sandbox::Sandbox;
use crate::{dial, dns, peer, refusal};

mod admit;

/// The port of the DNS.
const DNS: u16 = 53;

/// A connection, and what belongs to it.
pub(crate) struct Call<'a> {
    app: &'a App,
    sandbox: &'a Sandbox,
    line: &'a Line,
    to: SocketAddr,
    is_own: bool,
    /// The names that its address stood for when it began; they may run out before it ends.
    pins: Vec<Name>,
    /// What somebody has allowed it to say.
    allowed: RefCell<Option<Said>>,
    client: &'a TcpStream,
    server: &'a OnceCell<TcpStream>,
    farewell: &'a OnceCell<(Option<Said>, Ruling)>,
}

/// How a connection goes on that was allowed.
pub(crate) enum Mode {
    /// Without being looked at.
    Opaque,
    /// As requests of HTTP, of which this is one.
    Requests(Shape),
    /// As requests to a host that may get credentials.
    Intercepted(Scheme, Name),
}

/// A connection that has a way to the outside.
struct Opened<'a> {
    server: &'a TcpStream,
    /// What the client has said.
    first: Beginning,
    /// How it goes on.
    mode: Mode,
    /// Whether the server has ended already.
    down: Half,
}

/// Serves a connection until its end.
pub(crate) async fn serve(app: Rc<App>, sandbox: Rc<Sandbox>, client: TcpStream) {
    let Ok(to) = client.local_addr() else { return };
    let to = SocketAddr::new(to.ip().to_canonical(), to.port());
    let place = sandbox.enter();
    if to.port() == DNS && place.is_some() {
        Box::pin(dns::tcp::serve(&app, &sandbox, client)).await;
        return;
    }
    let line = app.line(Protocol::Tcp, Some(to));
    sandbox.ledger.enter(&line);
    let peer = sandbox.peers.borrow().at(to.ip()).cloned();
    if place.is_none() {
        let full = Ruling::refusal("limit_connections");
        note(&app, &sandbox, &line, None, &full, None);
        dial::reset_on_close(&client);
    } else if let Some(peer) = peer {
        Box::pin(peer::serve(&app, &sandbox, &line, (peer, to), client)).await;
    } else {
        Box::pin(live(&app, &sandbox, &line, to, client)).await;
    }
    sandbox.ledger.leave(line.id, line.tell(Some(app.now())));
    app.happened(&sandbox, What::Closed, &line, None);
}

async fn live(
    app: &Rc<App>,
    sandbox: &Rc<Sandbox>,
    line: &Rc<Line>,
    to: SocketAddr,
    mut client: TcpStream,
) {
    let _ = client.set_nodelay(true);
    let (server, farewell) = (OnceCell::new(), OnceCell::new());
    let call = Call {
        app,
        sandbox,
        line,
        to,
        is_own: dial::is_own(to.ip()),
        pins: sandbox.pins.borrow().names_of(to.ip(), app.now_ms()),
        allowed: RefCell::new(None),
        client: &client,
        server: &server,
        farewell: &farewell,
    };
    let ended = tokio::select! {
        ended = call.run() => ended,
        why = line.is_cut() => Err(End::Cut(why)),
    };
    drop(call);
    if let Err(End::Cut(reason)) = ended {
        line.settle(Verdict::Deny, reason);
    }
    if !line.is_told() {
        app.happened(sandbox, What::Verdict, line, None);
    }
    let why = match (ended, server.get()) {
        (Ok(Some(handed)), Some(_)) => {
            let ends = Ends::new(client, server.into_inner());
            let of = (Rc::clone(app), Rc::clone(sandbox), Rc::clone(line));
            return Box::pin(intercept::serve(of, ends, handed)).await;
        }
        (Ok(_), _) => return,
        (Err(why), _) => why,
    };
    if let Some(server) = server.get() {
        dial::reset_on_close(server);
    }
    match farewell.into_inner() {
        Some((said, ruling)) if why == End::Answered => {
            Box::pin(refusal::answer(&mut client, said.as_ref(), &ruling)).await;
        }
        _ => dial::reset_on_close(&client),
    }
}

/// Notes a decision, and tells of it if it is new.
fn note(
    app: &App,
    sandbox: &Sandbox,
    line: &Line,
    name: Option<String>,
    ruling: &Ruling,
    facts: Option<Facts>,
) {
    if line.rule(name, ruling, facts) {
        app.happened(sandbox, What::Verdict, line, None);
    }
}

impl<'a> Call<'a> {
    /// One of its directions.
    pub(crate) const fn flow(&self, way: Way) -> Flow<'a> {
        Flow {
            app: self.app,
            sandbox: self.sandbox,
            line: self.line,
            way,
        }
    }

    /// Its life, in two parts of which only one is in memory at a time: there are many connections
    /// that wait for long.
    async fn run(&self) -> Result<Option<Handed>, End> {
        let opened = Box::pin(self.open()).await?;
        Box::pin(self.carry(opened)).await
    }

    /// Makes the way to the outside, or refuses to.
    async fn open(&self) -> Result<Opened<'a>, End> {
        if self.sandbox.wait_for_rules().await.is_none() {
            return Err(End::Cut("not_guarded"));
        }
        if self.sandbox.meter.is_spent() {
            return Err(End::Cut("limit_total_bytes"));
        }
        let (ruling, facts) = self.judge(Said::Nothing);
        if ruling.action == Action::Allow {
            // Only to be judged again; it is told once the client has said something, or ended.
            self.line.provide(&ruling, facts);
            return self.open_early().await;
        }
        let patience = (Some(PATIENCE), self.patience());
        let first = beginning::read(self.client, Vec::new(), patience).await?;
        let mode = self.admit(&first).await?;
        if first.is_silent() && !first.has_ended {
            // Somebody has allowed it for as long as nothing is said.
            return self.open_early().await;
        }
        Ok(Opened {
            server: self.dial().await?,
            first,
            mode,
            down: Half::Stopped,
        })
    }

    /// Makes it before the client has said anything.
    async fn open_early(&self) -> Result<Opened<'a>, End> {
        let server = self.dial().await?;
        let stop = Notify::new();
        let down = self.flow(Way::In).run(server, self.client, Some(&stop));
        let up = async {
            let patience = (None, self.patience());
            let first = beginning::read(self.client, Vec::new(), patience).await;
            stop.notify_one();
            Ok(first?)
        };
        let (first, down) = tokio::try_join!(up, down)?;
        let mode = if first.is_silent() {
            Mode::Opaque
        } else {
            self.admit(&first).await?
        };
        Ok(Opened {
            server,
            first,
            mode,
            down,
        })
    }

    /// Carries bytes both ways until both have ended, or has somebody else do it.
    async fn carry(&self, opened: Opened<'_>) -> Result<Option<Handed>, End> {
        let Opened {
            server,
            first,
            mode,
            down,
        } = opened;
        let ends = (self.client, server);
        match mode {
            Mode::Requests(shape) => {
                Box::pin(self.carry_requests(ends, first, shape, down)).await?;
            }
            // A server that speaks first speaks neither TLS nor HTTP.
            Mode::Intercepted(..) if down == Half::Ended || self.line.has_moved() => {
                return Err(End::Cut("tls_failed"));
            }
            Mode::Intercepted(scheme, host) => {
                return Ok(Some(Handed {
                    scheme,
                    host,
                    first: first.bytes,
                }));
            }
            Mode::Opaque => {
                let up = requests::opaque(self, ends, first.bytes, first.has_ended);
                tokio::try_join!(up, self.carry_down(ends, down))?;
            }
        }
        Ok(None)
    }

    async fn carry_requests(
        &self,
        ends: (&TcpStream, &TcpStream),
        first: Beginning,
        shape: Shape,
        down: Half,
    ) -> Result<(), End> {
        let switched = Switched::default();
        let up = Box::pin(requests::carry(self, ends, first, shape, &switched));
        let down = async {
            let mut half = down;
            if half == Half::Stopped && shape.switch != Switch::No {
                let look = requests::look_for_switch(self, ends, shape.switch, &switched);
                half = Box::pin(look).await?;
            }
            self.carry_down(ends, half).await
        };
        tokio::try_join!(up, down)?;
        Ok(())
    }

    /// Carries what comes in, if that has not ended yet.
    async fn carry_down(&self, ends: (&TcpStream, &TcpStream), half: Half) -> Result<Half, End> {
        let (client, server) = ends;
        match half {
            Half::Stopped => self.flow(Way::In).run(server, client, None).await,
            Half::Ended => Ok(half),
        }
    }

    async fn dial(&self) -> Result<&'a TcpStream, End> {
        match dial::dial(self.to).await {
            Ok(server) => Ok(self.server.get_or_init(|| server)),
            Err(code) => {
                self.line.settle(Verdict::Allow, code);
                Err(End::Reset)
            }
        }
    }
}

//! The life of one connection of a sandbox.
//!
//! Where silence is allowed, the way to the outside is made at once and what the server says goes
//! in; what the client says first is looked at before any of it goes out. Else its first bytes are
//! awaited before anything is done.

use std::cell::{OnceCell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use barchan_egress::hello::First;
use barchan_egress::name::Name;
use barchan_egress::policy::Action;
use barchan_egress::verdict::Said;
use barchan_wire::egress::{Ask, Protocol, Verdict, What};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::app::App;
use crate::beginning::{self, Beginning};
use crate::framing::{self, Shape, Switch};
use crate::limits::{BEGINNING, BEGINNING_OF_ANYTHING, PATIENCE};
use crate::line::{Facts, Line};
use crate::meter::Way;
use crate::relay::{End, Flow, Half};
use crate::requests::{self, Switched};
use crate::ruling::Ruling;
use crate::sandbox::Sandbox;
use crate::{dial, dns, peer, refusal};

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

async fn live(app: &App, sandbox: &Sandbox, line: &Line, to: SocketAddr, mut client: TcpStream) {
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
    let Err(why) = ended else { return };
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
    async fn run(&self) -> Result<(), End> {
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

    /// Carries bytes both ways until both have ended.
    async fn carry(&self, opened: Opened<'_>) -> Result<(), End> {
        let Opened {
            server,
            first,
            mode,
            down,
        } = opened;
        let ends = (self.client, server);
        match mode {
            Mode::Requests(shape) => Box::pin(self.carry_requests(ends, first, shape, down)).await,
            Mode::Opaque => {
                let up = requests::opaque(self, ends, first.bytes, first.has_ended);
                tokio::try_join!(up, self.carry_down(ends, down))?;
                Ok(())
            }
        }
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

    /// What the rules say, by all names that its address stood for since it began.
    fn judge(&self, said: Said) -> (Ruling, Facts) {
        let mut facts = Facts {
            said,
            pins: self.pins.clone(),
        };
        let to = (self.to.ip(), self.to.port());
        let mut ruling = self.sandbox.judge(to, &mut facts, self.app.now_ms());
        // A range says nothing of a host that happens to be in it, but one of loopback does.
        let is_meant = ruling.is_of_address || self.to.ip().is_loopback();
        if self.is_own && ruling.action != Action::Deny && !is_meant {
            ruling = Ruling::refusal("address_own");
        }
        (ruling, facts)
    }

    /// How long the rest of a beginning is awaited: no longer than others notice, where it may be
    /// anything at all.
    pub(crate) fn patience(&self) -> Duration {
        match self.judge(Said::Hidden).0.action {
            Action::Allow => BEGINNING_OF_ANYTHING,
            Action::Ask | Action::Deny => BEGINNING,
        }
    }

    /// Decides on a beginning, and returns if it may go out.
    pub(crate) async fn admit(&self, first: &Beginning) -> Result<Mode, End> {
        let said = match &first.first {
            Err(why) => {
                let is_http = !why.code().starts_with("tls");
                let ruling = Ruling::refusal(why.code());
                note(self.app, self.sandbox, self.line, None, &ruling, None);
                return Err(self.refuse(is_http, None, ruling));
            }
            Ok(first) => Said::from(first.clone()),
        };
        let shape = match &first.first {
            Ok(First::Http { .. }) => Some(framing::shape(&first.bytes)),
            _ => None,
        };
        let name = said.host().map(ToString::to_string);
        let (mut ruling, mut facts) = self.judge(said);
        let mut mode = Mode::Opaque;
        match shape {
            _ if ruling.action == Action::Deny => {}
            None => {}
            Some(Err(_)) => ruling = Ruling::refusal("http_malformed"),
            // Later requests could not be seen, and might be for anybody.
            Some(Ok(shape)) if shape.switch == Switch::Http2 => {
                let (hidden, hidden_facts) = self.judge(Said::Hidden);
                if hidden.action != Action::Allow {
                    ruling = Ruling::refusal("name_hidden");
                } else if ruling.action == Action::Allow {
                    facts = hidden_facts;
                }
            }
            Some(Ok(shape)) => mode = Mode::Requests(shape),
        }
        let said = facts.said.clone();
        if ruling.action == Action::Ask && self.allowed.borrow().as_ref() == Some(&said) {
            // One word is enough for all requests of a connection to one host.
            ruling.action = Action::Allow;
            ruling.reason = "ask_allowed";
        }
        note(
            self.app,
            self.sandbox,
            self.line,
            name,
            &ruling,
            Some(facts),
        );
        match ruling.action {
            Action::Allow => Ok(mode),
            Action::Ask => {
                self.ask().await?;
                *self.allowed.borrow_mut() = Some(said);
                Ok(mode)
            }
            Action::Deny => Err(self.refuse(matches!(said, Said::Http { .. }), Some(said), ruling)),
        }
    }

    /// How a refusal is told: in words where the client speaks HTTP and nothing was answered yet.
    fn refuse(&self, is_http: bool, said: Option<Said>, ruling: Ruling) -> End {
        if !is_http || self.line.has_moved() {
            return End::Refused;
        }
        let _ = self.farewell.set((said, ruling));
        End::Answered
    }

    /// Waits for somebody's word.
    async fn ask(&self) -> Result<(), End> {
        let Some(mut waiting) = self.app.asks.wait() else {
            return Err(End::Cut("ask_too_many"));
        };
        let patience = self.app.operator.borrow().ask;
        let until = self.app.now().plus_seconds(patience.as_secs());
        let ask = Ask {
            id: waiting.id.clone(),
            until: until.unwrap_or_else(|| self.app.now()),
        };
        self.app
            .happened(self.sandbox, What::Asked, self.line, Some(ask));
        let (verdict, reason) = match timeout(patience, waiting.word()).await {
            Ok(true) => (Verdict::Allow, "ask_allowed"),
            Ok(false) => (Verdict::Deny, "ask_denied"),
            Err(_) => (Verdict::Deny, "ask_unanswered"),
        };
        self.line.settle(verdict, reason);
        self.app
            .happened(self.sandbox, What::Verdict, self.line, None);
        match verdict {
            Verdict::Allow => Ok(()),
            Verdict::Ask | Verdict::Deny => Err(End::Refused),
        }
    }
}

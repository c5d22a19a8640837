//! What becomes of a connection once it has said something.

use std::time::Duration;

use barchan_egress::hello::First;
use barchan_egress::host::Host;
use barchan_egress::name::Name;
use barchan_egress::policy::Action;
use barchan_egress::vault::port;
use barchan_egress::verdict::Said;
use barchan_wire::egress::vault::Scheme;
use barchan_wire::egress::{Ask, Verdict, What};
use tokio::time::timeout;

use super::{Call, Mode, note};
use crate::beginning::Beginning;
use crate::framing::{self, Switch};
use crate::limits::{BEGINNING, BEGINNING_OF_ANYTHING};
use crate::line::Facts;
use crate::relay::End;
use crate::ruling::Ruling;

impl Call<'_> {
    /// What the rules say, by all names that its address stood for since it began.
    pub(super) fn judge(&self, said: Said) -> (Ruling, Facts) {
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
        if let Some((scheme, host)) = self.bound(&facts, &mode) {
            mode = Mode::Intercepted(scheme, host);
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

    /// The host whose requests may get credentials, if this is a way to one. In the clear nothing
    /// proves that but our own answer: whoever is connected to may be anybody who was allowed.
    fn bound(&self, facts: &Facts, mode: &Mode) -> Option<(Scheme, Name)> {
        let (scheme, host) = match (&facts.said, mode) {
            (Said::Tls { name, has_ech }, _) if !has_ech => (Scheme::Https, name),
            (Said::Http { host }, Mode::Requests(_)) => (Scheme::Http, host),
            _ => return None,
        };
        let Some(Host::Name(name)) = host else {
            return None;
        };
        if scheme == Scheme::Http && !facts.pins.contains(name) {
            return None;
        }
        let vault = self.sandbox.vault()?;
        let is_bound = self.to.port() == port(scheme) && vault.table.is_bound(scheme, name);
        is_bound.then(|| (scheme, name.clone()))
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

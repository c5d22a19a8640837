//! Who asks: whose key came along, and how often it may.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use barchan_wire::lifecycle::{Rate, Time, code};
use http::HeaderMap;

use super::auth::KEY_HEADERS;
use super::errors::Refusal;
use super::{Api, Peer};
use crate::access::{Access, Bucket, Holder, Tenant};
use crate::audit::{Actor, Audit};
use crate::lifecycle::{Lifecycle, Scope};

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) enum Identity {
    /// Somebody without a credential that is known.
    Nobody,
    /// Anybody: no key is asked for.
    Anyone,
    /// Whoever has the key of the settings, which has this mark.
    Operator(u64),
    /// A user whom the kernel vouches for.
    Local(Option<u32>),
    /// Whoever has one of the keys.
    Holder(Holder),
    /// Whoever has a sandbox's token.
    Token(Beside),
    /// Whoever has a signed address, or the cookie that it was exchanged for.
    Signature(Beside),
}

/// Whose key came along with a credential of the sandbox, if a good one did. It opens nothing more;
/// it says who asks, and its rate holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside(Option<Box<Identity>>);

/// How many requests keys may make, as far as nothing else is said of one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rates {
    /// The settings' key and keys of admins; without one, as many as they like.
    pub(crate) admin: Option<Rate>,
    /// Keys of tenants.
    pub(crate) tenant: Option<Rate>,
}

/// Who shares the server, and what is noted of them.
#[derive(Debug, Clone)]
pub(crate) struct Tenancy {
    pub(crate) access: Access,
    pub(crate) rates: Rates,
    pub(crate) operator: Arc<OperatorPace>,
    pub(crate) audit: Audit,
    /// Whether it is noted, too, what is changed in sandboxes through the proxy.
    pub(crate) audits_proxied: bool,
}

/// Counts the requests with the settings' key.
#[derive(Debug, Default)]
pub(crate) struct OperatorPace(Mutex<Bucket>);

impl Beside {
    /// What a check of a request's keys came to. Who shows none is nobody in particular.
    pub(super) fn of(shown: Option<Identity>) -> Self {
        let has_key =
            |shown: &Identity| matches!(shown, Identity::Holder(_) | Identity::Operator(_));
        Self(shown.filter(has_key).map(Box::new))
    }
}

impl Identity {
    /// Who that is by the key, when one came along with something else that opened.
    fn by_key(&self) -> &Self {
        match self {
            Self::Token(Beside(Some(key))) | Self::Signature(Beside(Some(key))) => key,
            other => other,
        }
    }

    /// The same by how they came: over the Unix socket no key is asked for, so the settings' key
    /// says nothing there.
    pub(super) fn over(self, peer: &Peer) -> Self {
        match self {
            Self::Anyone | Self::Operator(_) if peer.is_trusted => Self::Local(peer.uid),
            identity => identity,
        }
    }

    /// The tenant whose things alone are to be seen.
    pub(super) fn tenant(&self) -> Option<&Arc<Tenant>> {
        match self {
            Self::Holder(holder) => holder.tenant(),
            _ => None,
        }
    }

    /// Whether what somebody showed would still let them in.
    pub(super) fn is_good(&self, access: &Access, now: Time) -> bool {
        match self {
            Self::Holder(holder) => access.keys().holds(holder, now),
            Self::Operator(mark) => access.operator() == Some(*mark),
            Self::Anyone => access.operator().is_none(),
            Self::Nobody | Self::Local(_) | Self::Token(_) | Self::Signature(_) => true,
        }
    }

    /// As the audit log shows it: whose key it was, if there was one.
    pub(super) fn actor(&self) -> Actor {
        let shown = self.by_key();
        let kind = match shown {
            Self::Nobody => "nobody",
            Self::Anyone => "open",
            Self::Operator(_) => "settings_key",
            Self::Local(_) => "socket",
            Self::Holder(_) => "key",
            Self::Token(_) => "token",
            Self::Signature(_) => "signature",
        };
        let mut actor = Actor {
            kind: kind.to_owned(),
            ..Actor::default()
        };
        match shown {
            Self::Local(uid) => actor.uid = *uid,
            Self::Holder(holder) => {
                actor.key = Some(holder.id().to_owned());
                actor.label = Some(holder.label().to_owned());
                actor.tenant = holder.tenant().map(|tenant| tenant.name.clone());
            }
            _ => {}
        }
        actor
    }
}

impl Api {
    /// Who sends a request to one of the API's routes.
    pub(super) fn identify(&self, peer: &Peer, headers: &HeaderMap) -> Result<Identity, Refusal> {
        match self.gate.identify(headers, self.moment(), &KEY_HEADERS) {
            Ok(identity) => Ok(identity),
            // The kernel knows its user. Who shows one of our keys all the same is taken at it.
            Err(_) if peer.is_trusted && !self.gate.shows_ours(headers, &KEY_HEADERS) => {
                Ok(Identity::Local(peer.uid))
            }
            Err(refusal) => Err(self.strangers.answer(peer, &self.clock, refusal)),
        }
        .map(|identity| identity.over(peer))
    }

    /// Counts a request of somebody, unless it is one too many.
    pub(super) fn pace(&self, identity: &Identity) -> Result<(), Refusal> {
        let now = self.clock.now().uptime;
        let Tenancy {
            rates, operator, ..
        } = &self.tenancy;
        let (rate, taken): (_, &dyn Fn(Rate) -> Result<(), Duration>) = match identity.by_key() {
            Identity::Holder(holder) => {
                let rate = match holder.tenant() {
                    Some(tenant) => tenant.terms.rate.or(rates.tenant),
                    None => rates.admin,
                };
                (rate, &|rate| holder.pace(rate, now))
            }
            Identity::Operator(_) => (rates.admin, &|rate| operator.pace(rate, now)),
            _ => return Ok(()),
        };
        rate.map_or(Ok(()), taken).map_err(|wait| {
            let seconds = wait.as_millis().div_ceil(1000);
            let seconds = u64::try_from(seconds).unwrap_or(u64::MAX).max(1);
            let message = format!(
                "this key makes more requests than its rate allows: wait {seconds} s, and send \
                 fewer at once"
            );
            Refusal::new(429, code::RATE_LIMITED, message).retry_after(seconds)
        })
    }

    /// The same server as somebody may see it.
    pub(super) fn seen_by(self: &Arc<Self>, identity: &Identity) -> Arc<Self> {
        let Some(tenant) = identity.tenant() else {
            return Arc::clone(self);
        };
        let scope = Scope::of(Some(Arc::clone(tenant)));
        Arc::new(Self {
            lifecycle: self.lifecycle.within(scope),
            ..Self::clone(self)
        })
    }

    /// What a tenant sees by what holds for it now: while a body was on its way, its key may have
    /// been revoked, its quota changed, or itself removed.
    pub(super) fn lifecycle_now(&self, identity: &Identity) -> Result<Lifecycle, Refusal> {
        let gone = || {
            Refusal::new(
                401,
                code::INVALID_API_KEY,
                "this API key is not good any more",
            )
        };
        let Tenancy { access, .. } = &self.tenancy;
        if !identity.is_good(access, self.moment()) {
            return Err(gone());
        }
        let Some(was) = self.lifecycle.scope().tenant() else {
            return Ok(self.lifecycle.clone());
        };
        let now = access.current(was).ok_or_else(gone)?;
        Ok(self.lifecycle.within(Scope::of(Some(now))))
    }

    /// Whether this is the server as a tenant sees it.
    pub(super) fn is_tenants(&self) -> bool {
        self.lifecycle.scope().tenant().is_some()
    }

    /// The moment by the calendar.
    pub(super) fn moment(&self) -> Time {
        Time::new(self.clock.now().wall)
    }
}

impl OperatorPace {
    fn pace(&self, rate: Rate, now: Duration) -> Result<(), Duration> {
        let bucket = self.0.lock();
        bucket
            .unwrap_or_else(PoisonError::into_inner)
            .take(rate, now)
    }
}

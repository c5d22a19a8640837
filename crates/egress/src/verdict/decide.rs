//! Pure. The table of the module above, as code.

use core::cmp::Reverse;
use core::net::IpAddr;

use super::{Call, Reason, Said, Verdict};
use crate::address::{Kind, carried_in, nature, plain};
use crate::host::Host;
use crate::name::Name;
use crate::policy::Action;
use crate::rules::Rule;
use crate::spans::Place;
use crate::table::{Lens, Table};

/// The port of DNS over TLS.
const DNS_OVER_TLS: u16 = 853;

/// A rule that fits: what it does here, and why if that is not simply what it says.
struct Fit {
    place: Place,
    action: Action,
    reason: Reason,
}

/// Decides on a connection.
#[must_use]
pub fn decide<'t>(table: &'t Table, call: &Call<'_>) -> Verdict<'t> {
    let own = plain(call.address);
    if let Some(Host::Address(said)) = call.said.host()
        && plain(*said) != own
    {
        return verdict(call, (Action::Deny, Reason::OtherAddress), None);
    }
    let by_name = name_rules(table, call);
    let first = judge(table, call, own, &by_name);
    carried_in(own).fold(first, |strictest, inner| {
        let next = judge(table, call, inner, &by_name);
        if strictest.action < next.action {
            next
        } else {
            strictest
        }
    })
}

/// Decides by one of the addresses that the connection goes to: each rule about a name that fits
/// against the one about the address, the first of both, and of what that makes the strictest.
fn judge<'t>(table: &'t Table, call: &Call<'_>, face: IpAddr, by_name: &[Fit]) -> Verdict<'t> {
    let by_address = table.by_address(face, call.port);
    let by_address = by_address.map(|(place, speaks)| {
        let unmet = Reason::Address(nature(face).kind);
        fit(table, place, speaks.then_some(()).ok_or(unmet))
    });
    let firsts = by_name.iter().map(|own| match &by_address {
        Some(other) if other.place <= own.place => other,
        _ => own,
    });
    let strictest = firsts.max_by_key(|fit| (fit.action, Reverse(fit.place)));
    match strictest.or(by_address.as_ref()) {
        Some(fit) => verdict(call, (fit.action, fit.reason), table.rule(fit.place)),
        None => verdict(call, by_default(table, call), None),
    }
}

fn verdict<'t>(call: &Call<'_>, why: (Action, Reason), rule: Option<&'t Rule>) -> Verdict<'t> {
    Verdict {
        action: why.0,
        reason: why.1,
        rule,
        is_provisional: matches!(call.said, Said::Nothing),
    }
}

/// What a rule that fits does, if what it takes to ask is there, or the reason why it is not.
fn outcome(table: &Table, place: Place, met: Result<(), Reason>) -> (Action, Reason) {
    let action = table.rule(place).map_or(Action::Deny, |rule| rule.action);
    match met {
        Err(why) if action != Action::Deny => (Action::Deny, why),
        _ => (action, Reason::Rule),
    }
}

/// What becomes of a connection that no rule fits.
fn by_default(table: &Table, call: &Call<'_>) -> (Action, Reason) {
    let kind = nature(call.address).kind;
    match table.default_action() {
        _ if kind != Kind::Public => (Action::Deny, Reason::Address(kind)),
        Action::Deny => (Action::Deny, missed(table, call)),
        _ if call.port == DNS_OVER_TLS => (Action::Deny, Reason::DnsOverTls),
        action => (action, Reason::Default),
    }
}

/// Why a rule that would allow a name does not fit; the default where there is none.
fn missed(table: &Table, call: &Call<'_>) -> Reason {
    let grants = |name: &Name| {
        let place = table.by_name(name, call.port, Lens::All);
        place
            .and_then(|place| table.rule(place))
            .is_some_and(|rule| rule.action != Action::Deny)
    };
    let is_granted = match call.said.host() {
        Some(Host::Name(name)) => grants(name),
        _ => call.pins.iter().any(grants),
    };
    if !is_granted {
        return Reason::Default;
    }
    match call.said {
        said if said.is_hidden() => Reason::NameHidden,
        Said::Opaque | Said::Nothing => Reason::PortNotNamed,
        said if matches!(said.host(), Some(Host::Name(_))) => Reason::NameNotPinned,
        _ => Reason::NameMissing,
    }
}

/// The rules about names that fit: one for a name that is said, one for each that the address
/// stands for where none is.
fn name_rules(table: &Table, call: &Call<'_>) -> Vec<Fit> {
    let kind = nature(call.address).kind;
    let is_public = match kind {
        Kind::Public => Ok(()),
        _ => Err(Reason::Address(kind)),
    };
    if call.said.is_hidden() {
        return hidden_rule(table, call).into_iter().collect();
    }
    match (call.said, call.said.host()) {
        (_, Some(Host::Name(name))) => {
            let is_pinned = call.pins.contains(name);
            let met = is_public.and(is_pinned.then_some(()).ok_or(Reason::NameNotPinned));
            let lens = if met.is_ok() {
                Lens::All
            } else {
                Lens::Restricting
            };
            let place = table.by_name(name, call.port, lens);
            let own = place.map(|place| fit(table, place, met));
            own.into_iter().collect()
        }
        (Said::Opaque | Said::Nothing, _) => {
            let lens = if is_public.is_ok() {
                Lens::PortNamed
            } else {
                Lens::Restricting
            };
            pin_rules(table, call, lens, |rule| {
                let names_port = rule.target.ports.is_some();
                is_public.and(names_port.then_some(()).ok_or(Reason::PortNotNamed))
            })
        }
        _ => pin_rules(table, call, Lens::Restricting, |_| Err(Reason::NameMissing)),
    }
}

/// The rule about a name that cannot be seen: about the one that is shown, or about any.
fn hidden_rule(table: &Table, call: &Call<'_>) -> Option<Fit> {
    let shown = match call.said.host() {
        Some(Host::Name(name)) => table.by_name(name, call.port, Lens::Restricting),
        _ => None,
    };
    let any = table.by_hidden_name(call.port);
    let place = shown.into_iter().chain(any).min()?;
    Some(match shown {
        Some(shown) if shown == place => fit(table, place, Err(Reason::NameHidden)),
        _ => Fit {
            place,
            action: Action::Deny,
            reason: Reason::NameHidden,
        },
    })
}

/// The rule about each name that the address stands for, where there is one.
fn pin_rules(
    table: &Table,
    call: &Call<'_>,
    lens: Lens,
    met: impl Fn(&Rule) -> Result<(), Reason>,
) -> Vec<Fit> {
    let places = call.pins.iter();
    let places = places.filter_map(|name| table.by_name(name, call.port, lens));
    let fits = places.filter_map(|place| Some(fit(table, place, met(table.rule(place)?))));
    fits.collect()
}

fn fit(table: &Table, place: Place, met: Result<(), Reason>) -> Fit {
    let (action, reason) = outcome(table, place, met);
    Fit {
        place,
        action,
        reason,
    }
}

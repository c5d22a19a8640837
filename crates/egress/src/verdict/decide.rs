//! Pure. The table of the module above, as code.

use core::net::IpAddr;

use super::{Call, Reason, Said, Verdict};
use crate::address::{Kind, faces, nature, plain};
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
    if let Some(Host::Address(said)) = call.said.host()
        && plain(*said) != plain(call.address)
    {
        return Verdict {
            action: Action::Deny,
            reason: Reason::OtherAddress,
            rule: None,
        };
    }
    let by_name = name_rule(table, call);
    let mut strictest: Option<Verdict<'t>> = None;
    for face in faces(call.address) {
        let verdict = judge(table, call, face, by_name.as_ref());
        if strictest.is_none_or(|it| it.action < verdict.action) {
            strictest = Some(verdict);
        }
    }
    strictest.unwrap_or_else(|| by_default(table, call))
}

/// Decides by one of the addresses that the connection goes to.
fn judge<'t>(
    table: &'t Table,
    call: &Call<'_>,
    face: IpAddr,
    by_name: Option<&Fit>,
) -> Verdict<'t> {
    let by_address = table.by_address(face, call.port);
    let (fit, place) = match (by_name, by_address) {
        (Some(fit), by_address) if by_address.is_none_or(|(place, _)| fit.place < place) => {
            ((fit.action, fit.reason), fit.place)
        }
        (_, Some((place, speaks))) => {
            let met = speaks
                .then_some(())
                .ok_or(Reason::Address(nature(face).kind));
            (outcome(table, place, met), place)
        }
        _ => return by_default(table, call),
    };
    Verdict {
        action: fit.0,
        reason: fit.1,
        rule: table.rule(place),
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
fn by_default<'t>(table: &'t Table, call: &Call<'_>) -> Verdict<'t> {
    let kind = nature(call.address).kind;
    let (action, reason) = match table.default_action() {
        _ if kind != Kind::Public => (Action::Deny, Reason::Address(kind)),
        Action::Deny => (Action::Deny, missed(table, call)),
        _ if call.port == DNS_OVER_TLS => (Action::Deny, Reason::DnsOverTls),
        action => (action, Reason::Default),
    };
    Verdict {
        action,
        reason,
        rule: None,
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

/// The rule about names that fits.
fn name_rule(table: &Table, call: &Call<'_>) -> Option<Fit> {
    let kind = nature(call.address).kind;
    let is_public = match kind {
        Kind::Public => Ok(()),
        _ => Err(Reason::Address(kind)),
    };
    if call.said.is_hidden() {
        return hidden_rule(table, call);
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
            let place = table.by_name(name, call.port, lens)?;
            Some(fit(table, place, met))
        }
        (Said::Opaque | Said::Nothing, _) => {
            let lens = if is_public.is_ok() {
                Lens::PortNamed
            } else {
                Lens::Restricting
            };
            strictest_pin(table, call, lens, |rule| {
                let names_port = rule.target.ports.is_some();
                is_public.and(names_port.then_some(()).ok_or(Reason::PortNotNamed))
            })
        }
        _ => strictest_pin(table, call, Lens::Restricting, |_| Err(Reason::NameMissing)),
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

/// The strictest of the rules about the names that the address stands for.
fn strictest_pin(
    table: &Table,
    call: &Call<'_>,
    lens: Lens,
    met: impl Fn(&Rule) -> Result<(), Reason>,
) -> Option<Fit> {
    let places = call.pins.iter();
    let places = places.filter_map(|name| table.by_name(name, call.port, lens));
    let fits = places.filter_map(|place| Some(fit(table, place, met(table.rule(place)?))));
    fits.reduce(|a, b| {
        let is_stricter = (b.action, a.place) > (a.action, b.place);
        if is_stricter { b } else { a }
    })
}

fn fit(table: &Table, place: Place, met: Result<(), Reason>) -> Fit {
    let (action, reason) = outcome(table, place, met);
    Fit {
        place,
        action,
        reason,
    }
}

//! What holds for all sandboxes.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use barchan_egress::rules::Overlay;
use barchan_wire::egress::Settings;

use crate::answers::{Refusal, whole_story};
use crate::app::{App, Operator};
use crate::intercept::Upstream;
use crate::limits::RESOLVERS_MAX;

/// Longest time for which somebody may be waited for, in seconds.
const ASK_S_MAX: u32 = 24 * 60 * 60;

/// `PUT /settings`
///
/// # Errors
/// What cannot be taken; nothing is changed then.
pub(super) fn set(app: &App, settings: &Settings) -> Result<(), Refusal> {
    let overlay = Overlay::read(&settings.deny_always, &settings.allow_always)
        .map_err(|error| Refusal::bad_request(whole_story(&error)))?;
    if settings.resolvers.len() > RESOLVERS_MAX {
        let message = format!("there are at most {RESOLVERS_MAX} resolvers");
        return Err(Refusal::bad_request(message));
    }
    let resolvers = settings.resolvers.iter().map(|text| {
        text.parse::<SocketAddr>().map_err(|_| {
            let message = format!("the resolver {text:?} is none; write it as 192.0.2.1:53");
            Refusal::bad_request(message)
        })
    });
    let resolvers: Vec<_> = resolvers.collect::<Result<_, _>>()?;
    if settings.ask_s > ASK_S_MAX {
        let message = format!("somebody is waited for at most {ASK_S_MAX} seconds");
        return Err(Refusal::bad_request(message));
    }
    let upstream = Upstream::new(&settings.roots).map_err(Refusal::bad_request)?;
    let operator = Operator {
        overlay,
        resolvers: resolvers.into(),
        upstream: Rc::new(upstream),
        ask: Duration::from_secs(settings.ask_s.into()),
    };
    for sandbox in app.sandboxes() {
        sandbox.set_overlay(&operator.overlay);
    }
    *app.operator.borrow_mut() = operator;
    Ok(())
}

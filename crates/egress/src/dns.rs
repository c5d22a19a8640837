//! Questions to the DNS: judged here, asked outside, and answered with what may go in.

use std::rc::Rc;

use barchan_egress::name::Name;
use barchan_egress::peers::TTL_S;
use barchan_egress::policy::Action;
use barchan_egress::question::{Asked, Fate, NoQuestion, Sifted};
use barchan_wire::egress::{Protocol, What};

use crate::app::App;
use crate::dial;
use crate::meter::Way;
use crate::ruling::Ruling;
use crate::sandbox::Sandbox;

mod outside;
pub(crate) mod tcp;
pub(crate) mod udp;

/// What is answered to some bytes; nothing where nobody asked.
pub(crate) async fn answer(
    app: &Rc<App>,
    sandbox: &Sandbox,
    bytes: &[u8],
    is_udp: bool,
) -> Option<Vec<u8>> {
    // BOUNDARY: sandbox → host. Test: what_is_no_question_is_answered_or_not
    let asked = match Asked::read(bytes) {
        Ok(asked) => asked,
        Err(NoQuestion::Silence) => return None,
        Err(NoQuestion::Answer(message)) => return message.to_vec().ok(),
    };
    let line = app.line(Protocol::Dns, None);
    sandbox.ledger.enter(&line);
    let (ruling, message) = tokio::select! {
        judged = judge(app, sandbox, &asked) => judged,
        why = line.is_cut() => (Ruling::refusal(why), asked.answer(Fate::Refused)),
    };
    let answer = asked.to_bytes(&message, is_udp);
    for (way, bytes) in [(Way::Out, bytes.len()), (Way::In, answer.len())] {
        line.count(way, bytes as u64);
        sandbox.meter.count(way, bytes as u64);
    }
    let name = asked.host().map(|host| host.as_str().to_owned());
    line.rule(name, &ruling, None);
    sandbox.ledger.leave(line.id, line.tell(Some(app.now())));
    // A question is over when it is decided: one event tells of both.
    app.happened(sandbox, What::Verdict, &line, None);
    Some(answer)
}

/// What becomes of a question, and its answer.
async fn judge(
    app: &Rc<App>,
    sandbox: &Sandbox,
    asked: &Asked,
) -> (Ruling, hickory_proto::op::Message) {
    let refused = |reason| (Ruling::refusal(reason), asked.answer(Fate::Refused));
    let Some(table) = sandbox.wait_for_rules().await else {
        return refused("not_guarded");
    };
    if sandbox.meter.is_spent() {
        return refused("limit_total_bytes");
    }
    if let Some(host) = asked.host()
        && let Some(addresses) = sandbox.peers.borrow().addresses(host)
    {
        let ruling = Ruling::new(Action::Allow, "network", None);
        return (ruling, asked.answer_with(addresses, TTL_S));
    }
    let judged = asked.judge(&table);
    let action = match judged.fate {
        Fate::Outside | Fate::Nothing => Action::Allow,
        Fate::NoSuchName | Fate::Refused => Action::Deny,
    };
    let mut ruling = Ruling::new(action, judged.reason, judged.rule);
    if judged.fate != Fate::Outside {
        return (ruling, asked.answer(judged.fate));
    }
    if asked.is_about_ipv6() && !dial::has_ipv6() {
        // Programs would try these addresses first, and wait.
        return (ruling, asked.answer(Fate::Nothing));
    }
    let resolvers = Rc::clone(&app.operator.borrow().resolvers);
    // The rules may have changed when the answer comes, and the newest are the ones that count.
    let table = || sandbox.table();
    match outside::ask(&resolvers, asked, table).await {
        Ok(sifted) => {
            if !sifted.removed.is_empty() && sifted.pins.is_empty() {
                ruling.reason = "answer_not_public";
            }
            pin(app, sandbox, asked.host(), &sifted);
            (ruling, sifted.message)
        }
        Err(reason) => {
            ruling.reason = reason;
            // The fate of what was to be asked outside and was not: the server has failed.
            (ruling, asked.answer(Fate::Outside))
        }
    }
}

/// Notes which addresses a name stands for now.
fn pin(app: &App, sandbox: &Sandbox, name: Option<&Name>, sifted: &Sifted) {
    let Some(name) = name else { return };
    let now_ms = app.now_ms();
    let mut pins = sandbox.pins.borrow_mut();
    pins.expire(now_ms);
    for (address, ttl_s) in &sifted.pins {
        pins.insert(name, *address, *ttl_s, now_ms);
    }
}

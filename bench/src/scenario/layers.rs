//! Sealed layers: of a sandbox that wrote much, one after the other, and what is made of them.

mod peers;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::Measured;
use crate::args::Options;
use crate::http::{Body, Connection, Take};
use crate::samples::{Bound, Samples, Statistic};
use crate::server::{IMAGE, SPARES, Server, Store};
use crate::{api, ticker};

/// What a sandbox writes before the first kind of seal: 500 MB in 20,000 files of 200 folders.
const MUCH: &str = "import os\nfor at in range(20000):\n if at % 100 == 0: \
                    os.makedirs(f'/workspace/d{at // 100}', exist_ok=True)\n \
                    open(f'/workspace/d{at // 100}/{at}', 'wb').write(bytes(25000))";
/// Rounds with much, which take seconds each; and of undo.
const MUCH_ROUNDS: usize = 8;
const UNDO_ROUNDS: usize = 50;
/// Layers that are sealed one after the other, and how many of the first and the last are told.
const STEPS: usize = 600;
const STEPS_TOLD: usize = 100;
/// Sandboxes that are made of one at once, and how often.
const FORKS: usize = 100;
const FORK_ROUNDS: usize = 5;
/// Longest time for a command that prepares.
const PREPARING_MAX: Duration = Duration::from_secs(60);

pub(super) fn measure(options: &Options, store: &Store) -> Result<Measured> {
    let server = Server::start(options, store, SPARES)?;
    let mut connection = server.tcp()?;
    let ms = |id, title| Samples::new(id, title, "ms");
    let mut much =
        ms("layer_much", "seal of 500 MB, 20,000 files").goal(Statistic::P50, Bound::AtMost, 5.0);
    let mut still = ms("layer_much_still", "the sandbox stood still for it");
    let mut first = ms("layer_first", "seal of a small step, the first 100");
    let mut last = ms("layer_last", "seal of a small step, after 500");
    let mut undo = ms("layer_undo", "undo, until it runs").goal(Statistic::P50, Bound::AtMost, 8.0);
    let mut fork = ms("layer_fork", "fork of one").goal(Statistic::P50, Bound::AtMost, 5.0);
    let mut forks =
        ms("layer_forks", "100 forks of one at once").goal(Statistic::P50, Bound::AtMost, 400.0);
    for _ in 0..MUCH_ROUNDS {
        let id = api::create(&mut connection, &api::order(IMAGE))?;
        prepare(&mut connection, &id, &["python3", "-c", MUCH])?;
        match seal(&mut connection, &id) {
            Ok((ms, layer)) => {
                much.add(Ok(ms));
                still.add(layer["stillMs"].as_f64().ok_or_else(|| layer.to_string()));
            }
            Err(error) => much.add(Err(format!("{error:#}"))),
        }
        api::delete(&mut connection, &id)?;
    }
    let id = api::create(&mut connection, &api::order(IMAGE))?;
    for step in 0..STEPS {
        prepare(
            &mut connection,
            &id,
            &["sh", "-c", "echo x >> /workspace/log"],
        )?;
        let sealed = seal(&mut connection, &id).map(|(ms, _)| ms);
        let sealed = sealed.map_err(|error| format!("{error:#}"));
        if step < STEPS_TOLD {
            first.add(sealed);
        } else if step >= STEPS - STEPS_TOLD {
            last.add(sealed);
        }
    }
    for _ in 0..UNDO_ROUNDS {
        let done = ask(
            &mut connection,
            &format!("{id}/undo"),
            &json!({"layer": STEPS}),
            200,
        );
        undo.add(done.map(|(ms, _)| ms).map_err(|error| format!("{error:#}")));
    }
    for _ in 0..UNDO_ROUNDS {
        fork.add(forked(&mut connection, &id, 1));
    }
    for _ in 0..FORK_ROUNDS {
        forks.add(forked(&mut connection, &id, FORKS));
    }
    api::delete(&mut connection, &id)?;
    Ok(Measured {
        title: "Layers",
        samples: [much, still, first, last, undo, fork, forks]
            .into_iter()
            .chain(peers::measure())
            .collect(),
        notes: vec!["from the request to the answer; what was written is in memory".to_owned()],
    })
}

/// Runs a program in a sandbox to its end.
fn prepare(connection: &mut Connection, id: &str, argv: &[&str]) -> Result<()> {
    let body = json!({"argv": argv, "timeout": PREPARING_MAX.as_millis() as u64}).to_string();
    let path = api::daemon(id, "command");
    let answer = connection.call("POST", &path, &Body::Json(&body), Take::Keep)?;
    let answer = api::expect(answer, 200)?;
    let text = String::from_utf8_lossy(&answer.body);
    match text.contains("execution_complete") {
        true => Ok(()),
        false => bail!("the command did not end well: {text}"),
    }
}

fn seal(connection: &mut Connection, id: &str) -> Result<(f64, Value)> {
    let sealed = ask(connection, id, &json!({"whenBusy": "refuse"}), 201)?;
    match sealed.1["copied"].as_bool() {
        Some(false) => Ok(sealed),
        _ => bail!("it is no sealed layer: {}", sealed.1),
    }
}

/// How long so many sandboxes take to be made of one, which are deleted after.
fn forked(connection: &mut Connection, id: &str, count: usize) -> Result<f64, String> {
    let told = |error: anyhow::Error| format!("{error:#}");
    let wish = json!({"layer": STEPS, "count": count});
    let (ms, answer) = ask(connection, &format!("{id}/fork"), &wish, 201).map_err(told)?;
    let made = answer["items"].as_array().into_iter().flatten();
    for sandbox in made {
        let id = sandbox["id"].as_str().unwrap_or_default();
        api::delete(connection, id).map_err(told)?;
    }
    Ok(ms)
}

fn ask(connection: &mut Connection, path: &str, body: &Value, status: u16) -> Result<(f64, Value)> {
    let (path, body) = (format!("/x/layers/{path}"), body.to_string());
    let start = ticker::now();
    let answer = connection.call("POST", &path, &Body::Json(&body), Take::Keep)?;
    let ms = ticker::ms_since(start);
    let answer = api::expect(answer, status)?;
    let answer = serde_json::from_slice(&answer.body).context("the answer is no JSON")?;
    Ok((ms, answer))
}

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
const STEPS: usize = 10_000;
const STEPS_TOLD: usize = 100;
/// What a step does, and how often it is compared with the same without a seal.
const WRITES: &[&str] = &["sh", "-c", "echo x >> /workspace/log"];
const COMMAND_ROUNDS: usize = 200;
/// Sandboxes that are made of one at once, and how often.
const FORKS: usize = 100;
const FORK_ROUNDS: usize = 5;
/// Longest time for a command that prepares.
const PREPARING_MAX: Duration = Duration::from_secs(60);

pub(super) fn measure(options: &Options, store: &Store) -> Result<Measured> {
    let server = Server::start(options, store, SPARES)?;
    let mut connection = server.tcp()?;
    let mut samples = much(&mut connection)?;
    let id = api::create(&mut connection, &api::order(IMAGE))?;
    samples.extend(steps(&mut connection, &id)?);
    samples.extend(made_of(&mut connection, &id));
    let mut sealing = server.tcp()?.always("X-Barchan-Seal", "");
    samples.extend(commands(&mut connection, &mut sealing, &id));
    api::delete(&mut connection, &id)?;
    samples.extend(peers::measure());
    Ok(Measured {
        title: "Layers",
        samples,
        notes: vec!["from the request to the answer; what was written is in memory".to_owned()],
    })
}

fn ms(id: &'static str, title: &'static str) -> Samples {
    Samples::new(id, title, "ms")
}

/// Seals what a sandbox wrote that wrote much.
fn much(connection: &mut Connection) -> Result<Vec<Samples>> {
    let title = "seal of 500 MB, 20,000 files";
    let mut whole = ms("layer_much", title).goal(Statistic::P50, Bound::AtMost, 5.0);
    let mut still = ms("layer_much_still", "the sandbox stood still for it");
    for _ in 0..MUCH_ROUNDS {
        let id = api::create(connection, &api::order(IMAGE))?;
        prepare(connection, &id, &["python3", "-c", MUCH])?;
        match seal(connection, &id) {
            Ok((ms, layer)) => {
                whole.add(Ok(ms));
                still.add(layer["stillMs"].as_f64().ok_or_else(|| layer.to_string()));
            }
            Err(error) => whole.add(told(&error)),
        }
        api::delete(connection, &id)?;
    }
    Ok(vec![whole, still])
}

/// Seals one small step after the other.
fn steps(connection: &mut Connection, id: &str) -> Result<Vec<Samples>> {
    let mut first = ms("layer_first", "seal of a small step, the first 100");
    let mut last = ms("layer_last", "seal of a small step, the last 100 of 10,000");
    for step in 0..STEPS {
        prepare(connection, id, WRITES)?;
        let sealed = seal(connection, id)
            .map(|(ms, _)| ms)
            .or_else(|error| told(&error));
        if step < STEPS_TOLD {
            first.add(sealed);
        } else if step >= STEPS - STEPS_TOLD {
            last.add(sealed);
        }
    }
    Ok(vec![first, last])
}

/// Goes back to a layer, and makes sandboxes of it.
fn made_of(connection: &mut Connection, id: &str) -> Vec<Samples> {
    let goal = |samples: Samples, most| samples.goal(Statistic::P50, Bound::AtMost, most);
    let mut undo = goal(ms("layer_undo", "undo, until it runs"), 8.0);
    let mut fork = goal(ms("layer_fork", "fork of one"), 5.0);
    let mut forks = goal(ms("layer_forks", "100 forks of one at once"), 400.0);
    for _ in 0..UNDO_ROUNDS {
        let back = json!({"layer": STEPS});
        let done = ask(connection, &format!("{id}/undo"), &back, 200);
        undo.add(done.map(|(ms, _)| ms).or_else(|error| told(&error)));
    }
    for _ in 0..UNDO_ROUNDS {
        fork.add(forked(connection, id, 1));
    }
    for _ in 0..FORK_ROUNDS {
        forks.add(forked(connection, id, FORKS));
    }
    vec![undo, fork, forks]
}

/// The same command without a seal behind it and with one.
fn commands(plain: &mut Connection, sealing: &mut Connection, id: &str) -> Vec<Samples> {
    let mut without = ms("layer_plain", "a command that writes a little");
    let mut with = ms("layer_sealed", "the same, and sealed after it");
    for _ in 0..COMMAND_ROUNDS {
        for (connection, samples) in [(&mut *plain, &mut without), (&mut *sealing, &mut with)] {
            let start = ticker::now();
            let done = prepare(connection, id, WRITES);
            samples.add(
                done.map(|()| ticker::ms_since(start))
                    .or_else(|error| told(&error)),
            );
        }
    }
    vec![without, with]
}

fn told<T>(error: &anyhow::Error) -> Result<T, String> {
    Err(format!("{error:#}"))
}

/// Runs a program in a sandbox to its end.
pub(super) fn prepare(connection: &mut Connection, id: &str, argv: &[&str]) -> Result<()> {
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
    let wish = json!({"layer": STEPS, "count": count});
    let (ms, answer) =
        ask(connection, &format!("{id}/fork"), &wish, 201).or_else(|error| told(&error))?;
    let made = answer["items"].as_array().into_iter().flatten();
    for sandbox in made {
        let id = sandbox["id"].as_str().unwrap_or_default();
        api::delete(connection, id).or_else(|error| told(&error))?;
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

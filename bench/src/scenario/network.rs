//! What a connection of a sandbox costs on its way out, beside other ways to a network without
//! rights, and beside none in between.

mod server;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::Measured;
use super::layers::prepare;
use crate::args::Options;
use crate::samples::{Bound, Samples, Statistic};
use crate::server::{IMAGE, SPARES, Server, Store};
use crate::{api, host};
use server::Told;

/// What is run in each place.
const CLIENT: &str = include_str!("network/client.py");
const STREAMS: usize = 5;
const STREAM_BYTES: u64 = 1 << 30;
/// Connections that are held at once.
const HELD: u32 = 5000;
/// Rules of a long policy, and targets that are always denied; none of them fits.
const RULES: usize = 4000;
/// A network of its own with nothing in it, for a helper to fill.
const LONELY: &str =
    "echo $$; until ip -4 route | grep -q default; do sleep 0.02; done; exec \"$@\"";
/// What pasta calls the host.
const GATEWAY: &str = "10.99.0.1";

/// One place from which connections are made.
struct Place {
    connect: Samples,
    stream: Samples,
}

impl Place {
    fn new(ids: [&'static str; 2], titles: [&'static str; 2]) -> Self {
        Self {
            connect: Samples::new(ids[0], titles[0], "ms"),
            stream: Samples::new(ids[1], titles[1], "MiB/s"),
        }
    }

    /// Takes what a client measured there.
    fn add(&mut self, told: Result<Told>) -> Option<Told> {
        match told {
            Ok(told) => {
                for (name, samples) in [("ms", &mut self.connect), ("mib_s", &mut self.stream)] {
                    let all = told.results[name].as_array().cloned().unwrap_or_default();
                    all.iter()
                        .filter_map(Value::as_f64)
                        .for_each(|it| samples.add(Ok(it)));
                }
                Some(told)
            }
            Err(error) => {
                self.connect.add(Err(format!("{error:#}")));
                None
            }
        }
    }
}

pub(super) fn measure(options: &Options, store: &Store) -> Result<Measured> {
    let far = server::Server::start()?;
    let mut direct = Place::new(
        ["net_direct", "net_direct_stream"],
        [
            "connect and a byte, nothing in between",
            "one stream, nothing in between",
        ],
    );
    let words = words(far.address, options.rounds, 0);
    direct.add(run(python(&words), &far));
    let mut samples = ours(options, store, &far, direct.connect.p50())?;
    let mut slirp = Place::new(
        ["net_slirp", "net_slirp_stream"],
        ["connect and a byte, slirp4netns", "one stream, slirp4netns"],
    );
    slirp.add(by_slirp(&words, &far));
    let mut pasta = Place::new(
        ["net_pasta", "net_pasta_stream"],
        ["connect and a byte, pasta", "one stream, pasta"],
    );
    pasta.add(by_pasta(options.rounds, &far));
    for place in [direct, slirp, pasta] {
        samples.extend([place.connect, place.stream]);
    }
    let streams = STREAM_BYTES >> 20;
    Ok(Measured {
        title: "Connections to the outside",
        samples,
        notes: vec![format!(
            "to a program on an address of this host; streams are {streams} MiB, read by Python"
        )],
    })
}

/// A sandbox, one with many rules, and what held connections take.
fn ours(
    options: &Options,
    store: &Store,
    far: &server::Server,
    direct: Option<f64>,
) -> Result<Vec<Samples>> {
    let names = |kind: &str| {
        (0..RULES)
            .map(move |at| format!("n{at}.{kind}.example"))
            .collect::<Vec<_>>()
    };
    let more = format!(
        "[egress]\nconnections_max = {}\ndeny_always = {}\n",
        2 * HELD,
        serde_json::to_string(&names("denied"))?
    );
    let server = Server::start_with(options, store, SPARES, &more)?;
    let mut plain = Place::new(
        ["net_ours", "net_ours_stream"],
        [
            "connect and a byte, from a sandbox",
            "one stream, from a sandbox",
        ],
    );
    let goal = direct.unwrap_or_default() + 0.5;
    plain.connect = plain.connect.goal(Statistic::P50, Bound::AtMost, goal);
    plain.stream = plain.stream.goal(Statistic::P50, Bound::AtLeast, 1431.0);
    let mut ruled = Place::new(
        ["net_ruled", "net_ruled_stream"],
        ["the same under 8,000 rules", "one stream under 8,000 rules"],
    );
    let mut memory = Samples::new("net_held", "memory for 5,000 held connections", "MiB");
    memory = memory.goal(Statistic::P50, Bound::AtMost, 60.0);
    let mut descriptors = Samples::new("net_held_fds", "descriptors of each of them", "");
    descriptors = descriptors.goal(Statistic::P50, Bound::AtMost, 3.0);
    let holding = words(far.address, options.rounds, HELD);
    let held = from_sandbox(&server, far, (Vec::new(), &holding), &mut plain)?;
    memory.add(Ok(held.mib));
    descriptors.add(Ok(held.descriptors / f64::from(HELD)));
    let holding_none = words(far.address, options.rounds, 0);
    from_sandbox(&server, far, (names("ruled"), &holding_none), &mut ruled)?;
    let (plain, ruled) = ([plain.connect, plain.stream], [ruled.connect, ruled.stream]);
    let all = plain.into_iter().chain(ruled).chain([memory, descriptors]);
    Ok(all.collect())
}

/// What held connections take of the program between.
struct Held {
    mib: f64,
    descriptors: f64,
}

/// Runs a client in a sandbox whose policy denies some names and allows the server.
fn from_sandbox(
    server: &Server,
    far: &server::Server,
    (denied, words): (Vec<String>, &[String]),
    place: &mut Place,
) -> Result<Held> {
    let denied = denied.into_iter();
    let denied = denied.map(|name| json!({"action": "deny", "target": name}));
    let allowed = json!({"action": "allow", "target": far.address.to_string()});
    let rules: Vec<Value> = denied.chain([allowed]).collect();
    let mut order: Value = serde_json::from_str(&api::order(IMAGE))?;
    order["networkPolicy"] = json!({"defaultAction": "deny", "egress": rules});
    let mut connection = server.tcp()?;
    let id = api::create(&mut connection, &order.to_string())?;
    let guard = guard(server)?;
    let look = || (host::pss_kib(guard) as f64, host::descriptors(guard) as f64);
    let before = look();
    let argv = ["python3", "-c", CLIENT].into_iter();
    let argv: Vec<&str> = argv.chain(words.iter().map(String::as_str)).collect();
    let held = std::thread::scope(|scope| {
        let running = scope.spawn(|| prepare(&mut connection, &id, &argv));
        let told = place.add(far.results());
        let after = look();
        drop(told);
        let ended = running.join();
        ended.map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        Ok(Held {
            mib: (after.0 - before.0) / 1024.0,
            descriptors: after.1 - before.1,
        })
    });
    // The launcher of a server stays for sandboxes that live.
    api::delete(&mut connection, &id)?;
    held
}

/// The program between the sandboxes of a server and the outside.
fn guard(server: &Server) -> Result<u32> {
    let state = server.state().display().to_string();
    let words = |pid: u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).into_owned()
    };
    // It is run from memory, so that the kernel has no name for it.
    let is_ours = |it: &host::Process| {
        words(it.pid).starts_with("barchan-egress\0") && words(it.parent).contains(&state)
    };
    let ours = host::processes().into_iter().find(is_ours);
    ours.map(|it| it.pid)
        .context("the server has no egress program")
}

/// What the client is told.
fn words(to: SocketAddr, rounds: usize, held: u32) -> Vec<String> {
    let numbers = [rounds as u64, STREAMS as u64, STREAM_BYTES, held.into()];
    let numbers = numbers.iter().map(u64::to_string);
    [to.ip().to_string(), to.port().to_string()]
        .into_iter()
        .chain(numbers)
        .collect()
}

fn python(words: &[String]) -> Command {
    let mut command = Command::new("python3");
    command.args(["-c", CLIENT]).args(words);
    command
}

/// Runs a client to its end.
fn run(mut command: Command, far: &server::Server) -> Result<Told> {
    let mut client = command.stdin(Stdio::null()).spawn()?;
    let told = far.results();
    finish(&mut client, told)
}

fn finish(client: &mut Child, told: Result<Told>) -> Result<Told> {
    match told {
        // It ends once it has heard that it was heard.
        Ok(told) => Ok(told),
        Err(error) => {
            let _ = client.kill();
            let _ = client.wait();
            Err(error)
        }
    }
}

/// slirp4netns joins a namespace that is there.
fn by_slirp(words: &[String], far: &server::Server) -> Result<Told> {
    let mut lonely = Command::new("unshare");
    lonely.args([
        "--user",
        "--map-root-user",
        "--net",
        "sh",
        "-c",
        LONELY,
        "sh",
    ]);
    lonely.args(["python3", "-c", CLIENT]).args(words);
    let mut client = lonely.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut said = String::new();
    let out = client.stdout.take().context("no output")?;
    BufReader::new(out).read_line(&mut said)?;
    let helper = Command::new("slirp4netns")
        .args(["--configure", "--mtu=65520", said.trim(), "tap0"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut helper = match helper {
        Ok(helper) => helper,
        Err(error) => {
            let _ = client.kill();
            let _ = client.wait();
            bail!("slirp4netns: {error}");
        }
    };
    let told = finish(&mut client, far.results());
    let _ = helper.kill();
    let _ = helper.wait();
    told
}

/// pasta makes a namespace and runs a program in it.
fn by_pasta(rounds: usize, far: &server::Server) -> Result<Told> {
    let to = SocketAddr::new(GATEWAY.parse()?, far.address.port());
    let mut pasta = Command::new("pasta");
    // It would become nobody, who may not map ids everywhere, and go to the background.
    pasta.args([
        "--runas",
        "0:0",
        "--foreground",
        "--config-net",
        "--quiet",
        "--ipv4-only",
    ]);
    pasta.args([
        "--address",
        "10.99.0.2",
        "--netmask",
        "24",
        "--gateway",
        GATEWAY,
        "--",
    ]);
    pasta
        .args(["python3", "-c", CLIENT])
        .args(words(to, rounds, 0));
    // It cannot log everywhere, and says so each time.
    pasta.stderr(Stdio::null());
    run(pasta, far).context("pasta")
}

//! `barchan port-forward`, into real sandboxes but for what a server alone can say.

use std::net::SocketAddr;
use std::process::{Output, Stdio};
use std::time::Duration;

use barchan_wire::id::SandboxId;
use futures::future::join_all;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use crate::fake::outbound::HARM;
use crate::fake::{Fake, ID, Script};
use crate::program::Ran;
use crate::world::{World, request, until};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// Behind 8000 is an echo, and 8001 counts what it is told and answers at the end. 8002 says a
/// word, takes one and leaves.
const PROGRAM: &str = r#"
import asyncio
async def echo(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
async def count(reader, writer):
    total = 0
    while data := await reader.read(65536):
        total += len(data)
    writer.write(b"%d bytes" % total)
    writer.close()
async def greet(reader, writer):
    writer.write(b"\x00\xff220 ready\r\n")
    await reader.readline()
    writer.close()
async def main():
    for port, talk in ((8000, echo), (8001, count), (8002, greet)):
        await asyncio.start_server(talk, "127.0.0.1", port, backlog=512)
    await asyncio.Event().wait()
asyncio.run(main())
"#;

async fn sandbox(world: &World) -> SandboxId {
    let mut request = request();
    request.entrypoint = Some(["python3", "-c", PROGRAM].map(str::to_owned).to_vec());
    world.client().create(&request).await.unwrap().id
}

/// The program while it leads ports inside.
struct Forward {
    child: Child,
    told: Lines<BufReader<ChildStdout>>,
    notes: Lines<BufReader<ChildStderr>>,
    ports: Vec<SocketAddr>,
}

impl Forward {
    async fn start(world: &World, id: &SandboxId, ports: &[&str]) -> Self {
        let command = program(world, &[&["port-forward", id.as_str()], ports].concat());
        Self::begin(command, id.as_str(), ports).await
    }

    async fn begin(mut command: Command, id: &str, ports: &[&str]) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let told = BufReader::new(child.stdout.take().unwrap()).lines();
        let notes = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut forward = Self {
            child,
            told,
            notes,
            ports: Vec::new(),
        };
        for port in ports {
            let line = in_time(forward.told.next_line()).await.unwrap().unwrap();
            let (here, inside) = line.split_once(" → ").unwrap();
            let here = here.strip_prefix("forwarding ").unwrap();
            let port = port.rsplit(':').next().unwrap();
            assert_eq!(inside, format!("{id}:{port}"), "{line}");
            forward.ports.push(here.parse().unwrap());
        }
        forward
    }

    async fn connect(&self, at: usize) -> TcpStream {
        TcpStream::connect(self.ports[at]).await.unwrap()
    }

    async fn note(&mut self) -> String {
        in_time(self.notes.next_line()).await.unwrap().unwrap()
    }

    /// Its exit code, and what it said after all that was read.
    async fn end(mut self) -> (Option<i32>, String) {
        let status = in_time(self.child.wait()).await.unwrap();
        let mut notes = String::new();
        while let Some(line) = in_time(self.notes.next_line()).await.unwrap() {
            notes = format!("{notes}{line}\n");
        }
        for port in &self.ports {
            let refused = TcpStream::connect(port).await.unwrap_err();
            assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        }
        (status.code(), notes)
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().unwrap().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

fn program(world: &World, arguments: &[&str]) -> Command {
    let mut command = world.command();
    let socket = world.state().join("server/api.sock");
    command
        .env("BARCHAN_SERVER", format!("unix:{}", socket.display()))
        .args(arguments);
    command
}

async fn run(world: &World, arguments: &[&str]) -> Ran {
    let output: Output = in_time(program(world, arguments).output()).await.unwrap();
    output.into()
}

async fn in_time<T>(it: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, it).await.expect("in time")
}

async fn rest(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut rest = Vec::new();
    in_time(stream.read_to_end(&mut rest)).await.map(|_| rest)
}

/// A piece of bytes that no other piece is like.
fn piece(number: u32) -> Vec<u8> {
    (0..16 * 1024_u32)
        .flat_map(|at| (at ^ number.wrapping_mul(2_654_435_761)).to_le_bytes())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_of_a_sandbox_is_as_one_of_this_machine() {
    let mut world = World::new().await;
    let id = sandbox(&world).await;
    let forward = Forward::start(&world, &id, &["0:8000", ":8001", "0:8002"]).await;
    assert!(forward.ports.iter().all(|it| it.ip().is_loopback()));
    // One end is through, and still hears the other.
    let mut counted = forward.connect(1).await;
    counted.write_all(&[0; 100_000]).await.unwrap();
    counted.shutdown().await.unwrap();
    assert_eq!(rest(&mut counted).await.unwrap(), b"100000 bytes");
    // Who speaks first is up to the program, and so is what.
    let mut greeted = forward.connect(2).await;
    let mut greeting = [0; 13];
    in_time(greeted.read_exact(&mut greeting)).await.unwrap();
    assert_eq!(&greeting, b"\x00\xff220 ready\r\n");
    greeted.write_all(b"QUIT\r\n").await.unwrap();
    assert_eq!(rest(&mut greeted).await.unwrap(), b"");
    // 64 MiB there and back.
    let (mut reader, mut writer) = forward.connect(0).await.into_split();
    let write = async {
        for number in 0..1024 {
            writer.write_all(&piece(number)).await.unwrap();
        }
        writer.shutdown().await.unwrap();
    };
    let read = async {
        let mut back = vec![0; 64 * 1024];
        for number in 0..1024 {
            reader.read_exact(&mut back).await.unwrap();
            assert!(back == piece(number), "piece {number}");
        }
        reader.read(&mut back).await.unwrap()
    };
    let ((), left) = in_time(async { tokio::join!(write, read) }).await;
    assert_eq!(left, 0);
    forward.signal(Signal::INT);
    assert_eq!(forward.end().await, (Some(130), String::new()));
    world.client().delete(&id).await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_connections_have_each_their_own_bytes() {
    let mut world = World::new().await;
    let id = sandbox(&world).await;
    let forward = Forward::start(&world, &id, &["0:8000"]).await;
    let one = async |number: u32| {
        let mut stream = forward.connect(0).await;
        let sent = piece(number);
        let mut back = vec![0; sent.len()];
        let (mut reader, mut writer) = stream.split();
        let both = async { tokio::join!(reader.read_exact(&mut back), writer.write_all(&sent)) };
        let (read, written) = in_time(both).await;
        read.unwrap();
        written.unwrap();
        assert!(back == sent, "connection {number}");
        stream
    };
    let streams = join_all((0..200).map(one)).await;
    // All of them are open at once.
    for mut stream in streams {
        stream.write_all(b"last").await.unwrap();
        stream.shutdown().await.unwrap();
        assert_eq!(rest(&mut stream).await.unwrap(), b"last");
    }
    forward.signal(Signal::TERM);
    assert_eq!(forward.end().await, (Some(143), String::new()));
    world.client().delete(&id).await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_of_nobody_is_told_and_the_others_go_on() {
    let mut world = World::new().await;
    let id = sandbox(&world).await;
    let mut forward = Forward::start(&world, &id, &["0:8000", "0:9"]).await;
    let mut nobody = forward.connect(1).await;
    let reset = rest(&mut nobody).await.unwrap_err();
    assert_eq!(reset.kind(), std::io::ErrorKind::ConnectionReset);
    let note = forward.note().await;
    let parts = [
        "error: connection to port 9: nothing listens",
        "BACKEND_CONNECTION_FAILED",
    ];
    assert!(parts.iter().all(|part| note.contains(part)), "{note}");
    // A server that comes back is used again; what went through it is cut off.
    let mut cut = forward.connect(0).await;
    cut.write_all(b"x").await.unwrap();
    in_time(cut.read_exact(&mut [0])).await.unwrap();
    kill_process(world.pid_of("server").unwrap(), Signal::KILL).unwrap();
    drop(rest(&mut cut).await);
    world.restart().await;
    let mut again = forward.connect(0).await;
    again.write_all(b"again").await.unwrap();
    again.shutdown().await.unwrap();
    assert_eq!(rest(&mut again).await.unwrap(), b"again");
    world.client().delete(&id).await.unwrap();
    drop(forward.end().await);
    world.stop().await;
}

/// A sandbox that stands still is not gone, and what is said of it steers no terminal.
#[tokio::test]
async fn a_refusal_is_told_harmlessly_and_it_goes_on() {
    let fake = Fake::start(Script::Hangs);
    let command = fake.program(&["port-forward", ID, "0:80"]);
    let mut forward = Forward::begin(command, ID, &["0:80"]).await;
    for _ in 0..2 {
        assert!(rest(&mut forward.connect(0).await).await.is_err());
        let note = forward.note().await;
        assert!(note.starts_with("error: connection to port 80: "), "{note}");
        assert!(note.contains("DOCKER::SANDBOX_NOT_RUNNING"), "{note}");
        assert!(
            !note.contains(HARM) && note.contains("\\u{1b}[2J"),
            "{note}"
        );
    }
    forward.signal(Signal::HUP);
    assert_eq!(forward.end().await, (Some(129), String::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_ends_with_the_sandbox() {
    let mut world = World::new().await;
    // With nothing under way, and in the midst of much.
    for is_busy in [false, true] {
        let id = sandbox(&world).await;
        let forward = Forward::start(&world, &id, &["0:8001"]).await;
        let mut stream = forward.connect(0).await;
        stream.write_all(b"begun").await.unwrap();
        let sending = async {
            if is_busy {
                while stream.write_all(&[0; 64 * 1024]).await.is_ok() {}
            }
        };
        let client = world.client();
        let deleting = async {
            client.delete(&id).await.unwrap();
            forward.end().await
        };
        let ((), (code, notes)) = in_time(async { tokio::join!(sending, deleting) }).await;
        assert_eq!(code, Some(1), "{notes}");
        assert!(
            notes.starts_with("error: ") && notes.contains(id.as_str()),
            "{notes}"
        );
        let gone = run(&world, &["port-forward", id.as_str(), "0:8000"]).await;
        assert_eq!((gone.code, gone.stdout.as_str()), (Some(1), ""));
        assert!(gone.stderr.contains(id.as_str()), "{}", gone.stderr);
    }
    world.stop().await;
}

#[tokio::test]
async fn what_it_tells_and_what_it_does_not_take() {
    let mut world = World::new().await;
    let id = sandbox(&world).await;
    let forward = Forward::start(&world, &id, &["0:8000"]).await;
    let taken = forward.ports[0].port();
    let twice = format!("{taken}:8000");
    for (arguments, code, part) in [
        (&[id.as_str(), &twice][..], 1, "cannot listen on 127.0.0.1:"),
        (&[id.as_str(), "x:80"], 2, "is no [LOCAL:]PORT"),
        (&[id.as_str(), "0"], 2, "is no [LOCAL:]PORT"),
        (&[id.as_str()], 2, "required"),
        (&["--address", "here", id.as_str(), "80"], 2, "invalid"),
        (
            &["00000000-0000-4000-8000-000000000000", "0:80"],
            1,
            "no sandbox",
        ),
    ] {
        let ran = run(&world, &[&["port-forward"], arguments].concat()).await;
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(code), ""),
            "{arguments:?}"
        );
        assert!(ran.stderr.contains(part), "{arguments:?}: {}", ran.stderr);
    }
    let mut json = program(
        &world,
        &["--json", "port-forward", &id.as_str()[..13], "0:8000"],
    );
    let mut json = json.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(json.stdout.take().unwrap()).lines();
    let line = in_time(lines.next_line()).await.unwrap().unwrap();
    let told: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&told["sandboxId"], &told["port"]),
        (&id.as_str().into(), &8000.into())
    );
    let local: SocketAddr = told["local"].as_str().unwrap().parse().unwrap();
    until("it listens there", async || {
        TcpStream::connect(local).await.is_ok()
    })
    .await;
    world.client().delete(&id).await.unwrap();
    assert_eq!(in_time(json.wait()).await.unwrap().code(), Some(1));
    assert_eq!(forward.end().await.0, Some(1));
    world.stop().await;
}

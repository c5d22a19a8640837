//! Terminals, spoken to over WebSocket.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket, client};

use crate::world::{World, sleepers, until};

/// A connection to a terminal, and what came on it.
struct Connection {
    socket: WebSocket<UnixStream>,
    /// Output of each kind.
    out: String,
    err: String,
    replayed: Option<(u64, String)>,
    notices: Vec<Value>,
    /// Status and reason of the end.
    closed: Option<(u16, String)>,
}

/// A new terminal.
fn open(world: &World, body: &Value) -> String {
    let answer = world.post("/pty", body);
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["session_id"].as_str().unwrap().to_owned()
}

fn connect(world: &World, id: &str, query: &str) -> Connection {
    let stream = UnixStream::connect(world.at("socket")).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let url = format!("ws://sandbox/pty/{id}/ws?{query}");
    let (socket, answer) = client(url.into_client_request().unwrap(), stream).unwrap();
    assert_eq!(answer.status(), 101);
    Connection {
        socket,
        out: String::new(),
        err: String::new(),
        replayed: None,
        notices: Vec::new(),
        closed: None,
    }
}

impl Connection {
    fn send(&mut self, message: Message) {
        self.socket.send(message).unwrap();
    }

    fn ask(&mut self, ask: &Value) {
        self.send(Message::text(ask.to_string()));
    }

    fn kind(&mut self, text: &str) {
        self.send(Message::binary([b"\0", text.as_bytes()].concat()));
    }

    /// Takes one message; false at the end.
    fn step(&mut self) -> bool {
        match self.socket.read() {
            Ok(Message::Binary(frame)) => {
                let text = |from: usize| String::from_utf8_lossy(&frame[from..]).into_owned();
                match frame[0] {
                    1 => self.out += &text(1),
                    2 => self.err += &text(1),
                    3 => {
                        let offset = u64::from_be_bytes(frame[1..9].try_into().unwrap());
                        self.replayed = Some((offset, text(9)));
                    }
                    other => panic!("{other}"),
                }
            }
            Ok(Message::Text(text)) => self.notices.push(serde_json::from_str(&text).unwrap()),
            Ok(Message::Close(frame)) => {
                let frame = frame.unwrap();
                self.closed = Some((frame.code.into(), frame.reason.to_string()));
            }
            Ok(_) => {}
            Err(Error::ConnectionClosed) => return false,
            Err(error) => panic!("{error}; {:?} {:?}", self.out, self.notices),
        }
        true
    }

    /// Reads until something is so.
    #[track_caller]
    fn until(&mut self, mut is_so: impl FnMut(&Self) -> bool) {
        while !is_so(self) {
            assert!(
                self.step(),
                "{:?} {:?} {:?}",
                self.out,
                self.notices,
                self.closed
            );
        }
    }

    #[track_caller]
    fn prints(&mut self, text: &str) {
        self.until(|it| it.out.contains(text));
        self.out.clear();
    }

    /// Reads until the shell has printed something and asks for more.
    #[track_caller]
    fn prints_and_prompts(&mut self, text: &str) {
        self.until(|it| {
            let after = it.out.rsplit_once(text);
            after.is_some_and(|(_, after)| after.contains("# ") || after.contains("$ "))
        });
        self.out.clear();
    }

    #[track_caller]
    fn notice(&mut self, kind: &str) -> Value {
        self.until(|it| it.notices.iter().any(|notice| notice["type"] == kind));
        let at = self
            .notices
            .iter()
            .position(|notice| notice["type"] == kind);
        self.notices.remove(at.unwrap())
    }

    fn finish(&mut self) -> (i64, (u16, String)) {
        while self.step() {}
        let code = self.notice("exit")["exit_code"].as_i64().unwrap();
        (code, self.closed.clone().unwrap())
    }
}

#[test]
fn a_shell_has_a_terminal_of_its_own() {
    let world = World::new();
    let id = open(&world, &json!({"cwd": "made"}));
    let status = world.get(&format!("/pty/{id}")).json();
    assert_eq!(
        status,
        json!({"session_id": id, "running": false, "output_offset": 0})
    );
    let mut it = connect(&world, &id, "");
    let connected = it.notice("connected");
    assert_eq!(
        connected,
        json!({"type": "connected", "session_id": id, "mode": "pty"})
    );
    it.kind("test -t 0 && test -t 1 && test -t 2 && echo is-\"\"tty $TERM; pwd; stty size\n");
    it.prints("is-tty xterm-256color");
    it.prints("24 80");
    it.ask(&json!({"type": "resize", "cols": 132, "rows": 50}));
    it.kind("trap 'echo win-'ch WINCH; stty size\n");
    // Whoever has the terminal hears of its size: the shell has it once more with its prompt.
    it.prints_and_prompts("50 132");
    it.ask(&json!({"type": "resize", "cols": 100, "rows": 30}));
    it.kind("\n");
    it.prints("win-ch");
    it.ask(&json!({"type": "ping"}));
    it.notice("pong");
    it.ask(&json!({"type": "stdin", "data": "echo ty\"\"ped\n"}));
    it.prints("typed");
    assert_eq!(world.get(&format!("/pty/{id}")).json()["running"], true);
    it.kind("exit 7\n");
    assert_eq!(it.finish(), (7, (1000, "process exited".to_owned())));
    let status = world.get(&format!("/pty/{id}")).json();
    assert_eq!(status["running"], false);
    assert!(status["output_offset"].as_u64().unwrap() > 0);
}

#[test]
fn keys_and_signals_reach_the_foreground_job() {
    let world = World::new();
    let id = open(&world, &json!({}));
    let mut it = connect(&world, &id, "pty=1");
    for (end, code) in [
        ("\u{3}", 130),
        ("\u{1c}", 131),
        ("SIGINT", 130),
        ("SIGTERM", 143),
        ("SIGKILL", 137),
        ("SIGHUP", 129),
        ("SIGQUIT", 131),
    ] {
        it.kind("sleep 320.1\n");
        until("it runs", || sleepers("320.1") == 1);
        match end.strip_prefix("SIG") {
            Some(_) => it.ask(&json!({"type": "signal", "signal": end})),
            None => it.kind(end),
        }
        until("it ended", || sleepers("320.1") == 0);
        it.kind("echo code-$?\n");
        it.prints(&format!("code-{code}"));
    }
    it.kind("sleep 320.1\n");
    until("it runs", || sleepers("320.1") == 1);
    it.kind("\u{1a}");
    it.prints("Stopped");
    it.kind("jobs; kill %1; fg\n");
    until("it ended", || sleepers("320.1") == 0);
    it.kind("echo al\"\"ive\n");
    it.prints("alive");
}

#[test]
fn a_command_on_pipes_keeps_its_streams_apart() {
    let world = World::new();
    let command = "read line; echo got $line; echo bad >&2; test -t 0 || echo no tty; exit 3";
    let id = open(&world, &json!({"command": command}));
    let mut it = connect(&world, &id, "pty=0");
    assert_eq!(it.notice("connected")["mode"], "pipe");
    it.kind("x y\n");
    assert_eq!(it.finish(), (3, (1000, "process exited".to_owned())));
    assert_eq!(
        (it.out.as_str(), it.err.as_str()),
        ("got x y\nno tty\n", "bad\n")
    );
    let mut again = connect(&world, &id, "since=4");
    assert_eq!(again.finish().0, 3);
    let (offset, text) = again.replayed.clone().unwrap();
    let all = "got x y\nno tty\n".len() + "bad\n".len();
    assert_eq!((offset, text.len()), (4, all - 4), "{text}");
}

#[test]
fn output_is_whole_and_the_end_of_it_is_kept() {
    let world = World::new();
    let command = "stty -opost; i=0; while [ $i -lt 400000 ]; do echo $i; i=$((i+1)); done";
    let id = open(&world, &json!({"command": command}));
    let mut it = connect(&world, &id, "");
    assert_eq!(it.finish().0, 0);
    let wanted: String = (0..400_000).map(|i| format!("{i}\n")).collect();
    assert!(it.out == wanted, "{} of {}", it.out.len(), wanted.len());
    let mut again = connect(&world, &id, "");
    assert_eq!(again.finish().0, 0);
    let (offset, text) = again.replayed.clone().unwrap();
    assert_eq!(text.len(), 1024 * 1024);
    assert!(wanted[offset as usize..] == text);
    let mut beyond = connect(&world, &id, "since=99999999999");
    assert_eq!(beyond.finish().0, 0);
    assert_eq!(beyond.replayed, None);
}

#[test]
fn one_types_and_others_watch() {
    let world = World::new();
    let id = open(&world, &json!({}));
    let mut first = connect(&world, &id, "");
    first.kind("echo one-\"\"x\n");
    first.prints("one-x");
    let path = format!("/pty/{id}/ws");
    let upgrade = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let refused = world.open("GET", &path, &upgrade, None).finish();
    assert_eq!(refused.error(), (409, "ALREADY_CONNECTED".to_owned()));
    assert_eq!(
        world
            .open("GET", &path, &upgrade[..2], None)
            .finish()
            .status,
        400
    );
    let mut viewer = connect(&world, &id, "viewer=1");
    viewer.notice("connected");
    assert!(viewer.replayed.as_ref().unwrap().1.contains("one-x"));
    viewer.kind("exit\n");
    assert_eq!(viewer.notice("error")["code"], "INVALID_FRAME");
    let mut second = connect(&world, &id, "takeover=1");
    while first.step() {}
    assert_eq!(first.notice("error")["code"], "TAKEN_OVER");
    assert_eq!(first.closed, Some((4001, "taken over".to_owned())));
    second.kind("echo two-\"\"y; exit\n");
    second.prints("two-y");
    viewer.prints("two-y");
    assert_eq!(second.finish().0, 0);
    assert_eq!(viewer.finish().0, 0);
}

#[test]
fn a_caller_that_goes_away_can_come_back() {
    let world = World::new();
    let id = open(&world, &json!({}));
    let mut it = connect(&world, &id, "");
    it.kind("x=kept; echo be\"\"fore\n");
    it.prints("before");
    drop(it);
    let mut again = None;
    until("the place is free", || {
        let status = world.get(&format!("/pty/{id}")).json();
        assert_eq!(status["running"], true);
        let stream = UnixStream::connect(world.at("socket")).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let url = format!("ws://sandbox/pty/{id}/ws?since=0");
        again = client(url.into_client_request().unwrap(), stream).ok();
        again.is_some()
    });
    let mut it = Connection {
        socket: again.unwrap().0,
        out: String::new(),
        err: String::new(),
        replayed: None,
        notices: Vec::new(),
        closed: None,
    };
    it.kind("echo $x-x\n");
    it.prints("kept-x");
    assert!(it.replayed.unwrap().1.contains("before"));
}

#[test]
fn a_deleted_terminal_takes_everything_along() {
    let world = World::new();
    let id = open(&world, &json!({}));
    let mut it = connect(&world, &id, "");
    it.kind("sleep 321.1 & nohup setsid sleep 321.1 & sleep 321.1\n");
    until("they run", || sleepers("321.1") == 3);
    assert_eq!(world.delete(&format!("/pty/{id}")).status, 200);
    assert_eq!(sleepers("321.1"), 0);
    assert_eq!(it.finish().0, 137);
    let unknown = (404, "CONTEXT_NOT_FOUND".to_owned());
    assert_eq!(world.get(&format!("/pty/{id}")).error(), unknown);
    assert_eq!(world.delete(&format!("/pty/{id}")).error(), unknown);
    assert_eq!(world.get(&format!("/pty/{id}/ws")).error(), unknown);
}

#[test]
fn frames_that_are_none_are_told() {
    let world = World::new();
    let id = open(&world, &json!({}));
    let mut it = connect(&world, &id, "");
    for message in [
        Message::binary(b"\x07x".to_vec()),
        Message::binary(Vec::new()),
        Message::text("{"),
        Message::text(r#"{"type":"resize","cols":0,"rows":1}"#),
        Message::text(r#"{"type":"signal","signal":"SIGSTOP"}"#),
    ] {
        it.send(message);
        assert_eq!(it.notice("error")["code"], "INVALID_FRAME");
    }
    it.kind("echo al\"\"ive\n");
    it.prints("alive");
    // What is far too large ends the connection, and only that.
    let _ = it.socket.send(Message::binary(vec![0; 2 << 20]));
    drop(it);
    until("the place is free", || {
        world.get(&format!("/pty/{id}")).json()["running"] == true
    });
}

#[test]
fn what_cannot_start_is_told() {
    let world = World::new();
    let id = open(&world, &json!({"cwd": "gone"}));
    std::fs::remove_dir(world.d("gone")).unwrap();
    let mut it = connect(&world, &id, "");
    while it.step() {}
    let error = it.notice("error");
    assert_eq!(error["code"], "START_FAILED");
    assert!(error["error"].as_str().unwrap().contains("gone"), "{error}");
    assert_eq!(it.closed.unwrap().0, 1011);
    assert_eq!(world.post("/pty", &json!({"command": "a\0b"})).status, 400);
}

#[test]
fn a_flood_that_nobody_takes_waits_and_keeps_memory_small() {
    let world = World::new();
    let id = open(
        &world,
        &json!({"command": "yes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}),
    );
    let mut it = connect(&world, &id, "");
    it.until(|it| it.out.len() > 1000);
    let offset = || {
        world.get(&format!("/pty/{id}")).json()["output_offset"]
            .as_u64()
            .unwrap()
    };
    let mut before = 0;
    until("it stands still", || {
        std::thread::sleep(Duration::from_millis(50));
        std::mem::replace(&mut before, offset()) == before
    });
    assert!(before < 8 << 20, "{before}");
    it.ask(&json!({"type": "signal", "signal": "SIGINT"}));
    assert_eq!(it.finish().0, 130);
}

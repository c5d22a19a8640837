//! `/x/exec`: binary output in one order, input, reconnecting, watching.

use std::time::Duration;

use barchan_wire::execd::exec::{FrameKind, HEAD_BYTES, Head};
use serde_json::{Value, json};

use crate::http::Open;
use crate::world::{World, peak_kib, sleepers, stopwatch, until};

/// One frame.
type Frame = (FrameKind, u64, Vec<u8>);

/// A stream of frames as they come.
struct Frames {
    open: Open,
    unread: Vec<u8>,
}

impl Frames {
    fn new(open: Open) -> Self {
        assert_eq!(open.status, 200);
        let unread = Vec::new();
        Self { open, unread }
    }

    /// The next frame but signs of life; `None` at the proper end.
    fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(head) = self.unread.first_chunk::<HEAD_BYTES>() {
                let head = Head::read(*head).unwrap();
                let whole = HEAD_BYTES + head.bytes;
                if self.unread.len() >= whole {
                    let frame: Vec<u8> = self.unread.drain(..whole).collect();
                    if head.kind != FrameKind::Alive {
                        return Some((head.kind, head.offset, frame[HEAD_BYTES..].to_vec()));
                    }
                    continue;
                }
            }
            match self.open.piece().unwrap() {
                Some(piece) => self.unread.extend(piece),
                None => {
                    assert!(self.unread.is_empty(), "half a frame at the end");
                    return None;
                }
            }
        }
    }

    /// The id, from the first frame.
    fn id(&mut self) -> String {
        let (kind, _, payload) = self.next().unwrap();
        assert_eq!(kind, FrameKind::Started);
        let started: Value = serde_json::from_slice(&payload).unwrap();
        started["id"].as_str().unwrap().to_owned()
    }

    /// Reads until this much output has come.
    fn output(&mut self, bytes: usize) -> Vec<u8> {
        let mut found = Vec::new();
        while found.len() < bytes {
            let (kind, _, payload) = self.next().unwrap();
            assert!(matches!(kind, FrameKind::Stdout | FrameKind::Stderr));
            found.extend(payload);
        }
        found
    }

    fn finish(mut self) -> Told {
        let mut told = Told::default();
        let mut first = true;
        while let Some((kind, offset, payload)) = self.next() {
            if std::mem::take(&mut first) {
                told.at = offset;
            }
            assert_eq!(told.end, Value::Null, "{kind:?} after the end");
            match kind {
                FrameKind::Started => {}
                FrameKind::Stdout | FrameKind::Stderr => {
                    assert_eq!(offset, told.at);
                    told.at += payload.len() as u64;
                    let of_stream = match kind {
                        FrameKind::Stdout => &mut told.out,
                        _ => &mut told.err,
                    };
                    of_stream.extend(&payload);
                    told.order.push(kind);
                }
                FrameKind::Gap => {
                    told.gaps.push((told.at, offset));
                    told.at = offset;
                }
                FrameKind::Usage => told.usage = serde_json::from_slice(&payload).unwrap(),
                FrameKind::Ended => told.end = serde_json::from_slice(&payload).unwrap(),
                other => panic!("{other:?}"),
            }
        }
        assert_ne!(told.end, Value::Null, "the stream has an end");
        told
    }
}

/// Everything that a stream told.
#[derive(Debug, Default)]
struct Told {
    at: u64,
    out: Vec<u8>,
    err: Vec<u8>,
    order: Vec<FrameKind>,
    gaps: Vec<(u64, u64)>,
    usage: Value,
    end: Value,
}

fn exec(world: &World, body: &Value) -> Frames {
    let body = body.to_string();
    Frames::new(world.open("POST", "/x/exec", &[], Some(body.as_bytes())))
}

fn tail(world: &World, id: &str, query: &str) -> Frames {
    Frames::new(world.open("GET", &format!("/x/exec/{id}{query}"), &[], None))
}

fn feed(world: &World, id: &str, query: &str, bytes: &[u8]) -> Value {
    let path = format!("/x/exec/{id}/stdin{query}");
    let answer = world.open("POST", &path, &[], Some(bytes)).finish();
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[test]
fn output_is_told_byte_for_byte_with_its_stream_and_its_end() {
    let world = World::new();
    for (command, out, err, code, error) in [
        (
            json!({"command": "printf '\\377\\000\\r'; printf 'e\\n' >&2; exit 3"}),
            &b"\xff\0\r"[..],
            &b"e\n"[..],
            3,
            Some("exit status 3"),
        ),
        (json!({"argv": ["true"]}), b"", b"", 0, None),
        (
            json!({"command": "kill -9 $$"}),
            b"",
            b"",
            137,
            Some("signal: killed"),
        ),
        (
            json!({"argv": ["no_such_prog"]}),
            b"",
            b"no_such_prog: not found\n",
            127,
            Some("no_such_prog: not found"),
        ),
    ] {
        let told = exec(&world, &command).finish();
        assert_eq!(
            (told.out.as_slice(), told.err.as_slice()),
            (out, err),
            "{command}"
        );
        assert_eq!(told.end["exit_code"], code, "{command}");
        assert_eq!(
            told.end.get("error").and_then(Value::as_str),
            error,
            "{command}"
        );
        assert!(told.end.get("out_of_memory").is_none());
    }
}

#[test]
fn both_streams_have_one_order_for_everybody() {
    let world = World::new();
    let script = "for i in 1 2 3; do echo o$i; sleep 0.05; echo e$i >&2; sleep 0.05; done";
    let mut first = exec(&world, &json!({"command": script}));
    let id = first.id();
    let (out, err) = (FrameKind::Stdout, FrameKind::Stderr);
    let live = tail(&world, &id, "").finish();
    for told in [first.finish(), live, tail(&world, &id, "").finish()] {
        assert_eq!(told.order, [out, err, out, err, out, err]);
        assert_eq!(told.out, b"o1\no2\no3\n");
        assert_eq!(told.at, 18);
    }
    let rest = tail(&world, &id, "?since=13").finish();
    assert_eq!(rest.order, [out, err]);
    assert_eq!(
        (rest.out.as_slice(), rest.err.as_slice()),
        (&b"3\n"[..], &b"e3\n"[..])
    );
}

#[test]
fn input_reaches_the_command_once_however_often_it_is_sent() {
    let world = World::new();
    let mut stream = exec(&world, &json!({"argv": ["cat"], "stdin": true}));
    let id = stream.id();
    let state = |accepted: u64, open| json!({"accepted_bytes": accepted, "open": open});
    assert_eq!(feed(&world, &id, "?close=false", b"\0one "), state(5, true));
    assert_eq!(stream.output(5), b"\0one ");
    // The same again, as after a lost answer, and some more.
    assert_eq!(
        feed(&world, &id, "?offset=0&close=false", b"\0one two"),
        state(8, true)
    );
    let answer = world.open(
        "POST",
        &format!("/x/exec/{id}/stdin?offset=9"),
        &[],
        Some(b"x"),
    );
    assert_eq!(answer.finish().error().0, 409);
    assert_eq!(
        world.get(&format!("/x/exec/{id}/stdin")).json(),
        state(8, true)
    );
    assert_eq!(feed(&world, &id, "?offset=8", b" three"), state(14, false));
    let told = stream.finish();
    assert_eq!(
        (told.out.as_slice(), &told.end["exit_code"]),
        (&b"two three"[..], &json!(0))
    );
    assert_eq!(feed(&world, &id, "", b"more"), state(14, false));
    let other = exec(&world, &json!({"argv": ["cat"]})).id();
    let answer = world.open("POST", &format!("/x/exec/{other}/stdin"), &[], Some(b"x"));
    assert_eq!(answer.finish().error().0, 409);
}

#[test]
fn much_input_flows_through_and_none_of_it_stops_a_command_that_reads_none() {
    let world = World::new();
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|at| (at * 7 % 253) as u8).collect();
    let mut stream = exec(&world, &json!({"argv": ["cat"], "stdin": true}));
    let id = stream.id();
    let reader = std::thread::spawn(move || stream.finish().out);
    assert_eq!(feed(&world, &id, "", &bytes)["accepted_bytes"], 5_000_000);
    assert!(reader.join().unwrap() == bytes);
    let mut stream = exec(
        &world,
        &json!({"command": "sleep 0.3; exit 4", "stdin": true}),
    );
    let id = stream.id();
    assert_eq!(feed(&world, &id, "", &bytes)["open"], false);
    assert_eq!(stream.finish().end["exit_code"], 4);
}

#[test]
fn a_caller_that_comes_back_misses_nothing() {
    let world = World::new();
    let script = "head -c 3000000 /dev/zero | tr '\\0' a; printf end >&2; exit 9";
    let mut stream = exec(&world, &json!({"command": script}));
    let id = stream.id();
    let mut taken = stream.output(100_000).len();
    drop(stream);
    std::thread::sleep(Duration::from_millis(200));
    let path = format!("/command/status/{id}");
    assert_eq!(
        world.get(&path).json()["running"],
        true,
        "it waits for its caller"
    );
    let told = tail(&world, &id, &format!("?since={taken}&hold=true")).finish();
    taken += told.out.len();
    assert_eq!((taken, told.gaps.len()), (3_000_000, 0));
    assert_eq!(
        (told.err.as_slice(), &told.end["exit_code"]),
        (&b"end"[..], &json!(9))
    );
}

#[test]
fn a_gibibyte_takes_no_more_memory_than_the_record() {
    let world = World::new();
    let before = peak_kib(&world);
    let script = "head -c 1073741824 /dev/zero; echo the end";
    let mut stream = exec(&world, &json!({"command": script}));
    let id = stream.id();
    let mut bytes = 0;
    let mut last = Vec::new();
    while let Some((kind, offset, payload)) = stream.next() {
        if kind == FrameKind::Stdout {
            assert_eq!(offset, bytes);
            bytes += payload.len() as u64;
            last = payload;
        }
    }
    assert_eq!(bytes, (1 << 30) + 8);
    assert!(last.ends_with(b"the end\n"));
    let after = peak_kib(&world);
    assert!(after < before + 8 * 1024, "{before} KiB, then {after} KiB");
    // The end of it can be read again.
    let told = tail(&world, &id, "").finish();
    assert_eq!(told.gaps, [(0, (1 << 30) + 8 - (32 << 20))]);
    assert_eq!(told.out.len(), 32 << 20);
}

#[test]
fn who_only_watches_holds_nothing_up() {
    let world = World::new();
    let script = "sleep 0.2; head -c 100000000 /dev/zero";
    let mut stream = exec(&world, &json!({"command": script}));
    let id = stream.id();
    let watcher = tail(&world, &id, "");
    assert_eq!(stream.finish().out.len(), 100_000_000);
    let told = watcher.finish();
    assert_eq!(told.at, 100_000_000);
    assert_eq!(told.gaps.len(), 1, "{:?}", told.gaps);
}

#[test]
fn a_detached_command_runs_on_and_one_can_be_ended() {
    let world = World::new();
    let body = json!({"command": "sleep 309.1; :", "detach": true});
    let id = exec(&world, &body).id();
    until("it runs", || sleepers("309.1") == 1);
    assert_eq!(world.delete(&format!("/x/exec/{id}")).status, 200);
    let told = tail(&world, &id, "").finish();
    assert_eq!(
        (&told.end["exit_code"], sleepers("309.1")),
        (&json!(143), 0)
    );
    let body = json!({"command": "sleep 309.2", "timeout": 200});
    let waited = stopwatch();
    let told = exec(&world, &body).finish();
    assert!(told.end["error"].as_str().unwrap().contains("timeout"));
    assert!(waited() < Duration::from_secs(3));
}

#[test]
fn what_a_command_used_is_told() {
    let world = World::new();
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; \
                  head -c 50000000 /dev/zero | tail -c 40000000 > /dev/null; sleep 0.1";
    let mut stream = exec(&world, &json!({"command": script}));
    let id = stream.id();
    let usage = stream.finish().usage;
    let status = world.get(&format!("/command/status/{id}")).json();
    assert_eq!(status["usage"], usage);
    let of = |name: &str| usage[name].as_u64().unwrap();
    assert!(of("user_us") > 50_000, "{usage}");
    assert!(of("wall_us") > 100_000, "{usage}");
    assert!(of("max_rss_bytes") > 30_000_000, "{usage}");
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let world = World::new();
    for (body, part) in [
        (json!({}), "exactly one"),
        (json!({"argv": ["a"], "command": "a"}), "exactly one"),
        (json!({"command": "x", "background": true}), "detach"),
        (json!({"command": "x", "cwd": "/nope"}), "/nope"),
        (json!({"command": "x", "stdin": 5}), "JSON"),
    ] {
        let answer = world.post("/x/exec", &body);
        assert_eq!(
            answer.error(),
            (400, "INVALID_REQUEST_BODY".to_owned()),
            "{body}"
        );
        assert!(answer.text().contains(part), "{body}: {}", answer.text());
    }
    for path in ["/x/exec/nobody", "/x/exec/nobody/stdin"] {
        assert_eq!(
            world.get(path).error(),
            (404, "CONTEXT_NOT_FOUND".to_owned())
        );
    }
    assert_eq!(world.get("/x/exec").status, 405);
    assert_eq!(world.get("/x/exec/a/b").status, 404);
    let id = exec(&world, &json!({"argv": ["true"]})).id();
    for query in ["?since=-1", "?since=x", "?since="] {
        assert_eq!(
            world.get(&format!("/x/exec/{id}{query}")).status,
            400,
            "{query}"
        );
    }
    assert_eq!(tail(&world, &id, "?since=1000").finish().at, 0);
}

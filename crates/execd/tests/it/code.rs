//! Code contexts, with kernels whose part the tests play.

mod edges;

use std::time::Duration;

use barchan_wire::execd::event::{Event, EventKind};
use serde_json::{Value, json};

use crate::kernel::{Kernel, frames, offer};
use crate::world::{MODERN, Stream, World, sleepers, stopwatch, until};

/// Starts a cell in the context of an id, or in the one that the language has by default.
fn start(world: &World, id: &str, code: &str) -> Stream {
    let body = json!({"code": code, "context": {"id": id, "language": "fake"}});
    world.stream("/code", &body, MODERN)
}

/// A context and its kernel, of a process that sleeps this long.
fn context(world: &World, sleep: &str) -> (String, Stream, Kernel) {
    offer(world, sleep);
    let made = world
        .post("/code/context", &json!({"language": "Fake"}))
        .json();
    assert_eq!(made["language"], "fake");
    let id = made["id"].as_str().unwrap().to_owned();
    let stream = start(world, &id, "cell");
    let mut kernel = Kernel::meet(world);
    assert_eq!(kernel.cell(), "cell");
    (id, stream, kernel)
}

/// The events of a stream as kind and content, without the first and those that only keep it open.
fn rest(mut stream: Stream) -> Vec<(EventKind, String)> {
    let mut all = Vec::new();
    while let Some(event) = stream.next() {
        if !matches!(event.kind, EventKind::Init | EventKind::Ping) {
            all.push((event.kind, content(&event)));
        }
    }
    all
}

fn content(event: &Event<'_>) -> String {
    let count = event.execution_count.map(|count| count.to_string());
    let results = event
        .results
        .clone()
        .map(|forms| Value::Object(forms).to_string());
    let error = event
        .error
        .clone()
        .map(|error| format!("{}: {}", error.ename, error.evalue));
    let text = event.text.clone().into_owned();
    count.or(results).or(error).unwrap_or(text)
}

fn kinds(events: &[(EventKind, String)]) -> Vec<EventKind> {
    events.iter().map(|(kind, _)| *kind).collect()
}

#[test]
fn what_a_kernel_tells_becomes_events() {
    use EventKind::{Error, ExecutionComplete, ExecutionCount, Result, Stderr, Stdout};
    let world = World::new();
    let (id, mut stream, mut kernel) = context(&world, "401.1");
    assert_eq!(stream.next().unwrap().text, id);
    kernel.publish("execute_input", &json!({"code": "cell"}));
    kernel.print("a\n");
    kernel.publish("stream", &json!({"name": "stderr", "text": "é"}));
    kernel.publish("display_data", &json!({"data": {"image/png": "iVBO"}}));
    kernel.publish(
        "execute_result",
        &json!({"execution_count": 3, "data": {"text/plain": "4"}}),
    );
    kernel.finish();
    let events = rest(stream);
    assert_eq!(
        events[..5],
        [
            (Stdout, "a\n".to_owned()),
            (Stderr, "é".to_owned()),
            (Result, r#"{"image/png":"iVBO"}"#.to_owned()),
            (ExecutionCount, "3".to_owned()),
            (Result, r#"{"text":"4","text/plain":"4"}"#.to_owned()),
        ]
    );
    assert_eq!(kinds(&events[5..]), [ExecutionComplete]);

    // The same kernel again, with what it says only in its answer.
    let stream = start(&world, &id, "1/0");
    assert_eq!(kernel.cell(), "1/0");
    kernel.reply(&json!({"status": "error", "ename": "E", "evalue": "v", "traceback": []}));
    kernel.idle();
    assert_eq!(rest(stream), [(Error, "E: v".to_owned())]);
}

#[test]
fn a_kernel_that_means_ill_does_no_harm() {
    let world = World::new();
    let (id, mut stream, mut kernel) = context(&world, "401.2");
    let told = json!({"name": "stdout", "text": "FOREIGN"});
    let foreign = json!({"msg_id": "another"});
    let forged = [
        kernel.message("stream", kernel.parent(), &told, "another key"),
        kernel.message("stream", &foreign, &told, kernel.key()),
        frames(&["no message".to_owned()]),
        frames(&vec!["<IDS|MSG>".to_owned(); 1000]),
        vec![4, 3, b'a', b'b', b'c'],
    ];
    forged.iter().for_each(|bytes| kernel.raw(bytes));
    kernel.publish("stream", &json!({"text": 5}));
    kernel.print(&"x".repeat(17 << 20));
    kernel.print("last");
    kernel.finish();
    assert_eq!(stream.next().unwrap().kind, EventKind::Init);
    let events = rest(stream);
    let texts: Vec<_> = events.iter().map(|(_, text)| text.as_str()).collect();
    assert!(!texts.concat().contains("FOREIGN"), "{events:?}");
    assert!(
        texts[0].contains("was left out"),
        "too many frames: {events:?}"
    );
    assert!(
        texts[1].contains("could not be read"),
        "no stream: {events:?}"
    );
    assert!(texts[2].contains("was left out"), "too large: {events:?}");
    assert_eq!(texts[3], "last");
    assert_eq!(events[4].0, EventKind::ExecutionComplete);

    // Lengths that no memory holds: one is waited for in vain, the other is not possible at all.
    for length in [1_u64 << 45, u64::MAX] {
        let stream = start(&world, &id, "again");
        kernel.cell();
        kernel.raw(&[&[2][..], &length.to_be_bytes()].concat());
        kernel.raw(&vec![0; 1 << 20]);
        drop(kernel);
        let events = rest(stream);
        assert!(
            events[0].1.starts_with("KernelDied: the kernel"),
            "{events:?}"
        );
        assert_eq!(events.len(), 1);
        // What follows goes to a new kernel.
        let mut stream = start(&world, &id, "anew");
        kernel = Kernel::meet(&world);
        kernel.cell();
        kernel.finish();
        assert_eq!(stream.next().unwrap().kind, EventKind::Init);
        assert!(rest(stream)[0].1.contains("without earlier variables"));
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.pid())).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let peak: u64 = peak.trim_end_matches("kB").trim().parse().unwrap();
    assert!(peak < 200 * 1024, "the daemon took {peak} KiB");
}

#[test]
fn a_cell_ends_though_one_of_its_signs_is_lost() {
    let world = World::new();
    let (id, mut stream, mut kernel) = context(&world, "401.3");
    let waited = stopwatch();
    kernel.idle();
    assert_eq!(stream.next().unwrap().kind, EventKind::Init);
    assert_eq!(kinds(&rest(stream)), [EventKind::ExecutionComplete]);
    let stream = start(&world, &id, "again");
    kernel.cell();
    kernel.print("late");
    kernel.reply(&json!({"status": "ok"}));
    assert_eq!(
        kinds(&rest(stream)),
        [EventKind::Stdout, EventKind::ExecutionComplete]
    );
    assert!(waited() < Duration::from_secs(5), "{:?}", waited());
}

#[test]
fn one_cell_at_a_time_and_contexts_do_not_wait_for_each_other() {
    let world = World::new();
    let (id, stream, mut kernel) = context(&world, "401.4");
    let busy = rest(start(&world, &id, "second"));
    assert_eq!(kinds(&busy), [EventKind::Error]);
    assert!(
        busy[0].1.starts_with("RUNTIME_ERROR: session is busy"),
        "{busy:?}"
    );
    let other = start(&world, "", "other");
    let mut second = Kernel::meet(&world);
    assert_eq!(second.cell(), "other");
    second.finish();
    assert_eq!(kinds(&rest(other)), [EventKind::ExecutionComplete]);
    kernel.finish();
    assert_eq!(kinds(&rest(stream)), [EventKind::ExecutionComplete]);
    // The default context is there to stay.
    let again = start(&world, "", "again");
    assert_eq!(second.cell(), "again");
    second.finish();
    assert_eq!(kinds(&rest(again)), [EventKind::ExecutionComplete]);
    let listed = world.get("/code/contexts").json();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert_eq!(listed[0], json!({"id": id, "language": "fake"}));
}

#[test]
fn a_cell_is_interrupted_by_whoever_asks_and_when_nobody_listens() {
    let world = World::new();
    let (id, stream, mut kernel) = context(&world, "401.5");
    std::thread::scope(|threads| {
        let asked = threads.spawn(|| world.delete(&format!("/code?id={id}")));
        kernel.interrupted();
        kernel.reply(&json!({"status": "error", "ename": "KeyboardInterrupt", "evalue": ""}));
        kernel.idle();
        let answer = asked.join().unwrap();
        assert_eq!((answer.status, answer.body.len()), (200, 0));
    });
    let events = rest(stream);
    assert_eq!(
        events,
        [(EventKind::Error, "KeyboardInterrupt: ".to_owned())]
    );
    // With nothing to interrupt, that is a success.
    assert_eq!(world.delete(&format!("/code?id={id}")).status, 200);

    let gone = start(&world, &id, "gone");
    kernel.cell();
    drop(gone);
    kernel.interrupted();
    kernel.finish();
    // An interrupt answers when the cell has ended.
    assert_eq!(world.delete(&format!("/code?id={id}")).status, 200);
    let next = start(&world, &id, "next");
    assert_eq!(kernel.cell(), "next");
    kernel.finish();
    assert_eq!(kinds(&rest(next)), [EventKind::ExecutionComplete]);
}

#[test]
fn a_deleted_context_takes_its_processes_along() {
    let world = World::new();
    let (id, mut stream, _kernel) = context(&world, "401.6");
    assert_eq!(stream.next().unwrap().kind, EventKind::Init);
    assert_eq!(sleepers("401.6"), 1);
    let path = format!("/code/contexts/{id}");
    assert_eq!(
        world.get(&path).json(),
        json!({"id": id, "language": "fake"})
    );
    let answer = world.delete(&path);
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    assert_eq!(sleepers("401.6"), 0);
    let events = rest(stream);
    assert!(
        events[0].1.contains("its context was deleted"),
        "{events:?}"
    );
    let files = std::fs::read_dir(world.d("jupyter")).unwrap().flatten();
    assert_eq!(files.count(), 1, "the connection file is gone");
    let not_found = (404, "CONTEXT_NOT_FOUND".to_owned());
    assert_eq!(world.get(&path).error(), not_found);
    assert_eq!(world.delete(&path).error(), not_found);
}

#[test]
fn all_contexts_of_a_language_are_deleted_together() {
    let world = World::new();
    offer(&world, "401.7");
    for _ in 0..2 {
        assert_eq!(
            world
                .post("/code/context", &json!({"language": "fake"}))
                .status,
            200
        );
    }
    assert_eq!(world.delete("/code/contexts?language=python").status, 200);
    until("both run", || sleepers("401.7") == 2);
    assert_eq!(world.delete("/code/contexts?language=FAKE").status, 200);
    assert_eq!(sleepers("401.7"), 0);
    assert_eq!(world.get("/code/contexts?language=fake").json(), json!([]));
}

#[test]
fn a_kernel_that_ends_at_its_start_says_why() {
    let world = World::new();
    offer(&world, "401.8");
    let spec = json!({"argv": ["sh", "-c", "echo no module here >&2; exit 3"], "language": "fake"});
    let file = world.d("jupyter/kernels/fake/kernel.json");
    std::fs::write(&file, spec.to_string()).unwrap();
    let mut stream = start(&world, "", "cell");
    assert_eq!(stream.next().unwrap().kind, EventKind::Init);
    let events = rest(stream);
    let text = &events[0].1;
    assert!(
        text.contains("exit status 3") && text.contains("no module here"),
        "{text}"
    );
}

#[test]
fn no_language_is_the_shell() {
    let world = World::new();
    for context in [json!(null), json!({}), json!({"language": "command"})] {
        let body = json!({"code": "echo out; exit 3", "context": context});
        let run = world.stream("/code", &body, MODERN).finish();
        assert_eq!((run.out().as_str(), run.code), ("out\n", 3), "{context}");
    }
    let mut stream = world.stream("/code", &json!({"code": "sleep 401.9"}), MODERN);
    let id = stream.next().unwrap().text.into_owned();
    assert_eq!(world.delete(&format!("/code?id={id}")).status, 200);
    assert_eq!(stream.next().unwrap().kind, EventKind::Error);
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let world = World::new();
    offer(&world, "401.10");
    let bad = (400, "INVALID_REQUEST_BODY");
    let unknown = (404, "CONTEXT_NOT_FOUND");
    for (path, body, wanted) in [
        ("/code", json!({}), bad),
        ("/code", json!({"code": " "}), bad),
        (
            "/code",
            json!({"code": "x", "context": {"language": "cobol"}}),
            bad,
        ),
        (
            "/code",
            json!({"code": "x", "context": {"id": "none"}}),
            unknown,
        ),
        ("/code/context", json!({}), bad),
        ("/code/context", json!({"language": "command"}), bad),
        ("/code/context", json!({"language": "cobol"}), bad),
        ("/code/context", json!({"language": "x".repeat(100)}), bad),
        (
            "/code/context",
            json!({"language": "fake", "envs": {"A;b": "1"}}),
            bad,
        ),
        (
            "/code/context",
            json!({"language": "fake", "cwd": "/dev/null/x"}),
            bad,
        ),
    ] {
        let (status, code) = world.post(path, &body).error();
        assert_eq!((status, code.as_str()), wanted, "{path} {body}");
    }
    for (path, wanted) in [
        ("/code", (400, "MISSING_QUERY")),
        ("/code?id=none", unknown),
        ("/code/contexts", (400, "MISSING_QUERY")),
    ] {
        let (status, code) = world.delete(path).error();
        assert_eq!((status, code.as_str()), wanted, "{path}");
    }
    assert_eq!(world.get("/code/contexts?language=command").error().0, 500);
    assert_eq!(world.get("/code").error().0, 405);
    let refused = world
        .post("/code/context", &json!({"language": "cobol"}))
        .text();
    assert!(
        refused.contains("it has:") && refused.contains("fake"),
        "{refused}"
    );
    assert_eq!(world.get("/code/contexts").json(), json!([]));
}

//! What a program prints is what its caller gets.

use std::time::Duration;

use barchan_wire::execd::event::EventKind;
use serde_json::json;

use crate::world::{World, peak_kib, stopwatch, until};

#[test]
fn output_arrives_byte_for_byte() {
    let world = World::new();
    for (script, out, err) in [
        ("printf 'one\\ntwo'", "one\ntwo", ""),
        ("printf 'one\\ntwo' >&2", "", "one\ntwo"),
        (
            "printf 'a\\n\\nb\\r'; sleep 0.1; printf '\\n\\r\\nc\\n'",
            "a\n\nb\r\n\r\nc\n",
            "",
        ),
        (
            "printf '\\377\\376bad\\nok\\n'",
            "\u{fffd}\u{fffd}bad\nok\n",
            "",
        ),
        ("printf '\\303'; sleep 0.05; printf '\\251\\n'", "é\n", ""),
        (
            "printf '\\033[31mred\\033[0m \\033]0;t\\007\\n'",
            "\u{1b}[31mred\u{1b}[0m \u{1b}]0;t\u{7}\n",
            "",
        ),
        ("printf 'a\\000b\\n'", "a\0b\n", ""),
        ("printf out; printf err >&2", "out", "err"),
        ("printf '\\342\\200\\250\\n'", "\u{2028}\n", ""),
        ("true", "", ""),
    ] {
        let run = world.sh(script);
        assert_eq!(
            (run.out().as_str(), run.err().as_str(), run.code),
            (out, err, 0),
            "{script}"
        );
    }
}

#[test]
fn one_line_is_one_event_and_its_end_depends_on_the_client() {
    let world = World::new();
    let command = json!({"command": "printf 'a\\n\\nb\\r\\nc'"});
    let (kept, stripped) = (["a\n", "\n", "b\r\n", "c"], ["a", "\n", "b", "c"]);
    for (name, value, wanted) in [
        ("User-Agent", "OpenSandbox-Python-SDK/1.1.1", kept),
        ("User-Agent", "OpenSandbox-Go-SDK/1.0.2", stripped),
        ("User-Agent", "OpenSandbox-JS-SDK/0.1.8", stripped),
        ("User-Agent", "curl/8", stripped),
        ("X-Barchan-Line-Ends", "keep", kept),
        ("X-Barchan-Line-Ends", "strip", stripped),
        ("X-Barchan-Line-Ends", "nonsense", stripped),
    ] {
        let run = world.start_as(&command, (name, value)).finish();
        assert_eq!(run.stdout, wanted, "{name}: {value}");
    }
}

#[test]
fn a_very_long_line_is_one_event() {
    let world = World::new();
    let run = world.sh("head -c 1500000 /dev/zero | tr '\\0' x; echo; echo ok");
    assert_eq!(run.stdout.len(), 2);
    assert_eq!(run.stdout[0], "x".repeat(1_500_000) + "\n");
    assert_eq!((run.stdout[1].as_str(), run.code), ("ok\n", 0));
    assert_eq!(world.sh("echo next").out(), "next\n");
}

#[test]
fn a_line_without_end_is_cut_and_memory_stays_bounded() {
    let world = World::new();
    let run = world.sh("head -c 200000000 /dev/zero | tr '\\0' x");
    let kept = 8 * 1024 * 1024;
    let marker = format!(
        "[barchan: {} more bytes of this line left out]",
        200_000_000 - kept
    );
    assert_eq!(run.stdout.len(), 1);
    assert_eq!(run.stdout[0].len(), kept + marker.len());
    assert!(run.stdout[0].ends_with(&marker));
    assert!(peak_kib(&world) < 64 * 1024, "{} KiB", peak_kib(&world));
}

#[test]
fn both_streams_flow_however_much_there_is() {
    let world = World::new();
    let script = "i=0; while [ $i -lt 30000 ]; do echo \"out $i xxxxxxxxxxxxxxxxxxxxxxxx\"; \
                  echo \"err $i yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\" >&2; i=$((i+1)); done";
    let run = world.sh(script);
    assert_eq!(
        (run.stdout.len(), run.stderr.len(), run.code),
        (30_000, 30_000, 0)
    );
    for (at, line) in run.stdout.iter().enumerate() {
        assert!(line.starts_with(&format!("out {at} ")), "{line}");
    }
}

#[test]
fn a_slow_reader_slows_the_program_down_instead_of_filling_memory() {
    let world = World::new();
    let mut stream =
        world.start(&json!({"command": "yes $(seq -s, 300) | head -100000; echo end"}));
    // Nothing is read until the pipeline has come to a stop.
    let mut before = 0;
    until("the program stands still", || {
        std::thread::sleep(Duration::from_millis(200));
        let now = peak_kib(&world);
        std::mem::replace(&mut before, now) == now
    });
    assert!(peak_kib(&world) < 64 * 1024, "{} KiB", peak_kib(&world));
    let mut lines = 0_u32;
    while let Some(event) = stream.next() {
        lines += u32::from(event.text.starts_with("1,2,3,"));
    }
    assert_eq!(lines, 100_000);
}

#[test]
fn progress_is_seen_while_it_is_made() {
    let world = World::new();
    let script = "for i in 1 2 3; do printf \"$i%%\\r\"; sleep 1; done; echo end";
    let waited = stopwatch();
    let mut stream = world.start(&json!({"command": script}));
    let mut seen = Vec::new();
    while let Some(event) = stream.next() {
        if event.kind == EventKind::Stdout {
            seen.push((event.text.into_owned(), waited()));
        }
    }
    let texts: Vec<&str> = seen.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(texts, ["1%\r", "2%\r", "3%\r", "end\n"]);
    assert!(seen[0].1 < Duration::from_millis(1000), "{seen:?}");
    assert!(seen[1].1 < Duration::from_millis(2000), "{seen:?}");
}

use super::*;

const EVENTS: &str = "text/event-stream";

fn event(text: &str) -> Vec<u8> {
    format!("{{\"type\":\"stdout\",\"text\":\"{text}\"}}\n\n").into_bytes()
}

fn frame(kind: FrameKind, offset: u64, payload: &[u8]) -> Vec<u8> {
    let bytes = payload.len();
    let head = Head {
        kind,
        offset,
        bytes,
    };
    [&head.write().unwrap()[..], payload].concat()
}

fn kept(kind: &str, stream: &[u8], piece_bytes: usize) -> (Vec<u8>, bool) {
    let mut keeper = Keeper::new(kind, 7);
    for piece in stream.chunks(piece_bytes) {
        keeper.push(piece);
    }
    keeper.finish()
}

#[test]
fn a_short_stream_is_kept_to_the_byte_however_it_was_cut() {
    let events = [event("a\\n"), event("b"), event("")].concat();
    let frames = [
        frame(FrameKind::Started, 0, b"{}"),
        frame(FrameKind::Stdout, 0, b"\n\n\0"),
        frame(FrameKind::Alive, 3, b""),
        frame(FrameKind::Ended, 3, b"{\"exit_code\":0}"),
    ]
    .concat();
    for (kind, stream) in [(EVENTS, &events), (MEDIA_TYPE, &frames)] {
        for size in 1..=stream.len() {
            assert_eq!(
                kept(kind, stream, size),
                (stream.clone(), true),
                "{kind} {size}"
            );
        }
        // One that breaks off is kept as well.
        let broken = &stream[..stream.len() - 1];
        assert_eq!(kept(kind, broken, 3), (broken.to_vec(), true), "{kind}");
    }
    assert_eq!(kept(EVENTS, b"", 1), (Vec::new(), true));
}

#[test]
fn of_a_long_stream_the_middle_is_left_out_between_frames() {
    let text = "x".repeat(1000);
    let events: Vec<_> = (0..1000).map(|at| event(&format!("{at} {text}"))).collect();
    let (body, is_whole) = kept(EVENTS, &events.concat(), 777);
    assert!(!is_whole && body.len() <= COMMAND_RESULT_BYTES_MAX + 200);
    let body = String::from_utf8(body).unwrap();
    let found: Vec<&str> = body.split_terminator("\n\n").collect();
    let gaps = found
        .iter()
        .filter(|frame| frame.contains("no longer kept"));
    assert_eq!(gaps.count(), 1);
    assert!(found[0].contains("\"0 xxx") && found[found.len() - 1].contains("\"999 xxx"));
    for one in found {
        let read: Event<'_> = serde_json::from_str(&one.replace('}', ",\"timestamp\":1}"))
            .or_else(|_| serde_json::from_str(one))
            .unwrap();
        assert!(matches!(read.kind, EventKind::Stdout | EventKind::Stderr));
    }
    let frames: Vec<_> = (0..1000)
        .map(|at| frame(FrameKind::Stdout, at * 1000, text.as_bytes()))
        .collect();
    let (body, is_whole) = kept(MEDIA_TYPE, &frames.concat(), 777);
    assert!(!is_whole);
    let mut rest = body.as_slice();
    let mut at = 0;
    let mut gaps = 0;
    while let Some(head) = rest.first_chunk() {
        let head = Head::read(*head).unwrap();
        gaps += u32::from(head.kind == FrameKind::Gap);
        if head.kind == FrameKind::Gap {
            at = head.offset;
        }
        assert_eq!(head.offset, at);
        at += head.bytes as u64;
        rest = &rest[HEAD_BYTES + head.bytes..];
    }
    assert_eq!((gaps, at, rest.len()), (1, 1_000_000, 0));
}

#[test]
fn whatever_a_sandbox_says_is_kept_within_bounds() {
    let endless_line = vec![b'x'; 3_000_000];
    let newlines = vec![b'\n'; 3_000_000];
    let huge_head = [&[1; 13][..], &endless_line].concat();
    let long_then_end = [endless_line.clone(), b"\n\n".to_vec(), event("end")].concat();
    for (kind, stream) in [
        (EVENTS, &endless_line),
        (EVENTS, &newlines),
        (EVENTS, &long_then_end),
        (MEDIA_TYPE, &endless_line),
        (MEDIA_TYPE, &newlines),
        (MEDIA_TYPE, &huge_head),
    ] {
        let mut keeper = Keeper::new(kind, 7);
        for piece in stream.chunks(65_536) {
            keeper.push(piece);
            let held = keeper.head.len() + keeper.tail_bytes + keeper.partial.len();
            assert!(held <= COMMAND_RESULT_BYTES_MAX + FRAME_BYTES_MAX);
        }
        let (body, is_whole) = keeper.finish();
        assert!(!is_whole && body.len() <= COMMAND_RESULT_BYTES_MAX + FRAME_BYTES_MAX);
    }
    let (body, _) = kept(EVENTS, &long_then_end, 1000);
    assert!(body.ends_with(&event("end")));
}

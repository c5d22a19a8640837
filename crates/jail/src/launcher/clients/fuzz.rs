use barchan_testkit::fuzz;
use barchan_testkit::inputs::{bytes_from, cut, with_cuts};

use super::*;
use crate::proto::Request;

const WORDS: &[&[u8]] = &[
    b"\n",
    b"{",
    b"}",
    b"{\"seq\":1,\"request\":\"hello\"}\n",
    b"{\"seq\":2,\"request\":\"list\"}\n",
    b"{\"seq\":3,\"request\":{\"pause\":\"x\"}}\n",
    b"\"seq\":",
    b"null",
    b"\xff",
    b"\r\n",
    b"[[[[",
];

fn client(stream: UnixStream) -> Client {
    Client {
        stream,
        incoming: Vec::new(),
        outgoing: Vec::new(),
    }
}

/// What a launcher hears, read by read; `None` where it hangs up.
fn calls_of(pieces: &[&[u8]]) -> Option<Vec<u64>> {
    let (mut here, there) = UnixStream::pair().unwrap();
    there.set_nonblocking(true).unwrap();
    let mut client = client(there);
    let mut heard = Vec::new();
    for piece in pieces {
        here.write_all(piece).unwrap();
        assert!(!client.fill().unwrap());
        let calls = client.take_calls().ok()?;
        heard.extend(calls.iter().map(|call| call.seq));
    }
    Some(heard)
}

fuzz! {
    fn lines_are_heard_the_same_however_they_arrive(
        (stream, places) in with_cuts(bytes_from(WORDS)),
    ) {
        assert_eq!(calls_of(&cut(&stream, &places)), calls_of(&[&stream]));
    }

    fn any_line_is_a_call_or_an_error(line in bytes_from(WORDS)) {
        if let Ok(Call { seq, request }) = serde_json::from_slice(&line) {
            let again = serde_json::to_vec(&Call { seq, request: request.clone() }).unwrap();
            let again: Call = serde_json::from_slice(&again).unwrap();
            assert_eq!(again.seq, seq);
            assert_eq!(std::mem::discriminant::<Request>(&again.request),
                std::mem::discriminant(&request));
        }
    }
}

#[test]
fn a_line_without_end_is_cut_off() {
    let (mut here, there) = UnixStream::pair().unwrap();
    there.set_nonblocking(true).unwrap();
    here.set_nonblocking(true).unwrap();
    let mut client = client(there);
    let piece = vec![b'x'; 64 * 1024];
    let refused = (0..1000).any(|_| {
        let _ = here.write(&piece);
        client.fill().is_err()
    });
    assert!(refused && client.incoming.len() <= LINE_BYTES_MAX + 16 * 1024);
}

use proptest::prelude::*;

use super::*;

#[test]
fn callers_frames_are_read() {
    let ask = |ask| Some(ask);
    for (frame, wanted) in [
        (r#"{"type":"ping"}"#, ask(Ask::Ping)),
        (
            r#"{"type":"resize","cols":120,"rows":40,"more":1}"#,
            ask(Ask::Resize {
                cols: 120,
                rows: 40,
            }),
        ),
        (r#"{"type":"resize","cols":0,"rows":40}"#, None),
        (r#"{"type":"resize","cols":10001,"rows":40}"#, None),
        (r#"{"type":"resize","cols":70000,"rows":40}"#, None),
        (
            r#"{"type":"signal","signal":"SIGINT"}"#,
            ask(Ask::Signal {
                signal: Signal::SigInt,
            }),
        ),
        (r#"{"type":"signal","signal":"SIGSTOP"}"#, None),
        (
            r#"{"type":"stdin","data":"é\n"}"#,
            ask(Ask::Stdin {
                data: "é\n".to_owned(),
            }),
        ),
        (r#"{"type":"other"}"#, None),
        ("[]", None),
        ("", None),
    ] {
        assert_eq!(text(frame), wanted, "{frame}");
    }
    assert_eq!(binary(b"\x00ab"), Some(Input::Bytes(b"ab")));
    assert_eq!(binary(b"\x00"), Some(Input::Bytes(b"")));
    assert_eq!(binary(b"\x01ab"), None);
    assert_eq!(binary(b""), None);
}

#[test]
fn notices_are_written_as_clients_read_them() {
    for (notice, wanted) in [
        (
            Notice::Connected {
                session_id: "a".to_owned(),
                mode: Mode::Pty,
            },
            r#"{"type":"connected","session_id":"a","mode":"pty"}"#,
        ),
        (
            Notice::Exit { exit_code: 0 },
            r#"{"type":"exit","exit_code":0}"#,
        ),
        (Notice::Pong, r#"{"type":"pong"}"#),
        (
            Notice::Error {
                code: Trouble::TakenOver,
                error: "x".to_owned(),
            },
            r#"{"type":"error","code":"TAKEN_OVER","error":"x"}"#,
        ),
    ] {
        assert_eq!(serde_json::to_string(&notice).unwrap(), wanted);
        assert_eq!(serde_json::from_str::<Notice>(wanted).unwrap(), notice);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_frame_is_misread(frame in prop::collection::vec(any::<u8>(), 0..64), at: u64) {
        if let Some(Input::Bytes(bytes)) = binary(&frame) {
            prop_assert_eq!(&output(STDIN, bytes), &frame);
        }
        let _ = text(&String::from_utf8_lossy(&frame));
        let repeated = replay(at, &frame);
        prop_assert_eq!(shown(&repeated), Some(&frame[..]));
        let printed = output(STDERR, &frame);
        prop_assert_eq!(shown(&printed), Some(&frame[..]));
        if let Some(bytes) = shown(&frame) {
            prop_assert!(frame.ends_with(bytes));
        }
    }
}

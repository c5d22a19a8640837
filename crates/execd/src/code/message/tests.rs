use super::*;

pub(super) fn signer() -> Signer {
    Signer::new("key").unwrap()
}

/// What a kernel sends, signed with this key.
pub(super) fn from_kernel(key: &str, kind: &str, content: &str) -> Vec<Bytes> {
    let header = format!(r#"{{"msg_type":"{kind}","msg_id":"k"}}"#);
    let parts = [header.as_str(), r#"{"msg_id":"p"}"#, "{}", content];
    let signature = hex::encode(
        Signer::new(key)
            .unwrap()
            .over(&parts)
            .finalize()
            .into_bytes(),
    );
    let head = ["topic", "<IDS|MSG>", signature.as_str()];
    head.into_iter()
        .chain(parts)
        .map(|part| Bytes::copy_from_slice(part.as_bytes()))
        .collect()
}

fn told(kind: &str, content: &str) -> Told {
    read(&signer(), &from_kernel("key", kind, content))
        .unwrap()
        .told()
}

#[test]
fn what_this_end_writes_is_what_it_reads() {
    let request = Request::execute(&signer(), "s", 7, "1+1");
    assert_eq!(request.id, "s_7");
    let frames: Vec<Bytes> = request.frames.into_iter().map(Bytes::from).collect();
    let message = read(&signer(), &frames).unwrap();
    assert_eq!(
        (message.kind.as_str(), message.parent.as_str()),
        ("execute_request", "")
    );
    let content: Value = serde_json::from_slice(&message.content).unwrap();
    assert_eq!(
        (&content["code"], &content["allow_stdin"]),
        (&json!("1+1"), &json!(false))
    );
}

#[test]
fn only_what_the_kernel_signed_is_read() {
    let good = from_kernel("key", "status", "{}");
    assert_eq!(read(&signer(), &good).unwrap().parent, "p");
    assert!(read(&signer(), &from_kernel("other", "status", "{}")).is_none());
    for at in 2..good.len() {
        let mut bad = good.clone();
        bad[at] = Bytes::from_static(b"{ }");
        assert!(read(&signer(), &bad).is_none(), "frame {at}");
        assert!(read(&signer(), &good[..at]).is_none(), "cut at {at}");
    }
}

#[test]
fn contents_are_read_leniently() {
    let error = |ename: &str, evalue: &str, lines: &[&str]| EventError {
        ename: ename.to_owned(),
        evalue: evalue.to_owned(),
        traceback: lines.iter().map(|line| (*line).to_owned()).collect(),
    };
    let text = |to_stderr, text: &str| Told::Text {
        to_stderr,
        text: text.to_owned(),
    };
    let data = |count| Told::Data {
        count,
        forms: Map::from_iter([("a/b".to_owned(), json!({"c": 1}))]),
    };
    for (kind, content, wanted) in [
        ("status", r#"{"execution_state":"idle"}"#, Told::Idle),
        ("status", r#"{"execution_state":"busy"}"#, Told::Nothing),
        (
            "stream",
            r#"{"name":"stderr","text":"a\n"}"#,
            text(true, "a\n"),
        ),
        (
            "stream",
            r#"{"name":"stdout","text":"é"}"#,
            text(false, "é"),
        ),
        (
            "execute_result",
            r#"{"execution_count":3,"data":{"a/b":{"c":1}}}"#,
            data(Some(3)),
        ),
        (
            "display_data",
            r#"{"data":{"a/b":{"c":1}},"transient":{}}"#,
            data(None),
        ),
        (
            "update_display_data",
            r#"{"data":{"a/b":{"c":1}}}"#,
            data(None),
        ),
        (
            "error",
            r#"{"ename":"E","evalue":"v","traceback":["l"]}"#,
            Told::Failed(error("E", "v", &["l"])),
        ),
        (
            "error",
            r#"{"ename":null}"#,
            Told::Failed(error("", "", &[])),
        ),
        ("execute_reply", r#"{"status":"ok"}"#, Told::Reply(None)),
        ("kernel_info_reply", "{}", Told::Reply(None)),
        (
            "execute_reply",
            r#"{"status":"error","ename":"E"}"#,
            Told::Reply(Some(error("E", "", &[]))),
        ),
        ("comm_open", "[]", Told::Nothing),
        (
            "stream",
            r#"{"name":"stdout","text":"\ud800"}"#,
            Told::Unreadable,
        ),
        ("stream", "[", Told::Unreadable),
        ("execute_result", r#"{"data":[]}"#, Told::Unreadable),
    ] {
        assert_eq!(told(kind, content), wanted, "{kind} {content}");
    }
}

#[test]
fn only_kernels_on_ipykernel_are_known_to_be_orderly() {
    for (kind, content, orderly) in [
        ("kernel_info_reply", r#"{"implementation":"ipython"}"#, true),
        (
            "kernel_info_reply",
            r#"{"implementation":"bash_kernel"}"#,
            true,
        ),
        (
            "kernel_info_reply",
            r#"{"implementation":"Deno kernel"}"#,
            false,
        ),
        ("kernel_info_reply", "{}", false),
        ("kernel_info_reply", "7", false),
        ("execute_reply", r#"{"implementation":"ipython"}"#, false),
    ] {
        let message = read(&signer(), &from_kernel("key", kind, content)).unwrap();
        assert_eq!(message.is_of_orderly_kernel(), orderly, "{kind} {content}");
    }
}

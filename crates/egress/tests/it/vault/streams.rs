//! Credentials in what is more than a request and an answer.

use serde_json::json;

use super::{Case, VALUE, bearer};
use crate::site::{self, ask};
use crate::world::{OTHER, PUBLIC, policy};

#[test]
fn plain_http_gets_credentials_where_that_is_said() {
    let case = Case::without_server(80);
    site::serve(case.world.internet.listen(PUBLIC, 80), None);
    let request = "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
    let get = |request: &str| ask(&mut case.world.sandbox.connect(PUBLIC, 80), request, "");
    assert!(
        !get(request).contains(VALUE),
        "https alone, unless it is said"
    );
    let requests = json!({"hosts": ["a.example"], "schemes": ["http"]});
    case.binds(&json!({"match": requests, "auth": bearer()}));
    assert!(get(request).contains(VALUE));
    let other = "GET / HTTP/1.1\r\nHost: b.example\r\nConnection: close\r\n\r\n";
    assert!(!get(other).contains(VALUE));
    let first = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
    assert!(get(&format!("{first}{other}")).contains("HTTP/1.1 421"));
    let first = "GET / HTTP/1.1\r\nHost: b.example\r\n\r\n";
    assert!(!get(&format!("{first}{request}")).contains(VALUE));
}

#[test]
fn values_are_taken_out_of_answers_where_that_is_asked_for() {
    let case = Case::new(&["http/1.1"]);
    let more = "Accept-Encoding: gzip\r\n\r\n";
    for path in ["/", "/pieces"] {
        case.binds(&json!({"auth": bearer()}));
        let got = case.ask(&format!("GET {path}"), more);
        assert_eq!(
            got.matches("x-echo: Bearer hunter2").count(),
            1,
            "{path}: {got}"
        );
        case.binds(&json!({"auth": bearer(), "scrubResponses": true}));
        let got = case.ask(&format!("GET {path}"), more);
        assert!(!got.contains("hunter2"), "{path}: {got}");
        assert!(got.contains("x-echo: Bearer [secret]"), "{path}: {got}");
        assert!(got.contains("accept-encoding: identity"), "{path}: {got}");
    }
    let got = case.ask("GET /gzip", "\r\n");
    assert!(
        got.starts_with("HTTP/1.1 502") && !got.contains("hunter2"),
        "{got}"
    );
    let got = case.ask(
        "GET /ws",
        "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    assert!(got.starts_with("HTTP/1.1 403"), "{got}");
}

#[test]
fn what_comes_piece_by_piece_goes_on_so() {
    let case = Case::new(&["http/1.1"]);
    for scrub in [false, true] {
        case.binds(&json!({"auth": bearer(), "scrubResponses": scrub}));
        let mut client = case.connect("a.example");
        let request =
            "POST /stream HTTP/1.1\r\nHost: a.example\r\nContent-Length: 9\r\n\r\ndata: 1\nx";
        // The answer has no end, and is read up to its last line or byte.
        let last = if scrub { "data: 1\n" } else { "x\r\n" };
        let got = ask(&mut client, request, last);
        assert!(got.contains("200 OK"), "{got}");
    }
}

#[test]
fn a_websocket_goes_through() {
    let case = Case::new(&["http/1.1"]);
    let mut client = case.connect("a.example");
    let request = "GET /ws HTTP/1.1\r\nHost: a.example\r\nConnection: keep-alive, Upgrade\r\n\
                   Upgrade: websocket\r\n\r\nearly";
    let got = ask(&mut client, request, "early");
    assert!(got.starts_with("HTTP/1.1 101"), "{got}");
    assert!(got.ends_with("early"), "{got}");
}

#[test]
fn nothing_goes_in_the_clear_to_whom_no_answer_named() {
    let case = Case::without_server(80);
    site::serve(case.world.internet.listen(OTHER, 80), None);
    let requests = json!({"hosts": ["a.example"], "schemes": ["http"]});
    let bindings = json!([{"name": "a", "match": requests, "auth": bearer()}]);
    for (default, rules) in [
        ("allow", &["allow a.example"][..]),
        ("deny", &["allow a.example", "allow *"]),
        ("deny", &["allow a.example", "allow 93.184.216.0/24"]),
    ] {
        let mut guarded = case.guarded(&bindings);
        guarded["policy"] = policy(default, rules);
        case.world.guard(&guarded);
        let request = "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
        let got = ask(&mut case.world.sandbox.connect(OTHER, 80), request, "");
        assert!(!got.contains(VALUE), "{default} {rules:?}: {got}");
        assert!(got.contains("GET /"), "it is allowed: {got}");
    }
}

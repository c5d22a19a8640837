//! Credentials: put into requests outside of the sandbox, where they belong and nowhere else.

use http::Request;
use serde_json::{Value, json};

use crate::events::Reader;
use crate::resolver::{RESOLVER, knows, look_up};
use crate::site::{Authority, Tls, ask, ask_http2, tls};
use crate::world::{PUBLIC, World, policy};

mod streams;

const NAMES: &[(&str, &str)] = &[("a.example", PUBLIC), ("b.example", PUBLIC)];
const VALUE: &str = "hunter2-hunter2";

/// A sandbox with a vault, and a server for two names of which one is bound.
struct Case {
    world: World,
    /// Who signs for servers of the internet.
    internet: Authority,
    /// Who signs for the sandbox.
    own: Authority,
}

fn bearer() -> Value {
    json!({"type": "bearer", "credential": "key"})
}

fn replacing(place: &str) -> Value {
    json!({"type": "passthrough",
           "substitutions": [{"credential": "key", "placeholder": "KEY-HERE", "in": [place]}]})
}

impl Case {
    fn new(protocols: &[&str]) -> Self {
        let case = Self::without_server(443);
        let listener = case.world.internet.listen(PUBLIC, 443);
        case.internet
            .serve(listener, &["a.example", "b.example"], protocols);
        case
    }

    fn without_server(port: u16) -> Self {
        let world = World::without_rules(port);
        knows(&world, NAMES);
        let case = Self {
            world,
            internet: Authority::new(),
            own: Authority::new(),
        };
        case.believes(&case.internet.pem);
        case.binds(&json!({"auth": bearer()}));
        for (name, _) in NAMES {
            look_up(&case.world, name);
        }
        case
    }

    /// Sets by whom servers are believed.
    fn believes(&self, roots: &str) {
        let resolvers = [format!("{}:{}", RESOLVER.0, RESOLVER.1)];
        let settings = json!({"resolvers": resolvers, "askS": 60, "roots": roots});
        self.world.settings(&settings);
    }

    fn guarded(&self, bindings: &Value) -> Value {
        json!({
            "policy": policy("deny", &["allow a.example", "allow b.example"]),
            "version": 1,
            "vault": {
                "authority": self.own.told(),
                "credentials": [{"name": "key", "source": {"type": "inline", "value": VALUE}}],
                "bindings": bindings,
            },
        })
    }

    /// Has one binding, of `a.example`.
    fn binds(&self, binding: &Value) {
        let mut whole = json!({"name": "a", "match": {"hosts": ["a.example"]}});
        let changes = binding.as_object().unwrap().clone();
        whole.as_object_mut().unwrap().extend(changes);
        self.world.guard(&self.guarded(&json!([whole])));
    }

    fn connect(&self, name: &str) -> Tls {
        let config = self.own.client(&["http/1.1"]);
        tls(&config, self.world.sandbox.connect(PUBLIC, 443), name)
    }

    /// What is answered to a request of HTTP/1, made of its line and of more.
    fn ask(&self, line: &str, more: &str) -> String {
        let head = format!("{line} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n{more}");
        unchunked(&ask(&mut self.connect("a.example"), &head, ""))
    }
}

/// An answer without the lengths of its pieces.
fn unchunked(answer: &str) -> String {
    let Some((head, mut rest)) = answer.split_once("\r\n\r\n") else {
        return answer.to_owned();
    };
    if !head.contains("transfer-encoding: chunked") {
        return answer.to_owned();
    }
    let mut whole = format!("{head}\r\n\r\n");
    while let Some((length, after)) = rest.split_once("\r\n") {
        let (piece, after) = after.split_at(usize::from_str_radix(length, 16).unwrap());
        whole.push_str(piece);
        rest = after.strip_prefix("\r\n").unwrap();
    }
    whole
}

#[test]
fn a_credential_is_put_in_where_it_belongs_and_nowhere_else() {
    let case = Case::new(&["http/1.1"]);
    let got = case.ask("GET /", "Authorization: Bearer forged\r\n\r\n");
    assert!(
        got.contains(&format!("authorization: Bearer {VALUE}\n")),
        "{got}"
    );
    assert!(!got.contains("forged"), "{got}");
    let got = case.ask("OPTIONS /", "Authorization: Bearer own\r\n\r\n");
    assert!(got.contains("authorization: Bearer own\n"), "{got}");
    // Beside it lives one that is not bound: its own certificate is seen, and nothing is put in.
    let config = case.internet.client(&["http/1.1"]);
    let mut other = tls(
        &config,
        case.world.sandbox.connect(PUBLIC, 443),
        "b.example",
    );
    let request = "GET / HTTP/1.1\r\nHost: b.example\r\nConnection: close\r\n\r\n";
    let got = ask(&mut other, request, "");
    assert!(
        got.contains("GET /\n") && !got.contains("authorization"),
        "{got}"
    );
    let told = case
        .world
        .connection("it is told", |it| it["credentials"] == 1);
    assert_eq!(told["name"], "a.example");
    assert!(
        !case
            .world
            .api("GET", "/sandboxes", "")
            .text()
            .contains(VALUE)
    );
    let mut events = Reader::new(&case.world, 0);
    let closed = events.next_where(|it| {
        assert!(!it.to_string().contains(VALUE), "{it}");
        it["what"] == "closed" && it["connection"]["credentials"] == 1
    });
    assert_eq!(closed["connection"]["name"], "a.example");
    assert!(
        !case
            .world
            .of("GET", "/x/connections", "")
            .text()
            .contains(VALUE)
    );
}

#[test]
fn http2_is_spoken_with_those_who_speak_it() {
    let case = Case::new(&["h2", "http/1.1"]);
    let config = case.own.client(&["h2", "http/1.1"]);
    let request = |path: &str, host: &str| {
        Request::post(format!("https://{host}{path}"))
            .header("authorization", "Bearer forged")
            .body("x".repeat(100_000))
            .unwrap()
    };
    let stream = case.world.sandbox.connect(PUBLIC, 443);
    let mut requests: Vec<_> = (0..20).map(|_| request("/", "a.example")).collect();
    requests.push(request("/", "b.example"));
    let answers = ask_http2(&config, stream, "a.example", requests);
    let (last, fine) = answers.split_last().unwrap();
    assert_eq!(last.0, 421, "{}", last.1);
    for (status, text) in fine {
        assert_eq!(*status, 200);
        assert!(
            text.contains(&format!("authorization: Bearer {VALUE}\n")),
            "{text}"
        );
        assert!(text.ends_with(&"x".repeat(100_000)));
    }
    // One who speaks HTTP/1 alone is spoken to so.
    let got = case.ask("GET /", "\r\n");
    assert!(
        got.starts_with("HTTP/1.1 200") && got.contains(VALUE),
        "{got}"
    );
}

#[test]
fn placeholders_become_values_in_the_parts_that_are_named() {
    let case = Case::new(&["http/1.1"]);
    let line = "POST /KEY-HERE?k=KEY-HERE";
    let more = "X-Key: KEY-HERE\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n\
                \"KEY-HERE\"";
    for (place, seen) in [
        ("path", format!("POST /{VALUE}?k=KEY-HERE\n")),
        ("query", format!("POST /KEY-HERE?k={VALUE}\n")),
        ("header", format!("x-key: {VALUE}\n")),
        ("body", format!("\n\"{VALUE}\"")),
    ] {
        case.binds(&json!({"auth": replacing(place)}));
        let got = case.ask(line, more);
        assert!(got.contains(&seen), "{place}: {got}");
        assert_eq!(got.matches(VALUE).count(), 1, "{place}: {got}");
        assert_eq!(got.matches("KEY-HERE").count(), 3, "{place}: {got}");
    }
    let chunked = "Transfer-Encoding: chunked\r\n\r\n8\r\nKEY-HERE\r\n0\r\n\r\n";
    let got = case.ask("POST /", chunked);
    assert!(got.ends_with(&format!("\n{VALUE}")), "{got}");
    assert!(got.contains("content-length: 15\n"), "{got}");
    let packed = "Content-Encoding: gzip\r\nContent-Length: 8\r\n\r\nKEY-HERE";
    assert!(case.ask("POST /", packed).ends_with("\nKEY-HERE"));
}

#[test]
fn a_body_that_is_changed_has_a_limit() {
    let case = Case::new(&["http/1.1"]);
    case.binds(&json!({"auth": replacing("body")}));
    let got = case.ask("POST /", "Content-Length: 8388609\r\n\r\nx");
    assert!(
        got.starts_with("HTTP/1.1 413") && got.contains("8 MiB"),
        "{got}"
    );
    let body = "x".repeat(1024 * 1024);
    let got = case.ask(
        "POST /",
        &format!("Content-Length: {}\r\n\r\n{body}", body.len()),
    );
    assert!(got.ends_with(&body));
}

#[test]
fn a_request_for_another_host_goes_nowhere() {
    let case = Case::new(&["http/1.1"]);
    for head in [
        "GET / HTTP/1.1\r\nHost: b.example\r\n",
        "GET / HTTP/1.1\r\n",
        "GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n",
        "GET / HTTP/1.1\r\nHost: a.example:8443\r\n",
        "GET https://b.example/ HTTP/1.1\r\nHost: a.example\r\n",
        "GET https://a.example@b.example/ HTTP/1.1\r\nHost: a.example\r\n",
        "GET / HTTP/1.1\r\nHost: b.example@a.example\r\n",
    ] {
        let request = format!("{head}Connection: close\r\n\r\n");
        let got = ask(&mut case.connect("a.example"), &request, "");
        assert!(got.starts_with("HTTP/1.1 421"), "{head}: {got}");
    }
    for line in [
        "GET /x?y",
        "GET https://a.example/x?y",
        "GET http://a.example:443/x?y",
    ] {
        let request = format!(
            "{line} HTTP/1.1\r\nHost: A.EXAMPLE:443\r\n\
             Connection: close, host, authorization\r\n\r\n"
        );
        let got = ask(&mut case.connect("a.example"), &request, "");
        assert!(got.contains("GET /x?y\n") && got.contains(VALUE), "{got}");
        assert!(got.contains("host: a.example\n"), "{got}");
    }
}

#[test]
fn a_server_that_is_not_believed_gets_nothing() {
    let case = Case::new(&["http/1.1"]);
    for (what, roots) in [("another", Authority::new().pem), ("nobody", String::new())] {
        case.believes(&roots);
        let got = case.ask("GET /", "\r\n");
        assert!(got.starts_with("HTTP/1.1 502"), "{what}: {got}");
        assert!(got.contains("extra_ca_file"), "{what}: {got}");
        let told = |it: &Value| it["reason"] == "tls_untrusted";
        case.world.connection("it is told", told);
    }
    let refused = case
        .world
        .api("PUT", "/settings", r#"{"askS": 60, "roots": "no PEM"}"#);
    assert_eq!(refused.status, 400, "{}", refused.text());
}

#[test]
fn a_server_for_another_name_is_not_believed() {
    let case = Case::without_server(443);
    let listener = case.world.internet.listen(PUBLIC, 443);
    case.internet.serve(listener, &["b.example"], &[]);
    let got = case.ask("GET /", "\r\n");
    assert!(
        got.starts_with("HTTP/1.1 502") && got.contains("tls_untrusted"),
        "{got}"
    );
}

#[test]
fn one_connection_serves_many_requests_by_what_holds_then() {
    let case = Case::new(&["http/1.1"]);
    let mut client = case.connect("a.example");
    let request = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
    let mut has_value = || ask(&mut client, request, "\n\n").contains(VALUE);
    assert!(has_value() && has_value());
    case.binds(&json!({"auth": replacing("body")}));
    assert!(!has_value());
    case.binds(&json!({"auth": bearer()}));
    assert!(has_value());
    case.world
        .guard(&json!({"policy": policy("deny", &["allow a.example"]), "version": 1}));
    assert!(!has_value());
    case.world
        .guard(&json!({"policy": policy("deny", &[]), "version": 2}));
    assert!(ask(&mut client, request, "\n\n").is_empty());
}

#[test]
fn a_vault_that_makes_no_sense_changes_nothing() {
    let case = Case::new(&["http/1.1"]);
    let binding =
        |hosts: &[&str]| json!({"name": "a", "match": {"hosts": hosts}, "auth": bearer()});
    for (bindings, word) in [
        (json!([binding(&["c.example"])]), "c.example"),
        (
            json!([binding(&["a.example"]), binding(&["a.example"])]),
            "both",
        ),
    ] {
        let told = case.guarded(&bindings).to_string();
        let refused = case.world.of("PUT", "", &told);
        assert_eq!(refused.status, 400);
        let text = refused.text();
        assert!(text.contains(word) && !text.contains(VALUE), "{text}");
    }
    assert!(case.ask("GET /", "\r\n").contains(VALUE));
}

#[test]
fn bytes_are_counted_and_limited() {
    let case = Case::new(&["http/1.1"]);
    let mut guarded =
        case.guarded(&json!([{"name": "a", "match": {"hosts": ["a.example"]}, "auth": bearer()}]));
    guarded["limits"] = json!({"totalBytes": 200_000});
    case.world.guard(&guarded);
    let body = "x".repeat(60_000);
    let more = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    assert!(case.ask("POST /", &more).ends_with(&body));
    assert!(!case.ask("POST /", &more).ends_with(&body));
    let cut = case
        .world
        .connection("it is told", |it| it["reason"] == "limit_total_bytes");
    assert!(cut["sentBytes"].as_u64().unwrap() > 60_000, "{cut}");
}

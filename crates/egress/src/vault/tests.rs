use barchan_wire::egress::vault as wire;
use barchan_wire::lifecycle::NetworkPolicy;
use http::Request;
use serde_json::{Value, from_value, json};

use super::*;
use crate::policy::Policy;
use crate::rules::Overlay;

fn credential(name: &str, value: &str) -> Value {
    json!({"name": name, "source": {"type": "inline", "value": value}})
}

/// A vault with a credential `key`, another, and these bindings.
fn read(bindings: &Value) -> Result<Vault, VaultError> {
    let wire: wire::Vault = from_value(json!({
        "authority": {"name": "ca", "certificate": "", "key": ""},
        "credentials": [credential("key", "hunter2/hunter2"), credential("login", "user:pässword")],
        "bindings": bindings,
    }))
    .unwrap();
    let policy: NetworkPolicy = from_value(json!({
        "defaultAction": "deny",
        "egress": [{"action": "deny", "target": "no.a.example"},
                   {"action": "allow", "target": "*.a.example"},
                   {"action": "allow", "target": "b.example"}],
    }))
    .unwrap();
    Vault::read(&wire, &Overlay::default(), &Policy::read(&policy).unwrap())
}

fn bearer() -> Value {
    json!({"type": "bearer", "credential": "key"})
}

/// A binding of `b.example`, with some of it changed.
fn binding(changes: &Value) -> Value {
    let mut whole = json!({"name": "b", "match": {"hosts": ["b.example"]}, "auth": bearer()});
    for (pointer, value) in changes.as_object().unwrap() {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        whole.pointer_mut(parent).unwrap()[name] = value.clone();
    }
    whole
}

fn one(changes: &Value) -> Vault {
    read(&json!([binding(changes)])).unwrap()
}

fn substitution(placeholder: &str, places: &[&str]) -> Value {
    json!({"credential": "key", "placeholder": placeholder, "in": places})
}

fn replacing(all: &[Value]) -> Value {
    json!({"type": "passthrough", "substitutions": all})
}

fn headers(names: &[&str]) -> Value {
    let all = names
        .iter()
        .map(|name| json!({"name": name, "credential": "key"}));
    json!({"type": "customHeaders", "headers": all.collect::<Vec<_>>()})
}

#[test]
fn what_could_send_a_secret_elsewhere_is_refused() {
    for (changes, word) in [
        (json!({"/match/hosts": []}), "no host"),
        (json!({"/match/hosts": ["*"]}), "neither a name"),
        (json!({"/match/hosts": ["93.184.216.34"]}), "neither a name"),
        (json!({"/match/hosts": ["c.example"]}), "does not allow"),
        (json!({"/match/hosts": ["no.a.example"]}), "does not allow"),
        (json!({"/match/hosts": ["*.b.example"]}), "does not allow"),
        (json!({"/match/schemes": []}), "no scheme"),
        (json!({"/match/ports": [8443]}), "8443"),
        (json!({"/match/ports": [80]}), "no scheme"),
        (json!({"/match/methods": []}), "no method"),
        (json!({"/match/methods": ["CONNECT"]}), "no method"),
        (json!({"/match/methods": ["A B"]}), "no method"),
        (json!({"/match/paths": []}), "no path"),
        (json!({"/match/paths": ["v1"]}), "begins with `/`"),
        (json!({"/auth/credential": "other"}), "`other`"),
        (json!({"/auth": headers(&[])}), "no header"),
        (json!({"/auth": headers(&["X-A", "x-a"])}), "twice"),
        (json!({"/auth": headers(&["Host"])}), "reserved"),
        (json!({"/auth": headers(&["Content-Length"])}), "reserved"),
        (
            json!({"/auth": headers(&["Transfer-Encoding"])}),
            "reserved",
        ),
        (
            json!({"/auth": headers(&["Proxy-Authorization"])}),
            "reserved",
        ),
        (
            json!({"/auth": headers(&["a: b\r\nc"])}),
            "no name of a header",
        ),
        (json!({"/auth": headers(&[":path"])}), "no name of a header"),
        (json!({"/auth": replacing(&[])}), "replaces nothing"),
        (
            json!({"/auth": replacing(&[substitution("KEY", &["body"])])}),
            "placeholder",
        ),
        (
            json!({"/auth": replacing(&[substitution("KEY HERE", &["body"])])}),
            "placeholder",
        ),
        (
            json!({"/auth": replacing(&[substitution("KEY-HERE", &[])])}),
            "nowhere",
        ),
        (
            json!({"/auth": replacing(&[
                substitution("KEY-HERE", &["body"]),
                substitution("KEY-HERE-2", &["body"]),
            ])}),
            "part of another",
        ),
    ] {
        let refused = read(&json!([binding(&changes)])).unwrap_err();
        let words = refused.to_string();
        assert_eq!(refused.code(), "VAULT_BINDING_INVALID");
        assert!(
            words.contains("`b`") && words.contains(word),
            "{changes}: {words}"
        );
        assert!(!words.contains("hunter2"), "{words}");
    }
}

#[test]
fn a_value_that_would_break_a_header_is_refused() {
    for value in [
        "",
        "a\r\nb: c",
        "a\u{0}",
        " a",
        "a\n",
        &"a".repeat(32 * 1024 + 1),
    ] {
        let wire: wire::Vault = from_value(json!({
            "authority": {"name": "ca", "certificate": "", "key": ""},
            "credentials": [credential("key", value)],
            "bindings": [],
        }))
        .unwrap();
        let policy = Policy::new(crate::policy::Action::Deny);
        let refused = Vault::read(&wire, &Overlay::default(), &policy).unwrap_err();
        assert_eq!(refused.code(), "VAULT_CREDENTIAL_INVALID", "{value:?}");
    }
}

#[test]
fn two_bindings_that_could_both_fit_are_refused() {
    let other = |changes: Value| {
        let mut other = binding(&changes);
        other["name"] = json!("other");
        read(&json!([
            binding(&json!({"/match/paths": ["/v1/*"]})),
            other
        ]))
    };
    for changes in [
        json!({}),
        json!({"/match/methods": ["DELETE", "HEAD"]}),
        json!({"/match/paths": ["/v1/a"]}),
        json!({"/match/schemes": ["http", "https"]}),
    ] {
        let refused = other(changes).unwrap_err();
        assert_eq!(refused.code(), "VAULT_BINDINGS_OVERLAP");
    }
    for changes in [
        json!({"/match/methods": ["HEAD"]}),
        json!({"/match/paths": ["/v2/*"]}),
        json!({"/match/schemes": ["http"]}),
        json!({"/match/hosts": ["x.a.example"]}),
    ] {
        assert!(other(changes.clone()).is_ok(), "{changes}");
    }
}

#[test]
fn a_request_finds_its_binding() {
    let vault = one(&json!({
        "/match/methods": ["get", "POST"],
        "/match/paths": ["/v1/*"],
    }));
    for (scheme, host, method, path, expected) in [
        (Scheme::Https, "b.example", "GET", "/v1/a", true),
        (Scheme::Http, "b.example", "GET", "/v1/a", false),
        (Scheme::Https, "a.example", "GET", "/v1/a", false),
        (Scheme::Https, "b.example", "PUT", "/v1/a", false),
        (Scheme::Https, "b.example", "GET", "/v2/a", false),
        (Scheme::Https, "b.example", "GET", "/v1/../admin", false),
        (Scheme::Https, "b.example", "GET", "/v1/%2e%2e/admin", false),
    ] {
        let host = Name::parse(host).unwrap();
        let found = vault.find((scheme, &host), method, path);
        assert_eq!(
            found.is_some(),
            expected,
            "{scheme:?} {host:?} {method} {path}"
        );
    }
    assert!(vault.is_bound(Scheme::Https, &Name::parse("b.example").unwrap()));
    assert!(!vault.is_bound(Scheme::Http, &Name::parse("b.example").unwrap()));
    let all = one(&json!({}));
    let host = Name::parse("b.example").unwrap();
    assert!(
        all.find((Scheme::Https, &host), "GET", "/v1/../x")
            .is_some()
    );
}

/// A request after the only binding of a vault: its target, and its headers as lines.
fn rewritten(vault: &Vault, target: &str, headers: &[(&str, &str)]) -> (String, String) {
    let mut request = Request::builder().uri(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (mut head, ()) = request.body(()).unwrap().into_parts();
    vault.bindings[0].rewrite(&mut head).unwrap();
    let lines = head.headers.iter();
    let lines = lines.map(|(name, value)| {
        let value = String::from_utf8(value.as_bytes().to_vec()).unwrap();
        format!("{name}: {value}\n")
    });
    (head.uri.to_string(), lines.collect())
}

#[test]
fn a_header_is_set_in_the_place_of_the_sandboxes_own() {
    let api_key = json!({"type": "apiKey", "name": "X-Key", "credential": "key"});
    let basic = json!({"type": "basic", "credential": "login"});
    let own = [
        ("authorization", "Bearer own"),
        ("authorization", "x"),
        ("x-key", "own"),
    ];
    for (auth, expected) in [
        (
            bearer(),
            "authorization: Bearer hunter2/hunter2\nx-key: own\n",
        ),
        (
            basic,
            "authorization: Basic dXNlcjpww6Rzc3dvcmQ=\nx-key: own\n",
        ),
        (
            api_key,
            "authorization: Bearer own\nauthorization: x\nx-key: hunter2/hunter2\n",
        ),
    ] {
        let vault = one(&json!({"/auth": auth}));
        let (_, lines) = rewritten(&vault, "/", &own);
        let mut lines: Vec<&str> = lines.lines().collect();
        lines.sort_unstable();
        let mut wanted: Vec<&str> = expected.lines().collect();
        wanted.sort_unstable();
        assert_eq!(lines, wanted);
        assert!(!format!("{vault:?}").contains("hunter2"));
    }
}

#[test]
fn placeholders_are_replaced_where_they_are_asked_for_alone() {
    let target = "https://b.example/{K-1}/%7BK-1%7D?a={K-1}&b=%7bK-1%7d";
    let headers = [("x-a", "a {K-1}"), ("authorization", "Basic dTp7Sy0xfQ==")];
    let same = "https://b.example/{K-1}/%7BK-1%7D?a={K-1}&b=%7bK-1%7d";
    for (part, uri, lines) in [
        ("body", same.to_owned(), ["a {K-1}", "Basic dTp7Sy0xfQ=="]),
        (
            "path",
            "https://b.example/hunter2%2Fhunter2/hunter2%2Fhunter2?a={K-1}&b=%7bK-1%7d".to_owned(),
            ["a {K-1}", "Basic dTp7Sy0xfQ=="],
        ),
        (
            "query",
            "https://b.example/{K-1}/%7BK-1%7D?a=hunter2%2Fhunter2&b=hunter2%2Fhunter2".to_owned(),
            ["a {K-1}", "Basic dTp7Sy0xfQ=="],
        ),
        (
            "header",
            same.to_owned(),
            ["a hunter2/hunter2", "Basic dTpodW50ZXIyL2h1bnRlcjI="],
        ),
    ] {
        let auth = replacing(&[substitution("{K-1}", &[part])]);
        let (got, got_lines) = rewritten(&one(&json!({"/auth": auth})), target, &headers);
        assert_eq!(got, uri, "{part}");
        let expected = format!("x-a: {}\nauthorization: {}\n", lines[0], lines[1]);
        assert_eq!(got_lines, expected, "{part}");
    }
}

#[test]
fn a_body_gets_a_value_as_its_kind_has_it() {
    let all = [
        json!({"credential": "key", "placeholder": "KEY-1", "in": ["body"]}),
        json!({"credential": "login", "placeholder": "KEY-2", "in": ["body"]}),
    ];
    let vault = one(&json!({"/auth": {"type": "passthrough", "substitutions": all}}));
    for (kind, encoding, body, expected) in [
        (
            "application/json",
            "",
            r#"{"a": "KEY-1"}"#,
            Some(r#"{"a": "hunter2/hunter2"}"#),
        ),
        (
            "application/x+json; charset=utf-8",
            "identity",
            "KEY-2",
            Some("user:pässword"),
        ),
        (
            "application/x-www-form-urlencoded",
            "",
            "a=KEY-1",
            Some("a=hunter2%2Fhunter2"),
        ),
        (
            "text/plain",
            "",
            "KEY-2 KEY-2",
            Some("user:pässword user:pässword"),
        ),
        ("", "", "KEY-1", Some("hunter2/hunter2")),
        ("text/plain", "gzip", "KEY-1", None),
        ("text/plain", "", "KEY-3", None),
    ] {
        let mut headers = http::HeaderMap::new();
        for (name, value) in [("content-type", kind), ("content-encoding", encoding)] {
            if !value.is_empty() {
                headers.insert(name, value.parse().unwrap());
            }
        }
        let got = vault.bindings[0].rewrite_body(&headers, body.as_bytes());
        let got = got.unwrap().map(|it| String::from_utf8(it).unwrap());
        assert_eq!(got.as_deref(), expected, "{kind} {encoding} {body}");
    }
}

#[test]
fn a_request_that_would_be_too_long_is_not_sent() {
    let vault = one(&json!({"/auth": replacing(&[substitution("KEY-1", &["query", "body"])])}));
    let target = format!("/?{}", "KEY-1".repeat(5000));
    let (mut head, ()) = Request::builder()
        .uri(target)
        .body(())
        .unwrap()
        .into_parts();
    let refused = vault.bindings[0].rewrite(&mut head);
    assert_eq!(refused, Err(RewriteError::Long));
    let body = "KEY-1".repeat(1024 * 1024 + 200_000);
    let refused = vault.bindings[0].rewrite_body(&head.headers, body.as_bytes());
    assert_eq!(refused, Err(RewriteError::Long));
}

#[test]
fn values_are_taken_out_of_answers_in_each_form() {
    let vault = one(&json!({"/scrubResponses": true}));
    let mut scrubber = vault.bindings[0].scrubber().unwrap();
    let said = b"hunter2/hunter2 hunter2%2Fhunter2 aHVudGVyMi9odW50ZXIy hunter2";
    let mut out = scrubber.piece(said);
    out.extend(scrubber.end());
    assert_eq!(out, b"[secret] [secret] [secret] hunter2");
    assert_eq!(
        scrubber.header(b"k=hunter2/hunter2").unwrap(),
        b"k=[secret]"
    );
    assert_eq!(scrubber.header(b"k"), None);
    let (_, lines) = rewritten(&vault, "/", &[("accept-encoding", "gzip")]);
    assert!(lines.contains("accept-encoding: identity\n"), "{lines}");
    assert!(one(&json!({})).bindings[0].scrubber().is_none());
}

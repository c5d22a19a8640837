//! What the server asks of the program.

use serde_json::{Value, json};

use crate::world::{ID, World, policy};

#[test]
fn a_policy_is_read_replaced_and_changed_as_the_contract_says() {
    let world = World::new(7000, &policy("deny", &["allow a.example"]));
    let look = |method: &str, body: &str| {
        let answer = world.of(method, "/policy", body);
        let version = answer.header("x-barchan-policy-version").map(str::to_owned);
        let version = version.and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
        match answer.status {
            200 => (version, answer.json()),
            status => (0, json!([status, answer.header("content-type")])),
        }
    };
    let text = |status: u16| (0, json!([status, "text/plain; charset=utf-8"]));
    let rules = |it: &(u64, Value)| {
        let rules = it.1["policy"]["egress"].as_array().unwrap().clone();
        let word = |rule: Value| format!("{} {}", rule["action"], rule["target"]).replace('"', "");
        (
            it.0,
            it.1["mode"].as_str().unwrap().to_owned(),
            rules.into_iter().map(word).collect(),
        )
    };
    let expect = |version: u64, mode: &str, rules: &[&str]| {
        let rules: Vec<String> = rules.iter().map(|&it| it.to_owned()).collect();
        (version, mode.to_owned(), rules)
    };
    let first = look("GET", "");
    assert_eq!(first.1["status"], "ok");
    assert_eq!(first.1["enforcementMode"], "dns+nft");
    assert_eq!(rules(&first), expect(1, "enforcing", &["allow a.example"]));
    let patch = r#"[{"action":"deny","target":"A.example"},{"action":"allow","target":"a.example"},
                    {"action":"","target":"b.example"}]"#;
    let both = ["deny a.example", "deny b.example"];
    assert_eq!(rules(&look("PATCH", patch)), expect(2, "enforcing", &both));
    let none = look("DELETE", r#"["x.example"]"#);
    assert_eq!(none.1["reason"], "no matching targets found");
    assert_eq!(rules(&none), expect(2, "enforcing", &both));
    let one = look("DELETE", r#"["a.example", "x.example"]"#);
    assert_eq!(one.1.get("reason"), None);
    assert_eq!(rules(&one), expect(3, "enforcing", &["deny b.example"]));
    let empty = look("POST", " ");
    assert!(empty.1["reason"].as_str().is_some_and(|it| !it.is_empty()));
    assert_eq!(rules(&empty), expect(4, "deny_all", &[]));
    let open = look("PUT", r#"{"defaultAction":"allow"}"#);
    assert_eq!(rules(&open), expect(5, "allow_all", &[]));
    assert_eq!(rules(&look("PUT", "null")), expect(6, "deny_all", &[]));
    assert_eq!(rules(&look("POST", "{}")), expect(6, "deny_all", &[]));
    for (method, body) in [
        ("PATCH", "[]"),
        ("PATCH", "{}"),
        ("PATCH", r#"[{"action":"maybe","target":"a.example"}]"#),
        (
            "PUT",
            r#"{"egress":[{"action":"allow","target":"http://a.example"}]}"#,
        ),
        ("PUT", r#"{"defaultAction":"perhaps"}"#),
        ("PUT", "{"),
        ("DELETE", "{}"),
        ("DELETE", ""),
    ] {
        assert_eq!(look(method, body), text(400), "{method} {body}");
    }
    assert_eq!(look("OPTIONS", ""), text(405));
    assert_eq!(rules(&look("GET", "")), expect(6, "deny_all", &[]));
}

#[test]
fn a_policy_has_limits() {
    let world = World::new(7000, &policy("deny", &[]));
    let rules = |count: usize| {
        let rules: Vec<_> = (0..count)
            .map(|at| json!({"action": "allow", "target": format!("a{at}.example")}))
            .collect();
        json!({"egress": rules}).to_string()
    };
    assert_eq!(world.of("PUT", "/policy", &rules(4096)).status, 200);
    let refused = world.of("PUT", "/policy", &rules(4097));
    assert_eq!(refused.status, 413);
    assert!(
        refused.text().starts_with("POLICY_TOO_LARGE: "),
        "{}",
        refused.text()
    );
    let more = world.of(
        "PATCH",
        "/policy",
        r#"[{"action":"allow","target":"b.example"}]"#,
    );
    assert_eq!(more.status, 413);
    let blank = |length: usize| " ".repeat(length);
    assert_eq!(world.of("PUT", "/policy", &blank(1024 * 1024)).status, 200);
    assert_eq!(
        world.of("PUT", "/policy", &blank(1024 * 1024 + 1)).status,
        413
    );
}

#[test]
fn sandboxes_come_and_go() {
    let world = World::without_rules(7000);
    let list = || world.api("GET", "/sandboxes", "").json();
    assert_eq!(list(), json!({"sandboxes": []}));
    assert_eq!(world.of("GET", "/policy", "").status, 404);
    world.guard(&json!({"policy": null, "version": 7}));
    assert_eq!(list(), json!({"sandboxes": [{"id": ID, "version": 7}]}));
    let status = world.of("GET", "/policy", "");
    assert_eq!(status.header("x-barchan-policy-version"), Some("7"));
    assert_eq!(status.json()["mode"], "allow_all");
    assert_eq!(world.of("GET", "/healthz", "").text(), "ok");
    let none = json!({"connections": [], "forgotten": 0});
    assert_eq!(world.of("GET", "/x/connections", "").json(), none);
    assert_eq!(world.of("DELETE", "", "").status, 204);
    assert_eq!(world.of("DELETE", "", "").status, 204);
    assert_eq!(list(), json!({"sandboxes": []}));
}

#[test]
fn what_is_no_request_is_told_to_be_none() {
    let world = World::new(7000, &policy("deny", &[]));
    for (method, path, body, status) in [
        ("GET", "/healthz", "", 200),
        ("GET", "/", "", 404),
        ("GET", "/sandboxes/no-id", "", 400),
        ("POST", "/sandboxes", "", 405),
        ("POST", "/settings", "", 405),
        ("PUT", "/settings", "{}", 400),
        (
            "PUT",
            "/settings",
            r#"{"resolvers":["dns.example:53"],"askS":1}"#,
            400,
        ),
        (
            "PUT",
            "/settings",
            r#"{"resolvers":[],"askS":1,"denyAlways":["a..b"]}"#,
            400,
        ),
        (
            "PUT",
            "/settings",
            r#"{"resolvers":[],"askS":99999999}"#,
            400,
        ),
        ("PUT", "/asks/00", r#"{"allow":true}"#, 404),
        ("PUT", "/asks/00", "yes", 400),
        ("GET", "/asks/00", "", 405),
        ("GET", "/policy/check", "", 405),
        ("POST", "/policy/check", "{}", 400),
        (
            "POST",
            "/policy/check",
            r#"{"egress":[{"action":"maybe","target":"a.b"}]}"#,
            400,
        ),
        ("GET", "/events?after=x", "", 400),
        ("DELETE", "/events", "", 405),
    ] {
        let answer = world.api(method, path, body);
        assert_eq!(
            answer.status,
            status,
            "{method} {path} {body}: {}",
            answer.text()
        );
        assert_eq!(
            answer.header("content-type"),
            Some("text/plain; charset=utf-8")
        );
    }
    for (method, path, status) in [
        ("GET", "", 405),
        ("GET", "/x", 404),
        ("PUT", "/x/connections", 405),
        ("GET", "/policy/x", 404),
    ] {
        assert_eq!(world.of(method, path, "").status, status, "{method} {path}");
    }
    let good = policy("ask", &["allow *.example"]).to_string();
    assert_eq!(world.api("POST", "/policy/check", &good).status, 204);
    let bad = json!({"policy": policy("deny", &["allow a..b"]), "version": 1}).to_string();
    assert_eq!(world.of("PUT", "", &bad).status, 400);
}

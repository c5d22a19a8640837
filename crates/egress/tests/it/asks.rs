//! Connections about which somebody is asked.

use serde_json::json;

use crate::events::Reader;
use crate::resolver::{knows, look_up};
use crate::world::{PUBLIC, World, accept, is_reset, nobody_came, policy, read, read_all, write};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";

#[test]
fn a_connection_waits_for_the_word() {
    let world = World::new(80, &policy("deny", &["ask a.example"]));
    knows(&world, &[("a.example", PUBLIC)]);
    assert_eq!(look_up(&world, "a.example").1, [PUBLIC]);
    let server = world.internet.listen(PUBLIC, 80);
    for (allow, reason) in [(true, "ask_allowed"), (false, "ask_denied")] {
        let mut events = Reader::new(&world, 0);
        let client = world.sandbox.connect(PUBLIC, 80);
        write(&client, REQUEST);
        let asked = events.next_where(|it| it["what"] == "asked" && it["connection"]["id"] != 0);
        let mut asked = asked;
        while world.connection("it waits", |it| it["verdict"] == "ask")["id"]
            != asked["connection"]["id"]
        {
            asked = events.next_where(|it| it["what"] == "asked");
        }
        assert_eq!(asked["connection"]["name"], "a.example");
        assert!(nobody_came(&server));
        let path = format!("/asks/{}", asked["ask"]["id"].as_str().unwrap());
        let word = json!({"allow": allow}).to_string();
        assert_eq!(world.api("PUT", &path, &word).status, 204);
        if allow {
            assert_eq!(read(&accept(&server), REQUEST.len()), REQUEST.as_bytes());
        } else {
            assert!(is_reset(&client) || read_all(&client).is_empty());
            assert!(nobody_came(&server));
        }
        let told =
            events.next_where(|it| it["what"] == "verdict" && it["connection"]["reason"] == reason);
        assert_eq!(told["connection"]["id"], asked["connection"]["id"]);
        assert_eq!(world.api("PUT", &path, &word).status, 404);
    }
}

#[test]
fn one_word_is_enough_for_one_host_and_not_for_another() {
    let world = World::new(80, &policy("ask", &[]));
    let mut events = Reader::new(&world, 0);
    let server = world.internet.listen(PUBLIC, 80);
    let client = world.sandbox.connect(PUBLIC, 80);
    let mut say = |name: &str| {
        let asked = events.next_where(|it| it["what"] == "asked");
        assert_eq!(asked["connection"]["name"], name);
        let path = format!("/asks/{}", asked["ask"]["id"].as_str().unwrap());
        assert_eq!(world.api("PUT", &path, r#"{"allow":true}"#).status, 204);
    };
    write(&client, REQUEST);
    say("a.example");
    let accepted = accept(&server);
    assert_eq!(read(&accepted, REQUEST.len()), REQUEST.as_bytes());
    write(&client, REQUEST);
    assert_eq!(read(&accepted, REQUEST.len()), REQUEST.as_bytes());
    let other = REQUEST.replace("a.example", "b.example");
    write(&client, &other);
    say("b.example");
    assert_eq!(read(&accepted, other.len()), other.as_bytes());
}

#[test]
fn who_was_allowed_to_be_silent_is_asked_about_again_once_it_speaks() {
    let world = World::new(80, &policy("ask", &["deny evil.example"]));
    let mut events = Reader::new(&world, 0);
    let server = world.internet.listen(PUBLIC, 80);
    let client = world.sandbox.connect(PUBLIC, 80);
    let asked = events.next_where(|it| it["what"] == "asked");
    let path = format!("/asks/{}", asked["ask"]["id"].as_str().unwrap());
    assert_eq!(world.api("PUT", &path, r#"{"allow":true}"#).status, 204);
    let accepted = accept(&server);
    write(&accepted, "welcome");
    assert_eq!(read(&client, 7), b"welcome");
    write(&client, &REQUEST.replace("a.example", "evil.example"));
    assert!(is_reset(&accepted), "and nothing of it went out");
    assert_eq!(world.refusal(), "rule");
}

#[test]
fn who_is_not_answered_is_refused() {
    let world = World::new(7000, &policy("ask", &[]));
    world.settings(&json!({"resolvers": [], "askS": 1}));
    let client = world.sandbox.connect(PUBLIC, 7000);
    write(&client, "\0hello");
    assert!(is_reset(&client));
    assert_eq!(world.refusal(), "ask_unanswered");
}

#[test]
fn rules_that_come_meanwhile_decide() {
    let world = World::new(7000, &policy("ask", &[]));
    let client = world.sandbox.connect(PUBLIC, 7000);
    write(&client, "\0hello");
    world.connection("it waits", |it| {
        it["verdict"] == "ask" && it["reason"] == "default"
    });
    assert_eq!(world.of("PUT", "/policy", "").status, 200);
    assert!(is_reset(&client));
    assert_eq!(world.refusal(), "policy_changed");
}

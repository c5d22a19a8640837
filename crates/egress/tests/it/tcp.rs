//! Connections: what passes, what does not, and how they end.

use std::net::Shutdown;

use serde_json::json;

use crate::world::{
    ID, OTHER, PUBLIC, World, accept, is_reset, nobody_came, policy, read, read_all, reset, until,
    write,
};

#[test]
fn bytes_pass_both_ways_and_each_way_ends_by_itself() {
    let world = World::new(7000, &policy("deny", &[&format!("allow {PUBLIC}")]));
    let server = world.internet.listen(PUBLIC, 7000);
    let client = world.sandbox.connect(PUBLIC, 7000);
    write(&client, "\0question");
    let accepted = accept(&server);
    assert_eq!(read(&accepted, 9), b"\0question");
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&accepted), "");
    write(&accepted, "a late answer");
    drop(accepted);
    assert_eq!(read_all(&client), "a late answer");
    let ended = world.connection("it has ended", |it| !it["closedAt"].is_null());
    assert_eq!(ended["verdict"], "allow");
    assert_eq!(ended["rule"], format!("allow {PUBLIC}"));
    assert_eq!(
        (&ended["sentBytes"], &ended["receivedBytes"]),
        (&json!(9), &json!(13))
    );
    assert_eq!(
        (&ended["address"], &ended["port"]),
        (&json!(PUBLIC), &json!(7000))
    );
}

#[test]
fn a_server_may_speak_first_and_before_anything_is_said() {
    let world = World::new(7000, &policy("allow", &[]));
    let server = world.internet.listen(PUBLIC, 7000);
    let client = world.sandbox.connect(PUBLIC, 7000);
    let accepted = accept(&server);
    write(&accepted, "welcome");
    assert_eq!(read(&client, 7), b"welcome");
    write(&client, "thanks");
    assert_eq!(read(&accepted, 6), b"thanks");
}

#[test]
fn silence_is_judged_again_at_the_first_byte() {
    let world = World::new(7000, &policy("allow", &["deny secret.example"]));
    let server = world.internet.listen(PUBLIC, 7000);
    let client = world.sandbox.connect(PUBLIC, 7000);
    let accepted = accept(&server);
    write(&accepted, "welcome");
    assert_eq!(read(&client, 7), b"welcome");
    write(&client, "GET / HTTP/1.1\r\nHost: secret.example\r\n\r\n");
    assert!(is_reset(&client));
    assert!(is_reset(&accepted), "and nothing of it went out");
    assert_eq!(world.refusal(), "rule");
}

#[test]
fn what_is_denied_is_reset_and_nobody_is_called() {
    let world = World::new(7000, &policy("deny", &[&format!("allow {OTHER}")]));
    let server = world.internet.listen(PUBLIC, 7000);
    let client = world.sandbox.connect(PUBLIC, 7000);
    write(&client, "\0hello");
    assert!(is_reset(&client));
    assert!(nobody_came(&server));
    assert_eq!(world.refusal(), "default");
}

#[test]
fn the_host_and_its_networks_are_denied_where_the_internet_is_allowed() {
    let world = World::new(7000, &policy("allow", &["allow 10.0.0.0/8"]));
    for (address, reason) in [
        ("127.0.0.1", "address_loopback"),
        ("::1", "address_loopback"),
        ("169.254.169.254", "address_metadata"),
        ("192.168.1.1", "address_private"),
        ("fd00::1", "address_private"),
        ("::ffff:127.0.0.1", "address_loopback"),
        ("9.9.9.9", "address_own"),
    ] {
        let client = world.sandbox.connect(address, 7000);
        write(&client, "\0hello");
        assert!(is_reset(&client), "{address}");
        let plain = address.trim_start_matches("::ffff:");
        let told = world.connection("it is told", |it| it["address"] == plain);
        assert_eq!(told["reason"], reason, "{address}");
    }
}

#[test]
fn an_address_of_the_host_opens_by_a_rule_about_it() {
    let world = World::new(7000, &policy("deny", &["allow 127.0.0.1", "allow 9.9.9.9"]));
    for address in ["127.0.0.1", "9.9.9.9"] {
        let server = world.internet.listen(address, 7000);
        let client = world.sandbox.connect(address, 7000);
        write(&client, "\0hello");
        assert_eq!(read(&accept(&server), 6), b"\0hello", "{address}");
    }
}

#[test]
fn a_reset_is_passed_on_to_the_other_side() {
    let world = World::new(7000, &policy("allow", &[]));
    let server = world.internet.listen(PUBLIC, 7000);
    let client = world.sandbox.connect(PUBLIC, 7000);
    reset(accept(&server));
    assert!(is_reset(&client));
    let client = world.sandbox.connect(PUBLIC, 7000);
    let accepted = accept(&server);
    reset(client);
    assert!(is_reset(&accepted));
}

#[test]
fn who_does_not_listen_is_seen_not_to() {
    let world = World::new(7000, &policy("allow", &[]));
    assert!(world.is_refused(PUBLIC, 7000));
    let told = world.connection("it has ended", |it| !it["closedAt"].is_null());
    assert_eq!(told["reason"], "dial_refused");
}

#[test]
fn a_connection_waits_for_the_rules_of_its_sandbox() {
    let world = World::without_rules(7000);
    let server = world.internet.listen(PUBLIC, 7000);
    let client = world.sandbox.connect(PUBLIC, 7000);
    write(&client, "\0hello");
    world.guard(&json!({"policy": null, "version": 1}));
    assert_eq!(read(&accept(&server), 6), b"\0hello");
}

#[test]
fn without_rules_nothing_goes_out() {
    let world = World::without_rules(7000);
    let server = world.internet.listen(PUBLIC, 7000);
    let client = world.sandbox.connect(PUBLIC, 7000);
    assert!(is_reset(&client));
    assert!(nobody_came(&server));
}

#[test]
fn a_beginning_must_come_to_its_end() {
    let world = World::new(7000, &policy("deny", &["allow a.example"]));
    let server = world.internet.listen(PUBLIC, 7000);
    let slow = world.sandbox.connect(PUBLIC, 7000);
    write(&slow, "GET / HT");
    let silent = world.sandbox.connect(PUBLIC, 7000);
    let endless = world.sandbox.connect(PUBLIC, 7000);
    write(
        &endless,
        &format!("GET /{} HTTP/1.1\r\n", "x".repeat(20_000)),
    );
    for client in [endless, silent, slow] {
        assert!(is_reset(&client));
    }
    assert!(nobody_came(&server));
}

#[test]
fn a_change_of_rules_cuts_what_they_deny_now() {
    let world = World::new(7000, &policy("allow", &[]));
    let server = world.internet.listen(PUBLIC, 7000);
    let client = world.sandbox.connect(PUBLIC, 7000);
    write(&client, "\0hello");
    let accepted = accept(&server);
    assert_eq!(read(&accepted, 6), b"\0hello");
    let changed = world.of("PATCH", "/policy", r#"[{"action":"deny","target":"*:22"}]"#);
    assert_eq!(changed.status, 200, "{}", changed.text());
    write(&client, "more");
    assert_eq!(read(&accepted, 4), b"more");
    let rule = format!(r#"[{{"action":"deny","target":"{PUBLIC}"}}]"#);
    assert_eq!(world.of("PATCH", "/policy", &rule).status, 200);
    assert!(is_reset(&client));
    assert!(is_reset(&accepted));
    assert_eq!(world.refusal(), "policy_changed");
}

#[test]
fn rules_of_the_operator_cut_too_and_stand_above_all() {
    let world = World::new(7000, &policy("allow", &[&format!("allow {PUBLIC}")]));
    let server = world.internet.listen(PUBLIC, 7000);
    let client = world.sandbox.connect(PUBLIC, 7000);
    let _accepted = accept(&server);
    world.settings(&json!({"resolvers": [], "askS": 1, "denyAlways": [PUBLIC]}));
    assert!(is_reset(&client));
    assert!(world.is_refused(PUBLIC, 7000));
}

#[test]
fn a_sandbox_that_is_closed_or_let_go_is_cut() {
    let world = World::new(7000, &policy("allow", &[]));
    let server = world.internet.listen(PUBLIC, 7000);
    let client = world.sandbox.connect(PUBLIC, 7000);
    let _accepted = accept(&server);
    assert_eq!(world.of("DELETE", "", "").status, 204);
    assert!(is_reset(&client));
    world.guard(&json!({"policy": null, "version": 1}));
    let client = world.sandbox.connect(PUBLIC, 7000);
    let _accepted = accept(&server);
    world.tell(&format!("close {ID}"), &[]);
    assert!(is_reset(&client));
    until("its door is closed", || {
        world.sandbox.try_connect(PUBLIC, 7000).is_err()
    });
}

#[test]
fn ipv6_is_as_ipv4() {
    let world = World::new(7000, &policy("deny", &["allow ::1"]));
    let server = world.internet.listen("::1", 7000);
    let client = world.sandbox.connect("::1", 7000);
    write(&client, "\0hello");
    assert_eq!(read(&accept(&server), 6), b"\0hello");
}

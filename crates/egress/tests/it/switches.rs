//! Requests that ask for another protocol on their connection.

use crate::world::{PUBLIC, World, accept, is_reset, policy, read, read_all, write};

const UPGRADE: &str =
    "GET /ws HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";
const EVIL: &str = "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n";
const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

fn world() -> World {
    World::new(80, &policy("allow", &["deny evil.example"]))
}

#[test]
fn a_websocket_is_not_looked_at_any_more() {
    let world = world();
    let server = world.internet.listen(PUBLIC, 80);
    let client = world.sandbox.connect(PUBLIC, 80);
    write(&client, UPGRADE);
    let accepted = accept(&server);
    assert_eq!(read(&accepted, UPGRADE.len()), UPGRADE.as_bytes());
    let both = format!("HTTP/1.1 103 Early Hints\r\n\r\n{SWITCHED}frame");
    write(&accepted, &both);
    assert_eq!(read(&client, both.len()), both.as_bytes());
    write(&client, EVIL);
    assert_eq!(read(&accepted, EVIL.len()), EVIL.as_bytes());
}

#[test]
fn a_server_that_does_not_switch_leaves_requests_judged() {
    let world = world();
    let server = world.internet.listen(PUBLIC, 80);
    let client = world.sandbox.connect(PUBLIC, 80);
    write(&client, UPGRADE);
    let accepted = accept(&server);
    assert_eq!(read(&accepted, UPGRADE.len()), UPGRADE.as_bytes());
    // Sent before the answer, as if it had switched.
    write(&client, EVIL);
    write(&accepted, ANSWER);
    assert_eq!(read(&client, ANSWER.len()), ANSWER.as_bytes());
    assert!(is_reset(&client));
    assert!(is_reset(&accepted));
    assert_eq!(world.refusal(), "rule");
}

#[test]
fn an_answer_without_an_end_switches_nothing() {
    let world = world();
    let server = world.internet.listen(PUBLIC, 80);
    let client = world.sandbox.connect(PUBLIC, 80);
    write(&client, UPGRADE);
    let accepted = accept(&server);
    assert_eq!(read(&accepted, UPGRADE.len()), UPGRADE.as_bytes());
    let endless = format!(
        "HTTP/1.1 101 Switching Protocols\r\nX: {}",
        "x".repeat(40_000)
    );
    write(&accepted, &endless);
    assert_eq!(read(&client, endless.len()), endless.as_bytes());
    write(&client, EVIL);
    assert!(is_reset(&accepted));
}

#[test]
fn a_later_request_cannot_switch() {
    let world = world();
    let server = world.internet.listen(PUBLIC, 80);
    let client = world.sandbox.connect(PUBLIC, 80);
    let first = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
    write(&client, first);
    let accepted = accept(&server);
    assert_eq!(read(&accepted, first.len()), first.as_bytes());
    write(&client, UPGRADE);
    assert!(is_reset(&accepted));
    assert_eq!(world.refusal(), "http_upgrade_late");
}

#[test]
fn http_2_in_the_clear_needs_that_nothing_forbids_a_hidden_name() {
    let h2c = "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade, HTTP2-Settings\r\n\
               Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n";
    let world = world();
    let server = world.internet.listen(PUBLIC, 80);
    let client = world.sandbox.connect(PUBLIC, 80);
    write(&client, h2c);
    assert!(read_all(&client).contains("name_hidden"));
    assert_eq!(
        world
            .of("PUT", "/policy", r#"{"defaultAction":"allow"}"#)
            .status,
        200
    );
    let client = world.sandbox.connect(PUBLIC, 80);
    write(&client, &format!("{h2c}{EVIL}"));
    loop {
        let accepted = accept(&server);
        let mut first = [0];
        // Those that were refused are in the queue as well.
        if accepted.peek(&mut first).is_ok_and(|count| count > 0) {
            let whole = format!("{h2c}{EVIL}");
            assert_eq!(read(&accepted, whole.len()), whole.as_bytes());
            break;
        }
    }
}

#[test]
fn a_tunnel_is_one_once_the_proxy_says_so() {
    let world = World::new(80, &policy("allow", &["deny evil.example"]));
    let server = world.internet.listen(PUBLIC, 80);
    let client = world.sandbox.connect(PUBLIC, 80);
    let connect = "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n";
    write(&client, connect);
    let accepted = accept(&server);
    assert_eq!(read(&accepted, connect.len()), connect.as_bytes());
    write(&accepted, "HTTP/1.1 200 OK\r\n\r\n");
    assert_eq!(read(&client, 19).len(), 19);
    write(&client, "\x16\x03 whatever");
    assert_eq!(read(&accepted, 11).len(), 11);
    let client = world.sandbox.connect(PUBLIC, 80);
    write(
        &client,
        "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
    );
    assert!(read_all(&client).starts_with("HTTP/1.1 403 "));
}

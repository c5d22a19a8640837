//! Plain HTTP: each request is judged.

use std::net::{TcpListener, TcpStream};

use crate::world::{
    PUBLIC, World, accept, is_reset, nobody_came, policy, read, read_all, until, write,
};

fn request(host: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

/// A world in which one name is denied, a client and the server that it reached.
fn reached() -> (World, TcpStream, TcpStream) {
    let world = World::new(80, &policy("allow", &["deny evil.example"]));
    let server = world.internet.listen(PUBLIC, 80);
    let client = world.sandbox.connect(PUBLIC, 80);
    write(&client, &request("good.example"));
    let accepted = accept(&server);
    assert_eq!(
        read(&accepted, request("good.example").len()),
        request("good.example").as_bytes()
    );
    write(&accepted, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(read(&client, 38).len(), 38);
    (world, client, accepted)
}

fn answers(server: &TcpListener, client: &TcpStream) -> String {
    let answer = read_all(client);
    assert!(nobody_came(server));
    answer
}

#[test]
fn a_refused_request_is_told_why() {
    let world = World::new(80, &policy("deny", &["allow good.example"]));
    let server = world.internet.listen(PUBLIC, 80);
    for (request, reason) in [
        (request("evil.example"), "default"),
        (request("good.example"), "name_not_pinned"),
        (
            "GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n".into(),
            "hosts_differ",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a b\r\n\r\n".into(),
            "http_malformed",
        ),
    ] {
        let client = world.sandbox.connect(PUBLIC, 80);
        write(&client, &request);
        let answer = answers(&server, &client);
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
        assert!(answer.contains(reason), "{answer}");
    }
}

#[test]
fn a_refused_request_is_told_why_even_while_its_body_comes() {
    let world = World::new(80, &policy("deny", &[]));
    let client = world.sandbox.connect(PUBLIC, 80);
    let body = "x".repeat(40_000);
    write(
        &client,
        &format!("POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 40000\r\n\r\n{body}"),
    );
    assert!(read_all(&client).starts_with("HTTP/1.1 403 "));
}

#[test]
fn a_later_request_may_be_for_another_host_only_if_that_is_allowed() {
    let (world, client, accepted) = reached();
    let body = "POST /x HTTP/1.1\r\nHost: other.example\r\nContent-Length: 5\r\n\r\n12345";
    write(&client, body);
    assert_eq!(read(&accepted, body.len()), body.as_bytes());
    let chunks = "POST /x HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n\
                  3\r\nabc\r\n0\r\n\r\n";
    write(&client, &format!("{chunks}{}", request("evil.example")));
    assert_eq!(read(&accepted, chunks.len()), chunks.as_bytes());
    assert!(is_reset(&client));
    assert!(is_reset(&accepted), "and nothing of it went out");
    assert_eq!(world.refusal(), "rule");
}

#[test]
fn a_request_in_the_body_of_another_is_none_and_behind_it_is_one() {
    let (world, client, accepted) = reached();
    let inner = request("evil.example");
    let outer = format!(
        "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: {}\r\n\r\n{inner}",
        inner.len()
    );
    write(&client, &outer);
    assert_eq!(read(&accepted, outer.len()), outer.as_bytes());
    write(&client, &inner);
    assert!(is_reset(&accepted));
    drop(world);
}

#[test]
fn a_length_that_is_read_in_two_ways_is_refused() {
    for odd in [
        "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\
         Transfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    ] {
        let (world, client, accepted) = reached();
        write(&client, odd);
        assert!(is_reset(&accepted), "{odd}");
        assert_eq!(world.refusal(), "http_malformed");
    }
    let (_world, client, accepted) = reached();
    let odd = "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc";
    write(&client, odd);
    assert!(is_reset(&accepted));
}

#[test]
fn a_client_that_has_ended_still_hears_the_answer() {
    let (_world, client, accepted) = reached();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(read_all(&accepted), "");
    write(&accepted, "late");
    drop(accepted);
    assert_eq!(read_all(&client), "late");
}

#[test]
fn requests_and_bodies_of_any_size_come_out_as_they_went_in() {
    let (_world, client, accepted) = reached();
    let body = "y".repeat(3_000_000);
    let head = "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3000000\r\n\r\n";
    let writer = client.try_clone().unwrap();
    let sent = format!("{head}{body}{}", request("a.example"));
    let copy = sent.clone();
    let thread = std::thread::spawn(move || write(&writer, &copy));
    let got = read(&accepted, sent.len());
    thread.join().unwrap();
    assert!(got == sent.as_bytes());
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 3000000\r\n\r\n{body}");
    let copy = answer.clone();
    let thread = std::thread::spawn(move || write(&accepted, &copy));
    assert!(read(&client, answer.len()) == answer.as_bytes());
    thread.join().unwrap();
}

#[test]
fn each_request_is_told_of() {
    let (world, client, accepted) = reached();
    let second = request("second.example");
    write(&client, &second);
    assert_eq!(read(&accepted, second.len()), second.as_bytes());
    until("the second name is told", || {
        let told = world.connection("it is open", |it| it["closedAt"].is_null());
        told["name"] == "second.example"
    });
}

//! WebSockets through the proxy (B104).

use futures::{SinkExt, StreamExt};
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::guest::{self, Body, Open};
use crate::world::{PATIENCE, Set, World, until};

/// The program's side: agrees to the first subprotocol offered and sends every message back.
pub(crate) fn accept(request: &mut Request<Incoming>, open: Open) -> Response<Body> {
    let key = request.headers()["sec-websocket-key"].as_bytes();
    let mut response = Response::builder()
        .status(101)
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-accept", derive_accept_key(key));
    if let Some(offered) = request.headers().get("sec-websocket-protocol") {
        let first = offered
            .to_str()
            .unwrap()
            .split(',')
            .next()
            .unwrap()
            .to_owned();
        response = response.header("sec-websocket-protocol", first);
    }
    let query = request.uri().query().unwrap_or_default().to_owned();
    let upgrade = hyper::upgrade::on(request);
    tokio::runtime::Handle::current().spawn(async move {
        let _open = open;
        let stream = TokioIo::new(upgrade.await.unwrap());
        let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
        socket
            .send(Message::text(format!("query={query}")))
            .await
            .unwrap();
        while let Some(Ok(message)) = socket.next().await {
            if !message.is_close() && socket.send(message).await.is_err() {
                return;
            }
        }
    });
    response.body(guest::empty()).unwrap()
}

/// A handshake at an address of the server, with these headers.
async fn connect(
    world: &World,
    path: &str,
    headers: &[(&'static str, &str)],
) -> Result<(WebSocketStream<TcpStream>, http::HeaderMap), Error> {
    let address = world.address();
    let mut request = format!("ws://{address}{path}")
        .into_client_request()
        .unwrap();
    for (name, value) in headers {
        request
            .headers_mut()
            .insert(*name, HeaderValue::from_str(value).unwrap());
    }
    let stream = TcpStream::connect(address).await.unwrap();
    let shaken = tokio_tungstenite::client_async(request, stream);
    let (socket, response) = tokio::time::timeout(PATIENCE, shaken).await.unwrap()?;
    Ok((socket, response.headers().clone()))
}

async fn next(socket: &mut WebSocketStream<TcpStream>) -> Message {
    tokio::time::timeout(PATIENCE, socket.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap()
}

fn status(result: Result<(WebSocketStream<TcpStream>, http::HeaderMap), Error>) -> u16 {
    match result {
        Err(Error::Http(response)) => response.status().as_u16(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn messages_of_any_size_go_both_ways() {
    let (guest, counts) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let (name, token) = world.token(&id).await;
    let name: &'static str = Box::leak(name.into_boxed_str());
    let path = format!("/v1/sandboxes/{id}/proxy/8080/socket?a=%20b");
    for offered in [None, Some("chat, other")] {
        let mut headers = vec![(name, token.as_str())];
        headers.extend(offered.map(|offered| ("sec-websocket-protocol", offered)));
        let (mut socket, answer) = connect(&world, &path, &headers).await.unwrap();
        let agreed = answer
            .get("sec-websocket-protocol")
            .map(|it| it.to_str().unwrap());
        assert_eq!(agreed, offered.map(|_| "chat"));
        assert_eq!(next(&mut socket).await, Message::text("query=a=%20b"));
        let big = Message::binary(vec![7; 1_000_000]);
        for message in [
            Message::text(""),
            Message::text("hi"),
            big,
            Message::text("é"),
        ] {
            socket.send(message.clone()).await.unwrap();
            assert_eq!(next(&mut socket).await, message);
        }
        socket.close(None).await.unwrap();
    }
    until("closed sockets to close inside", async || {
        counts.open() == 0
    })
    .await;
}

/// B104: a socket lives on for as long as both sides like, and no limit of a request ends it.
#[tokio::test]
async fn a_quiet_socket_is_not_cut_off() {
    let world = World::with(&Set::guest(guest::echo().0)).await;
    let id = world
        .sandbox_with(&serde_json::json!({"timeout": null}))
        .await;
    let (name, token) = world.token(&id).await;
    let name: &'static str = Box::leak(name.into_boxed_str());
    let path = format!("/v1/sandboxes/{id}/proxy/8080/socket");
    let (mut socket, _) = connect(&world, &path, &[(name, &token)]).await.unwrap();
    next(&mut socket).await;
    for minutes in [1, 10, 60, 600] {
        world
            .hand
            .advance(std::time::Duration::from_secs(60 * minutes));
        let message = Message::text(format!("after {minutes} minutes"));
        socket.send(message.clone()).await.unwrap();
        assert_eq!(next(&mut socket).await, message);
    }
}

#[tokio::test]
async fn a_client_that_vanishes_closes_the_socket_inside() {
    let (guest, counts) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let (name, token) = world.token(&id).await;
    let name: &'static str = Box::leak(name.into_boxed_str());
    let path = format!("/sandboxes/{id}/proxy/8080/socket");
    let (mut socket, _) = connect(&world, &path, &[(name, &token)]).await.unwrap();
    next(&mut socket).await;
    assert_eq!(counts.open(), 1);
    drop(socket);
    until("the socket inside to close", async || counts.open() == 0).await;
}

#[tokio::test]
async fn what_cannot_be_upgraded_is_refused_and_breaks_nothing() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let (name, token) = world.token(&id).await;
    let name: &'static str = Box::leak(name.into_boxed_str());
    let own = [(name, token.as_str())];
    let path = format!("/v1/sandboxes/{id}/proxy/8080/plain");
    assert_eq!(status(connect(&world, &path, &own).await), 502);
    assert_eq!(status(connect(&world, &path, &[]).await), 401);
    let foreign = [own[0], ("origin", "http://evil.example")];
    assert_eq!(status(connect(&world, &path, &foreign).await), 403);
    let nowhere = "/v1/sandboxes/0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f/proxy/8080/socket";
    let key = world.key();
    assert_eq!(
        status(connect(&world, nowhere, &[("x-api-key", &key)]).await),
        404
    );
    let again = world.inside(&id, 8080, "GET", "/show").await.send().await;
    assert_eq!(again.status, 200);
}

/// In a host of its own a page opens sockets with its cookie, and no other page does.
#[tokio::test]
async fn a_page_opens_sockets_in_its_own_host() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let path = format!("/sandboxes/{id}/endpoints/8080?expires=1900000060");
    let address = world.call("GET", &path).send().await.json();
    let (host, link) = address["endpoint"]
        .as_str()
        .unwrap()
        .split_once('/')
        .unwrap();
    let led = world.bare("GET", &format!("/{link}")).header("host", host);
    let led = led.header("accept", "text/html").send().await;
    let cookie = led.header("set-cookie").split(';').next().unwrap();
    let own = format!("http://{host}");
    let sibling = own.replace("8080-", "3000-");
    let link = format!("/{link}/socket");
    for (path, cookie, origin, expected) in [
        ("/socket", cookie, own.as_str(), 101),
        ("/socket", cookie, &sibling, 403),
        ("/socket", cookie, "null", 403),
        ("/socket", "a=1", &own, 401),
        (&link, "a=1", &own, 101),
        (&link, "a=1", &sibling, 403),
    ] {
        let headers = [("host", host), ("cookie", cookie), ("origin", origin)];
        match connect(&world, path, &headers).await {
            Ok((mut socket, _)) => {
                assert_eq!(expected, 101, "{path} {origin}");
                assert_eq!(next(&mut socket).await, Message::text("query="));
            }
            refused => assert_eq!(status(refused), expected, "{path} {origin}"),
        }
    }
}

/// Behind another protocol a proxy sees no requests any more, so none but WebSocket is passed on.
#[tokio::test]
async fn no_other_protocol_is_offered_inside() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let call = world.inside(&id, 8080, "GET", "/show").await;
    let call = call
        .header("connection", "Upgrade, HTTP2-Settings")
        .header("upgrade", "h2c");
    let shown = call
        .header("http2-settings", "AAMAAABkAAQAAP__")
        .send()
        .await;
    assert_eq!(shown.status, 200);
    assert!(
        !shown.text().contains("upgrade") && !shown.text().contains("http2"),
        "{shown:?}"
    );
}

/// One side may be through with writing and still read: bytes that are under way arrive.
#[tokio::test]
async fn a_half_closed_socket_delivers_what_is_under_way() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let (name, token) = world.token(&id).await;
    let mut stream = TcpStream::connect(world.address()).await.unwrap();
    let head = format!(
        "GET /sandboxes/{id}/proxy/8080/socket HTTP/1.1\r\nhost: localhost\r\n{name}: {token}\r\n\
         connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    // A masked text frame "hi" sent with the handshake, and nothing after it.
    let frame = [0x81, 0x82, 0, 0, 0, 0, b'h', b'i'];
    stream
        .write_all(&[head.as_bytes(), &frame].concat())
        .await
        .unwrap();
    stream.shutdown().await.unwrap();
    let mut told = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut told))
        .await
        .unwrap()
        .unwrap();
    let told = String::from_utf8_lossy(&told);
    assert!(told.starts_with("HTTP/1.1 101"), "{told}");
    assert!(told.contains("\u{2}hi") || told.ends_with("hi"), "{told}");
}

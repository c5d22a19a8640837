//! Names: only those that our own answers gave an address are believed to be there.

use std::net::TcpStream;
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, Stream,
};

use crate::resolver::{knows, look_up};
use crate::world::{OTHER, PUBLIC, World, accept, is_reset, policy, read, write};

const NAMES: &[(&str, &str)] = &[
    ("a.example", PUBLIC),
    ("b.example", PUBLIC),
    ("c.example", OTHER),
];

/// Both sides of TLS for some names.
fn tls(names: &[&str]) -> (Arc<ClientConfig>, Arc<ServerConfig>) {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let own = rcgen::generate_simple_self_signed(names).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(own.cert.der().clone()).unwrap();
    let client = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    (Arc::new(client), Arc::new(server))
}

/// Speaks TLS with a name on a connection: what the other side says.
fn speak(config: &Arc<ClientConfig>, mut stream: TcpStream, name: &str) -> std::io::Result<String> {
    use std::io::{Read, Write};
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut tls = ClientConnection::new(Arc::clone(config), name).unwrap();
    let mut both = Stream::new(&mut tls, &mut stream);
    both.write_all(b"hello")?;
    let mut answer = [0; 4];
    both.read_exact(&mut answer)?;
    Ok(String::from_utf8(answer.to_vec()).unwrap())
}

#[test]
fn tls_goes_where_its_name_was_answered_to_be() {
    let world = World::new(
        443,
        &policy("deny", &["allow a.example", "allow *.sub.example"]),
    );
    knows(&world, NAMES);
    let (client, config) = tls(&["a.example", "b.example"]);
    let server = world.internet.listen(PUBLIC, 443);
    let thread = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let mut stream = accept(&server);
        let mut tls = ServerConnection::new(config).unwrap();
        let mut both = Stream::new(&mut tls, &mut stream);
        both.read_exact(&mut [0; 5]).unwrap();
        both.write_all(b"done").unwrap();
    });
    let connect = || world.sandbox.connect(PUBLIC, 443);
    assert!(
        speak(&client, connect(), "a.example").is_err(),
        "nobody has asked for it"
    );
    assert_eq!(world.refusal(), "name_not_pinned");
    assert_eq!(look_up(&world, "a.example").1, [PUBLIC]);
    assert!(
        speak(&client, connect(), "b.example").is_err(),
        "it lives beside the allowed one"
    );
    assert!(
        speak(&client, connect(), "x.sub.example").is_err(),
        "it is not there"
    );
    let elsewhere = world.sandbox.connect(OTHER, 443);
    assert!(
        speak(&client, elsewhere, "a.example").is_err(),
        "it is not there either"
    );
    assert_eq!(speak(&client, connect(), "a.example").unwrap(), "done");
    thread.join().unwrap();
}

#[test]
fn an_address_alone_says_no_name() {
    let world = World::new(
        22,
        &policy("deny", &["allow a.example", "allow c.example:22"]),
    );
    knows(&world, NAMES);
    look_up(&world, "a.example");
    look_up(&world, "c.example");
    let client = world.sandbox.connect(PUBLIC, 22);
    write(&client, "SSH-2.0-x\r\n");
    assert!(is_reset(&client));
    assert_eq!(world.refusal(), "port_not_named");
    let server = world.internet.listen(OTHER, 22);
    let client = world.sandbox.connect(OTHER, 22);
    write(&client, "SSH-2.0-x\r\n");
    assert_eq!(read(&accept(&server), 11), b"SSH-2.0-x\r\n");
}

#[test]
fn http_goes_by_its_host() {
    let world = World::new(80, &policy("deny", &["allow a.example"]));
    knows(&world, NAMES);
    look_up(&world, "a.example");
    let server = world.internet.listen(PUBLIC, 80);
    let client = world.sandbox.connect(PUBLIC, 80);
    let request = "GET / HTTP/1.1\r\nHost: A.Example:80\r\n\r\n";
    write(&client, request);
    assert_eq!(read(&accept(&server), request.len()), request.as_bytes());
    let told = world.connection("it is told", |it| it["protocol"] == "tcp");
    assert_eq!(told["name"], "a.example");
    assert_eq!(told["rule"], "allow a.example");
}

//! Answers where clients look for a Jupyter server before they run code. There is none: kernels
//! are spoken to directly.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::environment::Environment;

/// The port that clients look at when nothing names another one.
const PORT: u16 = 44771;
/// What an image sets that brings a Jupyter server of its own.
const OWN_SERVER: [&str; 3] = ["JUPYTER_PORT", "JUPYTER_HOST", "JUPYTER_TOKEN"];

const ANSWER: &[u8] = b"HTTP/1.1 501 Not Implemented\r\nContent-Type: text/plain\r\n\
    Content-Length: 57\r\nConnection: close\r\n\r\n\
    There is no Jupyter server here; run code by POST /code.\n";

/// Answers for ever; not at all where the image has its own server, or the port is taken.
pub(crate) async fn run(environment: &Environment) {
    if OWN_SERVER
        .iter()
        .any(|name| environment.own(name).is_some())
    {
        return;
    }
    let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).await else {
        return;
    };
    loop {
        match listener.accept().await {
            // That the connection is made is all that clients look for.
            Ok((connection, _)) => drop(connection.try_write(ANSWER)),
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    }
}

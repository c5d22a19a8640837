//! Terminals of a daemon that means well or ill.

use axum::Router;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::routing::get;
use barchan_client::{ClientError, Said, Terminal};

use crate::server::{Served, id, inside, serve};

/// A daemon whose terminal sends these messages and then closes.
fn sending(messages: Vec<Message>) -> Served {
    let attach = async |upgrade: WebSocketUpgrade| {
        upgrade
            .max_message_size(8 << 20)
            .on_upgrade(async |mut socket| {
                for message in messages {
                    if socket.send(message).await.is_err() {
                        return;
                    }
                }
            })
    };
    serve(Router::new().route(&inside("/pty/t/ws"), get(attach)))
}

async fn attached(served: &Served) -> Terminal {
    served.client.sandbox(&id()).attach("t").await.unwrap()
}

#[tokio::test]
async fn what_a_terminal_says_is_understood() {
    let served = sending(vec![
        Message::Binary(b"\x03\0\0\0\0\0\0\0\x05old".to_vec().into()),
        Message::Text(r#"{"type":"connected","session_id":"t","mode":"pty"}"#.into()),
        Message::Text(r#"{"type":"confetti"}"#.into()),
        Message::Binary(b"\x09?".to_vec().into()),
        Message::Binary(b"\x01\xffnew".to_vec().into()),
        Message::Text(r#"{"type":"exit","exit_code":3}"#.into()),
    ]);
    let mut terminal = attached(&served).await;
    for wanted in [
        Said::Output((&b"old"[..]).into()),
        Said::Output((&b"\xffnew"[..]).into()),
        Said::Ended(3),
    ] {
        assert_eq!(terminal.next().await.unwrap(), wanted);
    }
    assert!(terminal.next().await.is_err());
}

#[tokio::test]
async fn a_terminals_troubles_are_told() {
    let trouble = r#"{"type":"error","code":"START_FAILED","error":"no shell"}"#;
    let served = sending(vec![Message::Text(trouble.into())]);
    let error = attached(&served).await.next().await.unwrap_err();
    assert!(
        matches!(&error, ClientError::Protocol(why) if why == "no shell"),
        "{error}"
    );
}

#[tokio::test]
async fn an_endless_message_of_a_terminal_is_refused() {
    let served = sending(vec![Message::Binary(vec![1; 4 << 20].into())]);
    let error = attached(&served).await.next().await.unwrap_err();
    assert!(matches!(error, ClientError::Broken { .. }), "{error}");
}

#[tokio::test]
async fn a_daemon_without_terminals_is_an_error() {
    let served = serve(Router::new().route(&inside("/pty/t/ws"), get(async || "x")));
    let attached = served.client.sandbox(&id()).attach("t").await;
    assert!(matches!(attached, Err(ClientError::Protocol(_))));
}

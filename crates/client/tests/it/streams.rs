//! Event streams, cut and broken in every way a network does it.

use axum::Router;
use axum::routing::post;
use barchan_client::{ClientError, End, Output, Running};
use barchan_wire::execd::command::CommandRequest;

use crate::server::{HASTY, Served, id, inside, pieces, serve, serve_within, stuck_after};

const BARE: &str = concat!(
    r#"{"type":"init","text":"c1","timestamp":1}"#,
    "\n\n",
    r#"{"type":"ping","text":"pong","timestamp":1}"#,
    "\n\n",
    r#"{"type":"stdout","text":"hé\n","timestamp":2}"#,
    "\n\n",
    r#"{"type":"stderr","text":"{\"a\": 1}\n\ndata: no","timestamp":2}"#,
    "\n\n",
    r#"{"type":"error","timestamp":3,"error":{"ename":"CommandExecError","evalue":"7"}}"#,
    "\n\n",
);

fn said() -> Vec<Output> {
    vec![
        Output::Started("c1".to_owned()),
        Output::Stdout("hé\n".to_owned()),
        Output::Stderr("{\"a\": 1}\n\ndata: no".to_owned()),
        Output::Ended(End::Exit(7)),
    ]
}

async fn start(served: &Served) -> Running {
    served
        .client
        .sandbox(&id())
        .run(&CommandRequest::default())
        .await
        .unwrap()
}

async fn all(mut running: Running) -> Result<Vec<Output>, ClientError> {
    let mut found = Vec::new();
    while let Some(output) = running.next().await? {
        found.push(output);
    }
    Ok(found)
}

/// A daemon that sends these pieces, one network write each.
fn sending(parts: Vec<Vec<u8>>) -> Served {
    let answer = move || {
        let parts = parts.clone();
        async move { pieces(parts) }
    };
    serve(Router::new().route(&inside("/command"), post(answer)))
}

#[tokio::test]
async fn a_recorded_stream_cut_at_every_byte_reads_the_same() {
    let data = BARE.replace("{\"type\"", "data: {\"type\"");
    for stream in [BARE.to_owned(), BARE.replace('\n', "\r\n"), data] {
        for at in (1..stream.len()).step_by(7) {
            let (one, other) = stream.as_bytes().split_at(at);
            let served = sending(vec![one.to_vec(), other.to_vec()]);
            assert_eq!(
                all(start(&served).await).await.unwrap(),
                said(),
                "cut at {at}"
            );
        }
        let bytes = stream.bytes().map(|byte| vec![byte]).collect();
        let served = sending(bytes);
        assert_eq!(
            all(start(&served).await).await.unwrap(),
            said(),
            "byte by byte"
        );
    }
}

#[tokio::test]
async fn a_stream_without_an_end_is_an_error_after_its_output() {
    let cut = BARE.find("{\"type\":\"error\"").unwrap();
    let half = BARE.find("{\"type\":\"stderr\"").unwrap() + 10;
    for (end, outputs) in [(cut, 3), (half, 2), (0, 0)] {
        let served = sending(vec![BARE.as_bytes()[..end].to_vec()]);
        let mut running = start(&served).await;
        for _ in 0..outputs {
            running.next().await.unwrap().unwrap();
        }
        let error = running.next().await.unwrap_err();
        assert!(matches!(error, ClientError::Protocol(_)), "{error}");
    }
}

#[tokio::test]
async fn nothing_is_read_after_the_end() {
    let served = sending(vec![BARE.repeat(2).into_bytes()]);
    assert_eq!(all(start(&served).await).await.unwrap(), said());
}

#[tokio::test]
async fn a_stream_without_signs_of_life_is_given_up() {
    let stuck = || async { stuck_after(b"{\"type\":\"init\",\"text\":\"c\",\"timestamp\":1}\n\n") };
    let routes = Router::new().route(&inside("/command"), post(stuck));
    let served = serve_within(routes, HASTY);
    let mut running = start(&served).await;
    assert_eq!(
        running.next().await.unwrap(),
        Some(Output::Started("c".to_owned()))
    );
    let error = running.next().await.unwrap_err();
    assert!(matches!(error, ClientError::Timeout { .. }), "{error}");
}

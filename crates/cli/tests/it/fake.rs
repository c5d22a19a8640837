//! A scripted server on a Unix socket that writes down what it is asked.

pub(crate) mod layers;
pub(crate) mod outbound;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::program::program;

pub(crate) const ID: &str = "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f";
pub(crate) const OTHER: &str = "1c0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f";

/// What a command in the sandbox says.
#[derive(Debug, Clone)]
pub(crate) enum Script {
    /// These events, then the end of the stream.
    Says(Vec<Value>),
    /// An `init` event and then nothing, for ever.
    Hangs,
}

/// What the server was asked, in order, and the files that it holds.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) calls: Vec<String>,
    pub(crate) created: Vec<Value>,
    pub(crate) commands: Vec<Value>,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) terminals: Vec<Value>,
    /// What was typed, and the sizes that were told, in order.
    pub(crate) typed: Vec<u8>,
    pub(crate) sizes: Vec<Value>,
}

#[derive(Clone)]
struct Shared {
    seen: Arc<Mutex<Seen>>,
    script: Script,
}

/// A running server and a home for programs that use it.
pub(crate) struct Fake {
    pub(crate) home: TempDir,
    pub(crate) seen: Arc<Mutex<Seen>>,
    socket: PathBuf,
    _task: JoinSet<()>,
}

impl Fake {
    pub(crate) fn start(script: Script) -> Self {
        let home = TempDir::new().unwrap();
        let socket = home.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let routes = routes(Shared {
            seen: Arc::clone(&seen),
            script,
        });
        let mut task = JoinSet::new();
        task.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self {
            home,
            seen,
            socket,
            _task: task,
        }
    }

    /// The program, pointed at this server.
    pub(crate) fn program(&self, arguments: &[&str]) -> Command {
        let mut command = program(self.home.path());
        command
            .env("BARCHAN_SERVER", format!("unix:{}", self.socket.display()))
            .args(arguments);
        command
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        self.seen.lock().unwrap().calls.clone()
    }
}

fn routes(shared: Shared) -> Router {
    let inside = "/v1/sandboxes/{id}/proxy/44772";
    Router::new()
        .route("/v1/sandboxes", get(list).post(create))
        .route("/v1/snapshots", get(snapshots))
        .route("/v1/sandboxes/{id}", get(inspect).delete(delete))
        .route("/v1/sandboxes/{id}/pause", post(pause))
        .route("/v1/sandboxes/{id}/resume", post(resume))
        .route(
            &format!("{inside}/command"),
            post(command).delete(interrupt),
        )
        .route(&format!("{inside}/files/upload"), post(upload))
        .route(&format!("{inside}/files/download"), get(download))
        .route(&format!("{inside}/files/info"), get(info))
        .route(&format!("{inside}/x/tar"), get(pack).put(unpack))
        .route(&format!("{inside}/pty"), post(open_terminal))
        .route(
            &format!("{inside}/pty/t1"),
            axum::routing::delete(close_terminal),
        )
        .route(&format!("{inside}/pty/t1/ws"), get(attach))
        .merge(layers::routes())
        .merge(outbound::routes())
        .with_state(shared)
}

fn sandbox(id: &str) -> Value {
    json!({
        "id": id,
        "image": {"uri": "host"},
        "status": {"state": "Running"},
        "createdAt": "2030-01-01T00:00:00Z",
        "entrypoint": ["tail", "-f", "/dev/null"],
    })
}

fn refusal(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(json!({"code": code, "message": message}))).into_response()
}

fn note(shared: &Shared, call: String) {
    shared.seen.lock().unwrap().calls.push(call);
}

async fn list(State(shared): State<Shared>) -> Json<Value> {
    note(&shared, "list".to_owned());
    let pagination = json!({"page": 1, "pageSize": 200, "totalItems": 2, "totalPages": 1,
                            "hasNextPage": false});
    Json(json!({"items": [sandbox(ID), sandbox(OTHER)], "pagination": pagination}))
}

/// One with a name that means harm to terminals and tables.
async fn snapshots() -> Json<Value> {
    let name = format!("a\u{1b}]0;t\u{7}\u{9b}2J\u{202e}\n{OTHER}  faked  Ready");
    let snapshot = json!({"id": ID, "sandboxId": OTHER, "name": name,
                          "status": {"state": "Ready"}, "createdAt": "2030-01-01T00:00:00Z"});
    let pagination = json!({"page": 1, "pageSize": 200, "totalItems": 1, "totalPages": 1,
                            "hasNextPage": false});
    Json(json!({"items": [snapshot], "pagination": pagination}))
}

async fn create(State(shared): State<Shared>, Json(body): Json<Value>) -> Response {
    note(&shared, "create".to_owned());
    let image = body["image"]["uri"].clone();
    shared.seen.lock().unwrap().created.push(body);
    if image == "nowhere" {
        return refusal(
            StatusCode::INTERNAL_SERVER_ERROR,
            "DOCKER::SANDBOX_IMAGE_PULL_FAILED",
            "no image is called `nowhere`",
        );
    }
    (StatusCode::ACCEPTED, Json(sandbox(ID))).into_response()
}

async fn inspect(Path(id): Path<String>) -> Json<Value> {
    Json(sandbox(&id))
}

async fn delete(State(shared): State<Shared>, Path(id): Path<String>) -> Response {
    note(&shared, format!("delete {id}"));
    if id == ID {
        return StatusCode::NO_CONTENT.into_response();
    }
    refusal(
        StatusCode::NOT_FOUND,
        "DOCKER::SANDBOX_NOT_FOUND",
        "there is no such sandbox",
    )
}

async fn pause(
    State(shared): State<Shared>,
    Path(id): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
) -> StatusCode {
    note(&shared, format!("pause {id} {query:?}"));
    StatusCode::ACCEPTED
}

async fn resume(State(shared): State<Shared>, Path(id): Path<String>) -> Response {
    note(&shared, format!("resume {id}"));
    if id == ID {
        return StatusCode::ACCEPTED.into_response();
    }
    refusal(
        StatusCode::CONFLICT,
        "DOCKER::SANDBOX_NOT_PAUSED",
        "it is running; only a paused one can be resumed",
    )
}

async fn command(State(shared): State<Shared>, Json(body): Json<Value>) -> Response {
    note(&shared, "command".to_owned());
    shared.seen.lock().unwrap().commands.push(body);
    let frame = |event: &Value| Ok::<_, std::convert::Infallible>(format!("{event}\n\n"));
    let init = json!({"type": "init", "text": "c1", "timestamp": 1});
    let body = match &shared.script {
        Script::Says(events) => {
            let frames: Vec<_> = std::iter::once(&init).chain(events).map(frame).collect();
            Body::from_stream(stream::iter(frames))
        }
        Script::Hangs => Body::from_stream(stream::iter([frame(&init)]).chain(stream::pending())),
    };
    Response::new(body)
}

async fn interrupt(
    State(shared): State<Shared>,
    Query(query): Query<BTreeMap<String, String>>,
) -> StatusCode {
    note(&shared, format!("interrupt {}", query["id"]));
    StatusCode::OK
}

async fn open_terminal(State(shared): State<Shared>, Json(body): Json<Value>) -> Response {
    note(&shared, "open terminal".to_owned());
    shared.seen.lock().unwrap().terminals.push(body);
    (StatusCode::CREATED, Json(json!({"session_id": "t1"}))).into_response()
}

async fn close_terminal(State(shared): State<Shared>) -> StatusCode {
    note(&shared, "close terminal".to_owned());
    StatusCode::OK
}

async fn attach(State(shared): State<Shared>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(|socket| terminal(shared, socket))
}

/// A terminal that greets, repeats what is typed, and ends with 7 at a `q`.
async fn terminal(shared: Shared, mut socket: WebSocket) {
    let says = |notice: Value| Message::Text(notice.to_string().into());
    let connected = json!({"type": "connected", "session_id": "t1", "mode": "pty"});
    socket.send(says(connected)).await.unwrap();
    let greeting = b"\x01\xffhello\r\n".to_vec();
    socket.send(Message::Binary(greeting.into())).await.unwrap();
    while let Some(Ok(message)) = socket.recv().await {
        match message {
            Message::Binary(frame) => {
                assert_eq!(frame[0], 0);
                shared.seen.lock().unwrap().typed.extend(&frame[1..]);
                let back = [b"\x01", &frame[1..]].concat();
                socket.send(Message::Binary(back.into())).await.unwrap();
                if frame.contains(&b'q') {
                    socket
                        .send(says(json!({"type": "exit", "exit_code": 7})))
                        .await
                        .unwrap();
                }
            }
            Message::Text(text) => {
                let ask = serde_json::from_str(&text).unwrap();
                shared.seen.lock().unwrap().sizes.push(ask);
            }
            _ => {}
        }
    }
}

/// Keeps the whole multipart body: what is in it is the client's own test.
async fn upload(State(shared): State<Shared>, body: Bytes) -> StatusCode {
    note(&shared, "upload".to_owned());
    shared
        .seen
        .lock()
        .unwrap()
        .files
        .insert("uploaded".to_owned(), body.to_vec());
    StatusCode::OK
}

async fn download(
    State(shared): State<Shared>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let held = shared
        .seen
        .lock()
        .unwrap()
        .files
        .get(&query["path"])
        .cloned();
    match held {
        Some(content) => Response::new(Body::from(content)),
        None => refusal(
            StatusCode::NOT_FOUND,
            "FILE_NOT_FOUND",
            "there is no such file",
        ),
    }
}

/// What ends with a slash in the held files is a directory, and its content an archive.
async fn info(
    State(shared): State<Shared>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let path = &query["path"];
    let seen = shared.seen.lock().unwrap();
    let same = |it: &&String| it.trim_end_matches('/') == path.trim_end_matches('/');
    let kind = match seen.files.keys().find(same) {
        Some(key) if key.ends_with('/') => "directory",
        Some(_) => "file",
        None => return refusal(StatusCode::NOT_FOUND, "FILE_NOT_FOUND", "no such file"),
    };
    let moment = "2030-01-01T00:00:00Z";
    let info = json!({"path": path, "type": kind, "size": 1, "modified_at": moment,
                      "created_at": moment, "owner": "root", "group": "root", "mode": 755});
    Json(json!({path: info})).into_response()
}

async fn pack(
    State(shared): State<Shared>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let key = format!("{}/", query["path"].trim_end_matches('/'));
    let held = shared.seen.lock().unwrap().files[&key].clone();
    // In two pieces with something between them that breaks, if the archive says so.
    if held.ends_with(b"BREAK") {
        let pieces = [Ok(Bytes::from(held)), Err(std::io::Error::other("broken"))];
        return Response::new(Body::from_stream(stream::iter(pieces)));
    }
    Response::new(Body::from(held))
}

async fn unpack(
    State(shared): State<Shared>,
    Query(query): Query<BTreeMap<String, String>>,
    body: Bytes,
) -> Json<Value> {
    note(
        &shared,
        format!("unpack {} {}", query["path"], query["links"]),
    );
    let mut seen = shared.seen.lock().unwrap();
    seen.files.insert("unpacked".to_owned(), body.to_vec());
    Json(json!({"entries": 1, "bytes": 1, "skipped": 0, "skipped_names": []}))
}

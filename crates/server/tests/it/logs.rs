//! What is written to the log of requests: a line for each, and its id in every line.

use std::io::Write;
use std::sync::{Arc, Mutex};

use barchan_runtime::ErrorKind;
use barchan_wire::id::SandboxId;
use serde_json::{Value, json};
use tracing_subscriber::EnvFilter;

use crate::world::{Set, World, until};

/// All that was logged.
#[derive(Clone, Default)]
struct Book(Arc<Mutex<Vec<u8>>>);

impl Write for Book {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Book {
    /// One for the whole process.
    fn open() -> Self {
        static BOOK: std::sync::OnceLock<Book> = std::sync::OnceLock::new();
        let book = BOOK.get_or_init(|| {
            let book = Self::default();
            let writer = book.clone();
            tracing_subscriber::fmt()
                .json()
                .with_env_filter(EnvFilter::new("warn,barchan_server::access=info"))
                .with_writer(move || writer.clone())
                .init();
            book
        });
        book.clone()
    }

    /// Lines with this word in them, as JSON.
    fn lines(&self, word: &str) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().filter(|line| line.contains(word));
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// Requests of every kind; returns the id that one was given, and the sandbox that one made.
async fn ask(world: &World, id: &SandboxId) -> (String, String) {
    let create = world
        .call("POST", "/v1/sandboxes")
        .json(&crate::world::request(&json!({})));
    let made = create.header("x-request-id", "the-making-one").send().await;
    let made = made.json()["id"].as_str().unwrap().to_owned();
    world.fake.fail("create", ErrorKind::Internal, 1);
    let request = crate::world::request(&json!({}));
    let create = world.call("POST", "/v1/sandboxes").json(&request);
    assert_eq!(
        create
            .header("x-request-id", "the-failing-one")
            .send()
            .await
            .status,
        500
    );
    let show = world.call("GET", &format!("/v1/sandboxes/{id}?secret=hunter2"));
    show.header("x-request-id", "the-showing-one").send().await;
    let inside = world.inside(id, 8080, "GET", "/a/secret/path").await;
    inside.header("x-request-id", "the-inner-one").send().await;
    let nowhere = world
        .call("GET", "/no/where/a%0ab\"}")
        .header("x-request-id", "a lost one");
    let lost = nowhere.send().await.header("x-request-id").to_owned();
    world
        .bare("BREW", "/v1/sandboxes")
        .header("x-request-id", "the-brewing-one")
        .send()
        .await;
    (lost, made)
}

#[tokio::test]
async fn each_request_has_its_line_and_its_id_is_in_every_other() {
    let book = Book::open();
    let world = World::with(&Set::settings("[log]\naccess = \"info\"")).await;
    let id = world.sandbox().await;
    let (lost, made) = ask(&world, &id).await;
    until("the lines are written", async || {
        !book.lines("the-brewing-one").is_empty()
    })
    .await;

    let failing = book.lines("the-failing-one");
    let error = failing
        .iter()
        .find(|line| line["level"] == "ERROR")
        .unwrap();
    assert_eq!(error["span"]["request_id"], "the-failing-one", "{error}");
    for (request, method, route, status, sandbox) in [
        ("the-failing-one", "POST", "/v1/sandboxes", 500, ""),
        ("the-making-one", "POST", "/v1/sandboxes", 202, &made),
        (
            "the-showing-one",
            "GET",
            "/v1/sandboxes/{sandboxId}",
            200,
            id.as_str(),
        ),
        (
            "the-inner-one",
            "GET",
            "/sandboxes/{sandboxId}/proxy/{port}",
            200,
            id.as_str(),
        ),
        (lost.as_str(), "GET", "none", 404, ""),
        ("the-brewing-one", "_OTHER", "none", 401, ""),
    ] {
        let lines = book.lines(request);
        let line = lines
            .iter()
            .find(|line| line["target"] == "barchan_server::access");
        let fields = &line.unwrap_or_else(|| panic!("no line of {request}"))["fields"];
        let told = ["method", "route", "status", "sandbox"].map(|name| fields[name].clone());
        assert_eq!(
            told,
            [json!(method), json!(route), json!(status), json!(sandbox)],
            "{fields}"
        );
        assert!(fields["ms"].is_number());
    }
    for word in ["hunter2", "secret", "where", &world.key()] {
        assert!(book.lines(word).is_empty(), "{:?}", book.lines(word));
    }
}

#[tokio::test]
async fn who_goes_away_has_a_line_and_a_figure_too() {
    let book = Book::open();
    let world = World::with(&Set::settings("[log]\naccess = \"info\"")).await;
    world.fake.let_creates_through(false);
    let request = crate::world::request(&json!({}));
    let create = world.call("POST", "/v1/sandboxes").json(&request);
    let create = create.header("x-request-id", "the-impatient-one");
    let mut callers = tokio::task::JoinSet::new();
    callers.spawn(create.try_send());
    until("it waits", async || {
        let figures = world.call("GET", "/metrics").send().await;
        figures
            .text()
            .contains("barchan_sandboxes{state=\"Pending\"} 1\n")
    })
    .await;
    callers.shutdown().await;
    until("it is noticed", async || {
        !book.lines("the-impatient-one").is_empty()
    })
    .await;
    assert_eq!(book.lines("the-impatient-one")[0]["fields"]["status"], 499);
    let text = world.call("GET", "/metrics").send().await;
    let line = "barchan_requests_total{operation=\"create\",status=\"aborted\"} 1\n";
    assert!(text.text().contains(line), "{}", text.text());
    world.fake.let_creates_through(true);
    world.await_nothing_left().await;
}

#[tokio::test]
async fn a_server_that_is_told_so_writes_no_lines_of_requests() {
    let book = Book::open();
    for access in ["off", "debug"] {
        let settings = format!("[log]\naccess = \"{access}\"");
        let world = World::with(&Set::settings(Box::leak(settings.into_boxed_str()))).await;
        let call = world
            .call("GET", "/v1/sandboxes")
            .header("x-request-id", "the-silent-one");
        assert_eq!(call.send().await.status, 200);
    }
    assert!(book.lines("the-silent-one").is_empty());
}

//! Deletes that come before they are expected.

use std::net::TcpStream;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::raw::{Served, answer_of};

/// A delete that meets a create under way waits for it, and takes away what it made.
#[tokio::test(flavor = "multi_thread")]
async fn a_delete_during_the_create_leaves_nothing() {
    let served = Served::start().await;
    served.create();
    let launcher = served.launcher();
    for deletes in [1, 3] {
        let path = &format!("/v1/sandboxes/{}", only(&served));
        assert_eq!(served.delete(path).code(), "204");
        // Nobody makes a sandbox now, so the create cannot be over before the delete begins.
        let stopped = Stopped::new(launcher);
        let mut creating = served.begin_create(&json!({}));
        served.until("/v1/sandboxes", |all| {
            all["items"][0]["status"]["state"] == "Pending"
        });
        let path = format!("/v1/sandboxes/{}", only(&served));
        let begin = || served.begin("DELETE", &path, b"");
        let mut deleting: Vec<_> = (0..deletes).map(|_| begin()).collect();
        for _ in 0..10 {
            // Connections are taken in turn, so the deletes are waited for by now.
            let waits = served.get(&path).json();
            assert_eq!(waits["status"]["state"], "Pending", "{waits}");
        }
        drop(stopped);
        let code = |stream: &mut TcpStream| answer_of(stream, true).code();
        let mut codes: Vec<_> = deleting.iter_mut().map(code).collect();
        codes.sort();
        assert_eq!(codes[0], "204");
        let gone = |code: &String| code == "404 DOCKER::SANDBOX_NOT_FOUND";
        assert!(codes[1..].iter().all(gone), "{codes:?}");
        assert_eq!(code(&mut creating), "202");
        assert_eq!(served.get(&path).code(), "404 DOCKER::SANDBOX_NOT_FOUND");
        assert_eq!(served.get("/v1/sandboxes").json()["items"], json!([]));
        served.create();
    }
}

/// A process that stands still, until this is dropped.
struct Stopped(Pid);

impl Stopped {
    fn new(pid: Pid) -> Self {
        kill_process(pid, Signal::STOP).unwrap();
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// The id of the only sandbox there is.
fn only(served: &Served) -> String {
    let all = served.get("/v1/sandboxes").json();
    let items: &Vec<Value> = all["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{all}");
    items[0]["id"].as_str().unwrap().to_owned()
}

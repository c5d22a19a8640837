//! Isolated sessions. As the host's root, which can make namespaces as a sandbox's daemon can.

mod changes;
mod life;
mod walls;

use serde_json::{Value, json};

use crate::http::Answer;
use crate::world::{MODERN, Run, Stream, World};

impl World {
    /// Makes a session; its id.
    #[track_caller]
    fn isolate(&self, spec: &Value) -> String {
        let answer = self.post("/v1/isolated/session", spec);
        assert_eq!(answer.status, 201, "{spec}: {answer:?}");
        answer.json()["session_id"].as_str().unwrap().to_owned()
    }

    /// Makes a session that works in the scratch directory.
    fn isolate_in(&self, mode: &str) -> String {
        self.isolate(&json!({"workspace": {"path": self.at("d"), "mode": mode}}))
    }

    fn run_in(&self, id: &str, body: &Value) -> Run {
        let path = format!("/v1/isolated/session/{id}/run");
        let open = self.open("POST", &path, &[MODERN], Some(body.to_string().as_bytes()));
        assert_eq!(open.status, 200, "{body}");
        Stream::new(open).finish()
    }

    /// Runs a script in a session; what it printed, whole.
    fn sh_in(&self, id: &str, script: &str) -> String {
        let run = self.run_in(id, &json!({"code": script}));
        run.out() + &run.err()
    }

    fn about(&self, id: &str, rest: &str) -> Answer {
        self.get(&format!("/v1/isolated/session/{id}{rest}"))
    }

    fn end_of(&self, id: &str) -> Answer {
        self.delete(&format!("/v1/isolated/session/{id}"))
    }
}

/// Whether this user may make namespaces, as a sandbox's daemon may. Where not, every session is
/// refused, and the tests hold the daemon to that.
fn possible(world: &World) -> bool {
    if rustix::process::geteuid().is_root() {
        return true;
    }
    let spec = json!({"workspace": {"path": world.at("d")}});
    let refused = world.post("/v1/isolated/session", &spec).error();
    assert_eq!(refused, (503, "NOT_SUPPORTED".to_owned()));
    false
}

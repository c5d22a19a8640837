//! The calls that are measured.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::time::Duration;

use crate::http::{Answer, Body, Connection, Take};
use crate::server::wait_for;
use crate::ticker;

/// What the OpenSandbox clients send when their user names nothing but an image.
pub(crate) const LIMITS: [(&str, &str); 2] = [("cpu", "1"), ("memory", "2Gi")];
pub(crate) const ENTRYPOINT: [&str; 3] = ["tail", "-f", "/dev/null"];
/// The port of a sandbox's daemon.
const DAEMON_PORT: u16 = 44772;
/// The file that is moved in and out.
const FILE: &str = "/workspace/large";
const BOUNDARY: &str = "a-boundary-that-no-file-holds";
/// What the file is made of, in bytes.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;

/// A way to have a command run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// A script, for the shell that the image has, as all OpenSandbox clients send it.
    Script,
    /// The program `sh` with its arguments.
    Sh,
}

impl Order {
    fn body(self) -> String {
        match self {
            Self::Script => json!({"command": "echo hi"}),
            Self::Sh => json!({"argv": ["sh", "-c", "echo hi"]}),
        }
        .to_string()
    }
}

/// The body of a create.
pub(crate) fn order(image: &str) -> String {
    json!({
        "image": {"uri": image},
        "timeout": 600,
        "resourceLimits": LIMITS.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
        "entrypoint": ENTRYPOINT,
        "secureAccess": false,
    })
    .to_string()
}

/// The name of the pool.
const POOL: &str = "bench";

/// The body of a create that takes a sandbox of the pool.
pub(crate) fn pool_order() -> String {
    json!({
        "timeout": 600,
        "extensions": {"poolRef": POOL},
        "image": {"uri": "any"},
        "entrypoint": ENTRYPOINT,
        "resourceLimits": {},
    })
    .to_string()
}

/// Makes the pool, with so many sandboxes ready, and waits until they are.
pub(crate) fn create_pool(connection: &mut Connection, image: &str, ready: usize) -> Result<()> {
    let limits: std::collections::BTreeMap<_, _> = LIMITS.into_iter().collect();
    let container = json!({
        "image": image,
        "command": ENTRYPOINT,
        "resources": {"limits": limits},
    });
    let capacity = json!({
        "bufferMin": ready, "bufferMax": ready, "poolMin": 0, "poolMax": 2 * ready,
    });
    let body = json!({
        "name": POOL,
        "template": {"spec": {"containers": [container]}},
        "capacitySpec": capacity,
    })
    .to_string();
    let answer = connection.call("POST", "/v1/pools", &Body::Json(&body), Take::Keep)?;
    expect(answer, 201)?;
    let mut found = Value::Null;
    let is_filled = wait_for(|| {
        let path = format!("/v1/pools/{POOL}");
        let answer = connection.call("GET", &path, &Body::Nothing, Take::Keep);
        let body = answer.map(|answer| answer.body).unwrap_or_default();
        found = serde_json::from_slice(&body).unwrap_or_default();
        found["status"]["available"].as_u64() == Some(ready as u64)
    });
    if !is_filled {
        bail!("the pool is not filled: {found}");
    }
    Ok(())
}

/// Deletes the pool.
pub(crate) fn delete_pool(connection: &mut Connection) -> Result<()> {
    let path = format!("/v1/pools/{POOL}");
    let answer = connection.call("DELETE", &path, &Body::Nothing, Take::Keep)?;
    expect(answer, 204).map(drop)
}

/// Lists one page of so many sandboxes, which must be full.
pub(crate) fn list(connection: &mut Connection, size: usize) -> Result<()> {
    let path = format!("/v1/sandboxes?pageSize={size}");
    let answer = connection.call("GET", &path, &Body::Nothing, Take::Keep)?;
    let page: Value = serde_json::from_slice(&expect(answer, 200)?.body)?;
    match page["items"].as_array().map(Vec::len) {
        Some(count) if count == size => Ok(()),
        other => bail!("a page of {other:?} sandboxes instead of {size}"),
    }
}

/// Makes a sandbox; its id.
pub(crate) fn create(connection: &mut Connection, order: &str) -> Result<String> {
    let body = Body::Json(order);
    let answer = connection.call("POST", "/v1/sandboxes", &body, Take::Keep)?;
    let answer: Value = serde_json::from_slice(&expect(answer, 202)?.body)?;
    let id = answer.get("id").and_then(Value::as_str);
    Ok(id.context("the answer names no id")?.to_owned())
}

/// Runs `echo hi` to the last byte of its answer; the moment of its first output.
pub(crate) fn command(connection: &mut Connection, id: &str, order: Order) -> Result<Duration> {
    let path = daemon(id, "command");
    let body = order.body();
    let answer = connection.call("POST", &path, &Body::Json(&body), Take::Keep)?;
    let answer = expect(answer, 200)?;
    let text = String::from_utf8_lossy(&answer.body);
    if !text.contains("execution_complete") {
        bail!("the command did not end well: {text}");
    }
    answer
        .first_output
        .with_context(|| format!("no output: {text}"))
}

/// Has a command print so many mebibytes, and takes all of it as bytes.
pub(crate) fn output(connection: &mut Connection, id: &str, mebibytes: u64) -> Result<()> {
    let bytes = mebibytes * BLOCK_BYTES as u64;
    let body = json!({"argv": ["head", "-c", bytes.to_string(), "/dev/zero"]}).to_string();
    let path = daemon(id, "x/exec");
    let answer = connection.call("POST", &path, &Body::Json(&body), Take::Count)?;
    let got = answer.body_bytes;
    expect(answer, 200)?;
    if got < bytes {
        bail!("{got} bytes of output came of {bytes}");
    }
    Ok(())
}

/// Asks the daemon for a sign of life: the way there and back without a command.
pub(crate) fn ping(connection: &mut Connection, id: &str) -> Result<()> {
    let path = daemon(id, "ping");
    let answer = connection.call("GET", &path, &Body::Nothing, Take::Keep)?;
    expect(answer, 200).map(drop)
}

/// Runs `1+1` in the default context of a language, to the last byte of its answer.
pub(crate) fn cell(connection: &mut Connection, id: &str, language: &str) -> Result<()> {
    let path = daemon(id, "code");
    let body = json!({"code": "1+1", "context": {"language": language}}).to_string();
    let answer = connection.call("POST", &path, &Body::Json(&body), Take::Keep)?;
    let answer = expect(answer, 200)?;
    let text = String::from_utf8_lossy(&answer.body);
    if !text.contains("\"text\":\"2\"") || !text.contains("execution_complete") {
        bail!("the cell did not end well: {text}");
    }
    Ok(())
}

/// Ends all contexts of a language.
pub(crate) fn forget_cells(connection: &mut Connection, id: &str, language: &str) -> Result<()> {
    let path = daemon(id, &format!("code/contexts?language={language}"));
    let answer = connection.call("DELETE", &path, &Body::Nothing, Take::Keep)?;
    expect(answer, 200).map(drop)
}

/// Makes the tree that searches go through, and the files of the other tools.
pub(crate) fn make_tree(connection: &mut Connection, id: &str) -> Result<()> {
    let script = r#"mkdir -p /tree && cd /tree && seq -f d%03g 0 199 | xargs mkdir &&
        awk 'BEGIN { for (f = 0; f < 20000; f++) { path = sprintf("d%03d/f%05d.txt", f % 200, f);
        for (l = 0; l < 60; l++)
        print "line " l " of file " f ": what a program might say here." > path;
        if (f % 100 == 0) print "here is the needle of file " f > path; close(path) } }' &&
        head -c 10240 d000/f00000.txt d000/f00200.txt d000/f00400.txt d000/f00600.txt |
        head -c 10240 > /ten && echo hi"#;
    run(connection, id, &json!({"command": script}))
}

/// Has ripgrep search the tree, as a command.
pub(crate) fn ripgrep(connection: &mut Connection, id: &str) -> Result<()> {
    let argv = [
        "rg",
        "--no-config",
        "-HnF",
        "--hidden",
        "--no-ignore",
        "needle",
        "/tree",
    ];
    run(connection, id, &json!({"argv": argv}))
}

fn run(connection: &mut Connection, id: &str, body: &Value) -> Result<()> {
    let path = daemon(id, "command");
    let body = body.to_string();
    let answer = connection.call("POST", &path, &Body::Json(&body), Take::Keep)?;
    let answer = expect(answer, 200)?;
    let text = String::from_utf8_lossy(&answer.body);
    if !text.contains("execution_complete") {
        bail!("the command did not end well: {text}");
    }
    Ok(())
}

/// Calls a file tool.
pub(crate) fn tool(connection: &mut Connection, id: &str, tool: &str) -> Result<()> {
    let (body, wanted) = match tool {
        "read" => (json!({"path": "/ten"}), "start_line"),
        "ls" => (json!({"path": "/tree/d000"}), "f00000.txt"),
        "edit" => {
            let edit =
                json!({"path": "/ten", "old": "line 7 of file 0:", "new": "line 7 of file 0:"});
            (edit, "occurrences")
        }
        "grep" => (
            json!({"path": "/tree", "pattern": "needle"}),
            "needle of file 19900",
        ),
        _ => (
            json!({"path": "/tree", "pattern": "**/*00.txt"}),
            "f19900.txt",
        ),
    };
    let path = daemon(id, &format!("x/fs/{tool}"));
    let body = body.to_string();
    let answer = connection.call("POST", &path, &Body::Json(&body), Take::Keep)?;
    let answer = expect(answer, 200)?;
    let text = String::from_utf8_lossy(&answer.body);
    if !text.contains(wanted) {
        bail!("an answer without {wanted:?}");
    }
    Ok(())
}

/// Deletes a sandbox.
pub(crate) fn delete(connection: &mut Connection, id: &str) -> Result<()> {
    let path = format!("/v1/sandboxes/{id}");
    let answer = connection.call("DELETE", &path, &Body::Nothing, Take::Keep)?;
    expect(answer, 204).map(drop)
}

/// Sends a file of so many mebibytes in.
pub(crate) fn upload(connection: &mut Connection, id: &str, mebibytes: u64) -> Result<()> {
    let part = |name: &str, kind: &str| {
        format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"; \
             filename=\"{name}\"\r\nContent-Type: {kind}\r\n\r\n"
        )
    };
    let metadata = json!({"path": FILE, "mode": 644});
    let head = format!(
        "{}{metadata}\r\n{}",
        part("metadata", "application/json"),
        part("file", "application/octet-stream")
    );
    let tail = format!("\r\n--{BOUNDARY}--\r\n");
    let body = Body::Repeated {
        kind: &format!("multipart/form-data; boundary={BOUNDARY}"),
        head: head.as_bytes(),
        block: &block(),
        times: mebibytes,
        tail: tail.as_bytes(),
    };
    let path = daemon(id, "files/upload");
    expect(connection.call("POST", &path, &body, Take::Keep)?, 200).map(drop)
}

/// Fetches the file.
pub(crate) fn download(connection: &mut Connection, id: &str, mebibytes: u64) -> Result<()> {
    let path = daemon(id, &format!("files/download?path={FILE}"));
    let answer = connection.call("GET", &path, &Body::Nothing, Take::Count)?;
    let (got, sent) = (answer.body_bytes, mebibytes * BLOCK_BYTES as u64);
    expect(answer, 200)?;
    if got != sent {
        bail!("{got} bytes came back of {sent}");
    }
    Ok(())
}

/// Removes the file.
pub(crate) fn remove(connection: &mut Connection, id: &str) -> Result<()> {
    let path = daemon(id, &format!("files?path={FILE}"));
    let answer = connection.call("DELETE", &path, &Body::Nothing, Take::Keep)?;
    expect(answer, 200).map(drop)
}

/// From the request for a sandbox to the output of its first command, in milliseconds: of the
/// request alone, and of both. The sandbox is deleted again.
pub(crate) fn create_and_use(
    connection: &mut Connection,
    order: &str,
) -> (Result<f64, String>, Result<f64, String>) {
    let start = ticker::now();
    let id = match create(connection, order) {
        Ok(id) => id,
        Err(error) => return (Err(format!("{error:#}")), Err(format!("{error:#}"))),
    };
    let created = ticker::ms_since(start);
    let used = command(connection, &id, Order::Script);
    let used = used.map(|moment| moment.saturating_sub(start).as_secs_f64() * 1e3);
    let gone = delete(connection, &id);
    let whole = used.and_then(|ms| gone.map(|()| ms));
    (Ok(created), whole.map_err(|error| format!("{error:#}")))
}

pub(crate) fn daemon(id: &str, path: &str) -> String {
    format!("/v1/sandboxes/{id}/proxy/{DAEMON_PORT}/{path}")
}

/// An answer of this status.
pub(crate) fn expect(answer: Answer, status: u16) -> Result<Answer> {
    if answer.status == status {
        return Ok(answer);
    }
    let text = String::from_utf8_lossy(&answer.body);
    bail!("status {} instead of {status}: {text}", answer.status)
}

/// Bytes that no hop can make smaller and no file system can leave out.
pub(crate) fn block() -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let words = (0..BLOCK_BYTES / 8).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.collect()
}

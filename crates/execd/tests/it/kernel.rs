//! A kernel whose part the test plays: the daemon starts a process that does nothing, and the test
//! listens where the daemon told that process to.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::world::{World, until};

/// Longest wait for anything that the daemon does.
const PATIENCE: Duration = Duration::from_secs(20);
const GREETING: &[u8] = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL";

/// A kernel that the daemon talks to.
pub(crate) struct Kernel {
    shell: TcpStream,
    iopub: TcpStream,
    control: TcpListener,
    key: String,
    /// Header of the request that is being served.
    parent: Value,
}

/// Offers a kernel for the language `fake` whose process sleeps this long.
pub(crate) fn offer(world: &World, sleep: &str) {
    let folder = world.d("jupyter/kernels/fake");
    std::fs::create_dir_all(&folder).unwrap();
    let script = "cp \"$1\" \"$2.new\" && mv \"$2.new\" \"$2\"; exec sleep \"$3\"";
    let argv = json!([
        "sh",
        "-c",
        script,
        "sh",
        "{connection_file}",
        told(world),
        sleep
    ]);
    let spec = json!({"argv": argv, "language": "fake", "interrupt_mode": "message"});
    std::fs::write(folder.join("kernel.json"), spec.to_string()).unwrap();
    let jupyter = world.d("jupyter");
    let settings = format!(
        "JUPYTER_PATH={}\nJUPYTER_RUNTIME_DIR={}\n",
        jupyter.display(),
        jupyter.display()
    );
    std::fs::write(world.at("settings"), settings).unwrap();
}

fn told(world: &World) -> PathBuf {
    world.d("connection")
}

impl Kernel {
    /// Waits until the daemon has started the process, and answers until it is content.
    pub(crate) fn meet(world: &World) -> Self {
        let file = told(world);
        until("a kernel is started", || file.exists());
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let connection: Value = serde_json::from_str(&text).unwrap();
        let bind = |name: &str| {
            let port = connection[name].as_u64().unwrap() as u16;
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap()
        };
        // The one that the daemon tries first comes last.
        let (control, iopub, shell) =
            (bind("control_port"), bind("iopub_port"), bind("shell_port"));
        let shell = greet(&shell, "ROUTER");
        let mut iopub = greet(&iopub, "PUB");
        let mut subscription = [0; 3];
        iopub.read_exact(&mut subscription).unwrap();
        assert_eq!(subscription, [0, 1, 1], "to everything");
        let mut kernel = Self {
            shell,
            iopub,
            control,
            key: connection["key"].as_str().unwrap().to_owned(),
            parent: Value::Null,
        };
        assert_eq!(kernel.request()["msg_type"], "kernel_info_request");
        kernel.idle();
        kernel.reply(&json!({"status": "ok"}));
        kernel
    }

    /// Waits for the next request, to which all that follows belongs; its header.
    pub(crate) fn request(&mut self) -> Value {
        let frames = read_message(&mut self.shell);
        self.parent = serde_json::from_slice(&frames[2]).unwrap();
        self.parent.clone()
    }

    /// Waits for the next cell; its code.
    pub(crate) fn cell(&mut self) -> String {
        let frames = read_message(&mut self.shell);
        self.parent = serde_json::from_slice(&frames[2]).unwrap();
        assert_eq!(self.parent["msg_type"], "execute_request");
        let content: Value = serde_json::from_slice(&frames[5]).unwrap();
        assert_eq!(content["allow_stdin"], false);
        content["code"].as_str().unwrap().to_owned()
    }

    /// Publishes a message about the request.
    pub(crate) fn publish(&mut self, kind: &str, content: &Value) {
        let message = self.message(kind, &self.parent, content, &self.key);
        self.raw(&message);
    }

    /// Writes bytes where messages are published. The daemon may hang up on some.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        let _ = self.iopub.write_all(bytes);
    }

    /// Printed text.
    pub(crate) fn print(&mut self, text: &str) {
        self.publish("stream", &json!({"name": "stdout", "text": text}));
    }

    /// Has done with the request.
    pub(crate) fn idle(&mut self) {
        self.publish("status", &json!({"execution_state": "idle"}));
    }

    /// Answers the request.
    pub(crate) fn reply(&mut self, content: &Value) {
        let message = self.message("execute_reply", &self.parent, content, &self.key);
        self.shell.write_all(&message).unwrap();
    }

    /// Ends a cell as kernels do.
    pub(crate) fn finish(&mut self) {
        self.reply(&json!({"status": "ok"}));
        self.idle();
    }

    /// Waits for an interrupt.
    pub(crate) fn interrupted(&self) {
        let mut control = greet(&self.control, "ROUTER");
        let frames = read_message(&mut control);
        let header: Value = serde_json::from_slice(&frames[2]).unwrap();
        assert_eq!(header["msg_type"], "interrupt_request");
        let message = self.message("interrupt_reply", &header, &json!({}), &self.key);
        control.write_all(&message).unwrap();
    }

    /// The bytes of a message, signed with a key.
    pub(crate) fn message(
        &self,
        kind: &str,
        parent: &Value,
        content: &Value,
        key: &str,
    ) -> Vec<u8> {
        let header = json!({"msg_type": kind, "msg_id": "k"});
        let parts = [&header, parent, &json!({}), content].map(Value::to_string);
        let mut mac: Hmac<Sha256> = Hmac::new_from_slice(key.as_bytes()).unwrap();
        parts.iter().for_each(|part| mac.update(part.as_bytes()));
        let signature = hex::encode(mac.finalize().into_bytes());
        let head = ["topic", "<IDS|MSG>", &signature].map(str::to_owned);
        frames(&[&head[..], &parts[..]].concat())
    }

    /// The request that is being served.
    pub(crate) fn parent(&self) -> &Value {
        &self.parent
    }

    /// The key that the daemon gave.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }
}

/// Frames on the wire, all in the long form.
pub(crate) fn frames(texts: &[String]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, text) in texts.iter().enumerate() {
        bytes.push(2 | u8::from(at + 1 < texts.len()));
        bytes.extend((text.len() as u64).to_be_bytes());
        bytes.extend(text.as_bytes());
    }
    bytes
}

/// Takes a connection and shakes hands.
fn greet(listener: &TcpListener, socket: &str) -> TcpStream {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let mut greeting = [0; 64];
    greeting[..GREETING.len()].copy_from_slice(GREETING);
    stream.write_all(&greeting).unwrap();
    stream.read_exact(&mut greeting).unwrap();
    assert_eq!(greeting[..GREETING.len()], *GREETING);
    let (flags, ready) = read_frame(&mut stream);
    assert!(flags & 4 != 0 && ready.starts_with(b"\x05READY\x0bSocket-Type"));
    let mut body = b"\x05READY\x0bSocket-Type".to_vec();
    body.extend((socket.len() as u32).to_be_bytes());
    body.extend(socket.as_bytes());
    stream
        .write_all(&[&[4, body.len() as u8], body.as_slice()].concat())
        .unwrap();
    stream
}

fn read_message(stream: &mut TcpStream) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    loop {
        let (flags, frame) = read_frame(stream);
        frames.push(frame);
        if flags & 1 == 0 {
            return frames;
        }
    }
}

fn read_frame(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut flags = [0];
    stream.read_exact(&mut flags).unwrap();
    let length = if flags[0] & 2 == 0 {
        let mut length = [0];
        stream.read_exact(&mut length).unwrap();
        u64::from(length[0])
    } else {
        let mut length = [0; 8];
        stream.read_exact(&mut length).unwrap();
        u64::from_be_bytes(length)
    };
    let mut frame = vec![0; length as usize];
    stream.read_exact(&mut frame).unwrap();
    (flags[0], frame)
}

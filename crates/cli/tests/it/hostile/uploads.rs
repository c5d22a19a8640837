//! Uploads that are broken or aim at what they should not reach.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use serde_json::{Value, json};

use super::raw::Served;

const TYPE: &str = "multipart/form-data; boundary=X";

fn part(name: &str, content: &str) -> String {
    let disposition = format!("form-data; name=\"{name}\"; filename=\"f\"");
    format!("--X\r\nContent-Disposition: {disposition}\r\n\r\n{content}\r\n")
}

/// One file for a place.
fn pair(path: &str, content: &str) -> String {
    part("metadata", &json!({ "path": path }).to_string()) + &part("file", content)
}

/// A sandbox to send files to.
struct Place {
    served: Served,
    inside: String,
}

impl Place {
    async fn new() -> Self {
        let served = Served::start().await;
        let inside = format!("/v1/sandboxes/{}/proxy/44772", served.create());
        Self { served, inside }
    }

    fn head(&self, content_type: &str, framing: &str) -> String {
        format!(
            "POST {}/files/upload HTTP/1.1\r\nHost: localhost\r\n{}Content-Type: {content_type}\r\n\
             {framing}\r\n\r\n",
            self.inside,
            self.served.key_line()
        )
    }

    fn upload(&self, content_type: &str, body: &str) -> String {
        let head = self.head(content_type, &format!("Content-Length: {}", body.len()));
        self.served.raw((head + body).as_bytes()).code()
    }

    /// Sends a head and some of the body.
    fn begin(&self, framing: &str, body: &str) -> TcpStream {
        let mut stream = self.served.connect();
        stream
            .write_all(self.head(TYPE, framing).as_bytes())
            .unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        stream
    }

    /// The lines that a command prints.
    fn run(&self, command: &str) -> String {
        let body = json!({ "command": command }).to_string();
        let answer = self
            .served
            .post(&format!("{}/command", self.inside), body.as_bytes());
        assert_eq!(answer.code(), "200");
        let text = answer.text();
        let events = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let is_said = |event: &Value| event["type"] == "stdout" || event["type"] == "stderr";
        let said = events
            .filter(is_said)
            .map(|event| event["text"].as_str().unwrap().to_owned());
        said.collect::<Vec<_>>().join(" ")
    }
}

/// What lies beside a file that is sent, and how much.
const LIST: &str = "ls -A /workspace/d";
const COUNT: &str = "ls -A /workspace/d | wc -l";
const FILE: &str = "/workspace/d/file";
const END: &str = "--X--\r\n";

/// A file is replaced by a whole one or not at all, and nothing is left beside it.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_upload_leaves_the_old_file_alone() {
    let place = Place::new().await;
    assert_eq!(place.upload(TYPE, &(pair(FILE, "old") + END)), "200");
    let new = pair(FILE, "new");
    let whole = new.clone() + END;
    let large = pair(FILE, &"new".repeat(500_000));
    let half_end = format!("{new}--X");
    let two_files = new.clone() + &part("file", "x") + END;
    let two_places = part("metadata", "{\"path\":\"/x\"}") + &whole;
    let two_paths = part("metadata", "{\"path\":\"/a\",\"path\":\"/b\"}") + END;
    let folder = new.clone() + &pair("/workspace/d", "x") + END;
    let (form, json) = ("multipart/form-data", "application/json");
    let (empty, other) = (
        &format!("{form}; boundary="),
        &format!("{form}; boundary=Y"),
    );
    let content = "400 INVALID_FILE_CONTENT";
    for (what, content_type, body, expected) in [
        ("no end", TYPE, &new, content),
        ("no end, large", TYPE, &large, content),
        ("half an end", TYPE, &half_end, content),
        ("no boundary", form, &whole, content),
        ("an empty boundary", empty, &whole, content),
        ("another boundary", other, &whole, content),
        ("another type", json, &whole, content),
        ("a file too many", TYPE, &two_files, "400 INVALID_FILE"),
        ("a place too many", TYPE, &two_places, "400 INVALID_FILE"),
        ("two paths", TYPE, &two_paths, "400 INVALID_FILE_METADATA"),
        ("a folder's path", TYPE, &folder, "400 INVALID_FILE"),
    ] {
        assert_eq!(place.upload(content_type, body), expected, "{what}");
        assert_eq!(place.run(LIST), "file", "{what}");
    }
    assert_eq!(place.run(&format!("cat {FILE}; ls /tmp")), "old");
    let twice = new + &pair(FILE, "last") + END;
    assert_eq!(place.upload(TYPE, &twice), "200");
    assert_eq!(place.run(&format!("cat {FILE}; echo; {LIST}")), "last file");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_breaks_off_leaves_the_old_file_alone() {
    let place = Place::new().await;
    assert_eq!(place.upload(TYPE, &(pair(FILE, "old") + END)), "200");
    let large = pair(FILE, &"new".repeat(500_000));
    let (long, chunked) = ("Content-Length: 9000000", "Transfer-Encoding: chunked");
    let chunk = format!("{:x}\r\n{large}\r\n", large.len());
    for (what, framing, body, rest, shut) in [
        ("cut off", long, &large, "", Shutdown::Both),
        ("no more to come", long, &large, "", Shutdown::Write),
        (
            "cut off behind a chunk",
            chunked,
            &chunk,
            "",
            Shutdown::Both,
        ),
        (
            "cut off in a chunk",
            chunked,
            &chunk,
            "9\r\nx",
            Shutdown::Write,
        ),
        ("no chunk", chunked, &chunk, "zz\r\n", Shutdown::Write),
    ] {
        let mut stream = place.begin(framing, body);
        place.served.wait(what, || place.run(COUNT) == "2");
        stream.write_all(rest.as_bytes()).unwrap();
        stream.shutdown(shut).unwrap();
        place.served.wait(what, || place.run(LIST) == "file");
    }
    assert_eq!(place.run(&format!("cat {FILE}; ls /tmp")), "old");
    // Who ends their side counts as gone, even behind a whole request: it is done or not.
    let whole = large + END;
    let framing = format!("Content-Length: {}", whole.len());
    for _ in 0..5 {
        let mut stream = place.begin(&framing, &whole);
        stream.shutdown(Shutdown::Write).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
        place.served.wait("one file", || place.run(LIST) == "file");
        let size = place.run(&format!("stat -c %s {FILE}"));
        assert!(["3", "1500000"].contains(&size.as_str()), "{size}");
    }
}

/// Whatever a path says, and whatever link lies on its way, the host's files are not there.
#[tokio::test(flavor = "multi_thread")]
async fn no_path_of_an_upload_leads_out_of_the_sandbox() {
    let place = Place::new().await;
    let outside = place.served.state().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "kept").unwrap();
    let there = outside.display();
    let links = "ln -s / /tmp/r; ln -s /proc/1/root /tmp/p; ln -s o /tmp/o; mkfifo /tmp/f";
    assert_eq!(place.run(links), "");
    for (path, expected) in [
        (format!("{there}/kept"), "200"),
        (format!("../../../../../..{there}/kept"), "200"),
        (format!("/tmp/r{there}/kept"), "200"),
        (format!("/tmp/r/../../..{there}/new"), "200"),
        (format!("/tmp/p{there}/new"), "200"),
        ("/tmp/o".to_owned(), "400 INVALID_FILE"),
        ("/tmp/f".to_owned(), "400 INVALID_FILE"),
        ("/tmp".to_owned(), "400 INVALID_FILE"),
        ("/usr/bin/true".to_owned(), "403 INVALID_FILE"),
        ("/proc/sys/kernel/hostname".to_owned(), "403 INVALID_FILE"),
        ("/a\0b".to_owned(), "400 INVALID_FILE"),
        (format!("/{}", "a".repeat(5_000)), "400 INVALID_FILE"),
        (format!("/tmp{}", "/a".repeat(2_500)), "400 INVALID_FILE"),
        (String::new(), "400 INVALID_FILE"),
    ] {
        let code = place.upload(TYPE, &(pair(&path, "changed") + END));
        let shown: String = path.chars().take(80).collect();
        assert_eq!(code, expected, "{shown}");
    }
    assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(place.run("ls /tmp"), "f o p r");
}

//! Uploads as clients send them, and places to send them to.

use serde_json::{Value, json};

use crate::http::Answer;
use crate::world::World;

pub(crate) const TYPE: &str =
    "multipart/form-data; boundary=opensandbox_0123456789abcdef_1790000000";
pub(crate) const BOUNDARY: &str = "opensandbox_0123456789abcdef_1790000000";

pub(crate) fn part(name: &str, file_name: &str, content: &[u8]) -> Vec<u8> {
    let head = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{file_name}\"\
         \r\nContent-Type: application/octet-stream\r\n\r\n"
    );
    [head.as_bytes(), content, b"\r\n"].concat()
}

pub(crate) fn body(files: &[(Value, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (metadata, content) in files {
        body.extend(part(
            "metadata",
            "metadata",
            metadata.to_string().as_bytes(),
        ));
        body.extend(part("file", "../lossy\\\"copy", content));
    }
    body.extend(format!("--{BOUNDARY}--\r\n").bytes());
    body
}

pub(crate) fn upload_raw(world: &World, body: &[u8]) -> Answer {
    world
        .open(
            "POST",
            "/files/upload",
            &[("Content-Type", TYPE)],
            Some(body),
        )
        .finish()
}

pub(crate) fn upload(world: &World, name: &str, content: &[u8]) -> Answer {
    let metadata = json!({"path": world.d(name), "owner": null, "group": null, "mode": 755});
    upload_raw(world, &body(&[(metadata, content)]))
}

pub(crate) fn download(world: &World, name: &str) -> Answer {
    world.get(&world.query("/files/download", name))
}

pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// A file system of 100 KiB.
pub(crate) struct Mounted(std::path::PathBuf);

impl Mounted {
    pub(crate) fn new(path: &std::path::Path) -> Self {
        use rustix::mount::{MountFlags, mount};
        std::fs::create_dir(path).unwrap();
        mount("small", path, "tmpfs", MountFlags::empty(), c"size=100k").expect("root, to mount");
        Self(path.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH).unwrap();
    }
}

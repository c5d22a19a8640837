use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Write};

use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};
use tar::{EntryType, Header};

use super::*;
use crate::image::{Manifest, Saved};

fn saved() -> Saved {
    Saved {
        stack: vec!["0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f".parse().unwrap()],
        image: Manifest {
            name: "image".to_owned(),
            digest: "sha256:00".to_owned(),
            base: None,
            on_host: false,
            layers: Vec::new(),
            env: BTreeMap::from([("A".to_owned(), "image".to_owned())]),
            path: vec!["/opt/venv/bin".to_owned()],
            entrypoint: Vec::new(),
            created_unix_s: 0,
            recipe_digest: String::new(),
            pinned: true,
            bytes: 0,
        },
        entrypoint: vec!["sleep".to_owned(), "1".to_owned()],
        env: BTreeMap::from([("B".to_owned(), "a=b\nc".to_owned())]),
        cwd: "/work".to_owned(),
        user: "1000:100".to_owned(),
        bytes: 7,
    }
}

fn packed(content: &[u8]) -> Packed {
    Packed {
        digest: hex::encode(Sha256::digest(content)),
        size: content.len() as u64,
    }
}

/// An image of these layers, as it is written.
fn written(saved: &Saved, layers: &[&[u8]], without_host: bool) -> (Layout, Vec<u8>) {
    let described = Described {
        saved,
        created: "2001-02-03T04:05:06Z",
        without_host,
    };
    let known = layers.iter().map(|it| packed(it)).collect();
    let layout = Layout::new(&described, known, "tag").unwrap();
    let mut bytes = Vec::new();
    let write = |at: usize, out: &mut Vec<u8>| out.write_all(layers[at]);
    layout.write(&mut bytes, write).unwrap();
    (layout, bytes)
}

/// A whole image.
pub(super) fn image() -> Vec<u8> {
    written(&saved(), &[b"one", b"two"], false).1
}

fn opened(bytes: &[u8]) -> Result<Archive, OciError> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Archive::open(file)
}

fn unpacked(archive: &Archive, layer: &Layer, mut left: u64) -> Result<Vec<u8>, OciError> {
    let mut all = Vec::new();
    archive.unpack(layer, &mut left, |piece| {
        all.extend_from_slice(piece);
        Ok::<_, OciError>(())
    })?;
    Ok(all)
}

#[test]
fn what_is_written_is_read_again() {
    let layers: [&[u8]; 3] = [b"one", &[7; 1000], b"one"];
    let (layout, bytes) = written(&saved(), &layers, true);
    assert_eq!(layout.bytes(), bytes.len() as u64);
    assert!(
        bytes == written(&saved(), &layers, true).1,
        "the same bytes"
    );
    let archive = opened(&bytes).unwrap();
    let (image, found) = archive.image().unwrap();
    assert_eq!(image.digest, layout.digest);
    assert!(image.on_host);
    for (layer, content) in found.iter().zip(layers) {
        assert_eq!(unpacked(&archive, layer, 1000).unwrap(), content);
        let error = unpacked(&archive, layer, 2).unwrap_err();
        assert!(matches!(error, OciError::TooLarge(_)), "{error}");
    }
    let id = "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e50".parse().unwrap();
    let again = image.saved(&id, 9);
    assert_eq!((again.stack, again.bytes), (vec![id], 9));
    assert_eq!((again.cwd, again.user), (saved().cwd, saved().user));
    assert_eq!(again.entrypoint, saved().entrypoint);
    let env: Vec<_> = again
        .env
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    let path = format!("/opt/venv/bin:{}", crate::image::PATH_DEFAULT);
    let expected = [("A", "image"), ("B", "a=b\nc"), ("PATH", path.as_str())];
    assert_eq!(env, expected);
}

#[test]
fn what_follows_a_layers_end_counts_and_is_verified() {
    let content = [b"content".as_slice(), &[0; 100_000]].concat();
    let (_, bytes) = written(&saved(), &[&content], false);
    let archive = opened(&bytes).unwrap();
    let (_, layers) = archive.image().unwrap();
    assert!(unpacked(&archive, &layers[0], 100_006).is_err());
    assert!(unpacked(&archive, &layers[0], 100_007).is_ok());
    let other = Layer {
        compression: blob::Compression::Gzip,
        digest: layers[0].digest.clone(),
        unpacked: layers[0].unpacked.clone(),
    };
    let error = unpacked(&archive, &other, 1 << 20).unwrap_err();
    assert!(error.to_string().contains("gzip"), "{error}");
    // Behind the end of what is compressed something is added.
    let mut zipped = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zipped.write_all(b"content").unwrap();
    let zipped = [zipped.finish().unwrap(), b"more".to_vec()].concat();
    let (_, bytes) = written(&saved(), &[&zipped], false);
    let archive = opened(&bytes).unwrap();
    let (_, layers) = archive.image().unwrap();
    let layer = Layer {
        compression: blob::Compression::Gzip,
        ..layers[0].clone()
    };
    assert!(unpacked(&archive, &layer, 1 << 20).is_err());
}

/// One entry as bytes.
fn entry(kind: EntryType, name: &str, content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_ustar();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_cksum();
    let filling = content.len().next_multiple_of(512) - content.len();
    [header.as_bytes(), content, &vec![0; filling]].concat()
}

#[test]
fn hostile_archives_are_refused() {
    let file = |name: &str| entry(EntryType::Regular, name, b"{}");
    let extended = |text: &str| entry(EntryType::XHeader, "x", text.as_bytes());
    let mut lying = file("index.json");
    let mut header = Header::new_ustar();
    header.as_mut_bytes().copy_from_slice(&lying[..512]);
    header.set_size(u64::MAX / 4);
    header.set_cksum();
    lying[..512].copy_from_slice(header.as_bytes());
    let mut damaged = file("index.json");
    damaged[3] = b'X';
    for (why, bytes, expected) in [
        ("a size beyond the end", lying, "in the middle"),
        ("a damaged head", damaged, "no whole tar"),
        ("a name twice", [file("a"), file("./a")].concat(), "twice"),
        (
            "a name twice, once in an extended header",
            [file("a"), extended("10 path=a\n"), file("b")].concat(),
            "twice",
        ),
        (
            "an extended header without end",
            entry(EntryType::XHeader, "x", &vec![b'9'; 70_000]),
            "too long",
        ),
        (
            "a size in an extended header",
            [extended("10 size=1\n"), file("a")].concat(),
            "GNU format",
        ),
        (
            "too many",
            (0..10_001).flat_map(|at| file(&at.to_string())).collect(),
            "10000 entries",
        ),
    ] {
        let error = opened(&bytes).unwrap_err();
        assert!(error.to_string().contains(expected), "{why}: {error}");
    }
    // Links are no files, whatever they are called.
    let link = entry(EntryType::Symlink, "oci-layout", b"");
    let error = opened(&link).unwrap().image().unwrap_err();
    assert!(error.to_string().contains("no file oci-layout"), "{error}");
    let long = entry(EntryType::Regular, "oci-layout", &vec![b' '; 5 << 20]);
    let error = opened(&long).unwrap().image().unwrap_err();
    assert!(error.to_string().contains("more than"), "{error}");
}

#[test]
fn indexes_that_name_each_other_many_times_are_refused_soon() {
    const INDEX: &str = "application/vnd.oci.image.index.v1+json";
    let index = |manifests: Vec<serde_json::Value>| {
        serde_json::to_vec(&serde_json::json!({"schemaVersion": 2, "manifests": manifests}))
            .unwrap()
    };
    let mut archive = entry(
        EntryType::Regular,
        "oci-layout",
        br#"{"imageLayoutVersion": "1.0.0"}"#,
    );
    let mut below = index(Vec::new());
    for depth in 0..4 {
        let Packed { digest, size } = packed(&below);
        let name = format!("blobs/sha256/{digest}");
        archive.extend(entry(EntryType::Regular, &name, &below));
        let named = serde_json::json!({
            "mediaType": INDEX, "digest": format!("sha256:{digest}"), "size": size,
        });
        below = index(vec![named; if depth < 3 { 1000 } else { 1 }]);
    }
    archive.extend(entry(EntryType::Regular, "index.json", &below));
    archive.extend([0; 1024]);
    let error = opened(&archive).unwrap().image().unwrap_err();
    assert!(error.to_string().contains("more than 256"), "{error}");
}

#[test]
fn an_archive_that_is_cut_anywhere_is_refused() {
    let (_, bytes) = written(&saved(), &[&[7; 512]], false);
    let end = bytes.len() - 1024;
    for cut in (0..end).step_by(100) {
        let done = opened(&bytes[..cut]).and_then(|archive| {
            let (_, layers) = archive.image()?;
            unpacked(&archive, &layers[0], 1000)
        });
        assert!(done.is_err(), "{cut}");
    }
}

#[test]
fn documents_of_secrets_are_not_quoted() {
    let mut archive = Cursor::new(Vec::new());
    let layout = br#"{"imageLayoutVersion": "hunter2", "x": }"#;
    archive
        .write_all(&entry(EntryType::Regular, "oci-layout", layout))
        .unwrap();
    let file: File = tempfile::tempfile().unwrap();
    { &file }.write_all(archive.get_ref()).unwrap();
    let error = Archive::open(file).unwrap().image().unwrap_err();
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

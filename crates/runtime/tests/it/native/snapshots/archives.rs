//! Archives of images, made by hand: good ones, and such as are made to harm.

mod hostile;

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tar::{EntryType, Header};

pub(crate) use hostile::HOSTILE;

/// How a layer is compressed.
pub(crate) type Pack = fn(&[u8]) -> Vec<u8>;

/// An image of uncompressed layers, before it is packed.
pub(crate) struct Image {
    pub(crate) layers: Vec<Vec<u8>>,
    pub(crate) config: Value,
    /// What is changed before it is packed.
    pub(crate) config_document: fn(&mut Value),
    pub(crate) manifest: fn(&mut Value),
    pub(crate) index: fn(&mut Value),
    /// How layers are compressed, and what their type says of it.
    pub(crate) pack: Pack,
    pub(crate) kind: &'static str,
}

const TAR: &str = "application/vnd.oci.image.layer.v1.tar";

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

pub(crate) fn entry(kind: EntryType, name: &str, link: &str, content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o755);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(content.len() as u64);
    header.set_cksum();
    let filling = content.len().next_multiple_of(512) - content.len();
    [header.as_bytes(), content, &vec![0; filling]].concat()
}

pub(crate) fn layer(entries: &[Vec<u8>]) -> Vec<u8> {
    [entries.concat(), vec![0; 1024]].concat()
}

pub(crate) fn small() -> Vec<u8> {
    layer(&[entry(EntryType::Regular, "file", "", b"content")])
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

impl Image {
    pub(crate) fn of(layers: &[Vec<u8>]) -> Self {
        Self {
            layers: layers.to_vec(),
            config: json!({}),
            config_document: |_| {},
            manifest: |_| {},
            index: |_| {},
            pack: <[u8]>::to_vec,
            kind: TAR,
        }
    }

    /// All blobs; the manifest is the last.
    fn blobs(&self) -> Vec<Vec<u8>> {
        let mut blobs: Vec<_> = self.layers.iter().map(|it| (self.pack)(it)).collect();
        let described: Vec<_> = blobs.iter().map(|it| descriptor(self.kind, it)).collect();
        let ids = self
            .layers
            .iter()
            .map(|it| format!("sha256:{}", sha256(it)));
        let mut config = json!({
            "architecture": if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" },
            "os": "linux",
            "config": self.config,
            "rootfs": {"type": "layers", "diff_ids": ids.collect::<Vec<_>>()},
        });
        (self.config_document)(&mut config);
        let config = config.to_string().into_bytes();
        let mut manifest = json!({
            "schemaVersion": 2,
            "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
            "layers": described,
        });
        (self.manifest)(&mut manifest);
        blobs.extend([config, manifest.to_string().into_bytes()]);
        blobs
    }

    pub(crate) fn digest(&self) -> String {
        format!("sha256:{}", sha256(self.blobs().last().unwrap()))
    }

    fn entries(&self) -> Vec<Vec<u8>> {
        let blobs = self.blobs();
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let mut index = json!({
            "schemaVersion": 2,
            "manifests": [descriptor(kind, blobs.last().unwrap())],
        });
        (self.index)(&mut index);
        let file = |name: &str, text: &[u8]| entry(EntryType::Regular, name, "", text);
        let version = br#"{"imageLayoutVersion": "1.0.0"}"#;
        // What the archive is made of comes last, as it may.
        let blobs = blobs
            .iter()
            .map(|it| file(&format!("./blobs/sha256/{}", sha256(it)), it));
        blobs
            .chain([
                file("index.json", index.to_string().as_bytes()),
                file("oci-layout", version),
            ])
            .collect()
    }

    pub(crate) fn packed(&self) -> Vec<u8> {
        layer(&self.entries())
    }
}

fn descriptor(kind: &str, blob: &[u8]) -> Value {
    json!({
        "mediaType": kind,
        "digest": format!("sha256:{}", sha256(blob)),
        "size": blob.len(),
    })
}

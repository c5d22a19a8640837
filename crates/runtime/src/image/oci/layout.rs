//! Pure. Writes an image layout as a tar archive. All of it but the layers is small and known
//! before the first byte goes out, and so is its length.

use std::collections::HashMap;
use std::io::{self, Write};

use oci_spec::image::{Arch, Os};
use oci_spec::image::{
    Descriptor, DescriptorBuilder, ImageIndexBuilder, ImageManifestBuilder, MediaType,
    OciLayoutBuilder, PlatformBuilder, Sha256Digest,
};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tar::{EntryType, Header};

use super::config::Described;
use super::{OciError, architecture, invalid};

const BLOCK: u64 = 512;
/// What the annotation with an image's name is called.
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// A packed layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// Digest in hexadecimal digits.
    pub digest: String,
    /// Bytes.
    pub size: u64,
}

/// An image that is ready to be written.
#[derive(Debug)]
pub struct Layout {
    /// Small files in the order in which they are written.
    files: Vec<(String, Vec<u8>)>,
    layers: Vec<Packed>,
    /// Digest of its manifest, as `sha256:…`.
    pub digest: String,
}

/// What `docker load` reads.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Docker {
    config: String,
    repo_tags: Vec<String>,
    layers: Vec<String>,
}

impl Layout {
    /// Describes an image of these layers, the lowest first.
    ///
    /// # Errors
    /// When what the snapshot is made of cannot be put into words.
    pub fn new(
        described: &Described<'_>,
        layers: Vec<Packed>,
        tag: &str,
    ) -> Result<Self, OciError> {
        let failed = |error: oci_spec::OciSpecError| invalid(error.to_string());
        let unpacked = layers.iter().map(|it| format!("sha256:{}", it.digest));
        let config = ordered(&described.configuration(unpacked.collect())?)?;
        let (config_name, config_at) = blob(&config);
        let mut own = layers
            .iter()
            .map(|it| descriptor(MediaType::ImageLayer, &it.digest, it.size))
            .collect::<Result<Vec<_>, _>>()?;
        own.shrink_to_fit();
        let manifest = ImageManifestBuilder::default()
            .schema_version(2_u32)
            .media_type(MediaType::ImageManifest)
            .config(descriptor(
                MediaType::ImageConfig,
                &config_name,
                config.len() as u64,
            )?)
            .layers(own)
            .build()
            .map_err(failed)?;
        let manifest = ordered(&manifest)?;
        let (manifest_name, manifest_at) = blob(&manifest);
        let mut top = descriptor(
            MediaType::ImageManifest,
            &manifest_name,
            manifest.len() as u64,
        )?;
        let platform = PlatformBuilder::default()
            .architecture(Arch::from(architecture()))
            .os(Os::Linux)
            .build()
            .map_err(failed)?;
        top.set_platform(Some(platform));
        let name = [(REF_NAME.to_owned(), tag.to_owned())];
        top.set_annotations(Some(HashMap::from(name)));
        let index = ImageIndexBuilder::default()
            .schema_version(2_u32)
            .media_type(MediaType::ImageIndex)
            .manifests(vec![top])
            .build()
            .map_err(failed)?;
        let version = OciLayoutBuilder::default()
            .image_layout_version("1.0.0".to_owned())
            .build()
            .map_err(failed)?;
        let docker = Docker {
            config: config_at.clone(),
            repo_tags: vec![format!("barchan/snapshot:{tag}")],
            layers: layers.iter().map(|it| path(&it.digest)).collect(),
        };
        let files = vec![
            ("oci-layout".to_owned(), ordered(&version)?),
            ("index.json".to_owned(), ordered(&index)?),
            ("manifest.json".to_owned(), ordered(&[docker])?),
            (config_at, config),
            (manifest_at, manifest),
        ];
        Ok(Self {
            files,
            layers,
            digest: format!("sha256:{manifest_name}"),
        })
    }

    /// How long the archive is, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let files = self.files.iter().map(|(_, text)| text.len() as u64);
        let layers = self.distinct().map(|layer| layer.size);
        let entries = files.chain(layers);
        let folders = 2 * BLOCK;
        let all = entries.map(|size| BLOCK + size.next_multiple_of(BLOCK));
        folders + all.sum::<u64>() + 2 * BLOCK
    }

    /// Writes the archive; `layer` writes the content of one of the layers, by its place.
    ///
    /// # Errors
    /// When it cannot be written, or a layer cannot be read or is not what it was.
    pub fn write<W: Write>(
        &self,
        out: &mut W,
        mut layer: impl FnMut(usize, &mut W) -> io::Result<()>,
    ) -> io::Result<()> {
        for folder in ["blobs/", "blobs/sha256/"] {
            head(out, EntryType::Directory, folder, 0)?;
        }
        for (name, text) in &self.files {
            head(out, EntryType::Regular, name, text.len() as u64)?;
            out.write_all(text)?;
            fill(out, text.len() as u64)?;
        }
        let mut written = Vec::new();
        for (at, packed) in self.layers.iter().enumerate() {
            if written.contains(&&packed.digest) {
                continue;
            }
            written.push(&packed.digest);
            head(out, EntryType::Regular, &path(&packed.digest), packed.size)?;
            layer(at, out)?;
            fill(out, packed.size)?;
        }
        out.write_all(&[0; 2 * BLOCK as usize])?;
        out.flush()
    }

    /// Layers of the same content are there once.
    fn distinct(&self) -> impl Iterator<Item = &Packed> {
        let layers = self.layers.iter().enumerate();
        layers.filter_map(|(at, packed)| {
            let before = self.layers.get(..at).unwrap_or_default();
            let is_new = before.iter().all(|other| other.digest != packed.digest);
            is_new.then_some(packed)
        })
    }
}

/// A document whose members are in order, so that the same one is always the same bytes.
fn ordered(document: &impl Serialize) -> Result<Vec<u8>, OciError> {
    let value = serde_json::to_value(document).and_then(|value| serde_json::to_vec(&value));
    value.map_err(|error| invalid(format!("the snapshot cannot be described: {error}")))
}

/// The digest of a document and where it lies.
fn blob(document: &[u8]) -> (String, String) {
    let digest = hex::encode(Sha256::digest(document));
    let at = path(&digest);
    (digest, at)
}

fn path(digest: &str) -> String {
    format!("blobs/sha256/{digest}")
}

fn descriptor(kind: MediaType, digest: &str, size: u64) -> Result<Descriptor, OciError> {
    let digest: Sha256Digest = digest
        .parse()
        .map_err(|_| invalid(format!("{digest} is no digest")))?;
    let built = DescriptorBuilder::default()
        .media_type(kind)
        .digest(digest)
        .size(size)
        .build();
    built.map_err(|error| invalid(error.to_string()))
}

fn head(out: &mut impl Write, kind: EntryType, name: &str, size: u64) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(if kind == EntryType::Directory {
        0o755
    } else {
        0o644
    });
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size);
    header.set_path(name)?;
    header.set_cksum();
    out.write_all(header.as_bytes())
}

fn fill(out: &mut impl Write, written: u64) -> io::Result<()> {
    let filling = written.next_multiple_of(BLOCK) - written;
    out.write_all(
        [0; BLOCK as usize]
            .get(..filling as usize)
            .unwrap_or_default(),
    )
}

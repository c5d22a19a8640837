//! Finds the image for this machine in an archive, and verifies all of it but the layers.

use oci_spec::image::{
    Descriptor, Digest, DigestAlgorithm, ImageConfiguration, ImageIndex, ImageManifest, MediaType,
    OciLayout,
};
use serde::de::DeserializeOwned;

use super::blob::{Compression, Layer};
use super::config::Foreign;
use super::index::Archive;
use super::{LAYERS_MAX, OciError, architecture, invalid};

/// How deep indexes may lie in each other.
const NESTED_MAX: usize = 4;
/// Most descriptors that are looked at, in all indexes together.
const IMAGES_MAX: usize = 256;
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const DOCKER_IMAGE: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// What indexes name.
#[derive(Default)]
struct Gathered {
    found: Vec<Descriptor>,
    /// Machines that other images are for.
    others: Vec<String>,
    /// How many descriptors were looked at, of indexes and of whatever else is in them.
    looked: usize,
}

impl Archive {
    /// The image for this machine, and its layers, the lowest first.
    ///
    /// # Errors
    /// When there is none or more than one, or something is missing or is not what it says.
    pub fn image(&self) -> Result<(Foreign, Vec<Layer>), OciError> {
        let layout: OciLayout = parse("oci-layout", &self.document("oci-layout")?)?;
        if !layout.image_layout_version().starts_with("1.") {
            let version: String = layout.image_layout_version().chars().take(20).collect();
            return Err(invalid(format!(
                "image layouts of version {version:?} are not known"
            )));
        }
        let index: ImageIndex = parse("index.json", &self.document("index.json")?)?;
        let mut gathered = Gathered::default();
        self.gather(&index, 0, &mut gathered)?;
        let Gathered { found, others, .. } = gathered;
        let manifest = match found.as_slice() {
            [one] => one,
            [] if others.is_empty() => return Err(invalid("the archive holds no image")),
            [] => {
                let own = architecture();
                let there = others.join(", ");
                let words = format!("the archive holds images for {there}, none for linux/{own}");
                return Err(OciError::Platform(words));
            }
            _ => {
                let words = "the archive holds several images for this machine: pack one of them";
                return Err(invalid(words));
            }
        };
        self.read(manifest)
    }

    fn gather(
        &self,
        index: &ImageIndex,
        depth: usize,
        gathered: &mut Gathered,
    ) -> Result<(), OciError> {
        for descriptor in index.manifests() {
            gathered.looked += 1;
            if gathered.looked > IMAGES_MAX {
                let words = format!("the archive lists more than {IMAGES_MAX} images");
                return Err(invalid(words));
            }
            match kind(descriptor.media_type()) {
                Kind::Index if depth < NESTED_MAX => {
                    let text = self.blob(descriptor)?;
                    self.gather(&parse("an index", &text)?, depth + 1, gathered)?;
                }
                Kind::Index => return Err(invalid("the indexes lie too deep in each other")),
                Kind::Other => {}
                Kind::Image => match descriptor.platform() {
                    Some(platform) => {
                        let (os, machine) = (platform.os(), platform.architecture());
                        let shown: String = format!("{os}/{machine}").chars().take(40).collect();
                        if shown == format!("linux/{}", architecture()) {
                            gathered.found.push(descriptor.clone());
                        } else if shown != "unknown/unknown" && gathered.others.len() < 16 {
                            gathered.others.push(shown);
                        }
                    }
                    None => gathered.found.push(descriptor.clone()),
                },
            }
        }
        Ok(())
    }

    fn read(&self, descriptor: &Descriptor) -> Result<(Foreign, Vec<Layer>), OciError> {
        let manifest: ImageManifest = parse("the manifest", &self.blob(descriptor)?)?;
        let config: ImageConfiguration =
            parse("the configuration", &self.blob(manifest.config())?)?;
        let image = Foreign::read(descriptor.digest().to_string(), &config)?;
        let (layers, unpacked) = (manifest.layers(), &image.unpacked);
        if layers.len() > LAYERS_MAX {
            return Err(invalid(format!(
                "the image has more than {LAYERS_MAX} layers"
            )));
        }
        if layers.len() != unpacked.len() {
            let (here, there) = (layers.len(), unpacked.len());
            let words = format!("the image has {here} layers, its configuration names {there}");
            return Err(invalid(words));
        }
        let layers = layers.iter().zip(unpacked).map(|(layer, unpacked)| {
            let digest = sha256(layer.digest())?.to_owned();
            let (_, size) = self
                .find(&format!("blobs/sha256/{digest}"))
                .ok_or_else(|| invalid(format!("the archive lacks the layer sha256:{digest}")))?;
            if size != layer.size() {
                let said = layer.size();
                let words = format!(
                    "the layer sha256:{digest} has {size} bytes and is said to have {said}"
                );
                return Err(invalid(words));
            }
            Ok(Layer {
                digest,
                unpacked: unpacked.clone(),
                compression: compression(layer.media_type())?,
            })
        });
        let layers = layers.collect::<Result<Vec<_>, _>>()?;
        Ok((image, layers))
    }

    fn blob(&self, descriptor: &Descriptor) -> Result<Vec<u8>, OciError> {
        let digest = sha256(descriptor.digest())?;
        self.verified(&format!("sha256:{digest}"), descriptor.size())
    }
}

enum Kind {
    Index,
    Image,
    Other,
}

fn kind(media: &MediaType) -> Kind {
    match media {
        MediaType::ImageIndex => Kind::Index,
        MediaType::ImageManifest => Kind::Image,
        other => match other.to_string().as_str() {
            DOCKER_INDEX => Kind::Index,
            DOCKER_IMAGE => Kind::Image,
            _ => Kind::Other,
        },
    }
}

fn compression(media: &MediaType) -> Result<Compression, OciError> {
    match media.to_string().as_str() {
        "application/vnd.oci.image.layer.v1.tar"
        | "application/vnd.docker.image.rootfs.diff.tar" => Ok(Compression::None),
        "application/vnd.oci.image.layer.v1.tar+gzip"
        | "application/vnd.docker.image.rootfs.diff.tar.gzip" => Ok(Compression::Gzip),
        "application/vnd.oci.image.layer.v1.tar+zstd"
        | "application/vnd.docker.image.rootfs.diff.tar.zstd" => Ok(Compression::Zstd),
        other => {
            let shown: String = other.escape_debug().take(100).collect();
            Err(invalid(format!(
                "layers of the type {shown} cannot be read"
            )))
        }
    }
}

fn sha256(digest: &Digest) -> Result<&str, OciError> {
    match digest.algorithm() {
        DigestAlgorithm::Sha256 => Ok(digest.digest()),
        other => {
            let shown: String = other.to_string().chars().take(20).collect();
            Err(invalid(format!(
                "digests of the kind {shown} cannot be verified"
            )))
        }
    }
}

fn parse<T: DeserializeOwned>(what: &str, text: &[u8]) -> Result<T, OciError> {
    // Environments may hold secrets, so of the error only the place is told.
    serde_json::from_slice(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        invalid(format!(
            "{what} is not as it should be, at line {line}, column {column}"
        ))
    })
}

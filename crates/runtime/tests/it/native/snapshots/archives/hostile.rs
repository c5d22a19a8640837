//! Archives that are made to harm, or are not what they say.

use barchan_runtime::ArchiveFault::{self, Invalid, Platform, TooLarge};
use serde_json::json;
use tar::EntryType;

use super::{Image, entry, gzip, layer, small};

/// Why an archive is refused, the archive, the kind of its fault, and words that tell of it.
pub(crate) type Case = (&'static str, fn() -> Vec<u8>, ArchiveFault, &'static str);

fn good() -> Image {
    Image::of(&[small()])
}

fn of(entries: &[Vec<u8>]) -> Vec<u8> {
    Image::of(&[layer(entries)]).packed()
}

fn file(name: &str) -> Vec<u8> {
    entry(EntryType::Regular, name, "", b"x")
}

fn link(name: &str, to: &str) -> Vec<u8> {
    entry(EntryType::Symlink, name, to, b"")
}

/// Says that the next entry has a name of so many bytes.
fn long_name(bytes: usize) -> Vec<u8> {
    entry(
        EntryType::GNULongName,
        "././@LongLink",
        "",
        &vec![b'n'; bytes],
    )
}

/// Archives that must be refused.
pub(crate) const HOSTILE: [Case; 34] = [
    (
        "nothing at all",
        || Vec::new(),
        Invalid,
        "no file oci-layout",
    ),
    (
        "no archive",
        || vec![7; 4096],
        Invalid,
        "no whole tar archive",
    ),
    (
        "an archive of other things",
        || layer(&[file("a")]),
        Invalid,
        "no file oci-layout",
    ),
    ("cut off", || good().packed()[..1500].to_vec(), Invalid, ""),
    (
        "a name twice",
        || [good().entries().concat(), good().entries()[0].clone()].concat(),
        Invalid,
        "twice",
    ),
    (
        "an index that lists nothing",
        || {
            Image {
                index: |it| it["manifests"] = json!([]),
                ..good()
            }
            .packed()
        },
        Invalid,
        "holds no image",
    ),
    (
        "an index that is none",
        || {
            Image {
                index: |it| *it = json!("x"),
                ..good()
            }
            .packed()
        },
        Invalid,
        "index.json is not as it should be",
    ),
    (
        "two images for this machine",
        || {
            Image {
                index: |it| {
                    let one = it["manifests"][0].clone();
                    it["manifests"] = json!([one, one]);
                },
                ..good()
            }
            .packed()
        },
        Invalid,
        "several images",
    ),
    (
        "images for two other machines",
        || {
            Image {
                index: |it| {
                    let mut one = it["manifests"][0].clone();
                    one["platform"] = json!({"os": "linux", "architecture": "s390x"});
                    let mut two = one.clone();
                    two["platform"] = json!({"os": "windows", "architecture": "amd64"});
                    it["manifests"] = json!([one, two]);
                },
                ..good()
            }
            .packed()
        },
        Platform,
        "linux/s390x, windows/amd64",
    ),
    (
        "an image for another machine that does not say so",
        || {
            Image {
                config_document: |it| it["architecture"] = json!("s390x"),
                ..good()
            }
            .packed()
        },
        Platform,
        "linux/s390x",
    ),
    (
        "a manifest of another size",
        || {
            Image {
                index: |it| it["manifests"][0]["size"] = json!(7),
                ..good()
            }
            .packed()
        },
        Invalid,
        "is said to have 7",
    ),
    (
        "a layer of another size",
        || {
            Image {
                manifest: |it| it["layers"][0]["size"] = json!(7),
                ..good()
            }
            .packed()
        },
        Invalid,
        "is said to have 7",
    ),
    (
        "a layer that is not there",
        || {
            Image {
                manifest: |it| it["layers"][0]["digest"] = json!(format!("sha256:{:064}", 0)),
                ..good()
            }
            .packed()
        },
        Invalid,
        "lacks the layer",
    ),
    (
        "a digest that names another file",
        || {
            Image {
                manifest: |it| it["config"]["digest"] = json!("sha256:../../../index.json"),
                ..good()
            }
            .packed()
        },
        Invalid,
        "not as it should be",
    ),
    (
        "a digest of another kind",
        || {
            Image {
                manifest: |it| it["config"]["digest"] = json!(format!("sha512:{:0128}", 0)),
                ..good()
            }
            .packed()
        },
        Invalid,
        "cannot be verified",
    ),
    (
        "a layer that unpacks to something else",
        || {
            Image {
                config_document: |it| {
                    it["rootfs"]["diff_ids"][0] = json!(format!("sha256:{:064}", 0));
                },
                ..good()
            }
            .packed()
        },
        Invalid,
        "its configuration says",
    ),
    (
        "more layers than its configuration names",
        || {
            Image {
                config_document: |it| it["rootfs"]["diff_ids"] = json!([]),
                ..good()
            }
            .packed()
        },
        Invalid,
        "its configuration names 0",
    ),
    (
        "a layer of an unknown type",
        || {
            Image {
                kind: "application/octet-stream",
                ..good()
            }
            .packed()
        },
        Invalid,
        "cannot be read",
    ),
    (
        "a layer that is not gzip",
        || {
            Image {
                kind: "application/vnd.oci.image.layer.v1.tar+gzip",
                ..good()
            }
            .packed()
        },
        Invalid,
        "unpacked with gzip",
    ),
    (
        "a layer that is not zstd",
        || {
            Image {
                kind: "application/vnd.oci.image.layer.v1.tar+zstd",
                ..good()
            }
            .packed()
        },
        Invalid,
        "unpacked with zstd",
    ),
    (
        "an environment that is none",
        || {
            Image {
                config: json!({"Env": ["nonsense"]}),
                ..good()
            }
            .packed()
        },
        Invalid,
        "no NAME=value",
    ),
    (
        "a working directory that is none",
        || {
            Image {
                config: json!({"WorkingDir": "../x"}),
                ..good()
            }
            .packed()
        },
        Invalid,
        "no absolute path",
    ),
    ("upwards", || of(&[file("../x")]), Invalid, "leads upwards"),
    (
        "from the root",
        || of(&[file("/x")]),
        Invalid,
        "begins at the root",
    ),
    (
        "beneath a link",
        || of(&[link("l", "/"), file("l/x")]),
        Invalid,
        "beneath a link",
    ),
    (
        "a layer that is cut off",
        || Image::of(&[small()[..600].to_vec()]).packed(),
        Invalid,
        "ends",
    ),
    (
        "no layer but rubbish",
        || Image::of(&[vec![7; 2048]]).packed(),
        Invalid,
        "tar archive",
    ),
    (
        "a bomb of one file",
        || {
            Image {
                pack: gzip,
                kind: "application/vnd.oci.image.layer.v1.tar+gzip",
                ..Image::of(&[layer(&[entry(
                    EntryType::Regular,
                    "zeros",
                    "",
                    &vec![0; 9 << 20],
                )])])
            }
            .packed()
        },
        TooLarge,
        "more than 8388608 bytes",
    ),
    (
        "no shell, no layer: an image of nothing lacks its manifest",
        || layer(&Image::of(&[]).entries()[2..]),
        Invalid,
        "",
    ),
    (
        "a place of a sandbox that is a link",
        || of(&[file("etc/f"), link("proc", "/etc")]),
        Invalid,
        "proc is refused: a sandbox needs a directory there",
    ),
    (
        "a place of a sandbox that is a file",
        || of(&[file("tmp")]),
        Invalid,
        "tmp is refused: a sandbox needs a directory there",
    ),
    (
        "a link that leads nowhere",
        || of(&[link("l", "")]),
        Invalid,
        "leads nowhere",
    ),
    (
        "a name that no file can have",
        || of(&[long_name(300), file("x")]),
        Invalid,
        "a name in it is too long",
    ),
    (
        "a name that no message has room for",
        || of(&[long_name(100_000), file("x")]),
        Invalid,
        "a name in it is too long",
    ),
];

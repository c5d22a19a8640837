//! Pure. Reads the volumes of a request.

use super::{Backend, Bucket, CLAIM_BYTES_MAX, Claim, HostPath, NAME_BYTES_MAX, Volume, is_label};
use crate::lifecycle::lax::Need::{May, Must};
use crate::lifecycle::lax::Reader;
use crate::limits::SANDBOX_VOLUMES_MAX;

impl Volume {
    /// Reads the list of volumes of a create; faults are noted with the reader.
    pub(in crate::lifecycle) fn read_all(reader: &mut Reader<'_, '_>) -> Vec<Self> {
        let items = reader.list("volumes", May).map_or(&[][..], Vec::as_slice);
        if items.len() > SANDBOX_VOLUMES_MAX {
            let words = format!("must have at most {SANDBOX_VOLUMES_MAX} items");
            reader.refuse("too_long", "volumes", &words);
            return Vec::new();
        }
        let mut volumes = Vec::new();
        for (at, item) in items.iter().enumerate() {
            if let Some(mut reader) = reader.item("volumes", at, item) {
                volumes.extend(Self::read(&mut reader));
            }
        }
        volumes
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        let name = label(reader, "name", NAME_BYTES_MAX);
        let mount_path = reader.string("mountPath", Must);
        if mount_path
            .as_deref()
            .is_some_and(|path| !path.starts_with('/'))
        {
            reader.refuse(MISMATCH, "mountPath", "must begin with a slash");
        }
        let read_only = reader.boolean("readOnly", May).unwrap_or(false);
        let sub_path = reader.string("subPath", May);
        let host = reader.object("host", May).map(|mut it| host(&mut it));
        let claim = reader.object("pvc", May).map(|mut it| claim(&mut it));
        let bucket = reader
            .object("ossfs", May)
            .map(|_| Backend::Ossfs(Bucket {}));
        let mut backends = [host, claim, bucket.map(Some)].into_iter().flatten();
        let backend = match (backends.next(), backends.next()) {
            (Some(backend), None) => backend,
            _ => {
                reader.refuse_whole("exactly one of host, pvc and ossfs is needed");
                None
            }
        };
        Some(Self {
            name: name?,
            backend: backend?,
            mount_path: mount_path?,
            read_only,
            sub_path: sub_path.filter(|path| !path.is_empty()),
        })
    }
}

/// The kind of fault of a text that is not of the wanted form.
const MISMATCH: &str = "string_pattern_mismatch";

fn label(reader: &mut Reader<'_, '_>, field: &str, bytes_max: usize) -> Option<String> {
    let name = reader.string(field, Must)?;
    if name.len() > bytes_max {
        let words = format!("must have at most {bytes_max} characters");
        reader.refuse("string_too_long", field, &words);
    } else if !is_label(&name, bytes_max) {
        let words = "must be lower-case letters, digits and inner hyphens";
        reader.refuse(MISMATCH, field, words);
    }
    Some(name)
}

fn host(reader: &mut Reader<'_, '_>) -> Option<Backend> {
    let path = reader.string("path", Must)?;
    let mut start = path.chars();
    let drive = (start.next(), start.next(), start.next());
    let is_drive = matches!(drive, (Some(letter), Some(':'), Some('/' | '\\'))
        if letter.is_ascii_alphabetic());
    if !path.starts_with('/') && !is_drive {
        reader.refuse(MISMATCH, "path", "must begin with a slash or a drive");
    }
    Some(Backend::Host(HostPath { path }))
}

/// The class and the modes of access only mean something to a cluster, and are dropped.
fn claim(reader: &mut Reader<'_, '_>) -> Option<Backend> {
    let claim_name = label(reader, "claimName", CLAIM_BYTES_MAX);
    let create_if_not_exists = reader.boolean("createIfNotExists", May).unwrap_or(true);
    let delete = reader.boolean("deleteOnSandboxTermination", May);
    let storage = reader.string("storage", May);
    let _ = reader.string("storageClass", May);
    let _ = reader.strings("accessModes", May, 0);
    Some(Backend::Pvc(Claim {
        claim_name: claim_name?,
        create_if_not_exists,
        delete_on_sandbox_termination: delete.unwrap_or(false),
        storage,
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::lifecycle::Faults;

    /// What is read of a list of volumes, or the kinds and places of its faults.
    fn read(volumes: &Value) -> Result<Vec<Volume>, Vec<String>> {
        let body = json!({ "volumes": volumes });
        let mut faults = Faults::default();
        let read = Volume::read_all(&mut Reader::body(Some(&body), &mut faults).unwrap());
        faults.or(read).map_err(|refusal| {
            let words = |step: &Value| step.to_string().replace('"', "");
            let place = |loc: &[Value]| loc.iter().skip(2).map(words).collect::<Vec<_>>().join(".");
            let faults = refusal.detail.iter();
            faults
                .map(|fault| format!("{} {}", fault.kind, place(&fault.loc)))
                .collect()
        })
    }

    /// A volume with some fields replaced; null takes one away.
    fn volume(changes: &Value) -> Value {
        let mut whole = json!({"name": "v", "mountPath": "/m", "host": {"path": "/p"}});
        for (name, value) in changes.as_object().unwrap() {
            whole[name] = value.clone();
        }
        whole
    }

    #[test]
    fn faults_of_shape_are_named() {
        let long = "x".repeat(64);
        for (changes, expected) in [
            (json!({"name": "A"}), "string_pattern_mismatch 0.name"),
            (json!({"name": "-a"}), "string_pattern_mismatch 0.name"),
            (json!({"name": ""}), "string_pattern_mismatch 0.name"),
            (json!({"name": "a.b"}), "string_pattern_mismatch 0.name"),
            (json!({"name": long}), "string_too_long 0.name"),
            (json!({"name": 5}), "string_type 0.name"),
            (
                json!({"mountPath": "m"}),
                "string_pattern_mismatch 0.mountPath",
            ),
            (json!({"readOnly": "perhaps"}), "bool_parsing 0.readOnly"),
            (json!({"subPath": 1}), "string_type 0.subPath"),
            (json!({"host": null}), "value_error 0"),
            (json!({"pvc": {"claimName": "c"}}), "value_error 0"),
            (json!({"host": {}}), "missing 0.host.path"),
            (
                json!({"host": {"path": "p"}}),
                "string_pattern_mismatch 0.host.path",
            ),
            (json!({"host": "/p"}), "model_attributes_type 0.host"),
            (
                json!({"host": null, "pvc": {"claimName": "a.b"}}),
                "string_pattern_mismatch 0.pvc.claimName",
            ),
        ] {
            let found = read(&json!([volume(&changes)])).unwrap_err();
            assert!(
                found.iter().any(|it| it == expected),
                "{changes}: {found:?}"
            );
        }
        let many = vec![volume(&json!({})); SANDBOX_VOLUMES_MAX + 1];
        assert_eq!(read(&json!(many)).unwrap_err(), ["too_long "]);
        assert!(read(&json!(many[..SANDBOX_VOLUMES_MAX])).is_ok());
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let claim = json!({"host": null, "pvc": {"claim_name": "c", "storageClass": "x"}});
        let found = read(&json!([volume(&claim), volume(&json!({"sub_path": "a"}))])).unwrap();
        let pvc = Claim {
            claim_name: "c".to_owned(),
            create_if_not_exists: true,
            delete_on_sandbox_termination: false,
            storage: None,
        };
        assert_eq!(found[0].backend, Backend::Pvc(pvc));
        assert!(!found[0].read_only && found[0].sub_path.is_none());
        assert_eq!(found[1].sub_path.as_deref(), Some("a"));
    }

    #[test]
    fn keys_of_an_object_store_are_neither_kept_nor_shown() {
        let ossfs = json!({"accessKeyId": "hunter2", "accessKeySecret": "hunter2"});
        let found = read(&json!([volume(&json!({"host": null, "ossfs": ossfs}))])).unwrap();
        assert!(!serde_json::to_string(&found).unwrap().contains("hunter2"));
        let body = json!({"volumes": [volume(&json!({"ossfs": "hunter2"}))]});
        let mut faults = Faults::default();
        Volume::read_all(&mut Reader::body(Some(&body), &mut faults).unwrap());
        let told = serde_json::to_string(&faults.refusal()).unwrap();
        assert!(!told.contains("hunter2"), "{told}");
    }
}

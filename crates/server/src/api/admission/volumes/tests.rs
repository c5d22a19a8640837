use barchan_wire::lifecycle::CreateSandbox;
use serde_json::{Value, json};

use super::*;
use crate::api::admission::tests::{able, admission, asked};

/// What comes of a create with these volumes.
fn admit(volumes: &Value, host: &Capabilities) -> Result<Vec<Volume>, String> {
    let request: CreateSandbox = asked(&json!({ "volumes": volumes }));
    let draft = admission().admit(request, host);
    let draft = draft.map_err(|refusal| format!("{} {}", refusal.status(), refusal.code()))?;
    Ok(draft.origin.volumes)
}

/// A volume of this name and place, with some fields replaced.
fn volume(name: &str, place: &str, changes: &Value) -> Value {
    let mut whole = json!({"name": name, "mountPath": place, "pvc": {"claimName": "c"}});
    for (name, value) in changes.as_object().unwrap() {
        whole[name] = value.clone();
    }
    whole
}

#[test]
fn places_in_the_sandbox_have_one_spelling() {
    for (path, expected) in [
        ("/data", Some("/data")),
        ("//data//x/./", Some("/data/x")),
        ("/device", Some("/device")),
        ("/", None),
        ("/.", None),
        ("/a/../b", None),
        ("/proc", None),
        ("/dev/shm", None),
        ("//sys/x", None),
        ("/a\0b", None),
        ("/a\nb", None),
    ] {
        assert_eq!(place(path).ok().as_deref(), expected, "{path:?}");
    }
    assert!(place(&format!("/{}", "x".repeat(MOUNT_PATH_BYTES_MAX))).is_err());
    assert!(place(&format!("/{}", "x".repeat(MOUNT_PATH_BYTES_MAX - 1))).is_ok());
}

#[test]
fn what_leads_elsewhere_is_refused_by_its_code() {
    let host = |path: &str| json!({"pvc": null, "host": {"path": path}});
    let storage = |text: &str| json!({"pvc": {"claimName": "c", "storage": text}});
    for (changes, expected) in [
        (
            json!({"mountPath": "/proc/x"}),
            "VOLUME::INVALID_MOUNT_PATH",
        ),
        (json!({"mountPath": "/a/.."}), "VOLUME::INVALID_MOUNT_PATH"),
        (json!({"subPath": "../x"}), "VOLUME::INVALID_SUB_PATH"),
        (json!({"subPath": "/x"}), "VOLUME::INVALID_SUB_PATH"),
        (json!({"subPath": "a/../../x"}), "VOLUME::INVALID_SUB_PATH"),
        (host("/srv/../etc"), "VOLUME::INVALID_HOST_PATH"),
        (host("/srv//x"), "VOLUME::INVALID_HOST_PATH"),
        (host("C:\\x"), "VOLUME::INVALID_HOST_PATH"),
        (
            json!({"pvc": null, "ossfs": {}}),
            "VOLUME::UNSUPPORTED_BACKEND",
        ),
        (storage("lots"), "SANDBOX::INVALID_PARAMETER"),
        (storage("15Mi"), "SANDBOX::INVALID_PARAMETER"),
        (storage("101Gi"), "SANDBOX::INVALID_PARAMETER"),
    ] {
        let volumes = json!([volume("v", "/m", &changes)]);
        let told = admit(&volumes, &able()).unwrap_err();
        assert_eq!(told, format!("400 {expected}"), "{changes}");
    }
    for changes in [host("/srv/x"), storage("16Mi"), storage("100Gi")] {
        admit(&json!([volume("v", "/m", &changes)]), &able()).unwrap();
    }
}

#[test]
fn an_empty_allow_list_allows_nothing() {
    let body = asked(&json!({"volumes": [
        {"name": "v", "mountPath": "/m", "host": {"path": "/srv/x"}}
    ]}));
    let none = Admission {
        has_host_paths: false,
        ..admission()
    };
    let refusal = none.admit(body, &able()).unwrap_err();
    assert_eq!(refusal.code(), "VOLUME::HOST_PATH_NOT_ALLOWED");
}

#[test]
fn volumes_do_not_get_in_each_others_way() {
    let none = json!({});
    let other = json!({"pvc": {"claimName": "c", "deleteOnSandboxTermination": true}});
    for (one, two, expected) in [
        (
            ("a", "/x", &none),
            ("a", "/y", &none),
            "VOLUME::DUPLICATE_NAME",
        ),
        (
            ("a", "/x", &none),
            ("b", "//x/", &none),
            "VOLUME::INVALID_MOUNT_PATH",
        ),
        (
            ("a", "/x", &none),
            ("b", "/y", &other),
            "SANDBOX::INVALID_PARAMETER",
        ),
    ] {
        let volumes = json!([volume(one.0, one.1, one.2), volume(two.0, two.1, two.2)]);
        assert_eq!(
            admit(&volumes, &able()).unwrap_err(),
            format!("400 {expected}")
        );
    }
    let nested = json!([
        volume("a", "/x/y/z", &none),
        volume("b", "/x", &none),
        volume("c", "/x/y", &none),
    ]);
    let order: Vec<_> = admit(&nested, &able()).unwrap();
    let order: Vec<_> = order.iter().map(|it| it.mount_path.as_str()).collect();
    assert_eq!(order, ["/x", "/x/y", "/x/y/z"]);
}

#[test]
fn a_size_that_the_host_cannot_keep_to_is_refused_when_it_is_asked_for() {
    let unable = Capabilities {
        limit_volume: false,
        ..able()
    };
    let sized = json!({"pvc": {"claimName": "c", "storage": "1Gi"}});
    for (changes, host, is_granted) in [
        (json!({}), &unable, true),
        (sized.clone(), &unable, false),
        (sized, &able(), true),
    ] {
        let admitted = admit(&json!([volume("v", "/m", &changes)]), host);
        assert_eq!(admitted.is_ok(), is_granted, "{changes}");
    }
}

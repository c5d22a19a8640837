//! Volumes over HTTP: how a create asks for them, and the calls that list and remove named ones.

use barchan_runtime::{Capabilities, ErrorKind, NewVolume, Runtime, VolumeFault, VolumeSource};
use serde_json::{Value, json};

use crate::world::{Answer, Set, World, request};

const ALLOWED: &str = "[storage]\nallowed_host_paths = [\"/srv/sandboxes\"]\n";

async fn world() -> World {
    World::with(&Set::settings(ALLOWED)).await
}

/// A create with one volume, some fields of which are replaced.
fn with(changes: &Value) -> Value {
    let mut volume = json!({"name": "v", "mountPath": "/m"});
    for (name, value) in changes.as_object().unwrap() {
        volume[name] = value.clone();
    }
    json!({ "volumes": [volume] })
}

fn code(answer: &Answer) -> String {
    let code = answer.json()["code"].as_str().unwrap_or("none").to_owned();
    format!("{} {code}", answer.status)
}

impl World {
    async fn volumes(&self) -> Value {
        let answer = self.call("GET", "/x/volumes").send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["volumes"].clone()
    }

    async fn remove(&self, name: &str) -> String {
        let path = format!("/x/volumes/{name}");
        let answer = self.call("DELETE", &path).send().await;
        match answer.status {
            204 => "204".to_owned(),
            _ => code(&answer),
        }
    }
}

#[tokio::test]
async fn what_is_asked_for_reaches_the_runtime() {
    let world = world().await;
    let volumes = json!({"volumes": [
        {"name": "b", "mountPath": "/x/y/", "subPath": "p//q", "readOnly": "true",
         "pvc": {"claimName": "c", "storage": "2Gi", "deleteOnSandboxTermination": true}},
        {"name": "a", "mountPath": "/x", "host": {"path": "/srv/sandboxes/a"}, "pvc": null},
    ]});
    world.sandbox_with(&volumes).await;
    let plan = world.fake.plans().remove(0);
    let shown = plan
        .volumes
        .iter()
        .map(|it| (it.name.as_str(), it.target.as_str()));
    assert_eq!(shown.collect::<Vec<_>>(), [("a", "/x"), ("b", "/x/y")]);
    let host = VolumeSource::HostPath("/srv/sandboxes/a".to_owned());
    assert_eq!(
        (&plan.volumes[0].source, plan.volumes[0].read_only),
        (&host, false)
    );
    let new = NewVolume {
        bytes: 2 << 30,
        is_asked: true,
        goes_with_sandbox: true,
    };
    let name = "c".to_owned();
    let named = VolumeSource::Named {
        name,
        new: Some(new),
    };
    let second = &plan.volumes[1];
    assert_eq!((&second.source, second.read_only), (&named, true));
    assert_eq!(second.sub_path, "p/q");
}

#[tokio::test]
async fn refusals_have_their_own_codes() {
    let world = world().await;
    for (changes, expected) in [
        (
            json!({"host": {"path": "/srv/../etc"}}),
            "400 VOLUME::INVALID_HOST_PATH",
        ),
        (json!({"ossfs": {}}), "400 VOLUME::UNSUPPORTED_BACKEND"),
        (
            json!({"pvc": {"claimName": "c", "createIfNotExists": false}}),
            "400 VOLUME::PVC_NOT_FOUND",
        ),
        (json!({"pvc": {"claimName": "C"}}), "422 none"),
        (json!({}), "422 none"),
    ] {
        let answer = world.create(&with(&changes)).await;
        assert_eq!(code(&answer), expected, "{changes}");
    }
    assert!(world.fake.plans().is_empty());
    let closed = World::new().await;
    let answer = closed
        .create(&with(&json!({"host": {"path": "/srv/x"}})))
        .await;
    assert_eq!(code(&answer), "400 VOLUME::HOST_PATH_NOT_ALLOWED");
    assert!(
        answer.json()["message"]
            .to_string()
            .contains("storage.allowed_host_paths")
    );
}

#[tokio::test]
async fn what_the_runtime_finds_wrong_is_told_by_its_code() {
    use VolumeFault as It;
    let world = world().await;
    for (fault, expected) in [
        (It::HostPathNotAllowed, "400 VOLUME::HOST_PATH_NOT_ALLOWED"),
        (It::HostPathNotFound, "400 VOLUME::HOST_PATH_NOT_FOUND"),
        (It::HostPathNotMade, "500 VOLUME::HOST_PATH_CREATE_FAILED"),
        (It::NotFound, "400 VOLUME::PVC_NOT_FOUND"),
        (It::Unusable, "500 VOLUME::PVC_INSPECT_FAILED"),
        (It::SubPath, "400 VOLUME::INVALID_SUB_PATH"),
        (It::MountPath, "400 VOLUME::INVALID_MOUNT_PATH"),
    ] {
        world.fake.fail("create", ErrorKind::Volume(fault), 1);
        let answer = world.create(&json!({})).await;
        assert_eq!(code(&answer), expected, "{fault:?}");
    }
}

#[tokio::test]
async fn named_volumes_are_listed_and_removed_once_nobody_has_them() {
    let mut world = world().await;
    assert_eq!(world.volumes().await, json!([]));
    let claim = json!({"pvc": {"claimName": "c"}});
    let id = world.sandbox_with(&with(&claim)).await;
    let expected = json!([{
        "name": "c",
        "sizeBytes": 1 << 30,
        "usedBytes": 0,
        "sandboxes": [id.to_string()],
    }]);
    assert_eq!(world.volumes().await, expected);
    assert_eq!(world.remove("c").await, "409 VOLUME::IN_USE");
    // A server that starts anew finds them as they were.
    world.kill().await;
    world.start().await.unwrap();
    assert_eq!(world.remove("c").await, "409 VOLUME::IN_USE");
    world
        .call("DELETE", &format!("/v1/sandboxes/{id}"))
        .send()
        .await;
    assert_eq!(world.remove("c").await, "204");
    for absent in ["c", "C", "..", "a%2fb"] {
        assert_eq!(
            world.remove(absent).await,
            "404 VOLUME::PVC_NOT_FOUND",
            "{absent}"
        );
    }
    let bare = world.bare("GET", "/x/volumes").send().await;
    assert_eq!(bare.status, 401);
}

#[tokio::test]
async fn what_a_sandbox_mounts_is_kept_of_it_and_told_nobody() {
    let mut world = world().await;
    let path = json!({"host": {"path": "/srv/sandboxes/private"}, "readOnly": true});
    let id = world.sandbox_with(&with(&path)).await;
    world.kill().await;
    world.start().await.unwrap();
    for at in [format!("/v1/sandboxes/{id}"), format!("/x/sandboxes/{id}")] {
        let answer = world.call("GET", &at).send().await;
        assert_eq!(answer.status, 200, "{at}");
        assert!(!answer.json().to_string().contains("private"), "{answer:?}");
    }
    let plan = world.fake.plans().remove(0);
    assert!(plan.volumes[0].read_only);
    world.fake.list().await.unwrap();
}

#[tokio::test]
async fn a_size_that_the_host_does_not_keep_to_is_told_or_refused() {
    let able = World::new().await.fake.capabilities();
    for (settings, expected) in [
        (
            "[limits]\nstrict = true\n",
            "400 SANDBOX::INVALID_PARAMETER",
        ),
        ("[limits]\nstrict = false\n", "202 none"),
    ] {
        let set = Set {
            settings,
            capabilities: Some(Capabilities {
                limit_volume: false,
                ..able.clone()
            }),
            ..Set::default()
        };
        let world = World::with(&set).await;
        let claim = json!({"pvc": {"claimName": "c", "storage": "1Gi"}});
        let answer = world.create(&with(&claim)).await;
        assert_eq!(code(&answer), expected);
        if answer.status == 202 {
            let told = &answer.json()["extensions"]["barchan.unenforced"];
            assert_eq!(told, "storage");
        }
    }
}

#[tokio::test]
async fn a_processor_that_is_not_there_is_refused() {
    let world = World::new().await;
    let body = request(&json!({"resourceLimits": {"gpu": "1"}}));
    let answer = world.call("POST", "/v1/sandboxes").json(&body).send().await;
    assert_eq!(code(&answer), "400 SANDBOX::INVALID_PARAMETER");
    assert!(answer.json()["message"].to_string().contains("no GPU"));
}

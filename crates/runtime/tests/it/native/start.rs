//! How sandboxes start, end and fail to start.

use barchan_runtime::{EndReason, ErrorKind, Limits, Runtime};

use super::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn an_entrypoint_decides_the_end_and_its_output_is_the_log() {
    let world = World::new().await;
    for (script, reason, log) in [
        ("echo fine", EndReason::Exit(0), "fine\n"),
        ("echo boom >&2; exit 3", EndReason::Exit(3), "boom\n"),
        ("kill -9 $$", EndReason::Exit(137), ""),
    ] {
        assert_eq!(
            world.run(script, Limits::default()).await,
            (reason, log.to_owned())
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_image_is_refused_with_what_to_do() {
    let world = World::new().await;
    let error = world.create("no-such-image").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownImage);
    assert!(error.message.contains("barchan image build"), "{error}");
    assert!(world.native.list().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_whose_dev_is_a_link_is_refused() {
    let world = World::new().await;
    // What a hostile image would bring: the host image's skeleton with /dev pointing elsewhere.
    world.create("host").await.unwrap();
    let layers = world.state.path().join("images/layers");
    for layer in std::fs::read_dir(layers).unwrap() {
        let dev = layer.unwrap().path().join("dev");
        std::fs::remove_dir(&dev).unwrap();
        std::os::unix::fs::symlink("/tmp", &dev).unwrap();
    }
    let error = world.create("host").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::StartFailed);
    assert!(error.message.contains("attach /dev"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_variable_of_the_host_gets_in() {
    let world = World::new().await;
    let (_, log) = world
        .run("env | cut -d= -f1 | sort | tr '\\n' ' '", Limits::default())
        .await;
    let own = [
        "EXECD_ENVS",
        "HOME",
        "LC_CTYPE",
        "OPENSANDBOX_ID",
        "PATH",
        "PWD",
    ];
    for name in log.split_whitespace().filter(|name| !own.contains(name)) {
        assert!(std::env::var_os(name).is_none(), "{name} leaked: {log}");
    }
    assert!(log.contains("OPENSANDBOX_ID"), "{log}");
}

//! How sandboxes start, end and fail to start.

use std::path::{Path, PathBuf};
use std::process::Command;

use barchan_runtime::native::{Native, Settings};
use barchan_runtime::{
    ArchiveFault, EndReason, ErrorKind, Limits, NewVolume, Plan, Runtime, Volume, VolumeSource,
};

use super::world::{World, plan, settings};

/// What the kernel calls a file system whose files are smaller than 16 TiB.
const EXT4: i64 = 0xef53;

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
    assert_eq!(error.kind, ErrorKind::Archive(ArchiveFault::Invalid));
    let told = "its /dev is a symbolic link";
    assert!(error.message.contains(told), "{error}");
}

/// What an image may have in the place of a folder: what is told of it, and how it is made.
type Other = (&'static str, fn(&Path));
const OTHERS: [Other; 4] = [
    ("is a symbolic link", |path| {
        std::os::unix::fs::symlink("/etc", path).unwrap();
    }),
    ("is a file", |path| std::fs::write(path, "").unwrap()),
    ("is a pipe", |path| {
        let made = Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    }),
    ("is missing", |_| {}),
];

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_cannot_be_mounted_on_is_told_what_is_wrong_with_it() {
    let world = World::new().await;
    world.create("host").await.unwrap();
    let layers = world.state.path().join("images/layers");
    let layer = std::fs::read_dir(layers).unwrap().next().unwrap().unwrap();
    for name in ["dev", "proc", "sys", "tmp", "usr"] {
        let (place, aside) = (layer.path().join(name), layer.path().join("aside"));
        std::fs::rename(&place, &aside).unwrap();
        for (what, make) in OTHERS {
            // A missing place of a tree of the host is made.
            if (name, what) == ("usr", "is missing") {
                continue;
            }
            make(&place);
            let error = world.create("host").await.unwrap_err();
            assert_eq!(
                error.kind,
                ErrorKind::Archive(ArchiveFault::Invalid),
                "{error}"
            );
            let told = format!("its /{name} {what}");
            assert!(error.message.contains(&told), "{told}: {error}");
            let _ = std::fs::remove_file(&place);
        }
        std::fs::rename(&aside, &place).unwrap();
    }
    // Nothing is wrong with this host.
    world.create("host").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_no_host_can_hold_is_the_callers_fault_and_leaves_nothing() {
    let world = World::new().await;
    let left = || {
        let found = ["disk", "volumes"].map(|it| world.state.path().join(it));
        let found = found.iter().flat_map(|it| std::fs::read_dir(it).unwrap());
        let names = found.map(|it| it.unwrap().file_name().into_string().unwrap());
        names
            .filter(|it| it.ends_with(".new") || it.starts_with(".new-"))
            .collect::<Vec<_>>()
    };
    let mut sizes = vec![(16 << 40) + 1, 20 << 40, 1 << 63, u64::MAX];
    // An ordinary user's disks lie in memory, and nothing limits the volumes.
    let has_files = world.native.capabilities().limit_volume;
    if has_files && rustix::fs::statfs(world.state.path()).unwrap().f_type == EXT4 {
        // It may be, but there is no file of it.
        sizes.push(16 << 40);
    }
    for bytes in sizes {
        let limits = Limits {
            disk_bytes: Some(bytes),
            ..Limits::default()
        };
        let disk = plan("host", &["true"], limits);
        let volume = Volume {
            name: "v".to_owned(),
            source: VolumeSource::Named {
                name: "large".to_owned(),
                new: Some(NewVolume {
                    bytes,
                    is_asked: true,
                    goes_with_sandbox: false,
                }),
            },
            sub_path: String::new(),
            target: "/v".to_owned(),
            read_only: false,
        };
        let with_volume = Plan {
            volumes: vec![volume],
            ..plan("host", &["true"], Limits::default())
        };
        for plan in std::iter::once(disk).chain(has_files.then_some(with_volume)) {
            let error = world.native.create(plan).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Unsupported, "{bytes}: {error}");
            let told = format!("{bytes} bytes is too large");
            assert!(error.message.contains(&told), "{error}");
        }
    }
    assert_eq!(left(), Vec::<String>::new());
    assert!(world.native.volumes().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_disks_could_never_be_made_does_not_start() {
    let state = tempfile::tempdir().unwrap();
    let settings = Settings {
        disk_bytes: 20 << 40,
        ..settings(state.path(), Vec::new(), PathBuf::from("/dev"))
    };
    let Err(error) = Native::start(settings).await else {
        panic!("it starts");
    };
    assert_eq!(error.kind, ErrorKind::Unavailable);
    let told = "limits.default.disk: a disk or volume of 21990232555520 bytes is too large";
    assert!(error.message.contains(told), "{error}");
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

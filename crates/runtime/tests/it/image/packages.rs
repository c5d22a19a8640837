//! Python packages in images, from wheels on this disk: no network is needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use barchan_runtime::image::{self, ImageError};

use super::overlay_builder::{OverlayBuilder, RootBuilder};
use super::world::{World, names};

/// A package with one program, as a wheel.
const MAKE_WHEEL: &str = r#"
import sys, zipfile
folder = sys.argv[1]
with zipfile.ZipFile(folder + "/tiny-1.0-py3-none-any.whl", "w") as wheel:
    info = "tiny-1.0.dist-info/"
    wheel.writestr("tiny.py", "def main():\n    print('tiny speaks')\n")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "entry_points.txt", "[console_scripts]\ntiny = tiny:main\n")
    wheel.writestr(info + "RECORD", "")
"#;

const RECIPE: &str = r#"
name = "x"
base = "host"
pip = ["tiny==1.0"]
run = ["tiny > /srv/said"]
"#;

/// A world whose operator has wheels on disk and secrets in every place a client reads.
fn operator() -> World {
    let mut world = World::new();
    let home = world.folder.path().join("home");
    let wheels = world.folder.path().join("wheels");
    fs::create_dir_all(home.join(".config/pip")).unwrap();
    fs::create_dir(&wheels).unwrap();
    python(&["-c", MAKE_WHEEL, wheels.to_str().unwrap()]);
    let bundled = "import ensurepip, os; print(os.path.dirname(ensurepip.__file__) + '/_bundled')";
    let bundled = python(&["-c", bundled]);
    let config = format!(
        "[global]\nno-index = true\nindex-url = https://me:index-password@mirror.test/simple\n\
         find-links = {}\n    {} /usr/share/python-wheels\n",
        wheels.display(),
        bundled.trim()
    );
    fs::write(home.join(".config/pip/pip.conf"), config).unwrap();
    fs::write(
        home.join(".netrc"),
        "machine m.test login me password netrc-password\n",
    )
    .unwrap();
    fs::write(home.join(".npmrc"), "//r.test/:_authToken=npm-auth-token\n").unwrap();
    fs::write(home.join("ca.pem"), "operators-own-ca").unwrap();
    for (name, value) in [
        ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
        (
            "https_proxy",
            "http://me:proxy-password@proxy.test:3128".to_owned(),
        ),
        ("SSL_CERT_FILE", home.join("ca.pem").display().to_string()),
        ("UNRELATED", "unrelated-secret".to_owned()),
    ] {
        world.env.insert(name.to_owned(), value);
    }
    world.home = Some(home);
    world
}

fn python(args: &[&str]) -> String {
    let output = Command::new("python3").args(args).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The first file beneath a folder that holds a word.
fn holding(folder: &Path, word: &str) -> Option<PathBuf> {
    let mut pending = vec![folder.to_path_buf()];
    while let Some(here) = pending.pop() {
        for entry in fs::read_dir(here).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                pending.push(entry.path());
            } else if kind.is_file() {
                let text = fs::read(entry.path()).unwrap();
                if text.windows(word.len()).any(|part| part == word.as_bytes()) {
                    return Some(entry.path());
                }
            }
        }
    }
    None
}

#[tokio::test]
async fn a_build_sees_the_operators_mirrors_and_none_of_it_is_in_the_layer() {
    let world = operator();
    let seen = r#"
    "test -s $SSL_CERT_FILE && grep -q operators-own-ca $SSL_CERT_FILE",
    "grep -q npm-auth-token $NPM_CONFIG_USERCONFIG",
    "grep -q netrc-password $NETRC",
    "test $https_proxy = http://me:proxy-password@proxy.test:3128",
    "test -z ${UNRELATED:-}",
    "if touch /run/build/x || touch $SSL_CERT_FILE; then exit 1; fi","#;
    let recipe = RECIPE.replace("run = [", &format!("run = [{seen}"));
    let built = world
        .build(&world.recipe(&recipe), &OverlayBuilder)
        .await
        .unwrap();
    let layer = world.store.layer(&built.manifest.layers[0]);
    assert_eq!(
        fs::read_to_string(layer.join("srv/said")).unwrap(),
        "tiny speaks\n"
    );
    let wheels = world.folder.path().display().to_string();
    for word in [
        "index-password",
        "mirror.test",
        "netrc-password",
        "npm-auth-token",
        "operators-own-ca",
        "proxy-password",
        "proxy.test",
        "unrelated-secret",
        "/run/build",
        &wheels,
    ] {
        assert_eq!(holding(&layer, word), None, "{word}");
    }
    assert_eq!(
        holding(&layer, "tiny speaks"),
        Some(layer.join("srv/said")),
        "the search finds"
    );
}

#[tokio::test]
async fn a_recipe_that_writes_a_credential_down_is_refused() {
    let world = operator();
    let recipe = world.recipe("name='x'\nbase='host'\nrun=['env > /srv/environment']");
    let error = world.build(&recipe, &OverlayBuilder).await.unwrap_err();
    let said = error.to_string();
    assert!(
        matches!(error, ImageError::Seal { .. }) && said.contains("/srv/environment"),
        "{said}"
    );
    assert!(!said.contains("proxy-password"), "{said}");
    assert!(world.leftovers().is_empty());
    assert_eq!(world.layers().len(), 1, "the host's");
}

#[tokio::test]
async fn packages_are_compiled_and_further_ones_join_them() {
    let world = operator();
    world
        .build(&world.recipe(RECIPE), &OverlayBuilder)
        .await
        .unwrap();
    let lower = world.resolve("x").unwrap();
    assert!(
        lower.path.starts_with("/opt/venv/bin:/usr/local/sbin"),
        "{}",
        lower.path
    );
    assert_eq!(compiled(&lower.layers[0].join("opt/venv/lib")), 1);
    let mut again = world.request(&world.recipe(RECIPE));
    again.fresh = true;
    let again = image::build(&world.store, &again, &OverlayBuilder)
        .await
        .unwrap();
    assert_eq!(
        world.store.layer(&again.manifest.layers[0]),
        lower.layers[0],
        "reproducible"
    );
    let upper = "name='y'\nbase='x'\npip=['wheel-of-nothing==0']";
    let error = world
        .build(&world.recipe(upper), &OverlayBuilder)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("wheel-of-nothing"), "{error}");
    let upper = "name='y'\nbase='x'\npip=['tiny']\nrun=['tiny > /srv/again']";
    world
        .build(&world.recipe(upper), &OverlayBuilder)
        .await
        .unwrap();
    let upper = world.resolve("y").unwrap();
    assert_eq!(
        fs::read_to_string(upper.layers[0].join("srv/again")).unwrap(),
        "tiny speaks\n"
    );
    assert!(
        !upper.layers[0].join("opt/venv/pyvenv.cfg").exists(),
        "the environment was kept"
    );
}

#[tokio::test]
async fn packages_never_join_the_environment_that_shows_the_hosts() {
    let world = operator();
    world.build("minimal", &OverlayBuilder).await.unwrap();
    let recipe = world.recipe(&RECIPE.replace("\"host\"", "\"minimal\""));
    world.build(&recipe, &OverlayBuilder).await.unwrap();
    let layer = &world.resolve("x").unwrap().layers[0];
    let config = fs::read_to_string(layer.join("opt/venv/pyvenv.cfg")).unwrap();
    assert!(
        config.contains("include-system-site-packages = false"),
        "{config}"
    );
}

/// How many compiled files of the package there are.
fn compiled(folder: &Path) -> usize {
    let mut count = 0;
    let mut pending = vec![folder.to_path_buf()];
    while let Some(here) = pending.pop() {
        for entry in fs::read_dir(here).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_dir() {
                pending.push(entry.path());
            } else if name.starts_with("tiny.cpython") {
                count += 1;
            }
        }
    }
    count
}

/// In `host` itself, without any build: its environment can be written to.
#[tokio::test]
async fn pip_installs_in_the_host_image() {
    let world = operator();
    let run = "name='x'\nbase='host'\nrun=['pip install tiny', 'tiny > /srv/said']";
    world
        .build(&world.recipe(run), &OverlayBuilder)
        .await
        .unwrap();
    let image = world.resolve("x").unwrap();
    assert_eq!(
        fs::read_to_string(image.layers[0].join("srv/said")).unwrap(),
        "tiny speaks\n"
    );
    assert!(image.layers[0].join("opt/venv/bin/tiny").is_file());
}

/// The tree of an interpreter that is not in `/usr`: one that is there, or a copy of the system's.
fn managed_python(world: &World) -> PathBuf {
    let prefix = PathBuf::from(python(&["-c", "import sys; print(sys.base_prefix)"]).trim());
    if !prefix.starts_with("/usr") {
        return prefix;
    }
    let tree = world.folder.path().join("managed");
    let script = r#"
import os, shutil, sys
tree, name = sys.argv[1], "python3.%d" % sys.version_info[1]
os.makedirs(tree + "/bin")
shutil.copy(os.path.realpath(sys._base_executable), tree + "/bin/" + name)
os.symlink(name, tree + "/bin/python3")
skip = shutil.ignore_patterns("__pycache__", "site-packages", "dist-packages", "test", "config-*")
shutil.copytree(os.path.dirname(os.__file__), tree + "/lib/" + name, ignore=skip, symlinks=True)
os.makedirs(tree + "/lib/" + name + "/site-packages/private_of_the_operator")
"#;
    python(&["-c", script, tree.to_str().unwrap()]);
    tree
}

/// This system but for its `/usr`.
fn system_without_python(world: &World) -> PathBuf {
    let root = world.folder.path().join("system");
    fs::create_dir(&root).unwrap();
    for entry in fs::read_dir("/").unwrap().map(Result::unwrap) {
        if entry.file_name() != "usr" {
            std::os::unix::fs::symlink(entry.path(), root.join(entry.file_name())).unwrap();
        }
    }
    root
}

#[tokio::test]
async fn a_python_from_outside_usr_is_copied_into_the_layer() {
    let mut world = operator();
    let tree = managed_python(&world);
    world
        .env
        .insert("PATH".to_owned(), tree.join("bin").display().to_string());
    let check =
        "python -c 'import sys; assert sys.base_prefix == \"/opt/python\", sys.base_prefix'";
    let recipe = world.recipe(&RECIPE.replace("run = [", &format!("run = [\"\"\"{check}\"\"\",")));
    let mut request = world.request(&recipe);
    request.clients.root = system_without_python(&world);
    let built = image::build(&world.store, &request, &OverlayBuilder)
        .await
        .unwrap();
    let layer = world.store.layer(&built.manifest.layers[0]);
    assert_eq!(
        fs::read_to_string(layer.join("srv/said")).unwrap(),
        "tiny speaks\n"
    );
    let mut libraries = fs::read_dir(layer.join("opt/python/lib"))
        .unwrap()
        .map(Result::unwrap);
    let library = libraries.find(|it| it.file_name().to_string_lossy().starts_with("python3."));
    let packages = library.unwrap().path().join("site-packages");
    assert_eq!(
        fs::read_dir(packages).map_or(0, Iterator::count),
        0,
        "the operator's own"
    );
}

#[tokio::test]
async fn a_host_without_python_says_so() {
    let mut world = operator();
    world.env.insert("PATH".to_owned(), "/nonesuch".to_owned());
    world.home = None;
    let mut request = world.request(&world.recipe(RECIPE));
    request.clients.root = system_without_python(&world);
    let said = image::build(&world.store, &request, &OverlayBuilder)
        .await
        .unwrap_err()
        .to_string();
    assert!(said.contains("no Python of version 3.11"), "{said}");
}

/// From the packages of the host's distribution, by the network.
#[tokio::test]
async fn a_debian_of_its_own_is_unpacked_and_installed() {
    let world = World::new();
    let text = r#"
name = "x"
base = "bootstrap"
apt = ["tree"]
run = [
    "id nobody && getent group nogroup && test -x /usr/bin/env",
    "test -z \"$(dpkg --audit)\" && dpkg -s apt tree >/dev/null",
    "test ! -e /opt/venv",
]
"#;
    let recipe = world.recipe(text);
    if !rustix::process::geteuid().is_root() {
        let said = world
            .build(&recipe, &OverlayBuilder)
            .await
            .unwrap_err()
            .to_string();
        assert!(said.contains("subordinate ids"), "{said}");
        return;
    }
    let built = world.build(&recipe, &RootBuilder).await.unwrap();
    assert!(
        built.manifest.pinned && !built.manifest.on_host,
        "{:?}",
        built.manifest
    );
    let image = world.resolve("x").unwrap();
    assert_eq!((image.layers.len(), image.binds.len()), (1, 0));
    let root = &image.layers[0];
    for folder in ["proc", "sys", "dev", "run", "tmp", "var/lib/apt/lists"] {
        assert_eq!(names(&root.join(folder)), [].into(), "{folder}");
    }
    assert!(!names(&root.join("etc/apt")).contains("sources.list"));
    assert!(root.join("usr/bin/tree").is_file() && root.join("bin").is_symlink());
    let seen = world.seen.lock().unwrap();
    let steps: Vec<_> = seen
        .iter()
        .map(|progress| (progress.step, progress.of))
        .collect();
    assert_eq!(steps, (1..=8).map(|step| (step, 8)).collect::<Vec<_>>());
}

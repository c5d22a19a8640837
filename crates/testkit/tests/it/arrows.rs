//! Which crate may depend on which, as an allow-list.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Every crate of ours and all that it may use of ours. A new crate fails until it is listed, and
/// it is listed when ARCHITECTURE.md says which of the four reasons it has to exist.
const ARROWS: [(&str, &[&str]); 12] = [
    ("barchan-wire", &[]),
    ("barchan-jail", &["barchan-archive"]),
    ("barchan-archive", &[]),
    ("barchan-client", &["barchan-wire"]),
    ("barchan-daemon", &["barchan-wire"]),
    ("barchan-runtime", &["barchan-jail", "barchan-wire"]),
    (
        "barchan-server",
        &[
            "barchan-client",
            "barchan-daemon",
            "barchan-runtime",
            "barchan-wire",
        ],
    ),
    (
        "barchan-execd",
        &[
            "barchan-archive",
            "barchan-daemon",
            "barchan-jail",
            "barchan-wire",
        ],
    ),
    ("barchan-egress", &["barchan-daemon", "barchan-wire"]),
    (
        "barchan",
        &[
            "barchan-archive",
            "barchan-client",
            "barchan-daemon",
            "barchan-runtime",
            "barchan-server",
            "barchan-wire",
        ],
    ),
    // Beside the others: measures them from outside, and nothing sees it.
    (
        "barchan-bench",
        &["barchan-daemon", "barchan-runtime", "barchan-wire"],
    ),
    // Beside the others: may see all, and nothing sees it but tests.
    (
        "barchan-testkit",
        &[
            "barchan-client",
            "barchan-daemon",
            "barchan-jail",
            "barchan-runtime",
            "barchan-server",
            "barchan-wire",
        ],
    ),
];

/// Third-party crates that would break a promise of the crate named first.
const NEVER: [(&str, &[&str]); 4] = [
    (
        "barchan-wire",
        &["tokio", "futures", "hyper", "rustix", "libc"],
    ),
    ("barchan-jail", &["tokio", "futures", "hyper"]),
    ("barchan-archive", &["tokio", "futures", "hyper"]),
    ("barchan-client", &["axum", "rusqlite"]),
];

/// A crate's name, its normal and build dependencies, and its dev-dependencies.
struct Package {
    name: String,
    uses: BTreeSet<String>,
    tests_with: BTreeSet<String>,
}

fn packages() -> Vec<Package> {
    let manifest = crate::tree::root().join("Cargo.toml");
    let metadata = MetadataCommand::new()
        .manifest_path(manifest)
        .no_deps()
        .exec()
        .unwrap();
    let of_kind = |package: &cargo_metadata::Package, dev: bool| {
        let wanted = |kind| (kind == DependencyKind::Development) == dev;
        let kept = package.dependencies.iter().filter(|it| wanted(it.kind));
        kept.map(|it| it.name.clone()).collect()
    };
    let all = metadata.packages.iter().map(|package| Package {
        name: package.name.to_string(),
        uses: of_kind(package, false),
        tests_with: of_kind(package, true),
    });
    all.collect()
}

/// What is wrong with these crates, in words.
fn breaches(packages: &[Package]) -> Vec<String> {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.into_iter().collect();
    let ours: BTreeSet<&str> = packages.iter().map(|it| it.name.as_str()).collect();
    let mut found = Vec::new();
    for package in packages {
        let name = package.name.as_str();
        let Some(allowed) = allowed.get(name) else {
            found.push(format!(
                "crate {name} is not listed. Instead: make it a module; or, when it is a program \
                 of its own, a shared promise, a boundary or test-only, list it in ARROWS and in \
                 ARCHITECTURE.md"
            ));
            continue;
        };
        for used in package.uses.iter().filter(|it| ours.contains(it.as_str())) {
            if !allowed.contains(&used.as_str()) {
                found.push(format!(
                    "{name} depends on {used}; it may use {allowed:?}. Instead: pass the value \
                     in, or move the code to the crate that may do this"
                ));
            }
        }
        let banned = NEVER.iter().filter(|(crate_name, _)| *crate_name == name);
        for never in banned.flat_map(|(_, list)| list.iter()) {
            if package.uses.contains(*never) {
                found.push(format!(
                    "{name} depends on {never}, which it promises never to need. Instead: do this \
                     in the crate above it"
                ));
            }
        }
        let tests_up = package.tests_with.iter().filter(|it| *it == "barchan");
        found.extend(tests_up.map(|_| {
            format!("{name} tests with the program's own crate. Instead: run the built program")
        }));
    }
    let stale = ARROWS.iter().filter(|(name, _)| !ours.contains(name));
    found.extend(stale.map(|(name, _)| {
        format!("ARROWS lists {name}, which does not exist. Instead: remove the row")
    }));
    found
}

#[test]
fn crates_depend_only_on_what_is_listed() {
    let found = breaches(&packages());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_forbidden_arrow_and_an_unlisted_crate_are_found() {
    let mut packages = packages();
    let execd = packages
        .iter_mut()
        .find(|it| it.name == "barchan-execd")
        .unwrap();
    execd.uses.insert("barchan-server".to_owned());
    let wire = packages
        .iter_mut()
        .find(|it| it.name == "barchan-wire")
        .unwrap();
    wire.uses.insert("tokio".to_owned());
    packages.push(Package {
        name: "barchan-extra".to_owned(),
        uses: BTreeSet::new(),
        tests_with: BTreeSet::new(),
    });
    let found = breaches(&packages).join("\n");
    assert!(
        found.contains("barchan-execd depends on barchan-server"),
        "{found}"
    );
    assert!(found.contains("barchan-wire depends on tokio"), "{found}");
    assert!(found.contains("barchan-extra is not listed"), "{found}");
}

#[test]
fn every_crate_takes_the_workspace_lints() {
    for source in crate::tree::sources() {
        if source.path.starts_with("crates/") && source.path.ends_with("/Cargo.toml") {
            assert!(
                source.text.contains("[lints]\nworkspace = true"),
                "{} leaves the workspace's lints. Instead: end it with `[lints]` and \
                 `workspace = true`",
                source.path
            );
        }
    }
}

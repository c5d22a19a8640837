use std::os::unix::fs::symlink;

use super::*;

const ROOT: &str = "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n";

fn trust(name: &str) -> Trust {
    Trust {
        authority: format!("-----BEGIN CERTIFICATE-----\n{name}\n-----END CERTIFICATE-----\n"),
        roots: "# of the host\n".to_owned(),
    }
}

/// A sandbox's root with some files.
fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = below(root.path(), path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn text(root: &tempfile::TempDir, path: &str) -> String {
    fs::read_to_string(below(root.path(), path)).unwrap()
}

fn run(
    root: &tempfile::TempDir,
    name: &str,
    set: &[(&str, &str)],
) -> (BTreeMap<String, String>, Vec<String>) {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let mut environment = set.iter().map(pair).collect();
    let faults = establish(root.path(), &trust(name), &mut environment);
    (environment, faults)
}

#[test]
fn the_authority_stands_in_the_bundle_and_an_older_one_does_not() {
    for bundle in BUNDLES {
        let root = root(&[(bundle, ROOT)]);
        let path = below(root.path(), bundle);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap();
        for name in ["AAAA", "AAAA", "BBBB"] {
            let (environment, faults) = run(&root, name, &[]);
            assert_eq!(faults, [""; 0], "{bundle}");
            let expected = format!("{ROOT}{BEGIN}{}{END}", trust(name).authority);
            assert_eq!(text(&root, bundle), expected);
            assert_eq!(text(&root, AUTHORITY), trust(name).authority);
            assert_eq!(text(&root, AUTHORITY_OF_SYSTEM), trust(name).authority);
            assert_eq!(environment["SSL_CERT_FILE"], bundle);
            assert_eq!(environment["NODE_EXTRA_CA_CERTS"], AUTHORITY);
            assert!(!environment.contains_key(JAVA));
        }
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o664);
    }
}

#[test]
fn where_there_is_no_bundle_one_is_made() {
    let root = root(&[]);
    let (environment, faults) = run(&root, "AAAA", &[]);
    assert_eq!(faults, [""; 0]);
    let made = text(&root, BUNDLES[0]);
    assert!(
        made.starts_with("# of the host\n") && made.contains("AAAA"),
        "{made}"
    );
    assert_eq!(environment["CURL_CA_BUNDLE"], BUNDLES[0]);
}

#[test]
fn a_bundle_may_be_a_link() {
    let root = root(&[("/etc/pki/real.pem", ROOT)]);
    let link = below(root.path(), "/etc/ssl/cert.pem");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink("../pki/real.pem", &link).unwrap();
    assert_eq!(run(&root, "AAAA", &[]).1, [""; 0]);
    assert!(link.is_symlink());
    assert!(text(&root, "/etc/pki/real.pem").contains("AAAA"));
}

#[test]
fn what_the_sandbox_says_itself_holds() {
    let root = root(&[
        (BUNDLES[0], ROOT),
        ("/own.pem", ROOT),
        ("/usr/bin/java", ""),
    ]);
    let set = [
        ("SSL_CERT_FILE", "/own.pem"),
        (JAVA, "-Xmx1g"),
        (NODE, "/own.pem"),
    ];
    let (environment, faults) = run(&root, "AAAA", &set);
    assert_eq!(faults, [""; 0]);
    for (name, value) in set {
        assert_eq!(environment[name], value);
    }
    assert_eq!(environment["PIP_CERT"], BUNDLES[0]);
    assert!(text(&root, "/own.pem").contains("AAAA"));
}

#[test]
fn java_has_a_store_of_its_own() {
    for (java, set) in [
        ("/usr/bin/java", &[][..]),
        ("/jdk/bin/java", &[("JAVA_HOME", "/jdk")]),
    ] {
        let root = root(&[(BUNDLES[0], ROOT), (java, "")]);
        let (environment, faults) = run(&root, "AAAA", set);
        assert_eq!(faults, [""; 0]);
        assert!(environment[JAVA].contains(JAVA_STORE), "{environment:?}");
        let store = fs::read(below(root.path(), JAVA_STORE)).unwrap();
        assert_eq!(
            store[..12],
            [0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2, 0, 0, 0, 2]
        );
    }
}

#[test]
fn nothing_in_the_way_holds_it_up() {
    let root = root(&[]);
    let bundle = below(root.path(), BUNDLES[0]);
    fs::create_dir_all(bundle.parent().unwrap()).unwrap();
    // A pipe that nobody writes to, a folder, links in a circle.
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &bundle,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    assert_eq!(run(&root, "AAAA", &[]).1.len(), 1);
    fs::remove_file(&bundle).unwrap();
    fs::create_dir(&bundle).unwrap();
    assert_eq!(run(&root, "AAAA", &[]).1.len(), 1);
    fs::remove_dir(&bundle).unwrap();
    symlink("ca-certificates.crt", &bundle).unwrap();
    assert_eq!(run(&root, "AAAA", &[]).1.len(), 1);
    let authority = below(root.path(), "/opt/opensandbox");
    fs::remove_dir_all(&authority).unwrap();
    fs::write(&authority, "").unwrap();
    assert_eq!(run(&root, "AAAA", &[]).1.len(), 2);
}

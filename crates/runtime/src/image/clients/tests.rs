use super::*;

struct World {
    root: tempfile::TempDir,
    env: BTreeMap<String, String>,
}

impl World {
    fn new(files: &[(&str, &str)], env: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let env = env
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        Self { root, env }
    }

    fn gather(&self) -> Clients {
        let (root, home) = (
            self.root.path().to_path_buf(),
            self.root.path().join("home/me"),
        );
        let sources = ClientSources {
            env: self.env.clone(),
            home: Some(home),
            root,
        };
        Clients::gather(&sources).unwrap()
    }
}

#[test]
fn pip_gets_mirror_certificate_and_wheels_at_places_it_can_see() {
    let world = World::new(
        &[
            (
                "etc/pip.conf",
                "[global]\nindex-url=https://old.test/\ncert=/ca.pem\n",
            ),
            (
                "home/me/.config/pip/pip.conf",
                "[global]\nindex-url=https://u:p4ssw0rd@new.test/\n",
            ),
            ("ca.pem", "CERT"),
            ("wheels/a.whl", ""),
        ],
        &[
            ("PIP_FIND_LINKS", "/wheels https://more.test/"),
            ("SSL_CERT_FILE", "/ca.pem"),
        ],
    );
    let clients = world.gather();
    assert_eq!(clients.env["PIP_INDEX_URL"], "https://u:p4ssw0rd@new.test/");
    let cert = clients.env["PIP_CERT"].strip_prefix("/run/build/").unwrap();
    assert_eq!(clients.files[cert], b"CERT");
    assert_eq!(clients.env["SSL_CERT_FILE"], clients.env["PIP_CERT"]);
    let bind = clients.binds.first().unwrap();
    assert_eq!(bind.source, world.root.path().join("wheels"));
    let links = format!("{} https://more.test/", bind.target.display());
    assert_eq!(clients.env["PIP_FIND_LINKS"], links);
    assert!(clients.secrets.scan().finds(b"..p4ssw0rd.."));
}

#[test]
fn proxies_npm_and_netrc_are_handed_on_with_their_secrets_noted() {
    let world = World::new(
        &[
            (
                "home/me/.npmrc",
                "//r.test/:_authToken=npm-token-1\ncafile=/ca.pem\n",
            ),
            (
                "home/me/.netrc",
                "machine m login l password net-password\n",
            ),
            ("ca.pem", "CERT"),
            ("etc/resolv.conf", "nameserver 192.0.2.1\n"),
        ],
        &[
            ("https_proxy", "http://u:proxy-pass@p.test:3128"),
            ("HOME", "/home/me"),
            ("SECRET", "s3cret-value"),
        ],
    );
    let clients = world.gather();
    assert_eq!(
        clients.env["https_proxy"],
        "http://u:proxy-pass@p.test:3128"
    );
    assert_eq!(clients.files["resolv.conf"], b"nameserver 192.0.2.1\n");
    let npmrc = String::from_utf8(clients.files["npmrc"].clone()).unwrap();
    assert!(
        npmrc.contains("npm-token-1") && npmrc.contains("cafile=/run/build/file-"),
        "{npmrc}"
    );
    for word in ["proxy-pass", "npm-token-1", "net-password"] {
        assert!(clients.secrets.scan().finds(word.as_bytes()), "{word}");
    }
    assert!(!clients.env.contains_key("SECRET") && !clients.env.contains_key("HOME"));
}

#[test]
fn a_host_without_any_configuration_gives_none() {
    let clients = World::new(&[], &[]).gather();
    assert!(
        clients.env.is_empty() && clients.binds.is_empty(),
        "{:?}",
        clients.env
    );
}

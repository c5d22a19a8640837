use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::super::Surroundings;
use super::super::tests::findings;

/// A file with a secret, for this user or for others too.
fn secret_file(home: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = home.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    path
}

#[test]
fn secrets_come_from_files_and_variables() {
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode| {
        let path = secret_file(home.path(), name, text, mode);
        format!("{{ file = {path:?} }}")
    };
    let key = "0123456789abcdef";
    for (value, expected) in [
        (format!("{key:?}"), Ok(key)),
        (file("a", "0123456789abcdef", 0o600), Ok(key)),
        (file("b", "0123456789abcdef\n", 0o400), Ok(key)),
        (file("c", "0123456789abcdef\r\n", 0o600), Ok(key)),
        (
            file("d", "0123456789abcdef\n\n", 0o600),
            Err("visible ASCII"),
        ),
        (file("e", "0123456789abcdef\n", 0o640), Err("chmod go= ")),
        (file("f", "0123456789abcdef\n", 0o604), Err("chmod go= ")),
        (file("g", "\n", 0o600), Err("is empty")),
        (
            file("h", &"k".repeat(70_000), 0o600),
            Err("no secret is so long"),
        ),
        (
            "{ file = \"/nowhere/at/all\" }".to_owned(),
            Err("cannot be read"),
        ),
        ("{ file = \"key\" }".to_owned(), Err("from the root on")),
        ("{ file = \"/dev/null\" }".to_owned(), Err("is no file")),
        (
            "{ env = \"BARCHAN_NOT_SET\" }".to_owned(),
            Err("BARCHAN_NOT_SET is not set"),
        ),
        (
            "{ env = \"CARGO_MANIFEST_DIR\" }".to_owned(),
            Ok(env!("CARGO_MANIFEST_DIR")),
        ),
        ("{ path = \"/x\" }".to_owned(), Err("a secret is a text")),
        (
            "{ file = \"/x\", env = \"Y\" }".to_owned(),
            Err("a secret is a text"),
        ),
        ("{}".to_owned(), Err("a secret is a text")),
        (
            "[\"0123456789abcdef\"]".to_owned(),
            Err("expected a text in quotes"),
        ),
        ("1234567890123456".to_owned(), Err("a secret is a text")),
        ("1234567890.123456".to_owned(), Err("a secret is a text")),
        ("true".to_owned(), Err("a secret is a text")),
        ("\"hunter2\"".to_owned(), Err("at least 16")),
        ("\"hunter2".to_owned(), Err("")),
        ("2026-01-01".to_owned(), Err("a secret is a text")),
    ] {
        let text = format!("[server]\napi_key = {value}\n");
        match (findings(&text, &[]), expected) {
            ((Some(settings), _), Ok(key)) => {
                let found = settings.server.api_key.clone().unwrap();
                assert_eq!(found.secret().reveal(), key);
                assert!(!format!("{settings:?}").contains(key), "{settings:?}");
            }
            ((None, told), Err(why)) => {
                assert!(told.contains(why), "{value}: {told}");
                assert!(told.starts_with("text:2: "), "{told}");
                for secret in ["0123456789abcdef", "hunter2", "1234567890", "2026"] {
                    assert!(!told.contains(secret), "{value}: {told}");
                }
            }
            ((settings, told), expected) => panic!("{value}: {settings:?} {told} {expected:?}"),
        }
    }
}

#[test]
fn a_file_that_shows_its_key_is_told() {
    let home = tempfile::tempdir().unwrap();
    for (mode, text, is_told) in [
        (0o600, "server.api_key = \"0123456789abcdef\"\n", false),
        (0o644, "server.api_key = \"0123456789abcdef\"\n", true),
        (0o644, "server.port = 1\n", false),
    ] {
        let path = secret_file(home.path(), "a.toml", text, mode);
        let surroundings = Surroundings::look(Some(&path)).unwrap();
        let loaded = surroundings.with_variables([]).read().unwrap();
        assert_eq!(
            !loaded.warnings.is_empty(),
            is_told,
            "{mode:o}: {:?}",
            loaded.warnings
        );
    }
}

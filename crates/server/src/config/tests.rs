use super::*;

/// Every finding of a text and of variables, one a line; first the settings if they can be used.
pub(super) fn findings(text: &str, variables: &[(&str, &str)]) -> (Option<Settings>, String) {
    let surroundings = Surroundings::text(text).with_variables(variables.iter().copied());
    let (settings, findings) = match surroundings.read() {
        Ok(loaded) => (Some(loaded.settings), loaded.warnings),
        Err(SettingsError::Faulty(findings)) => (None, findings),
        Err(other) => panic!("{other}"),
    };
    let lines = findings.iter().map(|finding| format!("{finding}\n"));
    (settings, lines.collect())
}

#[test]
fn the_example_holds_every_default_and_is_read_back() {
    let example = Settings::example("native").unwrap();
    Settings::parse(&example).unwrap();
    let filled: String = example
        .lines()
        .map(|line| {
            line.strip_prefix('#')
                .filter(|rest| !rest.starts_with(' '))
                .unwrap_or(line)
        })
        .filter(|line| !line.trim_end().ends_with('='))
        .fold(String::new(), |text, line| text + line + "\n");
    let settings = Settings::parse(&filled).unwrap();
    assert_eq!(settings.limits.default.disk, "10Gi");
    assert!(Settings::example("docker").is_none());
}

#[test]
fn bad_settings_are_named() {
    for (text, named) in [
        ("[server]\nprot = 1\n", "`server.port` meant"),
        ("[serve]\n", "serve"),
        ("port = 1\n", "`server.port` meant"),
        ("server = 1\n", "[server]"),
        ("[limits.max]\nmemory = 5\n", "memory"),
        ("[limits.max]\nmemory = \"lots\"\n", "limits.max.memory"),
        ("[limits.default]\ncpu = \"-1\"\n", "limits.default.cpu"),
        (
            "[server]\nhost = \"0.0.0.0\"\napi_key = \"\"\n",
            "server.api_key",
        ),
        ("[server]\napi_key = \"short\"\n", "server.api_key"),
        (
            "[server]\nmax_sandbox_timeout_seconds = 5\n",
            "max_sandbox_timeout_seconds",
        ),
        ("[runtime]\nkind = \"docker\"\n", "runtime.kind"),
        ("[runtime]\nspares = 1025\n", "runtime.spares"),
        (
            "[storage]\nallowed_host_paths = [\"srv\"]\n",
            "storage.allowed_host_paths",
        ),
        (
            "[storage]\nallowed_host_paths = [\"/srv/../etc\"]\n",
            "storage.allowed_host_paths",
        ),
        (
            "[storage]\nvolume_max_size = \"lots\"\n",
            "storage.volume_max_size",
        ),
        (
            "[server]\npublic_host = \"http://x\"\n",
            "server.public_host",
        ),
        ("[log]\nlevel = \"lo=ud=est\"\n", "log.level"),
        (
            "[egress]\nextra_ca_file = \"/nowhere/ca.pem\"\n",
            "egress.extra_ca_file",
        ),
        (
            "[egress]\nvault_trusted_proxies = [\"192.0.2.7/8\"]\n",
            "egress.vault_trusted_proxies",
        ),
    ] {
        let error = Settings::parse(text).unwrap_err().to_string();
        assert!(error.contains(named), "{text}: {error}");
    }
}

#[test]
fn every_fault_is_told_with_its_line() {
    let text = "\
[server]
port = 70000
hots = \"x\"
api_key = \"short\"

[[runtime.aliases]]
pattern = \"a\"
images = [\"b\"]

[[runtime.aliases]]
pattern = \"a\"
image = [\"b\"]

[limits.max]
memory = \"lots\"
";
    let (settings, told) = findings(text, &[("BARCHAN_PROXY__IDLE_S", "long")]);
    assert!(settings.is_none());
    for part in [
        "text:2: server.port: invalid value: integer `70000`, expected a number from 0 to 65535",
        "text:3: there is no setting `server.hots`; is `server.host` meant?",
        "text:4: server.api_key: a key has at least",
        "text:12: runtime.aliases: unknown field `image`",
        "text:15: limits.max.memory: write bytes",
        "BARCHAN_PROXY__IDLE_S: proxy.idle_s: ",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(told.lines().count(), 6, "{told}");
    let (_, told) = findings("[server]\nport = \nhost = 'a\n", &[]);
    assert!(
        told.starts_with("text:2: ") && told.contains("text:3: "),
        "{told}"
    );
}

/// A variable, its value, the setting it means, and how that is shown.
const SET: &[(&str, &str, &str, &str)] = &[
    ("BARCHAN_SERVER__PORT", "9000", "server.port", "9000"),
    ("BARCHAN_SERVER__HOST", "::1", "server.host", "\"::1\""),
    ("BARCHAN_SERVER__TCP", "false", "server.tcp", "false"),
    ("BARCHAN_LIMITS__MAX__CPU", "2", "limits.max.cpu", "\"2\""),
    (
        "BARCHAN_LIMITS__DEFAULT__DISK",
        "1Gi",
        "limits.default.disk",
        "\"1Gi\"",
    ),
    ("BARCHAN_LOG", "\"warn\"", "log.level", "\"warn\""),
    (
        "BARCHAN_LOG",
        "info,a=debug",
        "log.level",
        "\"info,a=debug\"",
    ),
    (
        "BARCHAN_SERVER__ALLOWED_HOSTS",
        "a, b",
        "server.allowed_hosts",
        r#"["a","b"]"#,
    ),
    (
        "BARCHAN_SERVER__ALLOWED_HOSTS",
        "['a,b']",
        "server.allowed_hosts",
        r#"["a,b"]"#,
    ),
    (
        "BARCHAN_SERVER__ALLOWED_HOSTS",
        "a",
        "server.allowed_hosts",
        r#"["a"]"#,
    ),
    (
        "BARCHAN_RUNTIME__ALIASES",
        "[{ pattern = 'a', images = ['b'] }]",
        "runtime.aliases",
        r#"[{"images":["b"],"pattern":"a"}]"#,
    ),
    ("BARCHAN_SERVER__PORT", "", "server.port", "1"),
    (
        "BARCHAN_API_KEY",
        "1234567890123456",
        "server.api_key",
        "\"[secret]\"",
    ),
    (
        "OPENSANDBOX_SERVER_API_KEY",
        "1234567890123456",
        "server.api_key",
        "\"[secret]\"",
    ),
    (
        "BARCHAN_SERVER__API_KEY",
        "{ env = 'CARGO_MANIFEST_DIR' }",
        "server.api_key",
        r#"{"env":"CARGO_MANIFEST_DIR"}"#,
    ),
];

#[test]
fn variables_set_every_kind_of_setting() {
    for &(name, value, key, expected) in SET {
        let text = "[server]\nport = 1\nhost = \"127.0.0.2\"\n";
        let surroundings = Surroundings::text(text).with_variables([(name, value)]);
        let loaded = surroundings.read().unwrap();
        let shown = loaded.shown();
        let shown = shown.iter().find(|shown| shown.key == key).unwrap();
        assert_eq!(shown.value.to_string(), expected, "{name}={value}");
        let variable = name.to_owned();
        let from_variable = shown.origin == Origin::Environment { variable };
        assert_eq!(from_variable, !value.is_empty(), "{name}={value}");
    }
}

#[test]
fn variables_that_nobody_reads_are_told() {
    for (variables, told) in [
        (
            &[("BARCHAN_SERVER__PROT", "1")][..],
            "is BARCHAN_SERVER__PORT meant?",
        ),
        (&[("BARCHAN_HOST", "1")], "is BARCHAN_SERVER__HOST meant?"),
        (
            &[("BARCHAN_LOG_LEVEL", "1")],
            "is BARCHAN_LOG__LEVEL meant?",
        ),
        (
            &[("BARCHAN_QUITE_UNKNOWN", "hunter2")],
            "BARCHAN_QUITE_UNKNOWN: nothing reads",
        ),
        (
            &[("BARCHAN_SERVER", "http://x"), ("BARCHAN_GUESTS_DIR", "/x")],
            "",
        ),
        (
            &[
                ("BARCHAN_SERVICE_HOST", "192.0.2.1"),
                ("BARCHAN_PORT_80_TCP", "x"),
            ],
            "",
        ),
        (
            &[("BARCHAN_LOG", "warn"), ("BARCHAN_LOG__LEVEL", "info")],
            "BARCHAN_LOG says something else, and BARCHAN_LOG__LEVEL is stronger",
        ),
        (
            &[("BARCHAN_LOG", "warn"), ("BARCHAN_LOG__LEVEL", "warn")],
            "",
        ),
    ] {
        let (settings, warnings) = findings("", variables);
        assert!(settings.is_some());
        assert_eq!(
            warnings.is_empty(),
            told.is_empty(),
            "{variables:?}: {warnings}"
        );
        assert!(
            warnings.contains(told) && !warnings.contains("hunter2"),
            "{warnings}"
        );
    }
}

#[test]
fn what_is_legal_and_doubtful_is_told() {
    let open = "[server]\nhost = \"0.0.0.0\"\n";
    for (text, told) in [
        ("", &[][..]),
        ("server.api_key = \"\"", &["server.api_key: no key"]),
        (
            open,
            &[
                "server.host: the server speaks plain HTTP",
                "server.public_host: without it",
                "server.max_sandbox_timeout_seconds: callers",
            ],
        ),
        (
            "server.tcp = false\nserver.public_host = \"a\"",
            &["server.public_host: "],
        ),
        (
            "server.socket = \"a.sock\"",
            &["server.socket: the path depends"],
        ),
        ("proxy.idle_s = 0", &["proxy.idle_s: 0 counts as 1"]),
        (
            "limits.default.memory = \"2Gi\"\nlimits.max.memory = \"1Gi\"",
            &["limits.default.memory: sandboxes whose caller"],
        ),
        (
            "limits.max.memory = \"1Gi\"\nlimits.max.disk = \"10Gi\"",
            &[],
        ),
    ] {
        let (settings, warnings) = findings(text, &[]);
        assert!(settings.is_some(), "{text}: {warnings}");
        assert_eq!(warnings.lines().count(), told.len(), "{text}: {warnings}");
        for part in told {
            assert!(warnings.contains(part), "{text}: {warnings}");
        }
    }
}

/// A setting of another type than `SecretSetting` that held a secret would be shown.
#[test]
fn every_secret_of_the_settings_is_one_that_hides_itself() {
    let source = include_str!("../config.rs");
    let fields = source
        .lines()
        .filter(|line| line.trim().starts_with("pub "));
    for field in fields {
        assert!(
            !field.contains("Secret") || field.contains("SecretSetting"),
            "{field}"
        );
    }
}

/// The page of all variables names those of other readers, and those are no faults of a server.
#[test]
fn every_variable_of_the_page_is_known() {
    let page = include_str!("../../../../docs/reference/environment.md");
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `BARCHAN_"));
    let names: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    assert!(names.len() > 8);
    for name in names {
        let (_, told) = findings("", &[(&format!("BARCHAN_{name}"), "info")]);
        assert!(!told.contains("nothing reads"), "{told}");
    }
}

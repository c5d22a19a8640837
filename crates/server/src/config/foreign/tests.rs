use super::*;

/// What becomes of one line, in a few words.
fn word(text: &str) -> String {
    let import = import(text, &[]).unwrap();
    let lines = import.lines.iter().filter(|line| line.line.is_some());
    let words = lines.map(|line| match &line.outcome {
        Outcome::Mapped { ours, .. } => ours.join("; "),
        Outcome::Ignored { .. } => "ignored".to_owned(),
        Outcome::Refused { .. } => "refused".to_owned(),
    });
    words.collect::<Vec<_>>().join(" | ")
}

/// A line of theirs, and what becomes of it.
const JUDGED: &[(&str, &str)] = &[
    ("server.host = \"0.0.0.0\"", "server.host = \"0.0.0.0\""),
    ("server.host = \"localhost\"", "server.host = \"127.0.0.1\""),
    ("server.host = \"example.org\"", "refused"),
    ("server.port = 80", "server.port = 80"),
    ("server.port = 70000", "refused"),
    ("server.port = \"80\"", "refused"),
    (
        "server.api_key = \"0123456789abcdef\"",
        "server.api_key = [secret]",
    ),
    ("server.api_key = \"short\"", "refused"),
    ("server.api_key = \"\"", "ignored"),
    (
        "server.eip = \"192.0.2.7\"",
        "server.public_host = \"192.0.2.7:8080\"",
    ),
    (
        "server.eip = \"2001:db8::1\"",
        "server.public_host = \"[2001:db8::1]:8080\"",
    ),
    ("server.eip = \"http://x\"", "refused"),
    (
        "server.max_sandbox_timeout_seconds = 3600",
        "server.max_sandbox_timeout_seconds = 3600",
    ),
    ("server.max_sandbox_timeout_seconds = 5", "refused"),
    ("server.timeout_keep_alive = 30", "server.head_wait_s = 30"),
    (
        "server.timeout_graceful_shutdown = 7",
        "server.shutdown_grace_s = 7",
    ),
    (
        "server.limit_concurrency = 100",
        "server.connections_max = 100",
    ),
    ("server.limit_concurrency = 0", "ignored"),
    ("server.backlog = 2048", "ignored"),
    ("server.thread_pool_size = 200", "ignored"),
    ("server.loop = \"auto\"", "ignored"),
    ("server.http = \"auto\"", "ignored"),
    ("proxy.resolve_internal = true", "ignored"),
    ("log.level = \"INFO\"", "log.level = \"info\""),
    ("log.level = \"WARNING\"", "log.level = \"warn\""),
    ("log.level = \"CRITICAL\"", "log.level = \"error\""),
    ("log.level = \"loud\"", "refused"),
    ("log.file_enabled = true", "ignored"),
    ("log.file_path = \"/x\"", "ignored"),
    ("log.access_file_path = \"/x\"", "ignored"),
    ("log.file_max_bytes = 5", "ignored"),
    ("log.file_backup_count = 5", "ignored"),
    ("runtime.type = \"docker\"", "runtime.kind = \"native\""),
    ("runtime.type = \"kubernetes\"", "refused"),
    ("runtime.execd_image = \"opensandbox/execd\"", "ignored"),
    ("runtime.execd_run_as_init = true", "ignored"),
    ("docker.network_mode = \"bridge\"", "ignored"),
    ("docker.api_timeout = 90", "runtime.verb_wait_s = 90"),
    ("docker.host_ip = \"192.0.2.1\"", "ignored"),
    ("docker.drop_capabilities = [\"SYS_ADMIN\"]", "ignored"),
    ("docker.apparmor_profile = \"\"", "ignored"),
    ("docker.apparmor_profile = \"mine\"", "refused"),
    ("docker.seccomp_profile = \"/p.json\"", "refused"),
    ("docker.no_new_privileges = false", "ignored"),
    (
        "docker.pids_limit = 512",
        "limits.default.pids = 512; limits.max.pids = 512",
    ),
    ("docker.pids_limit = -1", "refused"),
    ("docker.port_range_min = 40000", "ignored"),
    ("docker.port_range_max = 60000", "ignored"),
    ("docker.publish_host = \"0.0.0.0\"", "ignored"),
    ("docker.sandbox_env = {}", "ignored"),
    ("[docker.sandbox_env]\nA = \"b\"", "refused"),
    ("docker.sandbox_binds = []", "ignored"),
    ("docker.sandbox_binds = [\"/a:/b\"]", "refused"),
    (
        "storage.allowed_host_paths = [\"/data\"]",
        "storage.allowed_host_paths = [\"/data\"]",
    ),
    (
        "storage.volume_default_size = \"2Gi\"",
        "storage.volume_default_size = \"2Gi\"",
    ),
    ("storage.ossfs_mount_root = \"/mnt\"", "ignored"),
    ("store.type = \"sqlite\"", "ignored"),
    ("store.type = \"postgresql\"", "refused"),
    ("store.path = \"~/x.db\"", "ignored"),
    ("store.postgresql.dsn = \"postgresql://u:p@h\"", "ignored"),
    ("egress.image = \"opensandbox/egress\"", "ignored"),
    ("egress.mode = \"dns\"", "ignored"),
    ("egress.limits = { cpu = \"1\" }", "ignored"),
    (
        "egress.upstream_proxy.authorization = \"Basic x\"",
        "ignored",
    ),
    ("ingress.mode = \"direct\"", "ignored"),
    ("ingress.mode = \"gateway\"", "refused"),
    ("ingress.gateway.route.mode = \"uri\"", "ignored"),
    (
        "ingress.secure_access.keys = [{ key_id = \"a\", key = \"a2V5\" }]",
        "proxy.osep_keys = [secret]",
    ),
    (
        "ingress.secure_access.keys = [{ key_id = \"long\", key = \"a2V5\" }]",
        "refused",
    ),
    ("ingress.secure_access.keys = [\"a\"]", "refused"),
    ("ingress.secure_access.active_key = \"a\"", "ignored"),
    ("secure_runtime.type = \"\"", "ignored"),
    ("secure_runtime.type = \"gvisor\"", "refused"),
    ("secure_runtime.docker_runtime = \"runsc\"", "ignored"),
    ("renew_intent.enabled = true", "ignored"),
    ("renew_intent.min_interval_seconds = 60", "ignored"),
    ("renew_intent.redis.dsn = \"redis://x\"", "ignored"),
    ("otel.enabled = false", "ignored"),
    ("otel.enabled = true", "refused"),
    ("otel.endpoint = \"http://x\"", "ignored"),
    ("otel.service_name = \"x\"", "observe.service_name = \"x\""),
    ("tenants.provider = \"file\"", "refused"),
    ("kubernetes.namespace = \"x\"", "ignored"),
    (
        "kubernetes.pool_acquisition_timeout_seconds = 9",
        "pools.acquire_wait_s = 9",
    ),
    ("kubernetes.informer_enabled = true", "ignored"),
    (
        "kubernetes.execd_init_resources.limits = { cpu = \"1\" }",
        "ignored",
    ),
    ("agent_sandbox.shutdown_policy = \"Delete\"", "ignored"),
    ("server.future = 1", "ignored"),
];

#[test]
fn every_setting_of_theirs_is_judged() {
    for (theirs, expected) in JUDGED {
        assert_eq!(word(theirs), *expected, "{theirs}");
    }
}

const WHOLE: &str = "\
[server]
host = \"0.0.0.0\"
port = 9090
api_key = \"their-own-key-of-old\"
eip = \"sandbox.example\"

[runtime]
type = \"docker\"
execd_image = \"opensandbox/execd:v1.1.0\"

[docker]
network_mode = \"bridge\"
pids_limit = 1000
";

#[test]
fn a_whole_file_becomes_ours() {
    let variables = [
        "OPENSANDBOX_SERVER_API_KEY",
        "OPENSANDBOX_INSECURE_SERVER",
        "PATH",
    ];
    let import = import(WHOLE, &variables.map(str::to_owned)).unwrap();
    let at: Vec<Option<usize>> = import.lines.iter().map(|line| line.line).collect();
    let lines = [2, 3, 4, 5, 8, 9, 12, 13].map(Some);
    assert_eq!(at, [&lines[..], &[None, None]].concat());
    let settings = super::super::Settings::parse(&import.text).unwrap();
    assert_eq!(settings.server.port, 9090);
    assert_eq!(
        settings.server.public_host.as_deref(),
        Some("sandbox.example:9090")
    );
    assert_eq!(settings.limits.max.pids, Some(1000));
    let key = settings.server.api_key.unwrap();
    assert_eq!(key.secret().reveal(), "their-own-key-of-old");
    let told = format!("{import:?}") + &serde_json::to_string(&import.lines).unwrap();
    assert!(!told.contains("their-own-key-of-old"), "{told}");
}

#[test]
fn what_they_leave_unsaid_is_told_and_faults_have_their_lines() {
    let told = import("", &[]).unwrap();
    let keys: Vec<&str> = told.lines.iter().map(|line| line.theirs.as_str()).collect();
    assert_eq!(keys, ["server.host", "server.api_key"]);
    let faults = import("[server]\nport = \nhost = \"a\n", &[]).unwrap_err();
    assert_eq!(faults[0].0, 2, "{faults:?}");
}

#[test]
fn their_file_is_known_as_theirs() {
    for (text, theirs) in [
        (WHOLE, true),
        ("[runtime]\ntype = \"docker\"\n", true),
        ("[kubernetes]\nnamespace = \"x\"\n", true),
        ("[server]\neip = \"x\"\n", true),
        ("[server]\nport = 1\n", false),
        ("[runtime]\nkind = \"native\"\n", false),
        ("", false),
    ] {
        let read = Surroundings::text(text).read();
        assert_eq!(
            matches!(read, Err(SettingsError::Foreign(_))),
            theirs,
            "{text}"
        );
    }
}

use super::*;

fn spec(folder: &str, language: &str) -> Spec {
    Spec {
        folder: PathBuf::from(folder),
        argv: ["python", "-f", "{connection_file}", "{resource_dir}/x"]
            .map(str::to_owned)
            .to_vec(),
        language: language.to_owned(),
        env: BTreeMap::new(),
        interrupt_mode: InterruptMode::Signal,
    }
}

#[test]
fn the_kernel_of_a_language_is_chosen_by_language_and_name() {
    let all = [
        spec("/u/python3", "python"),
        spec("/u/xpython", "Python"),
        spec("/u/jslab", "javascript"),
        spec("/v/python", "python"),
        spec("/v/odd", ""),
    ];
    for (language, wanted) in [
        ("python", Some("/v/python")),
        ("Python", Some("/v/python")),
        ("python3", Some("/u/python3")),
        ("javascript", Some("/u/jslab")),
        ("odd", Some("/v/odd")),
        ("java", None),
    ] {
        let found = choose(language, &all).map(|spec| spec.folder.to_str().unwrap());
        assert_eq!(found, wanted, "{language}");
    }
    let found = choose("python", &all[..2]).map(Spec::name);
    assert_eq!(found, Some("xpython"));
    let found = choose("python", &all[..1]).map(Spec::name);
    assert_eq!(found, Some("python3"), "nothing else is there");
}

#[test]
fn folders_are_looked_through_in_jupyters_order() {
    let variables = [
        ("JUPYTER_PATH", "/a:/b"),
        ("HOME", "/home/ann"),
        ("PATH", "/opt/venv/bin:/usr/bin:bin"),
    ];
    let set = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let mut variables = Variables::from(variables.map(set));
    let shown = |variables: &Variables| -> Vec<String> {
        folders(variables)
            .iter()
            .map(|folder| folder.display().to_string())
            .collect()
    };
    let wanted = [
        "/a/kernels",
        "/b/kernels",
        "/home/ann/.local/share/jupyter/kernels",
        "/opt/venv/share/jupyter/kernels",
        "/usr/share/jupyter/kernels",
        "/usr/local/share/jupyter/kernels",
    ];
    assert_eq!(shown(&variables), wanted);
    variables.insert("JUPYTER_DATA_DIR".to_owned(), "/data".to_owned());
    assert_eq!(shown(&variables)[2], "/data/kernels");
    assert_eq!(shown(&Variables::new()).len(), 2);
}

#[test]
fn arguments_are_filled_in_and_programs_looked_for_beside_the_kernel() {
    let spec = spec("/opt/venv/share/jupyter/kernels/python3", "python");
    let wanted = [
        "python",
        "-f",
        "/run/c",
        "/opt/venv/share/jupyter/kernels/python3/x",
    ];
    assert_eq!(spec.arguments("/run/c"), wanted);
    assert_eq!(spec.search_path("/bin"), "/opt/venv/bin:/bin");
}

#[test]
fn descriptions_that_make_no_sense_are_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text, good) in [
        (
            "good",
            r#"{"argv":["x"],"language":"l","interrupt_mode":"message"}"#,
            true,
        ),
        ("bare", r#"{"argv":["x"]}"#, true),
        ("empty", r#"{"argv":[]}"#, false),
        ("nul", r#"{"argv":["a\u0000"]}"#, false),
        ("mode", r#"{"argv":["x"],"interrupt_mode":"shout"}"#, false),
        ("text", "no json", false),
    ] {
        let at = folder.path().join(name);
        std::fs::create_dir(&at).unwrap();
        std::fs::write(at.join("kernel.json"), text).unwrap();
        assert_eq!(read(at).is_some(), good, "{name}");
    }
    assert!(read(folder.path().join("none")).is_none());
    let found = read_all(folder.path());
    assert_eq!(
        found.iter().map(Spec::name).collect::<Vec<_>>(),
        ["bare", "good"]
    );
    assert_eq!(found[1].interrupt_mode, InterruptMode::Message);
}

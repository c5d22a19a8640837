//! Searches for text and for names.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::{good, refusal};
use crate::world::World;

/// A small checkout.
fn checkout() -> World {
    let world = World::new();
    for (name, content) in [
        ("src/app/main.py", "import os\nMARK = 1\r\n# MARK twice\n"),
        ("src/.cache/x.py", "MARK hidden\n"),
        ("top.py", "no match\nMARK"),
        (".env.py", "MARK=env\n"),
        (".git/config", "MARK git\n"),
        ("docs/a.md", "mark lower\nMARK é\n"),
        ("docs/binary.md", "MARK\0\n"),
        ("docs/latin1.md", "caf\u{e9}\n"),
    ] {
        let path = world.d(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    std::fs::write(world.d("docs/latin1.md"), b"MARK caf\xe9\n").unwrap();
    symlink("../top.py", world.d("docs/link.py")).unwrap();
    symlink("..", world.d("docs/loop")).unwrap();
    world
}

/// Paths below the scratch directory, with lines.
fn places(world: &World, found: &Value) -> Vec<String> {
    let base = format!("{}/", world.d("").to_str().unwrap().trim_end_matches('/'));
    let empty = Vec::new();
    let matches = found["matches"].as_array().unwrap_or(&empty);
    let place = |it: &Value| {
        let path = it["path"].as_str().unwrap().strip_prefix(&base).unwrap();
        format!("{path}:{}:{}", it["line"], it["text"].as_str().unwrap())
    };
    matches.iter().map(place).collect()
}

#[test]
fn text_is_found_where_it_is() {
    let world = checkout();
    let (env, latin, md) = (
        ".env.py:1:MARK=env",
        "docs/latin1.md:1:MARK caf\u{fffd}",
        "docs/a.md:2:MARK é",
    );
    let hidden = "src/.cache/x.py:1:MARK hidden";
    let (one, two) = (
        "src/app/main.py:2:MARK = 1",
        "src/app/main.py:3:# MARK twice",
    );
    let top = "top.py:2:MARK";
    for (body, wanted) in [
        (
            json!({"pattern": "MARK"}),
            vec![env, md, latin, hidden, one, two, top],
        ),
        (
            json!({"pattern": "MARK", "glob": "*.py"}),
            vec![hidden, one, two, top],
        ),
        (
            json!({"pattern": "MARK", "glob": "**/*.py"}),
            vec![one, two, top],
        ),
        (
            json!({"pattern": "MARK", "glob": "src/**/*.py"}),
            vec![one, two],
        ),
        (
            json!({"pattern": "MARK", "glob": "*.{md,x}"}),
            vec![md, latin],
        ),
        (
            json!({"pattern": "MARK", "path": "src/app"}),
            vec![one, two],
        ),
        (json!({"pattern": "MARK", "path": "top.py"}), vec![top]),
        (
            json!({"pattern": "MARK", "path": "docs/link.py"}),
            vec!["docs/link.py:2:MARK"],
        ),
        (
            json!({"pattern": "MARK", "path": ".git"}),
            vec![".git/config:1:MARK git"],
        ),
        (
            json!({"pattern": "MARK", "workdir": "docs"}),
            vec![md, latin],
        ),
        (json!({"pattern": "MARK é"}), vec![md]),
        (json!({"pattern": "M.RK"}), vec![]),
        (json!({"pattern": "^M.R+K$", "regex": true}), vec![top]),
        (
            json!({"pattern": "mark lower", "ignore_case": true}),
            vec!["docs/a.md:1:mark lower"],
        ),
        (
            json!({"pattern": "MARK", "exclude_dirs": ["src", "docs"]}),
            vec![env, ".git/config:1:MARK git", top],
        ),
        (json!({"pattern": "nowhere"}), vec![]),
    ] {
        let found = good(&world, "grep", &body);
        assert_eq!(places(&world, &found), wanted, "{body}");
        assert_eq!(found["truncated"], Value::Null, "{body}");
    }
}

#[test]
fn answers_have_modes_and_bounds() {
    let world = checkout();
    let at = |name: &str| world.d(name).to_str().unwrap().to_owned();
    let files = good(
        &world,
        "grep",
        &json!({"pattern": "MARK", "path": "src", "mode": "files"}),
    );
    assert_eq!(
        files["files"],
        json!([at("src/.cache/x.py"), at("src/app/main.py")])
    );
    let counts = good(
        &world,
        "grep",
        &json!({"pattern": "MARK", "path": "src", "mode": "counts"}),
    );
    let wanted = json!([
        {"path": at("src/.cache/x.py"), "count": 1},
        {"path": at("src/app/main.py"), "count": 2},
    ]);
    assert_eq!(counts["counts"], wanted);
    for (max_count, truncated) in [(6, json!("count")), (7, Value::Null)] {
        let body = json!({"pattern": "MARK", "max_count": max_count});
        let found = good(&world, "grep", &body);
        assert_eq!(found["matches"].as_array().unwrap().len(), max_count);
        assert_eq!(found["truncated"], truncated);
    }
}

#[test]
fn names_are_found_where_they_are() {
    let world = checkout();
    let at = |names: &[&str]| -> Value {
        names
            .iter()
            .map(|name| world.d(name).to_str().unwrap().to_owned())
            .collect()
    };
    for (body, wanted) in [
        (
            json!({"pattern": "*.py"}),
            at(&[
                "docs/link.py",
                "src/.cache/x.py",
                "src/app/main.py",
                "top.py",
            ]),
        ),
        (
            json!({"pattern": "**/*.py"}),
            at(&["docs/link.py", "src/app/main.py", "top.py"]),
        ),
        (json!({"pattern": "/*.py"}), at(&["top.py"])),
        (json!({"pattern": "src/**"}), at(&["src/app/main.py"])),
        (json!({"pattern": ".*"}), at(&[".env.py"])),
        (
            json!({"pattern": "*.{md,toml}", "path": "docs"}),
            at(&["docs/a.md", "docs/binary.md", "docs/latin1.md"]),
        ),
        (json!({"pattern": "*.py", "path": "docs"}), at(&[])),
        (json!({"pattern": "docs"}), at(&[])),
    ] {
        let found = good(&world, "glob", &body);
        assert_eq!(found["paths"], wanted, "{body}");
        assert_eq!(found["truncated"], Value::Null, "{body}");
    }
    let few = good(&world, "glob", &json!({"pattern": "*", "max_count": 2}));
    assert_eq!(
        (few["paths"].as_array().unwrap().len(), &few["truncated"]),
        (2, &json!("count"))
    );
    for (body, code) in [
        (json!({"pattern": "../*"}), "invalid_pattern"),
        (json!({"pattern": "{a,b}".repeat(11)}), "pattern_too_broad"),
        (json!({"pattern": "[a"}), "invalid_pattern"),
        (json!({"pattern": "*", "path": "none"}), "path_not_found"),
        (json!({"pattern": "*", "path": "top.py"}), "not_a_directory"),
    ] {
        assert_eq!(refusal(&world, "glob", &body).1, code, "{body}");
    }
    assert_eq!(
        refusal(&world, "grep", &json!({"pattern": "(", "regex": true})).1,
        "invalid_pattern"
    );
    assert_eq!(
        refusal(&world, "grep", &json!({"pattern": "x", "path": "none"})).1,
        "path_not_found"
    );
}

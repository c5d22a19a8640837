//! The rules of shape, words and names, held against every file of the repository.

use std::collections::BTreeSet;

use crate::fault::{self, Fault};
use crate::tree::{self, Source, sources};
use crate::{names, shape, words};

fn code() -> impl Iterator<Item = &'static Source> {
    sources()
        .iter()
        .filter(|source| source.is("rs") || source.is("py"))
}

#[test]
fn files_keep_their_shape() {
    let all = sources()
        .iter()
        .flat_map(|it| shape::faults(&it.path, &it.text));
    fault::none(&all.collect::<Vec<_>>());
}

#[test]
fn words_stay_in_their_folders() {
    let all = sources()
        .iter()
        .flat_map(|it| words::faults(&it.path, &it.text));
    fault::none(&all.collect::<Vec<_>>());
}

#[test]
fn every_boundary_names_its_test() {
    let tests: BTreeSet<String> = code()
        .flat_map(|source| names::tests_of(&source.path, &source.text))
        .collect();
    assert!(
        tests.contains("every_boundary_names_its_test"),
        "the search for tests is broken"
    );
    let all = code().flat_map(|it| names::faults(&it.path, &it.text, &tests));
    fault::none(&all.collect::<Vec<_>>());
}

#[test]
fn every_file_belongs_to_a_module() {
    let mut found = Vec::new();
    for source in code() {
        let Some((files, name)) = shape::parents(&source.path) else {
            continue;
        };
        let named = sources().iter().filter(|it| files.contains(&it.path));
        let mut lines = named.flat_map(|it| it.text.lines());
        if !lines.any(|line| line.trim().ends_with(&format!("mod {name};"))) {
            let what = format!("no `mod {name};` in {}", files.join(" or "));
            found.push(Fault::new(
                &source.path,
                1,
                what,
                "name it there, or remove the file",
            ));
        }
    }
    fault::none(&found);
}

#[test]
fn no_path_of_one_machine_is_written_down() {
    let root = tree::root().to_str().unwrap().to_owned();
    let instead = "find it at run time: a setting, the manifest's folder, a temporary folder";
    let mut found = Vec::new();
    for source in sources() {
        for (at, line) in source.text.lines().enumerate() {
            for path in [
                root.as_str(),
                concat!("/Us", "ers/"),
                concat!("/root/", ".cargo"),
            ] {
                if line.contains(path) {
                    let what = format!("the path `{path}` of one machine");
                    found.push(Fault::new(&source.path, at + 1, what, instead));
                }
            }
        }
    }
    fault::none(&found);
}

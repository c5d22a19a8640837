use barchan_testkit::fuzz;
use barchan_testkit::inputs::text_from;
use proptest::collection::{btree_map, vec};

use super::*;

const WORDS: &[&str] = &[
    "name = \"x\"\n",
    "base = \"debian\"\n",
    "apt = [",
    "]",
    "\"curl\"",
    ",",
    "\n",
    "pip = [\"a\"]\n",
    "run = ['x']\n",
    "env = { A = \"b\" }\n",
    "[[files]]\n",
    "path = \"/a/../b\"\n",
    "text = ''\n",
    "mode = 0o4755\n",
    "\"",
    "\\",
    "\0",
    "é",
    "= = ",
    "[x",
    "files = ",
];

/// What a build may rely on.
fn assert_sound(recipe: &Recipe) {
    assert!(recipe.name != "host" && recipe.name != BOOTSTRAP && !recipe.name.contains('/'));
    let words = recipe.pip.iter().chain(&recipe.apt).chain(&recipe.npm);
    assert!(
        words
            .into_iter()
            .all(|word| !word.starts_with('-') && !word.contains(['\n', '\0']))
    );
    for file in &recipe.files {
        assert!(file.path.starts_with('/') && file.mode <= 0o1777);
        assert!(!file.path.split('/').any(|part| part == ".."));
    }
    assert!(!recipe.env.contains_key("PATH"));
}

fuzz! {
    fn any_recipe_is_sound_or_refused(text in text_from(WORDS)) {
        for text in [format!("name = \"x\"\nbase = \"debian\"\n{text}"), text] {
            match Recipe::parse(&text, "x.toml") {
                Ok(recipe) => assert_sound(&recipe),
                Err(error) => assert!(error.to_string().contains("x.toml")),
            }
        }
    }

    fn a_recipe_comes_back_as_it_was_written(
        pip in vec("[a-z]{1,9}(==[0-9.]{1,5})?", 0..4),
        run in vec("[ -~]{1,20}", 0..3),
        env in btree_map("[A-Z_]{1,3}", "[^\\x00]{0,20}", 0..3),
        files in vec(("(/[a-z.]{0,3}){1,4}", "\\PC{0,20}", 0_u32..0o10_000), 0..3),
    ) {
        let file = |(path, text, mode): &(String, String, u32)| FileSpec {
            path: path.clone(),
            text: Some(text.clone()),
            source: None,
            mode: *mode,
        };
        let recipe = Recipe {
            name: "x".to_owned(),
            base: "host".to_owned(),
            pip,
            run,
            env,
            files: files.iter().map(file).collect(),
            ..Recipe::default()
        };
        match Recipe::parse(&toml::to_string(&recipe).unwrap(), "x.toml") {
            Ok(read) => {
                assert_sound(&read);
                assert_eq!(read, recipe);
            }
            Err(_) => assert!(recipe.check().is_err()),
        }
    }
}

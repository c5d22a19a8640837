//! Finds a recipe by the name of one that the program carries, or by path, and reads what lies
//! beside it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::image::error::ImageError;
use crate::image::manifest::sha256;
use crate::image::recipe::Recipe;

/// The recipes that the program carries.
pub const EMBEDDED: [(&str, &str); 4] = [
    (
        "code-interpreter",
        include_str!("../../../../images/code-interpreter.toml"),
    ),
    (
        "data-science",
        include_str!("../../../../images/data-science.toml"),
    ),
    ("debian", include_str!("../../../../images/debian.toml")),
    ("minimal", include_str!("../../../../images/minimal.toml")),
];

/// To be raised whenever a build of the same recipe comes to something else than before.
const PROCEDURE: &str = "1";

/// Longest recipe.
const RECIPE_BYTES_MAX: u64 = 1024 * 1024;
/// Longest file beside a recipe.
const SOURCE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A recipe with the content of every file it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedRecipe {
    /// The recipe itself.
    pub recipe: Recipe,
    /// Content of its `files`, in their order.
    pub(super) contents: Vec<Vec<u8>>,
    /// The requirements file: `requirements`, then `pip`. `None` when neither names a package.
    pub(super) requirements: Option<Vec<u8>>,
}

impl LoadedRecipe {
    /// Loads a recipe: the name of an embedded one, or the path of a TOML file (which holds a `/`
    /// or ends in `.toml`).
    pub fn load(name_or_path: &str) -> Result<Self, ImageError> {
        if name_or_path.contains('/') || name_or_path.ends_with(".toml") {
            let path = Path::new(name_or_path);
            let text = read(path, RECIPE_BYTES_MAX, name_or_path)?;
            let text = String::from_utf8(text)
                .map_err(|_| refused(name_or_path, "is no UTF-8 text".to_owned()))?;
            return Self::complete(
                Recipe::parse(&text, name_or_path)?,
                name_or_path,
                path.parent(),
            );
        }
        let found = EMBEDDED.iter().find(|(name, _)| *name == name_or_path);
        let Some((name, text)) = found else {
            let names = EMBEDDED.map(|(name, _)| name).join(", ");
            let reason = format!(
                "there is none of this name; there are {names}, or give the path of a TOML file"
            );
            return Err(refused(name_or_path, reason));
        };
        Self::complete(Recipe::parse(text, name)?, name, None)
    }

    pub(super) fn complete(
        recipe: Recipe,
        origin: &str,
        folder: Option<&Path>,
    ) -> Result<Self, ImageError> {
        let beside = |source: &str| -> Result<PathBuf, ImageError> {
            let folder = folder.ok_or_else(|| {
                refused(
                    origin,
                    format!("{source:?}: a recipe of the program has no files beside it"),
                )
            })?;
            Ok(folder.join(source))
        };
        let mut contents = Vec::new();
        for file in &recipe.files {
            contents.push(match (&file.text, &file.source) {
                (Some(text), _) => text.clone().into_bytes(),
                (None, Some(source)) => read(&beside(source)?, SOURCE_BYTES_MAX, origin)?,
                (None, None) => Vec::new(),
            });
        }
        let mut requirements = match &recipe.requirements {
            Some(source) => read(&beside(source)?, RECIPE_BYTES_MAX, origin)?,
            None => Vec::new(),
        };
        for line in &recipe.pip {
            requirements.extend_from_slice(format!("{line}\n").as_bytes());
        }
        let any = !requirements.is_empty();
        Ok(Self {
            recipe,
            contents,
            requirements: any.then_some(requirements),
        })
    }

    /// Digest of the recipe, the files it names, and what it is built on.
    pub(super) fn digest(&self, base_digest: &str) -> String {
        let mut parts = vec![PROCEDURE.to_owned(), base_digest.to_owned()];
        parts.push(sha256(
            &serde_json::to_vec(&self.recipe).unwrap_or_default(),
        ));
        parts.extend(self.contents.iter().map(|content| sha256(content)));
        parts.push(sha256(self.requirements.as_deref().unwrap_or_default()));
        sha256(parts.join("\n").as_bytes())
    }
}

fn read(path: &Path, bytes_max: u64, origin: &str) -> Result<Vec<u8>, ImageError> {
    let shown = path.display();
    let found =
        fs::metadata(path).map_err(|e| refused(origin, format!("cannot read {shown}: {e}")))?;
    if !found.is_file() || found.len() > bytes_max {
        return Err(refused(
            origin,
            format!("{shown} is no file of at most {bytes_max} bytes"),
        ));
    }
    fs::read(path).map_err(|e| refused(origin, format!("cannot read {shown}: {e}")))
}

fn refused(recipe: &str, reason: String) -> ImageError {
    ImageError::Recipe {
        recipe: recipe.to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(recipe: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("x.toml"), recipe).unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let path = folder.path().join("x.toml").display().to_string();
        (folder, path)
    }

    #[test]
    fn every_embedded_recipe_is_sound_and_bears_its_name() {
        for (name, _) in EMBEDDED {
            assert_eq!(LoadedRecipe::load(name).unwrap().recipe.name, name);
        }
    }

    #[test]
    fn the_digest_follows_recipe_files_and_base() {
        let text = "name='x'\nbase='host'\nrequirements='r.txt'\nfiles=[{path='/a',source='a'}]";
        let (folder, path) = written(text, &[("r.txt", "numpy\n"), ("a", "1")]);
        let digest = || LoadedRecipe::load(&path).unwrap().digest("base");
        let first = digest();
        assert_eq!(first, digest());
        assert_ne!(first, LoadedRecipe::load(&path).unwrap().digest("other"));
        fs::write(folder.path().join("a"), "2").unwrap();
        let second = digest();
        assert_ne!(first, second);
        fs::write(folder.path().join("r.txt"), "scipy\n").unwrap();
        assert_ne!(second, digest());
        let third = digest();
        fs::write(&path, format!("{text}\nenv={{A='1'}}")).unwrap();
        assert_ne!(third, digest());
    }

    #[test]
    fn comments_and_order_of_keys_do_not_change_the_digest() {
        let (_one, one) = written("name='x'\nbase='host'\nrun=['true']", &[]);
        let (_two, two) = written("# why\nrun = [\n  'true',\n]\nbase='host'\nname='x'", &[]);
        let digest = |path: &str| LoadedRecipe::load(path).unwrap().digest("base");
        assert_eq!(digest(&one), digest(&two));
    }

    #[test]
    fn what_is_missing_is_named() {
        let (_folder, path) = written(
            "name='x'\nbase='host'\nfiles=[{path='/a',source='gone'}]",
            &[],
        );
        let said = LoadedRecipe::load(&path).unwrap_err().to_string();
        assert!(said.contains("gone"), "{said}");
        let said = LoadedRecipe::load("nonesuch").unwrap_err().to_string();
        assert!(said.contains("data-science"), "{said}");
    }
}

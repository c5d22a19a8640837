//! What the tests of images share: a store, recipes on disk, a host to build on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use barchan_runtime::image::{
    self, Aliases, BuildJob, BuildRequest, Builder, Built, ClientSources, ImageError, LoadedRecipe,
    Progress, ProgressSink, ResolvedImage, Store,
};

/// One store in a folder that goes with the test.
pub(super) struct World {
    pub(super) folder: tempfile::TempDir,
    pub(super) store: Arc<Store>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) home: Option<PathBuf>,
    pub(super) seen: Arc<Mutex<Vec<Progress>>>,
}

impl World {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(&folder.path().join("images")).unwrap());
        Self {
            folder,
            store,
            env: BTreeMap::new(),
            home: None,
            seen: Arc::default(),
        }
    }

    /// Writes a recipe, and answers its path.
    pub(super) fn recipe(&self, text: &str) -> String {
        let path = self.folder.path().join("recipe.toml");
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    pub(super) fn request(&self, recipe: &str) -> BuildRequest {
        let (env, home) = (self.env.clone(), self.home.clone());
        let seen = Arc::clone(&self.seen);
        BuildRequest {
            recipe: LoadedRecipe::load(recipe).unwrap(),
            clients: ClientSources {
                env,
                home,
                root: "/".into(),
            },
            fresh: false,
            now_unix_s: 1_700_000_000,
            progress: ProgressSink::new(move |progress| seen.lock().unwrap().push(progress)),
        }
    }

    pub(super) async fn build(
        &self,
        recipe: &str,
        builder: &dyn Builder,
    ) -> Result<Built, ImageError> {
        image::build(&self.store, &self.request(recipe), builder).await
    }

    pub(super) fn resolve(&self, name: &str) -> Result<ResolvedImage, ImageError> {
        self.store.resolve(name, &Aliases::default())
    }

    pub(super) fn layers(&self) -> BTreeSet<String> {
        names(&self.folder.path().join("images/layers"))
    }

    pub(super) fn leftovers(&self) -> BTreeSet<String> {
        names(&self.folder.path().join("images/tmp"))
    }
}

/// The names in a folder.
pub(super) fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    entries.map(|name| name.into_string().unwrap()).collect()
}

/// A builder whose result is made by the test and not by the steps.
pub(super) struct Leaves<F>(pub(super) F);

#[async_trait]
impl<F: Fn(&Path) + Send + Sync> Builder for Leaves<F> {
    async fn run(&self, job: BuildJob) -> Result<PathBuf, ImageError> {
        let upper = job.scratch.join("upper");
        fs::create_dir(&upper).unwrap();
        self.0(&upper);
        Ok(upper)
    }
}

/// The least that makes a build run.
pub(super) const ONE_STEP: &str = "name = 'x'\nbase = 'host'\nrun = ['true']\n";

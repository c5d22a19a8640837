//! One build from recipe to manifest: cached by digest, one at a time per recipe, all or nothing.

mod stage;
mod workplace;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::steps::{self, NPM_PREFIX};
use super::{BuildJob, BuildStep, Builder, ProgressSink};
use crate::image::clients::{ClientSources, Clients, GIVEN};
use crate::image::error::ImageError;
use crate::image::manifest::Manifest;
use crate::image::recipes::LoadedRecipe;
use crate::image::seal::{self, Layer};
use crate::image::store::{Store, path_of};
use crate::image::{Aliases, HOST, PATH_DEFAULT, ResolvedImage, VENV};
use workplace::Workplace;

/// What to build and what the host lends to it.
#[derive(Debug, Clone)]
pub struct BuildRequest {
    /// The recipe with its files.
    pub recipe: LoadedRecipe,
    /// Where the host's package clients are configured.
    pub clients: ClientSources,
    /// Builds even when an equal image is there.
    pub fresh: bool,
    /// The time to write down, in seconds since 1970.
    pub now_unix_s: u64,
    /// Told of each step.
    pub progress: ProgressSink,
}

/// What a build came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The image.
    pub manifest: Manifest,
    /// Whether it was there already.
    pub cached: bool,
}

/// Builds a recipe's image and writes it into the store under the recipe's name, in place of what
/// had that name. On failure the store is as before. Only ever called for an operator.
pub async fn build(
    store: &Arc<Store>,
    request: &BuildRequest,
    builder: &dyn Builder,
) -> Result<Built, ImageError> {
    let base = Base::find(store, &request.recipe)?;
    let recipe_digest = request.recipe.digest(&base.digest);
    let hit = |store: &Store| {
        if request.fresh {
            Ok(None)
        } else {
            cached(store, request, &recipe_digest)
        }
    };
    if let Some(built) = hit(store)? {
        return Ok(built);
    }
    let place = Workplace::take(store, &recipe_digest, &request.progress).await?;
    // Whoever held the place before may have built just this.
    if let Some(built) = hit(store)? {
        return Ok(built);
    }
    let job = Prepared::new(request, &base, &place).await?;
    let upper = match job.steps.is_empty() {
        true => None,
        false => Some(run(request, &base, &job, &place, builder).await?),
    };
    let manifest = base.manifest(request, recipe_digest);
    request.progress.step(
        job.steps.len() + 1,
        job.steps.len() + 1,
        "sealing the layer",
    );
    let (store, secrets) = (Arc::clone(store), job.clients.secrets);
    let sealed = tokio::task::spawn_blocking(move || {
        let _lock = store.lock()?;
        finish(
            &store,
            manifest,
            upper.as_deref().map(|tree| (tree, &secrets)),
        )
    });
    let manifest = sealed
        .await
        .map_err(|e| failed(request, format!("sealing stopped: {e}")))??;
    Ok(Built {
        manifest,
        cached: false,
    })
}

fn cached(
    store: &Store,
    request: &BuildRequest,
    digest: &str,
) -> Result<Option<Built>, ImageError> {
    let found = store
        .manifest(&request.recipe.recipe.name)
        .or_else(|error| match error {
            // What cannot be read is built anew.
            ImageError::Corrupt { .. } => Ok(None),
            other => Err(other),
        })?;
    let whole = |manifest: &Manifest| manifest.layers.iter().all(|id| store.layer(id).is_dir());
    let hit = found.filter(|manifest| manifest.recipe_digest == digest && whole(manifest));
    Ok(hit.map(|manifest| Built {
        manifest,
        cached: true,
    }))
}

fn finish(
    store: &Store,
    mut manifest: Manifest,
    tree: Option<(&Path, &seal::Secrets)>,
) -> Result<Manifest, ImageError> {
    if let Some((tree, secrets)) = tree {
        let Layer { id, bytes } = seal::seal(store, &manifest.name, tree, secrets)?;
        manifest.layers.insert(0, id);
        manifest.bytes = bytes;
    }
    let manifest = manifest.sealed();
    store.put(&manifest)?;
    Ok(manifest)
}

async fn run(
    request: &BuildRequest,
    base: &Base,
    job: &Prepared,
    place: &Workplace,
    builder: &dyn Builder,
) -> Result<PathBuf, ImageError> {
    let scratch = place.scratch();
    let upper = builder
        .run(BuildJob {
            image: request.recipe.recipe.name.clone(),
            base: base.image.clone(),
            steps: job.steps.clone(),
            binds: job.binds.clone(),
            scratch: scratch.clone(),
            progress: request.progress.clone(),
        })
        .await?;
    if upper.starts_with(&scratch) && upper != scratch {
        Ok(upper)
    } else {
        Err(failed(
            request,
            format!("{} is not beneath the build's folder", upper.display()),
        ))
    }
}

fn failed(request: &BuildRequest, reason: String) -> ImageError {
    ImageError::Build {
        image: request.recipe.recipe.name.clone(),
        reason,
    }
}

/// The image underneath.
struct Base {
    digest: String,
    manifest: Manifest,
    image: ResolvedImage,
    is_host: bool,
}

impl Base {
    fn find(store: &Store, loaded: &LoadedRecipe) -> Result<Self, ImageError> {
        let name = &loaded.recipe.base;
        let unknown = |_| ImageError::Recipe {
            recipe: loaded.recipe.name.clone(),
            reason: format!(
                "its base '{name}' is not here; run `barchan image build {name}` first"
            ),
        };
        let image = store.resolve(name, &Aliases::default()).map_err(unknown)?;
        let manifest = store.described(name)?;
        let is_host = name == HOST;
        Ok(Self {
            digest: manifest.digest.clone(),
            manifest,
            image,
            is_host,
        })
    }

    fn has_venv(&self) -> bool {
        !self.is_host && self.manifest.path.contains(&format!("{VENV}/bin"))
    }

    /// The manifest of what is built on it, still without a layer of its own.
    fn manifest(&self, request: &BuildRequest, recipe_digest: String) -> Manifest {
        let loaded = &request.recipe;
        let recipe = &loaded.recipe;
        let mut env = self.manifest.env.clone();
        env.extend(recipe.env.clone());
        let own = |list: &Vec<String>, base: &Vec<String>| {
            if list.is_empty() {
                base.clone()
            } else {
                list.clone()
            }
        };
        Manifest {
            name: recipe.name.clone(),
            digest: String::new(),
            base: Some(recipe.base.clone()),
            on_host: self.manifest.on_host,
            layers: if self.is_host {
                Vec::new()
            } else {
                self.manifest.layers.clone()
            },
            env,
            path: self.path(loaded),
            entrypoint: own(&recipe.entrypoint, &self.manifest.entrypoint),
            created_unix_s: request.now_unix_s,
            recipe_digest,
            pinned: !self.manifest.on_host,
            bytes: 0,
        }
    }

    fn path(&self, loaded: &LoadedRecipe) -> Vec<String> {
        let mut path = loaded.recipe.path.clone();
        path.extend(loaded.requirements.is_some().then(|| format!("{VENV}/bin")));
        path.extend((!loaded.recipe.npm.is_empty()).then(|| format!("{NPM_PREFIX}/bin")));
        for folder in &self.manifest.path {
            if !path.contains(folder) {
                path.push(folder.clone());
            }
        }
        path
    }
}

/// A build ready to run.
struct Prepared {
    clients: Clients,
    steps: Vec<BuildStep>,
    binds: Vec<crate::image::Bind>,
}

impl Prepared {
    async fn new(
        request: &BuildRequest,
        base: &Base,
        place: &Workplace,
    ) -> Result<Self, ImageError> {
        let loaded = &request.recipe;
        let mut clients = Clients::gather(&request.clients)?;
        let venv = stage::venv(request, base.is_host, base.has_venv(), &mut clients, place).await?;
        stage::contents(loaded, &mut clients);
        let mut env = clients.env.clone();
        env.extend(base.image.env.clone());
        env.extend(loaded.recipe.env.clone());
        env.insert("PATH".to_owned(), path_of(&base.path(loaded), PATH_DEFAULT));
        let steps = steps::steps(loaded, &venv, &env);
        let binds = if steps.is_empty() {
            Vec::new()
        } else {
            stage::write(&clients, place)?
        };
        Ok(Self {
            clients,
            steps,
            binds,
        })
    }
}

/// Folders that are shown to a build beneath [`GIVEN`].
fn given(name: &str) -> PathBuf {
    Path::new(GIVEN).join(name)
}

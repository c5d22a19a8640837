//! One build from recipe to manifest: cached by digest, one at a time per recipe, all or nothing.

mod base;
mod stage;
mod workplace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bootstrap::{self, WHOLE, counted};
use super::{BuildJob, BuildStep, Builder, ProgressSink, steps};
use crate::image::clients::{ClientSources, Clients, GIVEN};
use crate::image::error::ImageError;
use crate::image::manifest::Manifest;
use crate::image::recipe::BOOTSTRAP;
use crate::image::recipes::LoadedRecipe;
use crate::image::seal::{self, Layer, Secrets};
use crate::image::store::{Store, path_of};
use crate::image::{Bind, PATH_DEFAULT, ResolvedImage};
use base::{Base, Kind};
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
    let recipe = &request.recipe.recipe;
    let mut clients = Clients::gather(&request.clients)?;
    if recipe.base == BOOTSTRAP || !recipe.apt.is_empty() {
        let settings = bootstrap::apt_settings(&request.clients).await;
        clients.apt(&request.clients, &settings)?;
    }
    let base = Base::find(store, &request.recipe, &clients)?;
    let recipe_digest = request.recipe.digest(&base.manifest.digest);
    if let Some(built) = cached(store, request, &recipe_digest)? {
        return Ok(built);
    }
    let place = Workplace::take(store, &recipe_digest, &request.progress).await?;
    // Whoever held the place before may have built just this.
    if let Some(built) = cached(store, request, &recipe_digest)? {
        return Ok(built);
    }
    let kept = base.has_venv(store);
    let job = Prepared::new(request, (&base, kept), clients, &place).await?;
    let tree = if job.of == 1 {
        None
    } else {
        Some(job.run(&base, &place, builder).await?)
    };
    request.progress.step(job.of, job.of, "sealing the layer");
    let manifest = base.manifest(request, recipe_digest);
    let store = Arc::clone(store);
    let sealed = tokio::task::spawn_blocking(move || {
        let _lock = store.lock()?;
        finish(&store, manifest, tree.as_deref(), &job.clients.secrets)
    });
    let stopped = |e| failed(&request.recipe, format!("sealing stopped: {e}"));
    Ok(Built {
        manifest: sealed.await.map_err(stopped)??,
        cached: false,
    })
}

fn cached(
    store: &Store,
    request: &BuildRequest,
    digest: &str,
) -> Result<Option<Built>, ImageError> {
    if request.fresh {
        return Ok(None);
    }
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
    tree: Option<&Path>,
    secrets: &Secrets,
) -> Result<Manifest, ImageError> {
    if let Some(tree) = tree {
        let Layer { id, bytes } = seal::seal(store, &manifest.name, tree, secrets)?;
        manifest.layers.insert(0, id);
        manifest.bytes = bytes;
    }
    let manifest = manifest.sealed();
    store.put(&manifest)?;
    Ok(manifest)
}

fn failed(loaded: &LoadedRecipe, reason: String) -> ImageError {
    ImageError::Build {
        image: loaded.recipe.name.clone(),
        reason,
    }
}

/// A build ready to run.
struct Prepared {
    image: String,
    clients: Clients,
    env: BTreeMap<String, String>,
    steps: Vec<BuildStep>,
    binds: Vec<Bind>,
    progress: ProgressSink,
    /// The number of steps, sealing included.
    of: usize,
}

impl Prepared {
    async fn new(
        request: &BuildRequest,
        (base, kept): (&Base, bool),
        mut clients: Clients,
        place: &Workplace,
    ) -> Result<Self, ImageError> {
        let loaded = &request.recipe;
        let venv = stage::venv(request, base, kept, &mut clients, place).await?;
        stage::contents(loaded, &mut clients);
        let mut env = clients.env.clone();
        env.extend(base.manifest.env.clone());
        env.extend(loaded.recipe.env.clone());
        env.insert("PATH".to_owned(), path_of(&base.path(loaded), PATH_DEFAULT));
        let mut steps = steps::steps(loaded, &venv, &env);
        let mut of = steps.len() + 1;
        if base.kind == Kind::Bootstrap {
            steps = bootstrap::around(steps, &env);
            of = steps.len() + 2;
        }
        let binds = if steps.is_empty() {
            Vec::new()
        } else {
            stage::write(&clients, place)?
        };
        let (image, progress) = (loaded.recipe.name.clone(), request.progress.clone());
        Ok(Self {
            image,
            clients,
            env,
            steps,
            binds,
            progress,
            of,
        })
    }

    /// Runs all steps and answers the tree to seal.
    async fn run(
        &self,
        base: &Base,
        place: &Workplace,
        builder: &dyn Builder,
    ) -> Result<PathBuf, ImageError> {
        let mut job = self.job(base.image.clone(), place.scratch());
        if base.kind != Kind::Bootstrap {
            return self.checked(builder.run(job).await?, place);
        }
        job.scratch = place.first_scratch()?;
        job.progress = counted(&self.progress, 0, self.of);
        let (system, debs) = bootstrap::unpack(job, &self.env, builder).await?;
        let mut job = self.job(system, place.scratch());
        job.progress = counted(&self.progress, 1, self.of);
        stage::mount_point(place, &debs)?;
        job.binds.push(debs);
        Ok(self.checked(builder.run(job).await?, place)?.join(WHOLE))
    }

    fn job(&self, base: ResolvedImage, scratch: PathBuf) -> BuildJob {
        BuildJob {
            image: self.image.clone(),
            base,
            steps: self.steps.clone(),
            binds: self.binds.clone(),
            scratch,
            progress: self.progress.clone(),
        }
    }

    fn checked(&self, upper: PathBuf, place: &Workplace) -> Result<PathBuf, ImageError> {
        let scratch = place.scratch();
        if upper.starts_with(&scratch) && upper != scratch {
            return Ok(upper);
        }
        let reason = format!("{} is not beneath the build's folder", upper.display());
        Err(ImageError::Build {
            image: self.image.clone(),
            reason,
        })
    }
}

/// Where a build sees something beneath [`GIVEN`].
fn given(name: &str) -> PathBuf {
    Path::new(GIVEN).join(name)
}

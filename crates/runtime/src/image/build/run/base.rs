//! What a recipe is built on, and what its image takes over from it.

use super::super::steps::NPM_PREFIX;
use super::BuildRequest;
use crate::image::clients::Clients;
use crate::image::error::ImageError;
use crate::image::manifest::{self, Manifest, sha256};
use crate::image::recipe::BOOTSTRAP;
use crate::image::recipes::LoadedRecipe;
use crate::image::store::Store;
use crate::image::{Aliases, HOST, ResolvedImage, VENV};

/// The image underneath.
pub(super) struct Base {
    pub kind: Kind,
    pub manifest: Manifest,
    /// What the (first) job runs on.
    pub image: ResolvedImage,
}

/// Which sort of base it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The host's own system.
    Host,
    /// An image of the store.
    Stored,
    /// Nothing yet: a system is unpacked first.
    Bootstrap,
}

impl Base {
    pub(super) fn find(
        store: &Store,
        loaded: &LoadedRecipe,
        clients: &Clients,
    ) -> Result<Self, ImageError> {
        let name = loaded.recipe.base.as_str();
        if name == BOOTSTRAP {
            let image = store.resolve(HOST, &Aliases::default())?;
            return Ok(Self {
                kind: Kind::Bootstrap,
                manifest: nothing(clients),
                image,
            });
        }
        let unknown = |_| ImageError::Recipe {
            recipe: loaded.recipe.name.clone(),
            reason: format!(
                "its base '{name}' is not here; run `barchan image build {name}` first"
            ),
        };
        let image = store.resolve(name, &Aliases::default()).map_err(unknown)?;
        let kind = if name == HOST {
            Kind::Host
        } else {
            Kind::Stored
        };
        Ok(Self {
            kind,
            manifest: store.described(name)?,
            image,
        })
    }

    /// Whether it has a Python environment of its own, which further packages join. That of the
    /// host's skeleton does not count: it shows the host's packages.
    pub(super) fn has_venv(&self, store: &Store) -> bool {
        let config = format!("{}/pyvenv.cfg", VENV.trim_start_matches('/'));
        let own = self.kind == Kind::Stored;
        own && self
            .manifest
            .layers
            .iter()
            .any(|id| store.layer(id).join(&config).is_file())
    }

    /// The manifest of what is built on it, still without a layer of its own.
    pub(super) fn manifest(&self, request: &BuildRequest, recipe_digest: String) -> Manifest {
        let loaded = &request.recipe;
        let recipe = &loaded.recipe;
        let mut env = self.manifest.env.clone();
        env.extend(recipe.env.clone());
        let entrypoint = match recipe.entrypoint.is_empty() {
            true => self.manifest.entrypoint.clone(),
            false => recipe.entrypoint.clone(),
        };
        // The skeleton of the host is added when the image is used, as it fits the host then.
        let layers = match self.kind {
            Kind::Host => Vec::new(),
            Kind::Stored | Kind::Bootstrap => self.manifest.layers.clone(),
        };
        Manifest {
            name: recipe.name.clone(),
            digest: String::new(),
            base: Some(recipe.base.clone()),
            on_host: self.manifest.on_host,
            layers,
            env,
            path: self.path(loaded),
            entrypoint,
            created_unix_s: request.now_unix_s,
            recipe_digest,
            pinned: !self.manifest.on_host,
            bytes: 0,
        }
    }

    /// The folders in front of PATH.
    pub(super) fn path(&self, loaded: &LoadedRecipe) -> Vec<String> {
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

/// The manifest of a system that is still to be unpacked; its digest is that of where from.
fn nothing(clients: &Clients) -> Manifest {
    let mut parts = vec![BOOTSTRAP.to_owned()];
    parts.extend(clients.apt_sources().map(sha256));
    Manifest {
        name: BOOTSTRAP.to_owned(),
        digest: sha256(parts.join("\n").as_bytes()),
        base: None,
        on_host: false,
        layers: Vec::new(),
        env: manifest::text_env(),
        path: Vec::new(),
        entrypoint: Vec::new(),
        created_unix_s: 0,
        recipe_digest: String::new(),
        pinned: true,
        bytes: 0,
    }
}

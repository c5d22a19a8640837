//! `barchan image`: the local store. It works on the state directory itself, because a build is
//! the operator's own act and no request to a server can ask for one.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use barchan_daemon::clock::Clock;
use barchan_runtime::Runtime;
use barchan_runtime::image::{
    self, BuildRequest, ClientSources, LoadedRecipe, Manifest, Progress, ProgressSink, Store,
};
use barchan_server::config as server;

use crate::args::{Global, Image};
use crate::config;
use crate::native::{self, Role};
use crate::output::{Output, Words};

pub(super) async fn run(global: &Global, flags: Image, output: &Output) -> Result<()> {
    let settings = config::server_settings(global, None)?.settings;
    barchan_server::app::check(&server::state_dir(&settings))?;
    match flags {
        Image::Build { recipe, fresh } => build(&settings, &recipe, fresh, output).await,
        Image::List => list(&settings, output),
        Image::Rm { names } => remove(&settings, &names, output).await,
    }
}

async fn build(
    settings: &server::Settings,
    recipe: &str,
    fresh: bool,
    output: &Output,
) -> Result<()> {
    let (env, home) = config::environment();
    let (progress, bar) = progress(*output);
    let request = BuildRequest {
        recipe: LoadedRecipe::load(recipe)?,
        clients: ClientSources {
            env,
            home,
            root: "/".into(),
        },
        fresh,
        now_unix_s: u64::try_from(Clock::system().now().wall.as_second()).unwrap_or(0),
        progress,
    };
    let (runtime, hearing) = native::start(settings, Role::Guest).await?;
    let built = tokio::select! {
        built = image::build(runtime.store(), &request, &*runtime) => built,
        () = hearing => bail!("the launcher is no longer heard"),
    };
    bar.finish_and_clear();
    let built = built?;
    if output.is_json() {
        return Ok(output.json(&built.manifest)?);
    }
    let how = if built.cached {
        "is there already"
    } else {
        "is built"
    };
    output.note(&format!("{} {how}", built.manifest.name));
    Ok(output.line(&built.manifest.digest)?)
}

/// A bar where somebody watches, else a line for each step.
fn progress(output: Output) -> (ProgressSink, Arc<indicatif::ProgressBar>) {
    let bar = output.steps();
    let shown = Arc::clone(&bar);
    let sink = ProgressSink::new(move |progress: Progress| {
        let Progress { step, of, message } = progress;
        if output.is_watched() {
            shown.set_length(u64::try_from(of).unwrap_or(u64::MAX));
            shown.set_position(u64::try_from(step).unwrap_or(u64::MAX));
            shown.set_message(Words::from(&message).as_str().to_owned());
        } else {
            output.note(&format!("[{step}/{of}] {message}"));
        }
    });
    (sink, bar)
}

fn list(settings: &server::Settings, output: &Output) -> Result<()> {
    let images = store(settings)?.list()?;
    if output.is_json() {
        return Ok(output.json(&images)?);
    }
    let heading = ["NAME", "BASE", "SIZE", "DIGEST"];
    Ok(output.table(&heading, images.iter().map(row).collect())?)
}

fn row(image: &Manifest) -> Vec<String> {
    vec![
        image.name.clone(),
        image.base.clone().unwrap_or_else(|| "-".to_owned()),
        indicatif::HumanBytes(image.bytes).to_string(),
        image.digest.chars().take("sha256:".len() + 12).collect(),
    ]
}

async fn remove(settings: &server::Settings, names: &[String], output: &Output) -> Result<()> {
    let (runtime, hearing) = native::start(settings, Role::Guest).await?;
    let in_use = tokio::select! {
        in_use = digests_in_use(&*runtime) => in_use?,
        () = hearing => bail!("the launcher is no longer heard"),
    };
    let store = runtime.store();
    let needed = layers_of(&store.list()?, &in_use)?;
    for name in names {
        store
            .rm(name, &needed)
            .with_context(|| format!("image `{name}` stays"))?;
        output.note(&format!("{name} is removed"));
    }
    Ok(())
}

async fn digests_in_use(runtime: &dyn Runtime) -> Result<BTreeSet<String>> {
    Ok(runtime
        .list()
        .await?
        .into_iter()
        .map(|sandbox| sandbox.image_digest)
        .collect())
}

/// The digests in use and the layers that lie under them. Layers of an image that was built anew
/// since are under no name any longer, so nothing can be removed while a sandbox stands on them.
fn layers_of(images: &[Manifest], in_use: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    let mut needed = in_use.clone();
    for digest in in_use {
        let Some(image) = images.iter().find(|image| image.digest == *digest) else {
            bail!(
                "a sandbox still runs on an older build of an image ({digest}), whose layers \
                 would go; delete that sandbox first"
            );
        };
        needed.extend(image.layers.iter().cloned());
    }
    Ok(needed)
}

fn store(settings: &server::Settings) -> Result<Store> {
    Ok(Store::open(&server::state_dir(settings).join("images"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(name: &str, digest: &str, layers: &[&str]) -> Manifest {
        Manifest {
            name: name.to_owned(),
            digest: digest.to_owned(),
            base: None,
            on_host: true,
            layers: layers.iter().map(|it| (*it).to_owned()).collect(),
            env: [].into(),
            path: vec![],
            entrypoint: vec![],
            created_unix_s: 0,
            recipe_digest: String::new(),
            pinned: false,
            bytes: 0,
        }
    }

    #[test]
    fn layers_under_a_sandbox_are_kept() {
        let images = [
            image("a", "sha256:a", &["l1", "l2"]),
            image("b", "sha256:b", &["l3"]),
        ];
        let set = |items: &[&str]| items.iter().map(|it| (*it).to_owned()).collect();
        let needed = layers_of(&images, &set(&["sha256:a"])).unwrap();
        assert_eq!(needed, set(&["sha256:a", "l1", "l2"]));
        let error = layers_of(&images, &set(&["sha256:old"])).unwrap_err();
        assert!(error.to_string().contains("sha256:old"), "{error}");
    }
}

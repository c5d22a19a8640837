//! Pure. From a recipe to the programs that a build runs.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::image::build::BuildStep;
use crate::image::recipes::LoadedRecipe;
use crate::image::{VENV, clients::GIVEN};

/// Where global Node packages go.
pub(super) const NPM_PREFIX: &str = "/opt/npm";
/// Where an interpreter from outside the host's `/usr` is copied to.
const PYTHON_COPY: &str = "/opt/python";

const MINUTE: Duration = Duration::from_secs(60);
pub(super) const INSTALL_TIMEOUT: Duration = Duration::from_secs(45 * 60);

/// What the environment for `pip` is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Venv {
    /// The base has one already.
    Kept,
    /// A new one, with this interpreter or the first in PATH.
    New(Option<String>),
    /// A new one, with an interpreter that is copied first; it is shown at `/run/build/python`.
    Copied {
        /// Where the host has its tree.
        prefix: String,
        /// The interpreter beneath that.
        exe: String,
    },
}

/// The steps of a recipe, in order. `env` is what the image and the host's package clients say.
pub(super) fn steps(
    loaded: &LoadedRecipe,
    venv: &Venv,
    env: &BTreeMap<String, String>,
) -> Vec<BuildStep> {
    let recipe = &loaded.recipe;
    let mut list = List {
        env,
        steps: Vec::new(),
    };
    if !recipe.apt.is_empty() {
        let title = format!("installing {} Debian packages", recipe.apt.len());
        list.shell(&title, include_str!("apt.sh"), &recipe.apt, INSTALL_TIMEOUT);
    }
    if let Some(requirements) = &loaded.requirements {
        list.python(venv, recipe.pip_complete, requirements);
    }
    if !recipe.npm.is_empty() {
        let title = format!("installing {} Node packages", recipe.npm.len());
        list.shell(&title, include_str!("npm.sh"), &recipe.npm, INSTALL_TIMEOUT);
    }
    for (number, file) in recipe.files.iter().enumerate() {
        let script =
            "mkdir -p -- \"$(dirname -- \"$2\")\"; cp -- \"$1\" \"$2\"; chmod \"$3\" -- \"$2\"";
        let args = [given(number), file.path.clone(), format!("{:o}", file.mode)];
        list.shell(&format!("writing {}", file.path), script, &args, MINUTE);
    }
    for line in &recipe.run {
        let short: String = line.chars().take(60).collect();
        list.shell(&format!("running {short}"), line, &[], INSTALL_TIMEOUT);
    }
    list.steps
}

/// Where a build finds the content of a recipe's file.
fn given(number: usize) -> String {
    format!("{GIVEN}/{}", given_name(number))
}

/// The same beneath [`GIVEN`].
pub(super) fn given_name(number: usize) -> String {
    format!("content-{number}")
}

struct List<'a> {
    env: &'a BTreeMap<String, String>,
    steps: Vec<BuildStep>,
}

impl List<'_> {
    fn shell(&mut self, title: &str, script: &str, args: &[String], timeout: Duration) {
        self.steps
            .push(shell(title, script, args, timeout, self.env));
    }

    fn python(&mut self, venv: &Venv, complete: bool, requirements: &[u8]) {
        if let Venv::Copied { prefix, exe } = venv {
            let title = format!("copying Python to {PYTHON_COPY}");
            let source = format!("{GIVEN}/python");
            let args = [source, prefix.clone(), PYTHON_COPY.to_owned(), exe.clone()];
            self.shell(&title, include_str!("copy_python.sh"), &args, 10 * MINUTE);
        }
        let exe = match venv {
            Venv::Kept => None,
            Venv::New(exe) => Some(exe.clone().unwrap_or_default()),
            Venv::Copied { exe, .. } => Some(format!("{PYTHON_COPY}/{exe}")),
        };
        if let Some(exe) = exe {
            let args = [VENV.to_owned(), exe];
            self.shell(
                "making the Python environment",
                include_str!("venv.sh"),
                &args,
                INSTALL_TIMEOUT,
            );
        }
        let count = String::from_utf8_lossy(requirements)
            .lines()
            .filter(|line| is_package(line))
            .count();
        let title = format!("installing {count} Python packages");
        let mut script = format!(
            "exec {VENV}/bin/python -m pip install --no-compile -r {GIVEN}/requirements.txt"
        );
        if complete {
            script.push_str(" --no-deps");
        }
        self.shell(&title, &script, &[], INSTALL_TIMEOUT);
        // Some packages hold files that no version compiles; that is their own affair.
        let script = format!(
            "{VENV}/bin/python -m compileall -qq -j 0 -x '/tests?/' \
             --invalidation-mode unchecked-hash {VENV}/lib || true"
        );
        self.shell("compiling Python files", &script, &[], INSTALL_TIMEOUT);
    }
}

/// One step that runs shell text, which finds the arguments from `$1` on.
pub(super) fn shell(
    title: &str,
    script: &str,
    args: &[String],
    timeout: Duration,
    env: &BTreeMap<String, String>,
) -> BuildStep {
    let mut argv: Vec<String> = ["/bin/sh", "-euc", script, "build"]
        .map(str::to_owned)
        .into();
    argv.extend(args.iter().cloned());
    BuildStep {
        title: title.to_owned(),
        argv,
        env: whole(env),
        timeout,
    }
}

fn is_package(line: &str) -> bool {
    line.trim_start()
        .starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// The environment of a step: caches and temporary files go where sealing drops them, nobody asks
/// questions, and what Python writes in the order of a set has the same order, and so the layer the
/// same digest, each time.
fn whole(env: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let fixed = [
        ("HOME", "/root"),
        ("TMPDIR", "/var/tmp"),
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("APT_CONFIG", "/run/build/apt.conf"),
        ("PIP_NO_CACHE_DIR", "1"),
        ("PIP_NO_INPUT", "1"),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        ("PIP_ROOT_USER_ACTION", "ignore"),
        ("PIP_NO_WARN_SCRIPT_LOCATION", "1"),
        ("PIP_PROGRESS_BAR", "off"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PYTHONHASHSEED", "0"),
        ("NPM_CONFIG_CACHE", "/var/tmp/npm"),
        ("NPM_CONFIG_USERCONFIG", "/run/build/npmrc"),
        ("NPM_CONFIG_GLOBALCONFIG", "/run/build/npmrc-none"),
        ("NPM_CONFIG_UPDATE_NOTIFIER", "false"),
        ("NPM_CONFIG_FUND", "false"),
        ("NPM_CONFIG_AUDIT", "false"),
        ("NPM_CONFIG_PREFIX", NPM_PREFIX),
    ];
    let fixed = fixed.map(|(name, value)| (name.to_owned(), value.to_owned()));
    env.clone().into_iter().chain(fixed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::recipe::Recipe;

    fn plan(recipe: &str, venv: &Venv) -> Vec<BuildStep> {
        let text = format!("name='x'\nbase='debian'\n{recipe}");
        let loaded = LoadedRecipe::complete(Recipe::parse(&text, "x").unwrap(), "x", None).unwrap();
        steps(
            &loaded,
            venv,
            &BTreeMap::from([("A".to_owned(), "b".to_owned())]),
        )
    }

    #[test]
    fn the_order_is_packages_files_lines() {
        let text = "run=['true']\nnpm=['x']\npip=['y','z']\napt=['w']\nfiles=[{path='/f',text=''}]";
        let titles: Vec<_> = plan(text, &Venv::Kept)
            .into_iter()
            .map(|step| step.title)
            .collect();
        let want = [
            "installing 1 Debian packages",
            "installing 2 Python packages",
            "compiling Python files",
            "installing 1 Node packages",
            "writing /f",
            "running true",
        ];
        assert_eq!(titles, want);
    }

    #[test]
    fn a_new_environment_is_made_before_anything_goes_into_it() {
        let venv = Venv::Copied {
            prefix: "/p".to_owned(),
            exe: "bin/python3".to_owned(),
        };
        let steps = plan("pip=['y']\npip_complete=true", &venv);
        let titles: Vec<_> = steps.iter().map(|step| step.title.as_str()).collect();
        assert_eq!(
            titles[..2],
            [
                "copying Python to /opt/python",
                "making the Python environment"
            ]
        );
        assert!(
            steps[2].argv.iter().any(|word| word.ends_with("--no-deps")),
            "{:?}",
            steps[2]
        );
    }

    #[test]
    fn words_of_a_recipe_are_arguments_and_never_shell_text() {
        let steps = plan(
            "apt=['a$(id)']\nfiles=[{path='/a b;c',text=''}]",
            &Venv::Kept,
        );
        for (step, word) in steps.iter().zip(["a$(id)", "/a b;c"]) {
            assert!(!step.argv[2].contains(word) && step.argv[4..].contains(&word.to_owned()));
        }
    }

    #[test]
    fn an_empty_recipe_runs_nothing() {
        assert!(plan("", &Venv::Kept).is_empty());
    }
}

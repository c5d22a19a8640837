//! Finds the kernel of a language among those that the image has.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::environment::Variables;
use crate::limits::{KERNEL_FOLDERS_MAX, KERNEL_SPECS_MAX};
use crate::small_file;

/// The name by which Jupyter's own kernel always goes. An image that offers another one for Python
/// means that one.
const FALLBACK: &str = "python3";

/// How a kernel is interrupted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum InterruptMode {
    /// By SIGINT.
    #[default]
    Signal,
    /// By a message.
    Message,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct File {
    argv: Vec<String>,
    #[serde(default)]
    language: String,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    interrupt_mode: InterruptMode,
}

/// A kernel that the image has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spec {
    /// Where its description lies.
    pub(crate) folder: PathBuf,
    /// The program and its arguments, with names still to be filled in.
    argv: Vec<String>,
    language: String,
    /// Variables that it wants.
    pub(crate) env: BTreeMap<String, String>,
    /// How it is interrupted.
    pub(crate) interrupt_mode: InterruptMode,
}

impl Spec {
    fn name(&self) -> &str {
        let name = self.folder.file_name().unwrap_or_default();
        name.to_str().unwrap_or_default()
    }

    /// The folder of the installation it belongs to, as in `PREFIX/share/jupyter/kernels/NAME`.
    fn prefix(&self) -> Option<&Path> {
        self.folder.ancestors().nth(4)
    }

    /// The arguments, filled in.
    pub(crate) fn arguments(&self, connection_file: &str) -> Vec<String> {
        let folder = self.folder.to_string_lossy();
        let fill = |word: &String| {
            word.replace("{connection_file}", connection_file)
                .replace("{resource_dir}", &folder)
        };
        self.argv.iter().map(fill).collect()
    }

    /// Where its program is looked for: beside it first, for an environment that is not active.
    pub(crate) fn search_path(&self, path: &str) -> String {
        match self.prefix() {
            Some(prefix) => format!("{}:{path}", prefix.join("bin").display()),
            None => path.to_owned(),
        }
    }
}

/// The kernel for a language; otherwise the languages that there are kernels for.
pub(crate) fn find(language: &str, variables: &Variables) -> Result<Spec, Vec<String>> {
    let all: Vec<Spec> = folders(variables)
        .iter()
        .flat_map(|folder| read_all(folder))
        .collect();
    choose(language, &all).cloned().ok_or_else(|| {
        let mut languages: Vec<_> = all
            .iter()
            .map(|spec| spec.language.to_lowercase())
            .collect();
        languages.sort();
        languages.dedup();
        languages
    })
}

/// By language, or by the kernel's own name. Those found first are preferred, but for the one that
/// is named as the language, and for the fallback, which comes last.
fn choose<'a>(language: &str, all: &'a [Spec]) -> Option<&'a Spec> {
    let named = |spec: &&Spec| spec.name().eq_ignore_ascii_case(language);
    let speaks = |spec: &&Spec| spec.language.eq_ignore_ascii_case(language);
    let own = |spec: &&Spec| speaks(spec) && spec.name() != FALLBACK;
    let found = all.iter().find(|spec| named(spec) && speaks(spec));
    found
        .or_else(|| all.iter().find(own))
        .or_else(|| all.iter().find(speaks))
        .or_else(|| all.iter().find(named))
}

/// Where Jupyter looks, in its order; an environment whose programs are in PATH counts as active.
fn folders(variables: &Variables) -> Vec<PathBuf> {
    let value = |name: &str| variables.get(name).filter(|value| value.starts_with('/'));
    let list = |name: &str| {
        value(name)
            .map(String::as_str)
            .unwrap_or_default()
            .split(':')
    };
    let own = value("JUPYTER_DATA_DIR").map(PathBuf::from);
    let own = own.or_else(|| value("XDG_DATA_HOME").map(|home| Path::new(home).join("jupyter")));
    let own =
        own.or_else(|| value("HOME").map(|home| Path::new(home).join(".local/share/jupyter")));
    let beside =
        list("PATH").filter_map(|bin| Some(Path::new(bin).parent()?.join("share/jupyter")));
    let usual = ["/usr/local/share/jupyter", "/usr/share/jupyter"].map(PathBuf::from);
    let all = list("JUPYTER_PATH")
        .map(PathBuf::from)
        .chain(own)
        .chain(beside)
        .chain(usual);
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in all.filter(|folder| folder.is_absolute()) {
        let folder = folder.join("kernels");
        if !folders.contains(&folder) && folders.len() < KERNEL_FOLDERS_MAX {
            folders.push(folder);
        }
    }
    folders
}

fn read_all(folder: &Path) -> Vec<Spec> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let entries = entries.flatten().take(KERNEL_SPECS_MAX);
    let mut specs: Vec<Spec> = entries.filter_map(|entry| read(entry.path())).collect();
    specs.sort_by(|one, other| one.folder.cmp(&other.folder));
    specs
}

/// A description that makes no sense is as good as none.
fn read(folder: PathBuf) -> Option<Spec> {
    let text = small_file::read(folder.join("kernel.json"))?;
    let file: File = serde_json::from_str(&text).ok()?;
    let sane = |word: &String| !word.contains('\0');
    let good = !file.argv.is_empty() && file.argv.iter().all(sane);
    good.then_some(Spec {
        folder,
        argv: file.argv,
        language: file.language,
        env: file.env,
        interrupt_mode: file.interrupt_mode,
    })
}

#[cfg(test)]
mod tests;

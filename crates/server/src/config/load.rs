//! Brings the layers together: environment over file over defaults, each value with its origin.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use barchan_daemon::folder;
use confique::{Config, Layer as _};
use serde::{Deserialize, Serialize};

use super::environment::{self, Variable};
use super::finding::{Finding, Origin, SettingsError};
use super::reading::{self, Layer, Leaf, Text};
use super::{Settings, check, doubts, ranges, settings_path};

/// Largest settings file, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Settings, and where each comes from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// The file that was read, if there was one.
    pub file: Option<PathBuf>,
    /// What is legal and doubtful.
    pub warnings: Vec<Finding>,
    origins: BTreeMap<&'static str, Origin>,
}

/// What settings are read from.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Surroundings {
    /// The file and its text.
    file: Option<(PathBuf, String)>,
    variables: Vec<Variable>,
}

impl Surroundings {
    /// This process's environment, and this file; without one, the usual place if there is a file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn look(path: Option<&Path>) -> Result<Self, SettingsError> {
        let place = path.map_or_else(settings_path, Path::to_owned);
        let file = match text(&place) {
            Ok(text) => Some((place, text)),
            Err(error) if error.kind() == ErrorKind::NotFound => match path {
                Some(path) => return Err(SettingsError::Missing(path.to_owned())),
                None => None,
            },
            Err(source) => {
                let path = place;
                return Err(SettingsError::Unreadable { path, source });
            }
        };
        Ok(Self {
            file,
            variables: environment::variables(),
        })
    }

    /// A text as if it were a file, and no environment.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self {
            file: Some(("text".into(), text.to_owned())),
            variables: Vec::new(),
        }
    }

    /// The same with environment variables.
    #[must_use]
    pub fn with_variables<'a>(
        mut self,
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let variables = variables.into_iter();
        self.variables = variables.map(|(it, is)| (it.into(), is.into())).collect();
        self
    }

    /// Reads the settings; with every fault there is, not only the first.
    ///
    /// # Errors
    /// When something is no setting, or no value that a setting can have.
    pub fn read(&self) -> Result<Loaded, SettingsError> {
        let mut findings = Vec::new();
        let mut leaves = Vec::new();
        if let Some((path, text)) = &self.file {
            match reading::read(text, path, &mut findings) {
                Text::Ours(found) => leaves.extend(found),
                Text::Foreign => return Err(SettingsError::Foreign(path.clone())),
            }
        }
        // Behind those of the file, so that they come to lie over them.
        leaves.extend(environment::read(&self.variables, &mut findings));
        let mut origins = BTreeMap::new();
        let mut layer = Layer::empty();
        for Leaf {
            key,
            origin,
            layer: one,
        } in leaves
        {
            origins.insert(key, origin);
            layer = one.with_fallback(layer);
        }
        let whole = layer.with_fallback(Layer::default_values());
        let settings = Settings::from_layer(whole).map_err(|error| {
            // Whatever has no default is optional, so this is a fault of ours.
            let fault = Finding::error(None, Origin::Default, error.to_string());
            SettingsError::Faulty(vec![fault])
        })?;
        let origin = |key: &str| origins.get(key).cloned().unwrap_or(Origin::Default);
        for (key, why) in check::faults(&settings) {
            findings.push(Finding::error(Some(key), origin(key), why));
        }
        for (key, why) in ranges::faults(&settings) {
            findings.push(Finding::error(Some(key), origin(key), why));
        }
        for (key, why) in doubts::of(&settings) {
            findings.push(Finding::warning(Some(key), origin(key), why));
        }
        findings.extend(self.exposed(&settings, origin("server.api_key")));
        findings.sort_by_key(Finding::rank);
        if findings.iter().any(Finding::is_error) {
            return Err(SettingsError::Faulty(findings));
        }
        Ok(Loaded {
            settings,
            file: self.file.as_ref().map(|(path, _)| path.clone()),
            warnings: findings,
            origins,
        })
    }

    /// The doubt about a file that shows its key to other users.
    fn exposed(&self, settings: &Settings, origin: Origin) -> Option<Finding> {
        use std::os::unix::fs::PermissionsExt;
        let key = settings.server.api_key.as_ref()?;
        let Origin::File { path, .. } = &origin else {
            return None;
        };
        let mode = path.metadata().ok()?.permissions().mode();
        if !key.is_literal() || key.secret().reveal().is_empty() || mode & 0o077 == 0 {
            return None;
        }
        let path = path.display();
        let message =
            format!("others may read this file and the key in it: run `chmod go= {path}`");
        Some(Finding::warning(Some("server.api_key"), origin, message))
    }
}

impl Loaded {
    /// Where the value of a setting comes from.
    #[must_use]
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Default)
    }

    /// Puts a state directory over what was read, on the word of a flag.
    pub fn set_state_dir(&mut self, path: PathBuf, flag: &'static str) {
        if self.settings.store.state_dir.as_ref() != Some(&path) {
            self.settings.store.state_dir = Some(path);
            self.origins
                .insert("store.state_dir", Origin::Flag { flag });
        }
    }
}

impl Settings {
    /// Reads the settings of a file, over them the environment's, under them the defaults. Without
    /// a path, the usual place is read if there is a file.
    ///
    /// # Errors
    /// When the named file is missing, or something in it is no setting.
    pub fn load(path: Option<&Path>) -> Result<Loaded, SettingsError> {
        Surroundings::look(path)?.read()
    }

    /// Every setting at its default, the environment left aside.
    ///
    /// # Errors
    /// Never, unless a default is no good.
    pub fn defaults() -> Result<Self, SettingsError> {
        Self::parse("")
    }

    /// Reads settings from text, the environment left aside.
    ///
    /// # Errors
    /// When something in it is no setting.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        Surroundings::text(text)
            .read()
            .map(|loaded| loaded.settings)
    }
}

fn text(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    let file = folder::open_regular(path)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(std::io::Error::other("it is larger than any settings"));
    }
    String::from_utf8(bytes).map_err(|_| std::io::Error::other("it is no text"))
}

//! Settings that a process with more rights read for the server: files that only root may read are
//! read as root, and the server has what stands in them. It has none of root's environment either.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::finding::{Finding, Origin, SettingsError};
use super::load::{Loaded, Surroundings};
use super::secret::{self, Noted};

/// The texts of the settings' files. There is no `Debug`: secrets are among them.
#[derive(Serialize, Deserialize)]
pub struct Handed {
    surroundings: Surroundings,
    secrets: Noted,
    state_dir: PathBuf,
    /// What relative paths begin at.
    folder: PathBuf,
}

impl fmt::Debug for Handed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Handed")
            .field("state_dir", &self.state_dir)
            .finish_non_exhaustive()
    }
}

impl Handed {
    /// Reads the files: that of the settings, in the usual place without a path, and those that
    /// they name for secrets. `state_dir` says which state directory these settings mean.
    ///
    /// # Errors
    /// When the settings' own file cannot be read.
    pub fn read(
        path: Option<&Path>,
        state_dir: impl FnOnce(&Loaded) -> PathBuf,
    ) -> Result<Self, SettingsError> {
        let surroundings = Surroundings::look(path)?;
        let (loaded, secrets) = secret::noting(|| surroundings.read());
        let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        // Faulty ones are refused where they are used.
        let state_dir = loaded.as_ref().map(state_dir).unwrap_or_default();
        Ok(Self {
            state_dir: folder.join(state_dir),
            surroundings,
            secrets,
            folder,
        })
    }

    /// The settings that these texts are, whatever this process's folder and environment.
    ///
    /// # Errors
    /// As [`Surroundings::read`].
    pub fn load(self) -> Result<Loaded, SettingsError> {
        let mut loaded = secret::given(self.secrets, || self.surroundings.read())?;
        loaded.set_state_dir(self.state_dir, "--state-dir");
        let socket = &mut loaded.settings.server.socket;
        *socket = socket.take().map(|path| self.folder.join(path));
        Ok(loaded)
    }

    /// What to say where reading went wrong on the other side.
    #[must_use]
    pub fn refused(message: impl Into<String>) -> SettingsError {
        SettingsError::Faulty(vec![Finding::error(None, Origin::Default, message)])
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::OpenOptionsExt;

    use super::*;

    /// What a file of settings says to whoever may read it, and to whom it is handed.
    fn both(text: impl Fn(&Path) -> String) -> [Result<String, String>; 2] {
        let home = tempfile::tempdir().unwrap();
        let private = |name: &str, text: &str| {
            let mut options = std::fs::File::options();
            let file = options.write(true).create_new(true).mode(0o600);
            let mut file = file.open(home.path().join(name)).unwrap();
            std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        };
        private("key", "0123456789abcdef\n");
        private("barchan.toml", &text(home.path()));
        let file = home.path().join("barchan.toml");
        let key = |loaded: Result<Loaded, SettingsError>| {
            let loaded = loaded.map_err(|error| error.to_string())?;
            let key = loaded.settings.server.api_key.as_ref();
            Ok(key.map_or_else(String::new, |key| key.secret().reveal().to_owned()))
        };
        let own = key(super::super::Settings::load(Some(&file)));
        let handed = Handed::read(Some(&file), |_| "/state".into()).unwrap();
        let text = serde_json::to_string(&handed).unwrap();
        drop(home);
        let handed: Handed = serde_json::from_str(&text).unwrap();
        [own, key(handed.load())]
    }

    #[test]
    fn what_is_handed_on_reads_as_where_it_lay() {
        for (named, expected) in [
            ("key", Ok("0123456789abcdef")),
            ("absent", Err("No such file")),
        ] {
            let told = both(|home| {
                let file = home.join(named);
                format!("[server]\napi_key = {{ file = \"{}\" }}\n", file.display())
            });
            for told in told {
                match (&told, expected) {
                    (Ok(key), Ok(expected)) => assert_eq!(key, expected),
                    (Err(words), Err(expected)) => assert!(words.contains(expected), "{words}"),
                    _ => panic!("{named}: {told:?}"),
                }
            }
        }
        let [own, handed] = both(|_| "[server]\nprot = 1\n".to_owned());
        assert!(own.is_err() && own == handed);
    }
}

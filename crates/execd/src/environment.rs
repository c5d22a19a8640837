//! The environment of everything this daemon starts.

use std::collections::BTreeMap;
use std::ffi::CString;

use crate::{envfile, small_file};

/// Where programs are looked for when nobody says otherwise.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Names the file of settings that commands may append to.
const ENV_FILE: &str = "EXECD_ENVS";
const DEFAULT_ENV_FILE: &str = "/opt/opensandbox/.env";

/// Names and values.
pub(crate) type Variables = BTreeMap<String, String>;

/// What the sandbox was created with, and the defaults that every program may rely on.
#[derive(Debug)]
pub(crate) struct Environment {
    base: Variables,
}

impl Environment {
    /// From the environment of the boot file.
    pub(crate) fn new(boot: &Variables) -> Self {
        let mut base = boot.clone();
        base.retain(|name, value| is_variable(name, value));
        let mut default = |name: &str, value: &str| {
            base.entry(name.to_owned())
                .or_insert_with(|| value.to_owned());
        };
        default("PATH", DEFAULT_PATH);
        default(ENV_FILE, DEFAULT_ENV_FILE);
        if !base.contains_key("HOME") {
            let users = small_file::users();
            let uid = rustix::process::getuid().as_raw();
            let home = users
                .user(uid)
                .map(|user| user.home)
                .filter(|home| !home.is_empty());
            base.insert("HOME".to_owned(), home.unwrap_or("/").to_owned());
        }
        Self { base }
    }

    /// The environment as it is now: the sandbox's own, and on top of it the settings file, which
    /// commands may have changed a moment ago.
    pub(crate) fn now(&self) -> Variables {
        let mut all = self.base.clone();
        if let Some(text) = self.base.get(ENV_FILE).and_then(small_file::read) {
            let known = |name: &str| self.base.get(name).cloned();
            let mut settings = envfile::parse(&text, &known);
            settings.retain(|name, value| is_variable(name, value));
            all.append(&mut settings);
        }
        all
    }

    /// A variable of the sandbox's own environment.
    pub(crate) fn own(&self, name: &str) -> Option<&str> {
        self.base.get(name).map(String::as_str)
    }
}

/// Whether an environment can hold it. Names are those that shells and common tools use; anything
/// else in a name is a mistake or an attempt to be read as code.
pub(crate) fn is_variable(name: &str, value: &str) -> bool {
    let starts_well = name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic());
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    starts_well && name.chars().all(allowed) && !value.contains('\0')
}

/// As exec takes it.
pub(crate) fn to_c(variables: &Variables) -> Vec<CString> {
    let lines = variables
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    lines.filter_map(|line| CString::new(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_be_read_as_code_are_no_variables() {
        for (name, value, good) in [
            ("A", "l1\nl2 $(x) ' \" \\", true),
            ("_a1", "", true),
            ("npm_config_foo-bar.baz", "x", true),
            ("X;touch pwn", "x", false),
            ("A B", "x", false),
            ("A=B", "x", false),
            ("1A", "x", false),
            ("", "x", false),
            ("A\0", "x", false),
            ("A", "x\0y", false),
        ] {
            assert_eq!(is_variable(name, value), good, "{name:?}");
        }
    }
}

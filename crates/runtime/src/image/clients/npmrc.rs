//! npm's settings, as far as they say where packages come from and by which way.

use std::path::{Path, PathBuf};

use super::ClientSources;

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub key: String,
    pub value: String,
}

/// Settings that are handed on; besides these, `@scope:registry` and `//host/:anything`.
const KEYS: [&str; 16] = [
    "registry",
    "_auth",
    "_authToken",
    "_password",
    "username",
    "always-auth",
    "ca",
    "cafile",
    "cert",
    "key",
    "strict-ssl",
    "proxy",
    "https-proxy",
    "noproxy",
    "fetch-timeout",
    "fetch-retries",
];

impl Line {
    /// Whether the value is a path whose file npm reads.
    pub(super) fn names_a_file(&self) -> bool {
        let last = self.key.rsplit(':').next().unwrap_or_default();
        matches!(last, "cafile" | "certfile" | "keyfile")
    }

    /// The value, if it is a credential.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        let last = self.key.rsplit(':').next().unwrap_or_default();
        let secret = matches!(last, "_auth" | "_authToken" | "_password" | "key");
        secret.then_some(self.value.as_str()).into_iter()
    }
}

/// All settings, the least important first, with `${NAME}` replaced from the environment.
pub(super) fn lines(sources: &ClientSources, read: impl Fn(&Path) -> Option<Vec<u8>>) -> Vec<Line> {
    let mut lines = Vec::new();
    for path in places(sources) {
        let text = read(&path).unwrap_or_default();
        for line in String::from_utf8_lossy(&text).lines() {
            lines.extend(parse(line, sources));
        }
    }
    for (name, value) in &sources.env {
        let bare = name
            .strip_prefix("npm_config_")
            .or_else(|| name.strip_prefix("NPM_CONFIG_"));
        if let Some(key) = bare {
            let key = match key.to_lowercase().replace('_', "-").as_str() {
                "-auth" => "_auth".to_owned(),
                "-authtoken" => "_authToken".to_owned(),
                other => other.to_owned(),
            };
            lines.extend(wanted(&key).then(|| Line {
                key,
                value: value.clone(),
            }));
        }
    }
    lines
}

fn places(sources: &ClientSources) -> Vec<PathBuf> {
    let at_root = |path: &str| sources.root.join(path);
    let mut places = vec![
        at_root("usr/etc/npmrc"),
        at_root("usr/local/etc/npmrc"),
        at_root("etc/npmrc"),
    ];
    let named = |name: &str| {
        let names = [name.to_owned(), name.to_uppercase()];
        names
            .iter()
            .find_map(|name| sources.env.get(name))
            .map(PathBuf::from)
    };
    places.extend(named("npm_config_globalconfig"));
    let user = named("npm_config_userconfig");
    places.extend(user.or_else(|| Some(sources.home.as_ref()?.join(".npmrc"))));
    places
}

fn parse(line: &str, sources: &ClientSources) -> Option<Line> {
    let line = line.trim();
    if line.starts_with(['#', ';']) {
        return None;
    }
    let (key, value) = line.split_once('=')?;
    let (key, value) = (key.trim().to_owned(), value.trim().trim_matches('"'));
    wanted(&key).then(|| Line {
        key,
        value: filled(value, sources),
    })
}

fn wanted(key: &str) -> bool {
    KEYS.contains(&key)
        || key.starts_with("//")
        || (key.starts_with('@') && key.ends_with(":registry"))
}

/// Replaces `${NAME}`; a variable that is not set stays as written, as npm has it.
fn filled(value: &str, sources: &ClientSources) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((name, tail)) = after.split_once('}') else {
            out.push_str("${");
            rest = after;
            continue;
        };
        match sources.env.get(name) {
            Some(found) => out.push_str(found),
            None => out.push_str(&format!("${{{name}}}")),
        }
        rest = tail;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn read(env: &[(&str, &str)], user: &str) -> Vec<Line> {
        let env: BTreeMap<_, _> = env
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        let sources = ClientSources {
            env,
            home: Some("/home/me".into()),
            root: "/none".into(),
        };
        let user = user.as_bytes().to_vec();
        lines(&sources, |path| {
            path.ends_with("me/.npmrc").then(|| user.clone())
        })
    }

    #[test]
    fn registries_and_tokens_are_taken_and_nothing_else() {
        let text = "; c\nfund=false\nregistry = \"https://r.test/\"\n@x:registry=https://x.test/\n\
                    //r.test/:_authToken=${TOKEN}-${NONE}\nprefix=/p\nbroken\n";
        let found = read(&[("TOKEN", "secret-token")], text);
        let got: Vec<_> = found
            .iter()
            .map(|l| format!("{}={}", l.key, l.value))
            .collect();
        assert_eq!(
            got,
            [
                "registry=https://r.test/",
                "@x:registry=https://x.test/",
                "//r.test/:_authToken=secret-token-${NONE}"
            ]
        );
        let secrets: Vec<_> = found.iter().flat_map(Line::secrets).collect();
        assert_eq!(secrets, ["secret-token-${NONE}"]);
    }

    #[test]
    fn the_environment_comes_last_and_so_wins() {
        let found = read(
            &[
                ("NPM_CONFIG_REGISTRY", "https://e.test/"),
                ("npm_config_fund", "x"),
            ],
            "registry=https://r.test/",
        );
        let got: Vec<_> = found.iter().map(|l| l.value.as_str()).collect();
        assert_eq!(got, ["https://r.test/", "https://e.test/"]);
    }

    #[test]
    fn an_open_brace_at_the_end_stays() {
        let found = read(&[], "registry=a${b");
        assert_eq!(found.first().map(|l| l.value.as_str()), Some("a${b"));
    }
}

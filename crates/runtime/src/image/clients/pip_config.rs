//! Pure. pip's configuration files, as far as they say where packages come from and by which way.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::ClientSources;

/// Settings that are handed on. Others say how the operator likes pip to behave, which is none of
/// a build's business.
const KEYS: [&str; 14] = [
    "index-url",
    "extra-index-url",
    "no-index",
    "find-links",
    "trusted-host",
    "cert",
    "client-cert",
    "proxy",
    "timeout",
    "default-timeout",
    "retries",
    "resume-retries",
    "use-feature",
    "use-deprecated",
];

/// Where pip looks, the least important first.
pub(super) fn places(sources: &ClientSources) -> Vec<PathBuf> {
    let env = |name: &str| sources.env.get(name).filter(|value| !value.is_empty());
    let explicit = env("PIP_CONFIG_FILE");
    if explicit.is_some_and(|path| path == "/dev/null") {
        return Vec::new();
    }
    let shared = env("XDG_CONFIG_DIRS").map_or("/etc/xdg", String::as_str);
    let mut places: Vec<PathBuf> = shared
        .split(':')
        .rev()
        .filter_map(|folder| folder.strip_prefix('/'))
        .map(|folder| sources.root.join(folder).join("pip/pip.conf"))
        .collect();
    places.push(sources.root.join("etc/pip.conf"));
    if let Some(home) = &sources.home {
        places.push(home.join(".pip/pip.conf"));
        let config = env("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
        places.push(config.join("pip/pip.conf"));
    }
    places.extend(env("VIRTUAL_ENV").map(|venv| PathBuf::from(venv).join("pip.conf")));
    places.extend(explicit.map(PathBuf::from));
    places
}

/// The settings of one file, as variables that pip reads. Those of `[install]` win over those of
/// `[global]`.
pub(super) fn parse(text: &str) -> BTreeMap<String, String> {
    let mut sections: BTreeMap<&str, BTreeMap<String, String>> = BTreeMap::new();
    let (mut section, mut variable) = ("", None);
    for line in text.lines() {
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = bare
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            (section, variable) = (if name == "install" { "install" } else { name }, None);
        } else if line.starts_with([' ', '\t']) && variable.is_some() {
            let settings = sections.entry(section).or_default();
            if let Some(value) = variable.as_ref().and_then(|name| settings.get_mut(name)) {
                value.push_str(&format!(" {bare}"));
            }
        } else if let Some((key, value)) = bare.split_once(['=', ':']) {
            let key = key.trim().to_lowercase().replace('_', "-");
            let known = KEYS.contains(&key.trim_start_matches('.'));
            variable = Some(name_of(&key));
            if known {
                let settings = sections.entry(section).or_default();
                settings.insert(name_of(&key), value.trim().to_owned());
            }
        }
    }
    let mut merged = sections.remove("global").unwrap_or_default();
    merged.extend(sections.remove("install").unwrap_or_default());
    merged
}

/// The settings that the environment holds.
pub(super) fn from_env(env: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let wanted = KEYS.map(name_of);
    let set = wanted
        .into_iter()
        .filter_map(|name| Some((name.clone(), env.get(&name)?.clone())));
    set.collect()
}

fn name_of(key: &str) -> String {
    format!("PIP_{}", key.to_uppercase().replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_where_packages_come_from_is_taken_and_nothing_else() {
        let found = parse(
            "# mirror\n[global]\nindex-url = https://a.test/simple\nuser = true\ncache-dir=/c\n\
             [freeze]\ntimeout = 1\n[install]\nTimeout: 99\nfind_links =\n    /wheels\n    ; no\n \
             https://b.test/x\n\
             user = yes\n   continued\n",
        );
        let want = [
            ("PIP_FIND_LINKS", " /wheels https://b.test/x"),
            ("PIP_INDEX_URL", "https://a.test/simple"),
            ("PIP_TIMEOUT", "99"),
        ];
        let got: Vec<_> = found
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        assert_eq!(got, want);
    }

    #[test]
    fn a_section_for_installing_wins() {
        let found = parse("[install]\nretries=1\n[global]\nretries=2\n");
        assert_eq!(found.get("PIP_RETRIES").map(String::as_str), Some("1"));
    }

    #[test]
    fn hostile_text_is_no_trouble() {
        for text in [
            "",
            "=",
            "[",
            "[]",
            "\u{0}=\u{0}",
            " x",
            "[global]\n x\n=y\n:",
        ] {
            assert!(parse(text).is_empty(), "{text:?}");
        }
    }
}

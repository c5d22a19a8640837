//! Pure. Names that tools of the host obey without being asked.
//!
//! Each fits a file or folder at any depth, and all that lies in it; with a `=` before it, only
//! what has nothing below. Not among them is what only runs when somebody runs it: programs, tests,
//! Makefiles, scripts of packages. Who does that runs code of the sandbox, and knows it.

use super::fold::{self, Step};
use super::item::Topic;

const GIT: &[&str] = &[
    ".git",
    ".gitmodules",
    ".gitattributes",
    ".gitconfig",
    ".config/git",
    // A folder that has it may be a repository as a whole, with settings that name programs.
    "=head",
    ".lfsconfig",
    ".arcconfig",
    ".sl",
    ".hg",
    ".hgrc",
    ".svn",
    ".bzr",
    ".jj",
];

const HOOKS: &[&str] = &[
    ".husky",
    ".githooks",
    ".lefthook",
    ".lefthook.*",
    "lefthook.*",
    ".lefthook-local.*",
    "lefthook-local.*",
    ".pre-commit-*",
    "prek.toml",
    ".overcommit.yml",
    ".lintstagedrc*",
    ".watchmanconfig",
];

const SERVICE: &[&str] = &[
    ".github",
    ".gitlab",
    ".gitlab-ci.*",
    ".gitea",
    ".forgejo",
    ".circleci",
    ".buildkite",
    ".semaphore",
    ".teamcity",
    ".woodpecker",
    ".woodpecker.*",
    ".drone.*",
    ".cirrus.*",
    ".travis.yml",
    "appveyor.yml",
    ".appveyor.yml",
    "azure-pipelines.*",
    "bitbucket-pipelines.yml",
    "cloudbuild.*",
    "jenkinsfile",
];

const EDITOR: &[&str] = &[
    ".vscode",
    "*.code-workspace",
    ".vs",
    ".idea",
    ".fleet",
    ".zed",
    ".devcontainer",
    ".devcontainer.json",
    ".vimrc",
    ".gvimrc",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".vim",
    ".config/nvim",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".emacs",
    ".emacs.d",
    ".lazy.lua",
    ".neoconf.json",
    ".clangd",
    "rust-analyzer.toml",
    ".rust-analyzer.toml",
    "*.sublime-project",
    "*.sublime-workspace",
];

const AGENT: &[&str] = &[
    "agents.md",
    "agents.override.md",
    "agent.md",
    "claude.md",
    "claude.local.md",
    "gemini.md",
    "qwen.md",
    "crush.md",
    ".agent",
    ".agents",
    ".aider*",
    ".amazonq",
    ".augment",
    ".augment-guidelines",
    ".claude",
    ".claude.json",
    ".cline",
    ".clinerules",
    ".codex",
    ".continue",
    ".continuerules",
    ".crush.json",
    "crush.json",
    ".cursor",
    ".cursorrules",
    ".factory",
    ".gemini",
    ".goosehints",
    ".junie",
    ".kiro",
    ".mcp.json",
    "mcp.json",
    ".opencode",
    "opencode.json*",
    ".opencode.json*",
    ".qwen",
    ".roo",
    ".roomodes",
    ".roorules*",
    ".rules",
    ".trae",
    "warp.md",
    ".windsurf",
    ".windsurfrules",
];

const START_UP: &[&str] = &[
    ".profile",
    ".bashrc",
    ".bash_*",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".inputrc",
    ".pam_environment",
    ".xinitrc",
    ".xprofile",
    ".xsession*",
    ".tmux.conf",
    ".screenrc",
    ".config/autostart",
    ".config/environment.d",
    ".config/fish",
    ".config/systemd",
    ".gdbinit",
    ".lldbinit",
    ".psqlrc",
    ".sqliterc",
    ".irbrc",
    ".pryrc",
    ".pdbrc*",
    ".rprofile",
    ".renviron",
    ".ghci",
    ".iex.exs",
    ".ocamlinit",
    ".latexmkrc",
    "latexmkrc",
    ".curlrc",
    ".wgetrc",
];

const ENVIRONMENT: &[&str] = &[
    ".env",
    ".env.local",
    ".env.development*",
    ".env.production*",
    ".env.test*",
    ".flaskenv",
    ".envrc",
    ".direnvrc",
    ".config/direnv",
    ".autoenv*",
    ".rvmrc",
    ".sdkmanrc",
    ".tool-versions",
    ".mise",
    ".mise.*",
    "mise.toml",
    "mise.local.toml",
    ".config/mise",
    ".python-version*",
    ".node-version",
    ".nvmrc",
    ".ruby-version",
    ".java-version",
    ".go-version",
    ".terraform-version",
    "rust-toolchain",
    "rust-toolchain.toml",
];

const PACKAGES: &[&str] = &[
    ".npmrc",
    ".yarn",
    ".yarnrc*",
    ".pnp.*",
    ".pnpmfile.*",
    "bunfig.toml",
    ".bunfig.toml",
    "pip.conf",
    "pip.ini",
    ".config/pip",
    ".pip",
    ".pydistutils.cfg",
    "uv.toml",
    ".config/uv",
    ".condarc",
    ".cargo",
    ".bazelrc",
    ".gemrc",
    ".bundle",
    ".mvn",
    ".m2",
    ".gradle",
    "nuget.config",
    "ansible.cfg",
    ".ansible.cfg",
    ".terraformrc",
];

const PYTHON: &[&str] = &[
    "*.pth",
    "sitecustomize",
    "sitecustomize.*",
    "usercustomize",
    "usercustomize.*",
    "conftest.py",
    // What was compiled may be other than the source that is reviewed, and is what runs.
    "__pycache__",
    "*.pyc",
    // It names code that the linter loads, which editors start by themselves.
    ".pylintrc",
    // So do they with what is in these.
    ".venv",
    "venv",
];

const SECRETS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".netrc",
    "_netrc",
    ".pypirc",
    ".git-credentials",
    ".pgpass",
    ".my.cnf",
    ".aws",
    ".azure",
    ".docker",
    ".kube",
    ".config/gcloud",
    ".config/gh",
];

/// Folders of which only some content is obeyed. A link of such a name may lead to a folder that
/// has that content under a name of its own.
const PLACES: &[(&str, Topic)] = &[(".config", Topic::StartUp)];

const ALL: [(Topic, &[&str]); 10] = [
    (Topic::Git, GIT),
    (Topic::Hooks, HOOKS),
    (Topic::Service, SERVICE),
    (Topic::Editor, EDITOR),
    (Topic::Agent, AGENT),
    (Topic::StartUp, START_UP),
    (Topic::Environment, ENVIRONMENT),
    (Topic::Packages, PACKAGES),
    (Topic::Python, PYTHON),
    (Topic::Secrets, SECRETS),
];

/// Who would obey what lies at this path, given as its parts.
pub(super) fn topic<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Option<Topic> {
    let steps: Vec<Step> = parts.flat_map(fold::steps).collect();
    let fits = |pattern: &&str| fits(&steps, pattern);
    let found = ALL.iter().find(|(_, names)| names.iter().any(fits));
    found.map(|(topic, _)| *topic)
}

/// Who would obey what a link of this name leads to.
pub(super) fn place(own: &[u8]) -> Option<Topic> {
    let steps: Vec<Step> = fold::steps(own).collect();
    let is_it = |(name, _): &&(&str, Topic)| steps.iter().any(|step| step.fits(name));
    PLACES.iter().find(is_it).map(|(_, topic)| *topic)
}

fn fits(steps: &[Step], pattern: &str) -> bool {
    if let Some(own) = pattern.strip_prefix('=') {
        return steps.last().is_some_and(|step| step.fits(own));
    }
    match pattern.split_once('/') {
        None => steps.iter().any(|step| step.fits(pattern)),
        Some((above, own)) => {
            let mut pairs = steps.iter().zip(steps.iter().skip(1));
            pairs.any(|(first, second)| first.fits(above) && second.fits(own))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Option<Topic> {
        topic(path.split('/').map(str::as_bytes))
    }

    #[test]
    fn what_is_obeyed_unasked_is_known_at_any_depth() {
        for (path, expected) in [
            (".git/hooks/pre-commit", Some(Topic::Git)),
            ("vendor/lib/.GIT/config", Some(Topic::Git)),
            (".git", Some(Topic::Git)),
            ("cache/HEAD", Some(Topic::Git)),
            ("components/head/index.ts", None),
            (".gitmodules", Some(Topic::Git)),
            (".gitignore", None),
            (".pre-commit-config.yaml", Some(Topic::Hooks)),
            (".husky/pre-push", Some(Topic::Hooks)),
            (".github/workflows/ci.yml", Some(Topic::Service)),
            (".gitlab-ci.yml", Some(Topic::Service)),
            (".vscode/tasks.json", Some(Topic::Editor)),
            (".idea/workspace.xml", Some(Topic::Editor)),
            ("docs/CLAUDE.md", Some(Topic::Agent)),
            ("Agents.md", Some(Topic::Agent)),
            (".cursor/rules/a.mdc", Some(Topic::Agent)),
            (".bashrc", Some(Topic::StartUp)),
            (".config/fish/config.fish", Some(Topic::StartUp)),
            (".config/nextest.toml", None),
            (".envrc", Some(Topic::Environment)),
            (".env.example", None),
            (".python-version", Some(Topic::Environment)),
            (".npmrc", Some(Topic::Packages)),
            (".cargo/config.toml", Some(Topic::Packages)),
            ("tests/conftest.py", Some(Topic::Python)),
            ("lib/site-packages/a.pth", Some(Topic::Python)),
            ("sitecustomize/__init__.py", Some(Topic::Python)),
            (".ssh/authorized_keys", Some(Topic::Secrets)),
            ("Makefile", None),
            ("package.json", None),
            ("src/main.rs", None),
            ("README.md", None),
        ] {
            assert_eq!(of(path), expected, "{path}");
        }
    }

    #[test]
    fn patterns_are_written_as_names_are_folded() {
        for (_, names) in ALL {
            for pattern in names {
                assert_eq!(*pattern, pattern.to_lowercase());
                let name = pattern.replace('*', "x").replace('=', "");
                assert!(of(&name).is_some(), "{name}");
            }
        }
    }
}

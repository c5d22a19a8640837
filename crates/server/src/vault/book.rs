//! Pure. What is kept of a vault, and what a change makes of it.

use std::collections::BTreeSet;

use barchan_wire::egress::vault::{
    AuthRow, Authority, Binding, BindingRow, Changes, Credential, CredentialRow, NewVault, Vault,
    VaultPatch, VaultState,
};
use serde::{Deserialize, Serialize};

use super::VaultError;

/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 128;
/// Most credentials, and most bindings.
const ITEMS_MAX: usize = 256;
/// Most bytes of all of it: as much as one call brings.
const BYTES_MAX: usize = 1024 * 1024;

/// What is kept for a sandbox that may have credentials, whether it has some or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Book {
    authority: Authority,
    /// What a caller put there, if one did.
    content: Option<Content>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    revision: u64,
    credentials: Vec<Item<Credential>>,
    bindings: Vec<Item<Binding>>,
}

/// Something, with the revision that set it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Item<T> {
    revision: u64,
    value: T,
}

/// What a caller wants of a vault.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// There is to be one.
    Create(NewVault),
    /// It is to be another.
    Patch(VaultPatch),
    /// There is to be none.
    Delete,
}

trait Named {
    const KIND: &'static str;
    fn name(&self) -> &str;
}

impl Named for Credential {
    const KIND: &'static str = "credential";
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for Binding {
    const KIND: &'static str = "binding";
    fn name(&self) -> &str {
        &self.name
    }
}

impl Book {
    /// One without credentials.
    pub(crate) fn new(authority: Authority) -> Self {
        Self {
            authority,
            content: None,
        }
    }

    /// The certificate of who signs, as PEM.
    pub(crate) fn certificate(&self) -> &str {
        &self.authority.certificate
    }

    /// The whole of it, for whoever puts credentials into requests.
    pub(crate) fn told(&self) -> Vault {
        let content = self.content.as_ref();
        let credentials = content.map(|it| values(&it.credentials));
        let bindings = content.map(|it| values(&it.bindings));
        Vault {
            authority: self.authority.clone(),
            credentials: credentials.unwrap_or_default(),
            bindings: bindings.unwrap_or_default(),
        }
    }

    /// What callers see of it.
    pub(crate) fn state(&self) -> Result<VaultState, VaultError> {
        let content = self.content.as_ref().ok_or(VaultError::Absent)?;
        let credential = |it: &Item<Credential>| CredentialRow {
            name: it.value.name.clone(),
            source_type: "inline".to_owned(),
            revision: it.revision,
        };
        let binding = |it: &Item<Binding>| BindingRow {
            name: it.value.name.clone(),
            revision: it.revision,
            requests: it.value.requests.clone(),
            auth: AuthRow::from(&it.value.auth),
        };
        Ok(VaultState {
            revision: content.revision,
            credentials: content.credentials.iter().map(credential).collect(),
            bindings: content.bindings.iter().map(binding).collect(),
        })
    }

    /// The same with a change made, or why it cannot be.
    pub(crate) fn changed(&self, change: Change) -> Result<Self, VaultError> {
        let content = match (&self.content, change) {
            (None, Change::Create(new)) => Some(Content::created(new)?),
            (Some(_), Change::Create(_)) => return Err(VaultError::Exists),
            (None, Change::Patch(_) | Change::Delete) => return Err(VaultError::Absent),
            (Some(content), Change::Patch(patch)) => Some(content.patched(patch)?),
            (Some(_), Change::Delete) => None,
        };
        if let Some(content) = &content {
            content.check()?;
        }
        Ok(Self {
            authority: self.authority.clone(),
            content,
        })
    }
}

impl Change {
    /// What it is about, for whoever reads later what was done: names alone.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Create(new) => sentence([
                words(&new.credentials, &[], &[]),
                words(&new.bindings, &[], &[]),
            ]),
            Self::Patch(patch) => {
                let credentials = patch.credentials.as_ref().map(changes);
                let bindings = patch.bindings.as_ref().map(changes);
                sentence([credentials, bindings].map(Option::unwrap_or_default))
            }
            Self::Delete => "all".to_owned(),
        }
    }
}

impl Content {
    fn created(new: NewVault) -> Result<Self, VaultError> {
        let mut content = Self {
            revision: 1,
            credentials: Vec::new(),
            bindings: Vec::new(),
        };
        // Two of one name in a new vault are a fault of the caller, not a conflict.
        unique(&new.credentials)?;
        unique(&new.bindings)?;
        add(&mut content.credentials, new.credentials, 1)?;
        add(&mut content.bindings, new.bindings, 1)?;
        Ok(content)
    }

    fn patched(&self, patch: VaultPatch) -> Result<Self, VaultError> {
        let VaultPatch {
            expected_revision,
            credentials,
            bindings,
        } = patch;
        if let Some(expected) = expected_revision.filter(|it| *it != self.revision) {
            let now = self.revision;
            return Err(VaultError::Revision { expected, now });
        }
        let mut next = self.clone();
        next.revision += 1;
        apply(&mut next.credentials, credentials, next.revision)?;
        apply(&mut next.bindings, bindings, next.revision)?;
        Ok(next)
    }

    /// What can be said of it without knowing what the sandbox may reach.
    fn check(&self) -> Result<(), VaultError> {
        let names = self.credentials.iter().map(|it| it.value.name());
        let known: BTreeSet<&str> = names.collect();
        let credentials = self.credentials.iter().map(|it| it.value.name());
        let bindings = self.bindings.iter().map(|it| it.value.name());
        credentials.chain(bindings).try_for_each(check_name)?;
        if self.credentials.len().max(self.bindings.len()) > ITEMS_MAX {
            let words = format!("a vault has {ITEMS_MAX} credentials and as many bindings at most");
            return Err(VaultError::Invalid(words));
        }
        for binding in self.bindings.iter().map(|it| &it.value) {
            let used = binding.auth.credentials();
            if let Some(missing) = used.into_iter().find(|name| !known.contains(name)) {
                let (binding, missing) = (&binding.name, shown(missing));
                let words = format!(
                    "binding `{binding}` names credential `{missing}`, which is \
                                     not in the vault"
                );
                return Err(VaultError::Invalid(words));
            }
        }
        let bytes = serde_json::to_vec(self).map_or(0, |bytes| bytes.len());
        if bytes > BYTES_MAX {
            let words = "a vault has 1 MiB at most, all names and values together";
            return Err(VaultError::Invalid(words.to_owned()));
        }
        Ok(())
    }
}

fn values<T: Clone>(items: &[Item<T>]) -> Vec<T> {
    items.iter().map(|it| it.value.clone()).collect()
}

fn apply<T: Named>(
    items: &mut Vec<Item<T>>,
    changes: Option<Changes<T>>,
    revision: u64,
) -> Result<(), VaultError> {
    let Some(changes) = changes else {
        return Ok(());
    };
    for name in changes.delete.unwrap_or_default() {
        let at = place(items, &name)?;
        items.remove(at);
    }
    let replace = changes.replace.unwrap_or_default();
    unique(&replace)?;
    for value in replace {
        let at = place(items, value.name())?;
        if let Some(item) = items.get_mut(at) {
            *item = Item { revision, value };
        }
    }
    let new = changes.add.unwrap_or_default();
    unique(&new)?;
    add(items, new, revision)
}

fn add<T: Named>(items: &mut Vec<Item<T>>, new: Vec<T>, revision: u64) -> Result<(), VaultError> {
    for value in new {
        if items.iter().any(|it| it.value.name() == value.name()) {
            let (kind, name) = (T::KIND, shown(value.name()));
            return Err(VaultError::Taken { kind, name });
        }
        items.push(Item { revision, value });
    }
    Ok(())
}

/// Where something is that a change names. Nothing there is the change's fault, and not a place
/// that a caller asked for.
fn place<T: Named>(items: &[Item<T>], name: &str) -> Result<usize, VaultError> {
    let at = items.iter().position(|it| it.value.name() == name);
    at.ok_or_else(|| {
        let (kind, name) = (T::KIND, shown(name));
        VaultError::Invalid(format!("the vault has no {kind} `{name}`"))
    })
}

fn unique<T: Named>(items: &[T]) -> Result<(), VaultError> {
    let mut seen = BTreeSet::new();
    let twice = items.iter().find(|it| !seen.insert(it.name()));
    twice.map_or(Ok(()), |it| {
        let (kind, name) = (T::KIND, shown(it.name()));
        Err(VaultError::Invalid(format!(
            "{kind} `{name}` is there twice"
        )))
    })
}

fn check_name(name: &str) -> Result<(), VaultError> {
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
    if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(());
    }
    let words = format!(
        "`{}` is no name: names have 1 to {NAME_BYTES_MAX} visible ASCII characters without `/`",
        shown(name)
    );
    Err(VaultError::Invalid(words))
}

/// A name for a message: short, and without what a terminal would obey.
fn shown(name: &str) -> String {
    let short: String = name.chars().take(64).collect();
    short.escape_debug().to_string()
}

/// What becomes of both kinds, those left out of which nothing is said.
fn sentence(kinds: [String; 2]) -> String {
    let named = ["credentials", "bindings"].into_iter().zip(kinds);
    let named = named.filter(|(_, words)| !words.is_empty());
    let named = named.map(|(kind, words)| format!("{kind} {words}"));
    named.collect::<Vec<_>>().join("; ")
}

fn changes<T: Named>(changes: &Changes<T>) -> String {
    words(
        changes.add.as_deref().unwrap_or_default(),
        changes.replace.as_deref().unwrap_or_default(),
        changes.delete.as_deref().unwrap_or_default(),
    )
}

/// Names behind what becomes of them.
fn words<T: Named>(add: &[T], replace: &[T], delete: &[String]) -> String {
    let add = add.iter().map(|it| ('+', it.name()));
    let replace = replace.iter().map(|it| ('~', it.name()));
    let delete = delete.iter().map(|name| ('-', name.as_str()));
    let all = add.chain(replace).chain(delete);
    let all = all.map(|(mark, name)| format!("{mark}{}", shown(name)));
    all.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;

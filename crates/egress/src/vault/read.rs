//! Pure. Reads a vault, and refuses what could send a secret further than was meant.

use std::collections::HashMap;
use std::rc::Rc;

use barchan_wire::egress::vault as wire;

use super::glob::Glob;
use super::hosts::{self, Hosts};
use super::{Binding, Vault, VaultError, overlap};
use crate::policy::Policy;
use crate::rules::{Overlay, Rule, in_order};

mod auth;

/// Most credentials, and most bindings.
const ITEMS_MAX: usize = 256;
/// Most hosts of all bindings together, each of which every rule may be about.
const HOSTS_MAX: usize = 256;
/// Most methods and paths of all bindings together, each of which is held against each.
const PATHS_MAX: usize = 1024;
/// Most bytes of values, counted as often as bindings name them: each is kept in several forms.
const USED_BYTES_MAX: usize = 1024 * 1024;
/// Longest value, in bytes.
const VALUE_BYTES_MAX: usize = 32 * 1024;
/// The values of credentials by their names.
type Values<'a> = HashMap<&'a str, &'a str>;

impl Vault {
    /// Reads a vault for a sandbox with a policy.
    ///
    /// # Errors
    /// What makes no sense in it, or could send a secret where it was not meant to go.
    pub fn read(
        wire: &wire::Vault,
        overlay: &Overlay,
        policy: &Policy,
    ) -> Result<Self, VaultError> {
        let hosts = wire.bindings.iter().map(|it| it.requests.hosts.len());
        let paths = wire.bindings.iter().map(|it| it.requests.paths.len());
        let methods = wire.bindings.iter().map(|it| it.requests.methods.len());
        for (what, count, most) in [
            ("credentials", wire.credentials.len(), ITEMS_MAX),
            ("bindings", wire.bindings.len(), ITEMS_MAX),
            ("hosts", hosts.sum(), HOSTS_MAX),
            ("paths", paths.sum(), PATHS_MAX),
            ("methods", methods.sum(), 2 * PATHS_MAX),
        ] {
            if count > most {
                return Err(VaultError::TooMany { what, most });
            }
        }
        let values = values(&wire.credentials)?;
        let used = wire.bindings.iter().flat_map(|it| it.auth.credentials());
        let bytes: usize = used
            .filter_map(|name| values.get(name))
            .map(|it| it.len())
            .sum();
        if bytes > USED_BYTES_MAX {
            let (what, most) = ("bytes of values in its bindings", USED_BYTES_MAX);
            return Err(VaultError::TooMany { what, most });
        }
        let rules = match wire.bindings.is_empty() {
            true => Vec::new(),
            false => in_order(overlay, policy),
        };
        let read = |binding: &wire::Binding| {
            let read = read(binding, &values, &rules).map_err(|why| VaultError::Binding {
                name: binding.name.clone(),
                why,
            })?;
            Ok(Rc::new(read))
        };
        let bindings: Vec<_> = wire.bindings.iter().map(read).collect::<Result<_, _>>()?;
        overlap::check(&bindings)?;
        Ok(Self { bindings })
    }
}

fn values(credentials: &[wire::Credential]) -> Result<Values<'_>, VaultError> {
    let mut values = Values::new();
    for credential in credentials {
        let wire::Source::Inline { value } = &credential.source;
        let value = value.reveal();
        let is_fine = |char: char| char == '\t' || !char.is_control();
        let why = match value.len() {
            0 => Some("its value is empty"),
            length if length > VALUE_BYTES_MAX => Some("its value has more than 32 KiB"),
            _ if value.trim() != value => Some("its value begins or ends with a space"),
            _ if !value.chars().all(is_fine) => {
                Some("its value has a line's end or another character that controls something")
            }
            _ => None,
        };
        let why = match why {
            None if values.insert(&credential.name, value).is_some() => Some("it is there twice"),
            why => why,
        };
        if let Some(why) = why {
            let name = credential.name.clone();
            return Err(VaultError::Credential { name, why });
        }
    }
    Ok(values)
}

fn read(binding: &wire::Binding, values: &Values<'_>, rules: &[Rule]) -> Result<Binding, String> {
    let requests = &binding.requests;
    let mut schemes = requests.schemes.clone();
    if let Some(ports) = &requests.ports {
        if let Some(port) = ports.iter().find(|port| ![443, 80].contains(*port)) {
            return Err(format!("the port {port} is neither 443 nor 80"));
        }
        schemes.retain(|scheme| ports.contains(&hosts::port(*scheme)));
    }
    if schemes.is_empty() {
        return Err("it has no scheme, or none that goes with its ports".to_owned());
    }
    let methods = requests.methods.iter().map(|it| method(it));
    let paths = requests.paths.iter().map(|text| {
        let glob = Glob::parse(text);
        glob.ok_or_else(|| "a path begins with `/`, and has no space, `?`, `#` or `\\`".to_owned())
    });
    let read = Binding {
        name: binding.name.clone(),
        hosts: hosts(&requests.hosts, &schemes, rules)?,
        schemes,
        methods: methods.collect::<Result<_, _>>()?,
        paths: paths.collect::<Result<_, _>>()?,
        changes: auth::read(binding, values)?,
    };
    if read.methods.is_empty() || read.paths.is_empty() {
        return Err("it has no method or no path".to_owned());
    }
    Ok(read)
}

fn hosts(texts: &[String], schemes: &[wire::Scheme], rules: &[Rule]) -> Result<Vec<Hosts>, String> {
    if texts.is_empty() {
        return Err("it has no host".to_owned());
    }
    let read = |text: &String| {
        let hosts = Hosts::parse(text)?;
        match schemes
            .iter()
            .all(|scheme| hosts.are_allowed(rules, *scheme))
        {
            true => Ok(hosts),
            false => Err(format!(
                "the policy does not allow the host `{text}` by its name before anything else: add \
                 a rule `allow {text}` before those that refuse it"
            )),
        }
    };
    texts.iter().map(read).collect()
}

fn method(text: &str) -> Result<String, String> {
    let method = text.to_ascii_uppercase();
    if http::Method::from_bytes(method.as_bytes()).is_err() || method == "CONNECT" {
        let shown: String = text.chars().take(40).collect();
        return Err(format!("{shown:?} is no method that it can be about"));
    }
    Ok(method)
}

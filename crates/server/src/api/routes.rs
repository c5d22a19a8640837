//! Pure. Which method and path lead where.

mod names;
mod table;

use std::borrow::Cow;

use http::Method;
use percent_encoding::percent_decode_str;

pub(super) use names::{DAEMON, OTHER, PORT, all as operations, named};
use table::ROUTES;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Health,
    Version,
    /// This API in OpenAPI.
    Describe,
    Create,
    List,
    Get,
    Delete,
    Label,
    Pause,
    Resume,
    Renew,
    Endpoint,
    Logs,
    /// What happened to a sandbox, as text.
    Events,
    /// What is known of a sandbox, as text.
    Inspect,
    /// All of these.
    Summary,
    CreateEvent,
    CreatePool,
    Pools,
    Pool,
    ResizePool,
    DeletePool,
    /// What is known of a sandbox beyond the OpenSandbox API.
    Report,
    /// Every change of every sandbox.
    Watch,
    /// The server's own figures.
    Metrics,
    /// The settings, read again.
    Reload,
    /// Every named volume.
    ListVolumes,
    RemoveVolume,
    /// Keys of the API.
    ListKeys,
    CreateKey,
    RotateKey,
    RevokeKey,
    /// Who shares the server.
    ListTenants,
    CreateTenant,
    Tenant,
    ChangeTenant,
    RemoveTenant,
    CreateSnapshot,
    ListSnapshots,
    Snapshot,
    RemoveSnapshot,
    /// A snapshot as an image.
    ExportSnapshot,
    ImportSnapshot,
    /// What a sandbox has written, as a layer that nobody changes any more.
    SealLayer,
    ListLayers,
    InspectLayer,
    ForgetLayer,
    CompareLayers,
    CommitLayer,
    /// Back to a layer.
    Undo,
    /// Other sandboxes of a layer.
    Fork,
    /// What a sandbox may send out.
    NetworkPolicy,
    SetNetworkPolicy,
    PatchNetworkPolicy,
    CutNetworkPolicy,
    /// What it reached or tried to.
    Connections,
    /// Bytes to a port of it and back.
    Connect,
    /// What somebody is asked.
    ListApprovals,
    Approval,
    Approve,
    Reject,
    /// What other servers of this API have and this one does not.
    Templates,
}

/// What the path names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The first variable part: a sandbox's id as it was sent.
    pub(super) id: String,
    /// The second one: a port as it was sent.
    pub(super) port: String,
    /// Whether the path begins with `/v1`.
    pub(super) is_v1: bool,
    /// The number of the route.
    pub(super) route: usize,
}

/// Where a request leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Operation(Operation, Place),
    /// The same path without its last slash is a route.
    Slash,
    /// The path is a route of these methods.
    OtherMethods(Vec<Method>),
    Nothing,
}

/// Under which beginnings a route is served.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mount {
    Both,
    Root,
    V1,
}

/// A route as it is told of.
pub(super) struct Told {
    pub(super) method: Method,
    /// The path, with `/v1` where that may be left out, and the variable parts in braces.
    pub(super) path: String,
    /// The names of the variable parts.
    pub(super) names: Vec<&'static str>,
    /// Whether no key is needed.
    pub(super) is_open: bool,
    pub(super) operation: Operation,
}

/// Every route but the proxy's.
pub(super) fn all() -> impl Iterator<Item = Told> {
    ROUTES.iter().map(|(method, mount, pattern, operation)| {
        let parts: Vec<&str> = pattern.split('/').collect();
        let before = parts.iter().zip(parts.iter().skip(1));
        let variable = before.filter(|(_, part)| **part == "*");
        let names: Vec<&str> = variable.map(|(before, _)| variable_name(before)).collect();
        let start = match mount {
            Mount::Root => "",
            Mount::Both | Mount::V1 => "/v1",
        };
        let whole = format!("{start}/{pattern}");
        let path = names.iter().fold(whole, |path, name| {
            path.replacen('*', &format!("{{{name}}}"), 1)
        });
        Told {
            is_open: is_open(&path),
            method: method.clone(),
            path,
            names,
            operation: *operation,
        }
    })
}

/// What stands behind a part of a path.
fn variable_name(before: &str) -> &'static str {
    match before {
        "sandboxes" | "layers" => "sandboxId",
        "kept" => "layer",
        "endpoints" | "tcp" => "port",
        "snapshots" => "snapshotId",
        "templates" => "templateId",
        "pools" => "poolName",
        "volumes" => "volumeName",
        "keys" => "keyId",
        "tenants" => "tenantName",
        "approvals" => "approvalId",
        _ => "name",
    }
}

/// Whether a path needs no key.
pub(super) fn is_open(path: &str) -> bool {
    matches!(path, "/health" | "/version" | "/openapi.json")
}

/// Every route but the proxy's: method and path, in which `*` stands for any text but nothing.
/// Those that have two paths are told by the one that begins with `/v1`.
pub fn served() -> impl Iterator<Item = (Method, String)> {
    ROUTES.iter().map(|(method, mount, pattern, _)| {
        let base = match mount {
            Mount::Both | Mount::V1 => "/v1/",
            Mount::Root => "/",
        };
        (method.clone(), format!("{base}{pattern}"))
    })
}

/// Finds the route of a request.
pub(super) fn find(method: &Method, path: &str) -> Found {
    let Some(rest) = path.strip_prefix('/') else {
        return Found::Nothing;
    };
    let (is_v1, rest) = match rest.strip_prefix("v1/") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let parts: Vec<&str> = rest.split('/').collect();
    let routes = || {
        ROUTES
            .iter()
            .enumerate()
            .filter(|(_, (_, mount, pattern, _))| {
                let mounted = match mount {
                    Mount::Both => true,
                    Mount::Root => !is_v1,
                    Mount::V1 => is_v1,
                };
                mounted && fits(pattern, &parts)
            })
    };
    let found = routes().find(|(_, (is, ..))| is == method);
    if let Some((route, (_, _, pattern, operation))) = found {
        return Found::Operation(*operation, place(route, pattern, &parts, is_v1));
    }
    let others: Vec<Method> = routes().map(|(_, (method, ..))| method.clone()).collect();
    if !others.is_empty() {
        return Found::OtherMethods(others);
    }
    match path.strip_suffix('/') {
        Some(shorter)
            if matches!(
                find(method, shorter),
                Found::Operation(..) | Found::OtherMethods(_)
            ) =>
        {
            Found::Slash
        }
        _ => Found::Nothing,
    }
}

fn fits(pattern: &str, parts: &[&str]) -> bool {
    let mut wanted = pattern.split('/');
    let all = parts.iter().all(|part| {
        let want = wanted.next();
        want == Some(*part) || (want == Some("*") && !part.is_empty())
    });
    all && wanted.next().is_none()
}

fn place(route: usize, pattern: &str, parts: &[&str], is_v1: bool) -> Place {
    let mut variable = pattern
        .split('/')
        .zip(parts)
        .filter(|(want, _)| *want == "*")
        .map(|(_, part)| decoded(part));
    let id = variable.next().unwrap_or_default();
    let port = variable.next().unwrap_or_default();
    Place {
        id,
        port,
        is_v1,
        route,
    }
}

/// What percent signs stand for; text that is no UTF-8 names nothing.
pub(super) fn decoded(part: &str) -> String {
    percent_decode_str(part)
        .decode_utf8()
        .map(Cow::into_owned)
        .unwrap_or_default()
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    fn word(found: Found) -> String {
        match found {
            Found::Operation(operation, place) => {
                format!("{operation:?} {} {} {}", place.id, place.port, place.is_v1)
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn paths_lead_where_they_should() {
        for (method, path, expected) in [
            ("GET", "/health", "Health   false"),
            ("GET", "/v1/health", "Nothing"),
            ("HEAD", "/health", "OtherMethods([GET])"),
            ("POST", "/v1/sandboxes", "Create   true"),
            ("GET", "/sandboxes", "List   false"),
            ("PUT", "/sandboxes", "OtherMethods([POST, GET])"),
            ("OPTIONS", "/sandboxes/a", "OtherMethods([GET, DELETE])"),
            ("GET", "/sandboxes/a", "Get a  false"),
            ("GET", "/sandboxes/%61", "Get a  false"),
            ("GET", "/sandboxes/..%2f..", "Get ../..  false"),
            (
                "GET",
                "/v1/sandboxes/a/endpoints/08080",
                "Endpoint a 08080 true",
            ),
            ("GET", "/x/sandboxes/a/tcp/80", "Connect a 80 false"),
            ("GET", "/v1/x/sandboxes/a/tcp/80", "Nothing"),
            ("POST", "/sandboxes/", "Slash"),
            ("GET", "/v1/sandboxes/a/pause/", "Slash"),
            ("POST", "/metrics/events", "Nothing"),
            ("POST", "/v1/metrics/events", "CreateEvent   true"),
            ("GET", "/V1/sandboxes", "Nothing"),
            ("GET", "//sandboxes", "Nothing"),
            ("GET", "/v1//sandboxes", "Nothing"),
            ("GET", "/v1/v1/sandboxes", "Nothing"),
            ("GET", "/sandboxes//", "Nothing"),
            ("GET", "/", "Nothing"),
            ("GET", "*", "Nothing"),
            ("DELETE", "/pools/p", "DeletePool p  false"),
        ] {
            let method = method.parse().unwrap();
            assert_eq!(word(find(&method, path)), expected, "{method} {path}");
        }
    }
}

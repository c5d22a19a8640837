//! Pure. Names of HTTP headers, lower case as HTTP/2 and our routers compare them.

/// The key of the lifecycle API.
pub const API_KEY: &str = "open-sandbox-api-key";
/// The same key under the name that the Go client uses in proxy mode.
pub const API_KEY_ALIAS: &str = "x-api-key";
/// The token of one sandbox, handed out in an endpoint's `headers` and checked by the proxy.
pub const SANDBOX_TOKEN: &str = "x-execd-access-token";
/// Echoed or made on every lifecycle answer.
pub const REQUEST_ID: &str = "x-request-id";
/// Next cursor of a background command's log: a byte offset.
pub const TAIL_CURSOR: &str = "execd-commands-tail-cursor";

//! Pure. Names of HTTP headers, lower case as HTTP/2 and our routers compare them.

/// The key of the lifecycle API.
pub const API_KEY: &str = "open-sandbox-api-key";
/// The same key under the name that the Go client uses in proxy mode.
pub const API_KEY_ALIAS: &str = "x-api-key";
/// The token of one sandbox, handed out in an endpoint's `headers` and checked by the proxy.
pub const SANDBOX_TOKEN: &str = "x-execd-access-token";
/// The same token under the name that OpenSandbox's gateway has for it. A wrong one is refused,
/// whatever else would open the port.
pub const SECURE_ACCESS: &str = "opensandbox-secure-access";
/// `skip`: this use of a sandbox does not put off its end.
pub const ACCESS_RENEW: &str = "opensandbox-access-renew";
/// Where a watcher of events wants to go on.
pub const LAST_EVENT_ID: &str = "last-event-id";
/// Echoed or made on every lifecycle answer.
pub const REQUEST_ID: &str = "x-request-id";
/// Next cursor of a background command's log: a byte offset.
pub const TAIL_CURSOR: &str = "execd-commands-tail-cursor";
/// Names a command for good, so that it is run once however often it is asked for.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// From the server to the daemon: the id of the command to be. Never taken from a caller.
pub const COMMAND_ID: &str = "x-barchan-command-id";
/// What a command writes is to be sealed when it has ended, as a layer with this label: UTF-8 with
/// percent signs. Empty: the command is the label. Never passed on to the daemon.
pub const SEAL: &str = "x-barchan-seal";
/// `keep` or `strip`: whether an event's text has its line end, whatever the client's name says.
pub const LINE_ENDS: &str = "x-barchan-line-ends";
/// Permission bits of a file, as octal digits, on `GET /x/files`.
pub const FILE_MODE: &str = "x-file-mode";
/// Last change of a file's content in RFC 3339, to the nanosecond, on `GET /x/files`.
pub const FILE_MODIFIED: &str = "x-file-modified";
/// Where an upload goes on: how many bytes of it have arrived.
pub const UPLOAD_OFFSET: &str = "upload-offset";
/// On the daemon's own answer for a port of its sandbox: why there is none of a program's.
pub const GATEWAY: &str = "x-barchan-gateway";
/// There: nothing listens on the port.
pub const GATEWAY_REFUSED: &str = "refused";
/// There: what listens broke off or answered no HTTP.
pub const GATEWAY_BROKEN: &str = "broken";
/// Next cursor of the log of a background run in an isolated session: a byte offset.
pub const ISOLATED_TAIL_CURSOR: &str = "execd-isolated-tail-cursor";
/// From the server to the daemon, as `Upgrade` of a request for a port: bytes as they come.
pub const TUNNEL: &str = "barchan-tcp";
/// As `Upgrade` of a request for a stream into a port, and of its answer: bytes as they come, and
/// the end of each way by itself.
pub const STREAM: &str = "tcp";

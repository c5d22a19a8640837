//! Pure. Where the programs of one user on one host find each other.

/// The environment variable that names the state directory.
pub const STATE_DIR_ENV: &str = "BARCHAN_STATE_DIR";
/// What the server itself keeps in the state directory: a folder of its user's, where images and
/// the launcher's files are not.
pub const SERVER_FOLDER: &str = "server";
/// The server's Unix socket in the state directory: local use, checked by peer credentials.
pub const API_SOCKET: &str = "server/api.sock";
/// Held by the server for as long as it uses the state directory, also while it is leaving.
pub const SERVER_LOCK: &str = "server/lock";
/// Held in the state directory by whoever starts a private server, so that many at once start one.
pub const PRIVATE_LOCK: &str = "start.lock";
/// What a private server logs, in the state directory.
pub const PRIVATE_LOG: &str = "private-server.log";

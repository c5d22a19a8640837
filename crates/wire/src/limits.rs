//! Pure. The limits a caller can see, each with its unit in the name.

/// Largest JSON body of the lifecycle API, in bytes.
pub const REQUEST_BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Largest body of a command request, in bytes (a script may be long, a body may not be endless).
pub const COMMAND_BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest path accepted by the file API, in bytes (Linux PATH_MAX less the terminator).
pub const PATH_BYTES_MAX: usize = 4095;
/// How long a finished command's status and log stay readable, in seconds.
pub const COMMAND_RETENTION_S: u64 = 24 * 3600;
/// Longest idempotency key, in bytes.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;
/// How much of a command's answer is kept for its idempotency key, in bytes: beginning and end.
pub const COMMAND_RESULT_BYTES_MAX: usize = 256 * 1024;
/// Most labels (entries of `metadata`) of one sandbox. Each has at most 317 bytes of key and 63 of
/// value.
pub const SANDBOX_LABELS_MAX: usize = 64;
/// Most extensions of one sandbox that are kept and shown.
pub const SANDBOX_EXTENSIONS_MAX: usize = 64;
/// How long these are together, names included, in bytes.
pub const SANDBOX_EXTENSIONS_BYTES_MAX: usize = 16 * 1024;
/// Most variables of one sandbox's environment, and most words of its entrypoint.
pub const SANDBOX_TEXTS_MAX: usize = 4096;
/// How long an entrypoint is, each word with one byte for its end. Every list shows it.
pub const ENTRYPOINT_BYTES_MAX: usize = 256 * 1024;
/// Most volumes of one sandbox.
pub const SANDBOX_VOLUMES_MAX: usize = 32;
/// Most isolated sessions of one sandbox at once.
pub const ISOLATED_SESSIONS_MAX: usize = 64;
/// Most overlays of one isolated session, its workspace included.
pub const ISOLATED_OVERLAYS_MAX: usize = 16;
/// Most further mounts of one isolated session.
pub const ISOLATED_BINDS_MAX: usize = 32;
/// Most streams into ports of one sandbox at once.
pub const PORT_STREAMS_MAX: usize = 1024;
/// How long such a stream may say nothing once one of its ways has ended, in milliseconds: long
/// enough for an answer that takes its time, for nobody can tell who waits from who went away.
pub const PORT_STREAM_SILENCE_MS: u64 = 600_000;

//! Pure. The limits of this program that no caller sees in its requests, each with its unit.

/// Longest line sent as one event, in bytes. Of a longer one the rest is counted and left out, so
/// that a program which never ends a line cannot fill the memory.
pub(crate) const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How much of a background command's output is kept, in bytes: its end.
pub(crate) const LOG_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How much output of all background commands together is kept, in bytes.
pub(crate) const LOGS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How many ended commands are remembered.
pub(crate) const ENDED_COMMANDS_MAX: usize = 1024;
/// How much of a command's text its status repeats, in bytes.
pub(crate) const CONTENT_BYTES_MAX: usize = 16 * 1024;
/// Events gathered before the caller must have taken some, in bytes.
pub(crate) const EVENTS_BYTES_MAX: usize = 64 * 1024;
/// Bytes taken from a pipe at once.
pub(crate) const READ_BYTES: usize = 64 * 1024;
/// Between two signs of life on a silent event stream, in milliseconds.
pub(crate) const PING_MS: u64 = 3000;
/// After this long a carriage return is a line end of its own, in milliseconds: long enough for
/// the line feed of a slow writer, short enough for a progress bar.
pub(crate) const CARRIAGE_RETURN_MS: u64 = 500;
/// How long output of processes that outlive their command is still taken for its own, in
/// milliseconds.
pub(crate) const TRAILING_MS: u64 = 50;
/// Between a polite end and a forced one of an interrupted command, in milliseconds.
pub(crate) const INTERRUPT_MS: u64 = 3000;
/// Between a polite end and a forced one of the entrypoint, in milliseconds.
pub(crate) const SHUTDOWN_MS: u64 = 10_000;
/// How long killing a tree of processes may take, in milliseconds.
pub(crate) const KILL_MS: u64 = 5000;

/// Largest file of /etc or of environment settings that is read, in bytes.
pub(crate) const TEXT_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Largest file whose content is replaced, in bytes: it is held in memory, old and new.
pub(crate) const REPLACE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Up to this size a file is read or written without another thread, in bytes.
pub(crate) const INLINE_BYTES_MAX: u64 = 256 * 1024;
/// Bytes moved at once between a file and a caller.
pub(crate) const BLOCK_BYTES: usize = 1024 * 1024;
/// Most entries of one listing or search.
pub(crate) const ENTRIES_MAX: usize = 200_000;
/// Longest listing or search, in milliseconds; clients give up after 30 seconds.
pub(crate) const WALK_MS: u64 = 20_000;
/// Longest head of a part of an upload, in bytes.
pub(crate) const PART_HEAD_BYTES_MAX: usize = 16 * 1024;
/// Longest metadata of a file of an upload, in bytes.
pub(crate) const METADATA_BYTES_MAX: usize = 64 * 1024;
/// Most files of one upload.
pub(crate) const UPLOAD_FILES_MAX: usize = 10_000;
/// Largest body of a file request other than an upload, in bytes.
pub(crate) const FILE_BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How long a request for a port waits until something listens there, in milliseconds.
pub(crate) const LISTENER_MS: u64 = 10_000;
/// Most connections served at once.
pub(crate) const CONNECTIONS_MAX: usize = 1024;

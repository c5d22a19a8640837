//! Pure. The limits of this program that no caller sees in its requests, each with its unit.

/// Texts of hooks that wait for the log.
pub(crate) const HOOK_TEXTS_MAX: usize = 16;
/// Longest line sent as one event, in bytes. Of a longer one the rest is counted and left out, so
/// that a program which never ends a line cannot fill the memory.
pub(crate) const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How much of a command's output is kept, in bytes: its end.
pub(crate) const RECORD_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How much output of all commands together is kept, in bytes; where memory is scarce, less.
pub(crate) const RECORDS_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The least that is kept of all commands together, however scarce memory is, in bytes.
pub(crate) const RECORDS_BYTES_MIN: usize = 4 * 1024 * 1024;
/// What part of the sandbox's memory kept output may take.
pub(crate) const RECORDS_MEMORY_SHARE: u64 = 8;
/// Output up to this size is kept on the heap, in bytes; more of it in a file of its own.
pub(crate) const RECORD_HEAP_BYTES_MAX: usize = 256 * 1024;
/// How often kept output may turn from one stream to the other.
pub(crate) const RECORD_TURNS_MAX: usize = 128 * 1024;
/// How far a command may run ahead of a caller that takes its output, in bytes.
pub(crate) const AHEAD_BYTES_MAX: u64 = 256 * 1024;
/// How long a command whose caller may come back runs on without it, in milliseconds.
pub(crate) const LINGER_MS: u64 = 30_000;
/// How many ended commands that carry a key are remembered by id alone.
pub(crate) const SPENT_KEYS_MAX: usize = 16 * 1024;
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
/// How long a session's shell may take to save its state when a run is ended, in milliseconds.
pub(crate) const SAVE_MS: u64 = 300;
/// How long a session's shell may take to be ready for a run, in milliseconds.
pub(crate) const SHELL_READY_MS: u64 = 10_000;
/// Longest run in a session that names no limit, in seconds.
pub(crate) const SESSION_RUN_S: u64 = 24 * 3600;
/// Most sessions at once.
pub(crate) const SESSIONS_MAX: usize = 64;
/// Most runs that wait for the shell of one session.
pub(crate) const SESSION_QUEUE_MAX: usize = 16;

/// How much of a terminal's output is kept for who connects later, in bytes.
pub(crate) const PTY_REPLAY_BYTES: usize = 1024 * 1024;
/// How far whoever types may be behind the output before no more is read, in bytes.
pub(crate) const PTY_LAG_BYTES_MAX: u64 = 256 * 1024;
/// Input that waits for a terminal's process before no more is read, in bytes.
pub(crate) const PTY_INPUT_BYTES_MAX: usize = 64 * 1024;
/// Largest message to a terminal, in bytes.
pub(crate) const PTY_MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// Between two pings on a connection to a terminal, in milliseconds.
pub(crate) const PTY_PING_MS: u64 = 30_000;
/// After this long without a word a connection to a terminal counts as gone, in milliseconds.
pub(crate) const PTY_SILENCE_MS: u64 = 60_000;
/// How long a caller may take to answer a goodbye, in milliseconds.
pub(crate) const PTY_CLOSE_MS: u64 = 2000;
/// Most callers that watch one terminal.
pub(crate) const PTY_VIEWERS_MAX: usize = 16;
/// Most terminals at once.
pub(crate) const PTYS_MAX: usize = 32;

/// How long killing a tree of processes may take, in milliseconds.
pub(crate) const KILL_MS: u64 = 5000;

/// Largest file of /etc or of environment settings that is read, in bytes.
pub(crate) const TEXT_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How much all references of a file of environment settings may stand for together, in bytes: more
/// than any program can be started with, and no file can name its own values without end.
pub(crate) const EXPANDED_BYTES_MAX: usize = 4 * 1024 * 1024;
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

/// Largest body of a file tool that takes no content, in bytes.
pub(crate) const TOOL_BODY_BYTES_MAX: usize = 256 * 1024;
/// Longest reading of one page, in milliseconds: lines far behind the start of a huge file.
pub(crate) const READ_MS: u64 = 20_000;
/// Searches for text or names that run at once; more wait.
pub(crate) const SEARCHES_MAX: usize = 4;
/// Threads of one search for text, at most; no more than there are cores to run them.
pub(crate) const SEARCH_THREADS_MAX: usize = 4;
/// Time of a search for text when the caller names none, in milliseconds.
pub(crate) const GREP_MS: u64 = 15_000;
/// Time of a search for names when the caller names none, in milliseconds.
pub(crate) const GLOB_MS: u64 = 5000;
/// Longest line that is searched, in bytes; a file with a longer one is skipped from there on.
pub(crate) const SEARCHED_LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How much of a line that matches is told, in bytes.
pub(crate) const MATCH_BYTES_MAX: usize = 16 * 1024;
/// Lines of one answer of a search, in bytes.
pub(crate) const FOUND_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Largest compiled pattern, in bytes.
pub(crate) const PATTERN_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Names that a walk holds because it has yet to come to them, in bytes.
pub(crate) const PENDING_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Paths that a search names because it could not search them.
pub(crate) const SKIPPED_MAX: usize = 16;
/// Most uploads that wait for their rest; the oldest makes room.
pub(crate) const UPLOADS_MAX: usize = 64;
/// How long an upload waits for its rest, in milliseconds.
pub(crate) const UPLOAD_IDLE_MS: u64 = 3_600_000;
/// Most archives packed or unpacked at once, each by a thread of its own.
pub(crate) const ARCHIVES_MAX: usize = 6;
/// Most entries of one archive.
pub(crate) const ARCHIVE_ENTRIES_MAX: u64 = 1_000_000;
/// Most content of one archive that is unpacked, in bytes, unless the caller says otherwise.
pub(crate) const ARCHIVE_BYTES_MAX: u64 = 64 << 30;
/// Deepest directory that is packed; each keeps a descriptor open meanwhile.
pub(crate) const ARCHIVE_DEPTH_MAX: usize = 100;
/// Most paths watched at once.
pub(crate) const WATCHES_MAX: usize = 16;
/// Most directories of one watch.
pub(crate) const WATCHED_DIRECTORIES_MAX: usize = 8192;

/// How long a request for a port waits until something listens there, in milliseconds: long enough
/// for a program that was started a moment ago, short enough for a caller who has the wrong port.
pub(crate) const LISTENER_MS: u64 = 4_000;
/// Most connections served at once.
pub(crate) const CONNECTIONS_MAX: usize = 1024;
/// Most connections that are open, served or not.
pub(crate) const CONNECTIONS_OPEN_MAX: usize = 8192;

/// Most code contexts at once: each has a kernel, which is a process of tens of megabytes.
pub(crate) const CONTEXTS_MAX: usize = 64;
/// Longest name of a language, in bytes.
pub(crate) const LANGUAGE_BYTES_MAX: usize = 64;
/// Largest message of a kernel, in bytes; of a larger one only its size is told.
pub(crate) const KERNEL_MESSAGE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Most frames of a message of a kernel.
pub(crate) const KERNEL_MESSAGE_FRAMES_MAX: usize = 64;
/// How much of a cell's output waits for its caller, in bytes. Kernels drop what is not taken from
/// them in time, so it is taken, and what goes beyond is left out with a mark.
pub(crate) const CELL_WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Longest text of one event of a cell, in bytes: some clients read lines of 4 MiB at most.
pub(crate) const CELL_TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Most pictures of a cell that are remembered, so that none is told twice.
pub(crate) const CELL_PICTURES_MAX: usize = 1024;
/// How long a kernel may take until it answers first, in milliseconds.
pub(crate) const KERNEL_START_MS: u64 = 60_000;
/// Between two tries to reach a kernel that starts, in milliseconds.
pub(crate) const KERNEL_RETRY_MS: u64 = 5;
/// Between two questions to a kernel that listens and has not answered, in milliseconds.
pub(crate) const KERNEL_ASK_MS: u64 = 1000;
/// How long a kernel may take to shake hands, in milliseconds.
pub(crate) const KERNEL_HANDSHAKE_MS: u64 = 5000;
/// How long a kernel may take to receive a message, in milliseconds.
pub(crate) const KERNEL_SEND_MS: u64 = 30_000;
/// How long after one sign that a cell has ended the other one is waited for, in milliseconds.
pub(crate) const CELL_END_MS: u64 = 1000;
/// How long a kernel that may publish after its "idle" must be silent before its cell has ended, in
/// milliseconds.
pub(crate) const CELL_SILENCE_MS: u64 = 30;
/// How long the last output of a kernel that ended is waited for, in milliseconds.
pub(crate) const KERNEL_LAST_WORDS_MS: u64 = 200;
/// Between two interrupts of a cell that goes on, in milliseconds: the first may have come before
/// the kernel had begun with it.
pub(crate) const CELL_INTERRUPT_MS: u64 = 1000;
/// How often a cell is interrupted before that is given up.
pub(crate) const CELL_INTERRUPTS_MAX: usize = 3;
/// How much of what a kernel itself prints is kept, in bytes: its end, for when it dies.
pub(crate) const KERNEL_TAIL_BYTES: usize = 2048;
/// Most folders in which kernels are looked for.
pub(crate) const KERNEL_FOLDERS_MAX: usize = 64;
/// Most kernels of one folder.
pub(crate) const KERNEL_SPECS_MAX: usize = 256;
/// How long an isolated session may take to stand, in milliseconds.
pub(crate) const SESSION_START_MS: u64 = 10_000;
/// What isolated sessions may keep in memory where the sandbox has no disk for them, in bytes each.
pub(crate) const SESSION_STORE_BYTES: u64 = 256 * 1024 * 1024;
/// Between two looks at background runs that keep an idle session alive, in milliseconds.
pub(crate) const IDLE_LOOK_MS: u64 = 2000;
/// Background runs of an isolated session that are remembered.
pub(crate) const RUNS_MAX: usize = 256;
/// Largest answer of a session's own daemon that is read whole, in bytes.
pub(crate) const INNER_BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Longest comparison or commit of an overlay, in milliseconds.
pub(crate) const CHANGES_MS: u64 = 120_000;
/// Folders inside folders that an overlay's changes may have; each costs two open descriptors.
pub(crate) const DEPTH_MAX: usize = 512;
/// Paths that a commit names which it could not carry over.
pub(crate) const UNCOMMITTED_MAX: usize = 1000;

//! Pure. What this program, and a sandbox through it, may use at most.

use core::time::Duration;

/// Most sandboxes at one time.
pub(crate) const SANDBOXES_MAX: usize = 16_384;

/// Connections of one sandbox at one time, where the server says nothing else.
pub(crate) const CONNECTIONS_DEFAULT: u32 = 1024;

/// New connections of one sandbox in a second, and how many of them may come at once; others wait
/// in the kernel.
pub(crate) const CONNECTIONS_PER_SECOND: u64 = 2000;

/// How long one that waits for its share of a second waits before it looks again.
pub(crate) const SHARE_PAUSE: Duration = Duration::from_millis(5);

/// How long a connection waits for the rules of its sandbox.
pub(crate) const GUARD_WAIT: Duration = Duration::from_secs(5);

/// How long the first byte of a connection is awaited where silence is refused. Programs that speak
/// first do so at once, but a starved one needs a while.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// How long a beginning may take from its first byte on.
pub(crate) const BEGINNING: Duration = Duration::from_secs(10);
/// The same where no rule could refuse it, whatever it is: programs that say a word and wait are
/// not kept.
pub(crate) const BEGINNING_OF_ANYTHING: Duration = Duration::from_millis(500);

/// How long a connection to the outside may take to be made.
pub(crate) const DIAL: Duration = Duration::from_secs(10);

/// How long a caller that was refused may take to read why.
pub(crate) const FAREWELL: Duration = Duration::from_secs(1);

/// Most bytes that are still taken from a caller that was refused.
pub(crate) const FAREWELL_BYTES_MAX: usize = 64 * 1024;

/// Most connections that wait for a stream to a peer.
pub(crate) const CALLS_MAX: usize = 1024;

/// How long one of them waits for it: a peer that was never spoken to may have to wake first.
pub(crate) const CALL_WAIT: Duration = Duration::from_secs(5);

/// Pause after which the kernel asks the other end whether it is still there.
pub(crate) const KEEPALIVE: Duration = Duration::from_secs(120);

/// Most bytes that move in one step.
pub(crate) const STEP_BYTES_MAX: usize = 1024 * 1024;

/// Bytes that move before others have their turn.
pub(crate) const TURN_BYTES: usize = 2 * 1024 * 1024;

/// Size of a pipe through which bytes move.
pub(crate) const PIPE_BYTES: usize = 512 * 1024;

/// Most pipes; without one, bytes are copied.
pub(crate) const PIPES_MAX: usize = 64;

/// Most pipes of one sandbox.
pub(crate) const SANDBOX_PIPES_MAX: usize = 8;

/// Most pipes that are kept for later.
pub(crate) const PIPES_KEPT_MAX: usize = 16;

/// Size of the memory through which bytes are copied.
pub(crate) const COPY_BYTES: usize = 64 * 1024;

/// Most bytes of a head of HTTP, with or without the body's first ones.
pub(crate) const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Connections of one sandbox that are looked into at one time: each takes some memory.
pub(crate) const INTERCEPTED_MAX: usize = 256;

/// Most requests of one such connection at one time.
pub(crate) const STREAMS_MAX: u32 = 100;

/// Bytes that one of them may have under way before they are taken.
pub(crate) const STREAM_BYTES: u32 = 128 * 1024;

/// Bytes that one of them may have waiting to be sent.
pub(crate) const SEND_BYTES: usize = 16 * 1024;

/// Bytes that all of a connection may.
pub(crate) const STREAMS_BYTES: u32 = 256 * 1024;

/// Most bytes of the head of a request that is looked into, or of its answer.
pub(crate) const INNER_HEAD_BYTES_MAX: u32 = 64 * 1024;

/// How long such a connection is kept without a request.
pub(crate) const INNER_IDLE: Duration = Duration::from_secs(120);

/// How long both sides of TLS may take until they understand each other.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(10);

/// Longest body that is held to be changed.
pub(crate) const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How long it may take to come.
pub(crate) const BODY_WAIT: Duration = Duration::from_secs(120);

/// Most bodies of one sandbox that are held at one time.
pub(crate) const BODIES_MAX: usize = 4;

/// Most hosts of a sandbox whose certificates are kept for the next connection.
pub(crate) const LEAVES_MAX: usize = 256;

/// How long one of them is used, in milliseconds.
pub(crate) const LEAF_MS: u64 = 24 * 60 * 60 * 1000;

/// Questions of one sandbox that are being answered at one time.
pub(crate) const QUESTIONS_MAX: usize = 64;

/// Questions of one sandbox in a second, and how many of them may come at once.
pub(crate) const QUESTIONS_PER_SECOND: u64 = 256;

/// How long one resolver may take.
pub(crate) const RESOLVER: Duration = Duration::from_secs(2);

/// How often all resolvers are asked.
pub(crate) const RESOLVER_ROUNDS: usize = 2;

/// Most resolvers.
pub(crate) const RESOLVERS_MAX: usize = 8;

/// Most answers to another question that are heard before a resolver is given up.
pub(crate) const STRANGE_ANSWERS_MAX: usize = 32;

/// How long a sandbox may take to ask over TCP.
pub(crate) const QUESTION_WAIT: Duration = Duration::from_secs(10);

/// Connections that wait for somebody's word at one time.
pub(crate) const ASKS_MAX: usize = 4096;

/// How long somebody who is asked may take, where the server says nothing else.
pub(crate) const ASK_DEFAULT: Duration = Duration::from_secs(60);

/// Connections of one sandbox that are told of after their end.
pub(crate) const ENDED_MAX: usize = 1000;

/// Most bytes that these may take, about.
pub(crate) const ENDED_BYTES_MAX: usize = 512 * 1024;

/// Most events that are kept.
pub(crate) const EVENTS_MAX: usize = 10_000;

/// Most bytes that these may take.
pub(crate) const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Most bytes of events in one piece of an answer.
pub(crate) const EVENT_PIECE_BYTES: usize = 64 * 1024;

/// Connections of the server at one time.
pub(crate) const SERVER_CONNECTIONS_MAX: usize = 256;

/// Longest body of a request about a policy.
pub(crate) const POLICY_BYTES_MAX: usize = 1024 * 1024;

/// Longest body of what the server says about a sandbox.
pub(crate) const GUARDED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Longest body of the settings, with two long lists of targets.
pub(crate) const SETTINGS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Longest body of a decision.
pub(crate) const DECISION_BYTES_MAX: usize = 4096;

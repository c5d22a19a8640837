//! Pure. Why nothing comes of a call about a vault. No word of these holds a value.

/// Why nothing comes of a call about a vault.
#[derive(Debug, Clone, thiserror::Error)]
pub enum VaultError {
    /// The sandbox is not one that may have credentials.
    #[error("credential proxy is not ready: the sandbox was made without `credentialProxy`")]
    NotAsked,
    /// Nothing would put them into requests.
    #[error("credential proxy is not ready: nothing guards outbound traffic on this host")]
    Unguarded,
    /// What is kept cannot be read.
    #[error(
        "credential proxy is not ready: the vault of this sandbox cannot be read, as the key that \
         it was written with is another one or what is kept is damaged; make the sandbox anew"
    )]
    Unreadable,
    /// The caller could be overheard.
    #[error(
        "credentials are taken over TLS, loopback or the Unix socket alone: call from this host, \
         or through a proxy that `egress.vault_trusted_proxies` names"
    )]
    Overheard,
    /// There is none.
    #[error("the sandbox has no credential vault: create it first")]
    Absent,
    /// There is one.
    #[error("the sandbox has a credential vault already: patch it, or delete it first")]
    Exists,
    /// The caller has seen another one.
    #[error("the vault has revision {now}, and {expected} was expected: read it again")]
    Revision {
        /// What was expected.
        expected: u64,
        /// What it is.
        now: u64,
    },
    /// There is nothing of this name.
    #[error("the vault has no {kind} `{name}`")]
    NoSuch {
        /// A credential or a binding.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// There is something of this name.
    #[error("the vault has a {kind} `{name}` already: replace it")]
    Taken {
        /// A credential or a binding.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// It makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// It can neither be written nor read.
    #[error("the vault of a sandbox cannot be kept: {0}")]
    Sealing(String),
}

//! Pure. Why a vault is not taken. No word of these holds a value.

/// Why a vault is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// There is more of something than there may be.
    #[error("a vault has at most {most} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        most: usize,
    },
    /// A credential that cannot be used.
    #[error("credential `{name}`: {why}")]
    Credential {
        /// Its name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A binding that makes no sense.
    #[error("binding `{name}`: {why}")]
    Binding {
        /// Its name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// Two bindings that could both fit a request.
    #[error(
        "bindings `{one}` and `{other}` could both fit a request: give them other hosts, methods \
         or paths"
    )]
    Overlap {
        /// The first.
        one: String,
        /// The second.
        other: String,
    },
}

impl VaultError {
    /// Its code; stable.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooMany { .. } => "VAULT_TOO_LARGE",
            Self::Credential { .. } => "VAULT_CREDENTIAL_INVALID",
            Self::Binding { .. } => "VAULT_BINDING_INVALID",
            Self::Overlap { .. } => "VAULT_BINDINGS_OVERLAP",
        }
    }
}

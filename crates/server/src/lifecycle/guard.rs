//! Pure. Why what sandboxes may send out cannot be asked or told.

use crate::egress::ProgramError;

/// Why the program that guards outbound traffic is of no help.
#[derive(Debug, Clone, thiserror::Error)]
pub enum GuardError {
    /// There is none.
    #[error(
        "this host has nothing that guards outbound traffic, so its sandboxes have no network; \
         see `egress.enabled` in the settings and `barchan doctor`"
    )]
    Absent,
    /// It gives no answer.
    #[error("{0}; it is started again by itself, so try again in a moment")]
    Program(#[from] ProgramError),
    /// It made a change and does not say what came of it.
    #[error("the policy was changed, and nobody says to what: read it, and set it again")]
    Unknown,
}

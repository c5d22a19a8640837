//! Credentials of sandboxes that never enter them: what is kept, how it is changed, and how it lies
//! at rest.
//!
//! Never: a credential put into a request. The program that guards outbound traffic does that, and
//! forgets all when it ends; what must outlive it is here.

mod authority;
mod book;
mod error;
mod seal;

pub(crate) use authority::authority;
pub(crate) use book::{Book, Change};
pub use error::VaultError;
pub use seal::Seals;

//! Files of the sandbox. Every path means what the kernel takes it to mean inside the sandbox, and
//! for whom the work is done; nothing here knows HTTP.

pub(crate) mod digest;
pub(crate) mod download;
pub(crate) mod expand;
pub(crate) mod glob;
pub(crate) mod identity;
pub(crate) mod info;
pub(crate) mod line_window;
pub(crate) mod make;
pub(crate) mod multipart;
pub(crate) mod permission;
pub(crate) mod range;
pub(crate) mod remove;
pub(crate) mod rename;
pub(crate) mod replace;
pub(crate) mod resume;
pub(crate) mod spelling;
pub(crate) mod stage;
pub(crate) mod transplant;
pub(crate) mod upload;
pub(crate) mod walk;
pub(crate) mod watch;
pub(crate) mod work;

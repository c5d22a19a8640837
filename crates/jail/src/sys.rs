//! What safe libraries do not offer: raw calls with process-wide effects.
//!
//! The only place of the project with `unsafe`. Each function is as small as it can be and says
//! what its caller must keep in mind.
#![expect(
    unsafe_code,
    reason = "clone3, vfork-style spawn, seccomp and mount attributes have no safe wrapper"
)]

mod descriptors;
mod kernel;
mod process;
pub mod trace;

pub use descriptors::{
    adopt, close_all_but, close_from, close_from_on_exec, duplicate_above, duplicate_to,
};
pub use kernel::{
    answer_for_any_address, install_filter, ioctl_number, ioctl_struct, set_mount_attributes,
    set_mount_read_only,
};
pub use process::{
    Cloned, Reaped, Step, Strings, become_ids, clone_process, default_signals, enter_new, exec,
    exec_file, exit_now, hear_word_to_end, reap_any, spawn_into, spawn_sharing_memory,
};

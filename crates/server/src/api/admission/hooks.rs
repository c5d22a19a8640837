//! Pure. The programs that a caller wants run beside the entrypoint.

use barchan_runtime::Hook;
use barchan_wire::lifecycle::Hooks;

use crate::api::errors::Refusal;

/// Most periodic hooks of one sandbox, and longest name of one, in characters.
const PERIODIC_MAX: usize = 32;
const NAME_CHARS_MAX: usize = 63;
/// Longest text of one hook's program and arguments together, in bytes.
const ARGV_BYTES_MAX: usize = 64 * 1024;
/// How long a hook may take whose caller does not say, in seconds.
const PRE_START_S: u64 = 600;
const PERIODIC_S: u64 = 60;

/// The hook before the entrypoint and those at intervals.
pub(super) fn hooks(asked: Option<Hooks>) -> Result<(Option<Hook>, Vec<Hook>), Refusal> {
    let asked = asked.unwrap_or_default();
    if asked.periodic.len() > PERIODIC_MAX {
        let message = format!("lifecycle.periodic: a sandbox has {PERIODIC_MAX} hooks at most");
        return Err(Refusal::parameter(message));
    }
    let seconds = |asked: Option<i64>, default| asked.map_or(default, i64::unsigned_abs);
    let pre_start = asked.pre_start.map(|hook| Hook {
        name: "preStart".to_owned(),
        schedule: String::new(),
        argv: hook.command,
        timeout_s: seconds(hook.timeout_seconds, PRE_START_S),
    });
    let periodic = asked.periodic.into_iter().map(|hook| Hook {
        name: hook.name,
        schedule: hook.schedule,
        argv: hook.command,
        timeout_s: seconds(hook.timeout_seconds, PERIODIC_S),
    });
    let periodic: Vec<Hook> = periodic.collect();
    for hook in pre_start.iter().chain(&periodic) {
        check(hook)?;
    }
    Ok((pre_start, periodic))
}

fn check(hook: &Hook) -> Result<(), Refusal> {
    let name: String = hook.name.chars().take(NAME_CHARS_MAX).collect();
    let refused = |why: &str| Err(Refusal::parameter(format!("the hook '{name}' {why}")));
    if name != hook.name || name.is_empty() || name.chars().any(char::is_control) {
        return refused("needs a name of 1 to 63 characters");
    }
    if hook.argv.first().is_none_or(|program| program.is_empty()) {
        return refused("names no program");
    }
    if hook.argv.iter().any(|word| word.contains('\0')) {
        return refused("contains a NUL character");
    }
    if hook.argv.iter().map(String::len).sum::<usize>() > ARGV_BYTES_MAX {
        return refused("has more than 64 KiB of program and arguments");
    }
    Ok(())
}

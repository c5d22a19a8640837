//! Pure. The script of a run: what the caller wrote, in a shell that begins where the last one
//! ended.
//!
//! Every run has a shell of its own, so one that ends it, or hangs, harms no other. What a shell
//! exported and where it stood is saved when it ends and read by the next: in a file of the
//! session's own memory, which only the session can spoil, for itself.

use crate::environment::Variables;

/// Where a session's shells leave their state.
const STATE: &str = "/dev/shm/.barchan-state";

/// The script of a run. All that comes before the caller's text stands on its first line, so that
/// line numbers in messages are the caller's. With `saves` the next run begins where this one ends.
pub(super) fn script(code: &str, variables: &Variables, saves: bool) -> String {
    // The mark by which the daemon knows a command's processes is each command's own.
    let mut script = format!(
        "__barchan=$BARCHAN_COMMAND_ID; if [ -f {STATE} ]; then . {STATE}; cd -- \"$PWD\"; fi \
         2>/dev/null; export BARCHAN_COMMAND_ID=\"$__barchan\"; unset __barchan; "
    );
    let names = variables.iter().filter(|(name, _)| is_shell_name(name));
    for (name, value) in names {
        script.push_str(&format!("export {name}={}; ", quoted(value)));
    }
    if saves {
        script.push_str(&format!("trap 'export -p >|{STATE} 2>/dev/null' EXIT; "));
    }
    script.push_str(code);
    script
}

/// Whether a shell can export it; other names reach the run's programs all the same.
fn is_shell_name(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_stays_on_its_lines_and_values_are_words() {
        let pairs = [("A", "it's $1"), ("b.c", "x")];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let text = script("one\ntwo", &Variables::from(pairs), true);
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains(r"export A='it'\''s $1'; "), "{text}");
        assert!(!text.contains("b.c"), "{text}");
        assert!(text.contains("trap ") && text.ends_with("one\ntwo"));
        assert!(!script("x", &Variables::new(), false).contains("trap "));
    }
}

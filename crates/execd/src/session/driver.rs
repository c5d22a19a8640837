//! Pure. What a session's shell runs: the loop that takes one script after another.
//!
//! The loop's condition writes the exit code of the run before, saves the state and waits for a
//! line. It is written with `until`, so that a shell which no longer executes anything (`set -n`)
//! leaves the loop instead of spinning in it. Descriptor 9 is the control socket; a run does not
//! have it. Outside a run everything goes to /dev/null, and `set -x` is off: it would show the
//! driver. Output is redirected by `exec`, not for one command, because a trap on EXIT runs after
//! the redirections of the command that called `exit` were undone.

/// The last line of a state that was saved whole.
pub(crate) const WHOLE: &str = "# whole\n";
/// What the shell says when it has saved its state.
pub(crate) const SAVED: &str = "saved";

/// What bash saves its state with. `declare` must not be in a function, where it means local.
const SAVE_BASH: &str = r#"{
builtin printf 'builtin cd -- %q\n' "$PWD"
builtin shopt -p
builtin declare -p
builtin declare -f
builtin export -fp
builtin trap -p
builtin umask -p
builtin alias -p
builtin set +o
builtin echo "${__barchan_x-}"
builtin echo '# whole'
} >|@/next 2>/dev/null || :
"#;

/// The same for a plain shell, which cannot print its functions.
const SAVE_SH: &str = r#"{
set
export -p
trap
printf 'umask '
umask
echo 'cd -- "$PWD"'
set +o
echo "${__barchan_x-}"
echo '# whole'
} >|@/next 2>/dev/null || :
"#;

/// On one line each, so that line numbers in messages are those of the script.
const DRIVE_BASH: &str = concat!(
    "exec 9<&3 3<&-; builtin shopt -s expand_aliases; ",
    "builtin trap '{ . @/save; } 2>/dev/null' EXIT; ",
    "[ -e @/state ] && . @/state; ",
    "until { __barchan=$?; __barchan_x=; ",
    "case $- in *x*) __barchan_x='builtin set -x; ';; esac; builtin set +x; } 2>/dev/null; ",
    "command exec >/dev/null 2>&1; ",
    r#"builtin printf '%s\n' "$__barchan" >&9; . @/save; builtin echo saved >&9; "#,
    "! builtin read -r __barchan <&9; do ",
    "IFS= builtin read -r -d '' __barchan <@/script || :; ",
    "command exec </dev/null >@/out 2>@/err; ",
    r#"builtin eval "builtin unset -v __barchan __barchan_x; $__barchan_x$__barchan" 9>&-; "#,
    "done",
);
const DRIVE_SH: &str = concat!(
    "exec 9<&3 3<&-; trap '. @/save' EXIT; [ -e @/state ] && . @/state; ",
    "until { __barchan=$?; __barchan_x=; ",
    "case $- in *x*) __barchan_x='set -x';; esac; set +x; } 2>/dev/null; ",
    "exec >/dev/null 2>&1; ",
    r#"printf '%s\n' "$__barchan" >&9; . @/save; echo saved >&9; "#,
    "! read -r __barchan <&9; do exec </dev/null >@/out 2>@/err; ",
    r#"eval "unset -v __barchan __barchan_x; $__barchan_x"; . @/script 9>&-; done"#,
);

/// What a shell is started with, and what its file `save` holds. `folder` is a plain path.
pub(crate) fn texts(is_bash: bool, folder: &str) -> (String, String) {
    let (drive, save) = match is_bash {
        true => (DRIVE_BASH, SAVE_BASH),
        false => (DRIVE_SH, SAVE_SH),
    };
    (drive.replace('@', folder), save.replace('@', folder))
}

/// The script of one run; with a directory the shell goes there first and runs nothing when it
/// cannot.
pub(crate) fn script(command: &str, cwd: Option<&str>) -> String {
    match cwd {
        None => command.to_owned(),
        Some(cwd) => format!("cd -- {} && eval {}", quoted(cwd), quoted(command)),
    }
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The exit code in a line from the control socket.
pub(crate) fn status(line: &str) -> Option<i32> {
    line.parse().ok().filter(|code| (0..=255).contains(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_one_word_whatever_it_holds() {
        for (command, cwd, wanted) in [
            ("ls", None, "ls"),
            ("ls", Some("/a b"), "cd -- '/a b' && eval 'ls'"),
            (
                "echo 'x'\n",
                Some("it's"),
                "cd -- 'it'\\''s' && eval 'echo '\\''x'\\''\n'",
            ),
        ] {
            assert_eq!(script(command, cwd), wanted);
        }
    }

    #[test]
    fn only_exit_codes_are_codes() {
        for (line, code) in [
            ("0", Some(0)),
            ("255", Some(255)),
            ("256", None),
            ("-1", None),
            ("saved", None),
            ("", None),
        ] {
            assert_eq!(status(line), code, "{line}");
        }
    }

    #[test]
    fn a_driver_is_one_line() {
        for is_bash in [true, false] {
            let (drive, save) = texts(is_bash, "/f");
            assert!(!drive.contains('\n') && !drive.contains('@'), "{drive}");
            assert!(save.contains("/f/next") && save.contains(WHOLE.trim_end()));
        }
    }
}

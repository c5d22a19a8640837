//! Pure. The two or three words of shell that an entrypoint needs in a test.

/// What became of an entrypoint.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// What it printed.
    pub(super) log: Vec<u8>,
    /// Its code, when it ended at once.
    pub(super) exit: Option<i32>,
}

/// Runs `sh -c 'echo …; exit n'`, `true`, `false`; any other program runs for ever.
pub(super) fn run(entrypoint: &[String]) -> Outcome {
    let words: Vec<&str> = entrypoint.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["true" | "/bin/true"] => Outcome {
            exit: Some(0),
            ..Outcome::default()
        },
        ["false" | "/bin/false"] => Outcome {
            exit: Some(1),
            ..Outcome::default()
        },
        ["sh" | "/bin/sh", "-c", script] => run_script(script),
        _ => Outcome::default(),
    }
}

fn run_script(script: &str) -> Outcome {
    let mut outcome = Outcome::default();
    for command in script.split(';').map(str::trim) {
        match command.split_once(' ') {
            Some(("echo", text)) => {
                outcome.log.extend_from_slice(text.as_bytes());
                outcome.log.push(b'\n');
            }
            Some(("exit", code)) => {
                outcome.exit = code.parse().ok();
                return outcome;
            }
            _ => return outcome,
        }
    }
    outcome.exit = Some(0);
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_print_and_exit() {
        for (words, log, exit) in [
            (vec!["tail", "-f", "/dev/null"], "", None),
            (vec!["true"], "", Some(0)),
            (vec!["sh", "-c", "echo a b; exit 3"], "a b\n", Some(3)),
            (vec!["sh", "-c", "echo a; sleep 9"], "a\n", None),
            (vec!["sh", "-c", "echo a"], "a\n", Some(0)),
        ] {
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            assert_eq!(
                run(&words),
                Outcome {
                    log: log.into(),
                    exit
                },
                "{words:?}"
            );
        }
    }
}

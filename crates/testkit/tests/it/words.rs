//! Words that must not stand in a file, each with where and why.

use crate::fault::Fault;

/// A rule: in files under one of `within` and under none of `except`, none of `words`.
struct Rule {
    within: &'static [&'static str],
    except: &'static [&'static str],
    words: &'static [&'static str],
    instead: &'static str,
}

const RULES: [Rule; 10] = [
    Rule {
        within: &["crates/server/src/lifecycle", "crates/server/src/store"],
        except: &[],
        words: &["axum", "hyper::", "http::", "StatusCode", "HeaderMap"],
        instead: "below api nobody sees HTTP: parse and answer in server/src/api",
    },
    Rule {
        within: &["crates/"],
        except: &[
            "crates/server/src/store",
            "crates/server/tests/it/database.rs",
            "crates/testkit/",
        ],
        words: &["rusqlite::", "INSERT INTO", "DELETE FROM", "CREATE TABLE"],
        instead: "outside store nobody sees SQL: add a verb to server/src/store.rs",
    },
    Rule {
        within: &[
            "crates/server/src/",
            "crates/cli/src/",
            "crates/client/src/",
        ],
        // Settings of another server, by their names there.
        except: &["crates/server/src/config/foreign"],
        words: &[
            "cgroup.",
            "overlayfs",
            "pivot_root",
            "seccomp",
            "bollard",
            "kube::",
        ],
        instead: "above runtime nobody sees an engine: say it in words of Plan and Observed",
    },
    Rule {
        within: &[
            "crates/server/src/",
            "crates/client/src/",
            "crates/wire/src/",
        ],
        except: &[],
        words: &["rustix::", "libc::"],
        instead: "no system calls here: add a verb to the crate that owns the resource",
    },
    Rule {
        within: &["crates/runtime/src/"],
        except: &[],
        words: &["axum", "hyper::", "StatusCode"],
        instead: "a runtime knows no HTTP request of ours: return a RuntimeError",
    },
    Rule {
        within: &["crates/cli/src/"],
        except: &["crates/cli/src/output.rs"],
        words: &["stdout()", "stderr().lock()", "println!", "eprintln!"],
        instead: "only output.rs prints: add a method there",
    },
    Rule {
        within: &["crates/jail/src/"],
        except: &[],
        words: &["tokio", "std::thread", "TcpStream", "async fn"],
        instead: "the launcher is one thread without async: poll with rustix::event",
    },
    Rule {
        within: &["crates/execd/src/"],
        except: &[],
        words: &[
            "getpwnam",
            "getgrnam",
            "lookup_host",
            "ToSocketAddrs",
            "tokio::process",
        ],
        instead: "a static guest has no name services and one reaper: parse /etc, connect by \
                  address, start children by jail::child::spawn",
    },
    Rule {
        within: &[
            "crates/",
            "python/",
            "bench/",
            "examples/",
            "images/",
            "Makefile",
            ".ci/",
        ],
        except: &[],
        words: &[
            concat!("TO", "DO"),
            concat!("XX", "X"),
            concat!("FIX", "ME"),
        ],
        instead: "finish it, or open an issue; code is no notebook",
    },
    Rule {
        within: &["crates/"],
        except: &[],
        words: &[
            concat!("db", "g!("),
            concat!("#[", "allow("),
            concat!("#[", "ignore"),
        ],
        instead: "remove it; a lint that must yield is `#[expect(lint, reason = \"…\")]`, and a \
                  test that cannot run here says what it lacks and fails",
    },
];

/// Words of a file that claims to be pure decisions.
const IMPURE: [&str; 8] = [
    "async ",
    "tokio::",
    "std::fs",
    "std::net",
    "std::process",
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
];

/// Every breach of these rules in one file.
pub(crate) fn faults(path: &str, text: &str) -> Vec<Fault> {
    let starts = |list: &[&str]| list.iter().any(|prefix| path.starts_with(prefix));
    let mut found = Vec::new();
    for rule in RULES
        .iter()
        .filter(|rule| starts(rule.within) && !starts(rule.except))
    {
        found.extend(find(path, text, rule.words, rule.instead));
    }
    if path.ends_with(".rs") {
        found.extend(unsafe_faults(path, text));
        if text.starts_with("//! Pure.") {
            let instead = "take it as an argument, or drop the claim `//! Pure.`";
            found.extend(find(path, code_before_tests(text), &IMPURE, instead));
        }
    }
    found
}

/// Hits of words in code; comments may name what they forbid, but for words that are only notes.
fn find(path: &str, text: &str, words: &[&str], instead: &'static str) -> Vec<Fault> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or(line);
        for word in words {
            let is_note = word.chars().all(char::is_uppercase);
            let hit = if is_note {
                has_word(line, word)
            } else {
                code.contains(word)
            };
            if hit {
                found.push(Fault::new(
                    path,
                    at + 1,
                    format!("the word `{word}`"),
                    instead,
                ));
            }
        }
    }
    found
}

/// Whether the word stands alone, so that a name which contains it is no hit.
fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|found| found == word)
}

fn unsafe_faults(path: &str, text: &str) -> Vec<Fault> {
    if path == "crates/jail/src/sys.rs" || path.starts_with("crates/jail/src/sys/") {
        return Vec::new();
    }
    let words = ["{", "fn", "impl", "extern", "trait"].map(|what| format!("{} {what}", "unsafe"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    find(
        path,
        text,
        &words,
        "only crates/jail/src/sys.rs may: add a small safe function there",
    )
}

/// Unit tests may touch the world even where the code above them may not.
fn code_before_tests(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: usize) {
        let found = faults(path, text);
        assert_eq!(found.len(), expected, "{path}: {found:?}");
    }

    #[test]
    fn each_layer_has_its_own_words() {
        check("crates/server/src/lifecycle/state.rs", "use axum::Json;", 1);
        check("crates/server/src/api/sandboxes.rs", "use axum::Json;", 0);
        check("crates/server/src/lifecycle.rs", "db(\"INSERT INTO t\")", 1);
        check(
            "crates/server/src/store/sqlite.rs",
            "db(\"INSERT INTO t\")",
            0,
        );
        check("crates/server/src/api.rs", "write(\"cgroup.freeze\")", 1);
        check(
            "crates/runtime/src/native.rs",
            "write(\"cgroup.freeze\")",
            0,
        );
        check("crates/wire/src/id.rs", "rustix::fs::open()", 1);
        check(
            "crates/execd/src/command.rs",
            "tokio::process::Command::new(a)",
            1,
        );
    }

    #[test]
    fn a_claim_of_purity_is_held() {
        let impure = "//! Pure. A table.\nfn now() { std::fs::read(p) }\n";
        check("crates/runtime/src/plan.rs", impure, 1);
        check(
            "crates/runtime/src/plan.rs",
            &impure.replace("Pure. ", ""),
            0,
        );
        let in_tests = "//! Pure. A table.\n#[cfg(test)]\nmod tests { std::fs::read(p) }\n";
        check("crates/runtime/src/plan.rs", in_tests, 0);
        check(
            "crates/runtime/src/plan.rs",
            "//! Pure. Never std::fs.\n",
            0,
        );
    }

    #[test]
    fn notes_and_switched_off_checks_are_found() {
        check(
            "crates/x/src/a.rs",
            &format!("// {}: later", concat!("TO", "DO")),
            1,
        );
        check("crates/x/src/a.rs", concat!("#[", "allow(dead_code)]"), 1);
        check("crates/x/src/a.rs", concat!("db", "g!(x);"), 1);
        check("python/src/a.py", concat!("# FIX", "ME"), 1);
    }

    #[test]
    fn unsafe_code_has_one_home() {
        let block = format!("let a = {} {{ b() }};", "unsafe");
        check("crates/execd/src/main.rs", &block, 1);
        check("crates/jail/src/sys.rs", &block, 0);
        check("crates/jail/src/sys/clone.rs", &block, 0);
    }
}

//! Pure. The passwords of a netrc file.

/// Each word that follows `password`.
pub(super) fn passwords(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split_whitespace();
    words
        .clone()
        .zip(words.skip(1))
        .filter(|(key, _)| *key == "password")
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_found_on_one_line_or_several() {
        let text =
            "machine a login me password one\nmachine b\n  login x\n  password\n two\ndefault";
        assert_eq!(passwords(text).collect::<Vec<_>>(), ["one", "two"]);
    }
}

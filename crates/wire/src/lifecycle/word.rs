//! Pure. Kinds of words on the wire to which other servers may add.

/// Makes an enumeration of words: each variant is its own word on the wire, and `Other` is one that
/// a reader does not know and bears.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$means:meta])* $word:ident,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum $name {
            $($(#[$means])* $word,)+
            /// A word of another server.
            Other(String),
        }

        impl $name {
            /// The word on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$word => stringify!($word),)+
                    Self::Other(word) => word,
                }
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                match word.as_str() {
                    $(stringify!($word) => Self::$word,)+
                    _ => Self::Other(word),
                }
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> Self {
                word.as_str().to_owned()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(self.as_str())
            }
        }
    };
}

pub(super) use words;

#[cfg(test)]
mod tests {
    use crate::lifecycle::{SnapshotState, State};

    #[test]
    fn each_word_is_read_as_it_is_written() {
        for word in [
            "Pending",
            "Running",
            "Paused",
            "Stopping",
            "Terminated",
            "Failed",
        ] {
            let state = State::from(word.to_owned());
            assert_eq!(state.to_string(), word);
            assert!(!matches!(state, State::Other(_)), "{word}");
        }
        for word in ["Creating", "Ready", "Failed", "Deleting"] {
            let state = SnapshotState::from(word.to_owned());
            assert_eq!(String::from(state.clone()), word);
            assert!(!matches!(state, SnapshotState::Other(_)), "{word}");
        }
        for word in ["", "running", "Allocated", "Other"] {
            let state = State::from(word.to_owned());
            assert_eq!(state, State::Other(word.to_owned()));
            assert_eq!(serde_json::to_value(&state).unwrap(), word);
        }
    }
}

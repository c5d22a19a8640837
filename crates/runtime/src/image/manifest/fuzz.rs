use barchan_testkit::{fuzz, inputs};
use proptest::prelude::any;

use super::*;

const NAMES: &[&str] = &[
    "name",
    "digest",
    "base",
    "on_host",
    "layers",
    "env",
    "path",
    "entrypoint",
    "created_unix_s",
    "recipe_digest",
    "pinned",
    "bytes",
];

fuzz! {
    fn names_that_pass_are_one_plain_file(name in "[a-zA-Z0-9./_\\\\é-]{0,70}") {
        if check_name(&name).is_ok() {
            let path = std::path::Path::new(&name);
            assert_eq!(path.file_name().and_then(|it| it.to_str()), Some(name.as_str()));
            assert_eq!(path.components().count(), 1);
        }
    }

    fn names_in_messages_are_short_and_plain(name in any::<String>()) {
        let text = shown(&name);
        assert!(text.chars().count() <= 81 && !text.chars().any(char::is_control));
    }

    fn any_json_is_a_manifest_or_none(value in inputs::json(NAMES)) {
        if let Ok(manifest) = serde_json::from_value::<Manifest>(value) {
            assert_eq!(manifest.clone().sealed(), manifest.sealed().sealed());
        }
    }
}

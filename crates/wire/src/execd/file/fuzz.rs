use barchan_testkit::{fuzz, inputs};
use proptest::prelude::any;

use super::*;

fuzz! {
    fn modes_are_their_octal_digits(bits in any::<u32>(), number in any::<u32>()) {
        let mode = Mode::from_bits(bits);
        assert_eq!(mode.to_string(), format!("{:o}", bits & 0o7777));
        assert_eq!(Mode::try_from(u32::from(mode)), Ok(mode));
        for number in [number, number % 10_000, number % 778] {
            let octal = u32::from_str_radix(&number.to_string(), 8).ok().filter(|it| *it <= 0o7777);
            assert_eq!(Mode::try_from(number).ok().map(Mode::bits), octal, "{number}");
        }
    }

    fn any_json_is_a_file_request_or_none(
        value in inputs::json(&["path", "mode", "owner", "group", "src", "dest", "old", "new"]),
    ) {
        let text = value.to_string();
        if let Ok(metadata) = serde_json::from_str::<UploadMetadata>(&text) {
            let again = serde_json::to_string(&metadata).unwrap();
            assert_eq!(serde_json::from_str::<UploadMetadata>(&again).unwrap(), metadata);
        }
        let _ = serde_json::from_str::<BTreeMap<String, Permission>>(&text);
        let _ = serde_json::from_str::<Vec<Rename>>(&text);
        let _ = serde_json::from_str::<BTreeMap<String, Replace>>(&text);
    }
}

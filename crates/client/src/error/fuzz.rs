use barchan_testkit::{fuzz, inputs};
use proptest::collection::vec;
use proptest::prelude::any;

use super::*;

fuzz! {
    fn any_error_body_has_a_code_and_a_message(
        body in inputs::json(&["code", "message", "detail", "loc", "msg"]),
        noise in vec(any::<u8>(), 0..50),
    ) {
        for body in [body.to_string().into_bytes(), noise] {
            let error = ApiError::from_body(500, &body);
            assert!(error.message.len() <= 4 * QUOTED_CHARS_MAX + 4 * body.len() + 40);
        }
    }
}

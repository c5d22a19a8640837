use barchan_testkit::fuzz;
use barchan_testkit::inputs::text_from;
use proptest::num::f64;

use super::*;

const WORDS: &[&str] = &[
    "{",
    "}",
    "\"command\":",
    "\"argv\":",
    "\"echo\"",
    "[\"a\"]",
    ",",
    "\"timeout\":",
    "1e999",
    "-1",
    "0.5",
    "\"uid\":",
    "4294967295",
    "4294967296",
    "\"gid\":",
    "\"envs\":",
    "{\"A\":\"b\"}",
    "null",
    "\"\\u0000\"",
    "\"cwd\":",
    "true",
    "\"background\":",
    "[]",
    "{\"A=B\":\"\"}",
];

fn users() -> Users {
    Users {
        passwd: "ann:x:1000:1001::/home/ann:/bin/sh\n".to_owned(),
        group: String::new(),
    }
}

fuzz! {
    fn any_command_is_an_order_or_a_refusal(text in text_from(WORDS)) {
        let Ok(request) = serde_json::from_str::<CommandRequest>(&text) else { return };
        let Ok(order) = check(request, users) else { return };
        assert!(order.variables.iter().all(|(name, value)| is_variable(name, value)));
        let words = match order.what {
            What::Script(script) => vec![script],
            What::Program(argv) => argv,
        };
        assert!(!words.is_empty() && !words.iter().any(|word| word.contains('\0')));
        assert!(order.person.is_none_or(|person| person.ids.uid != u32::MAX));
    }

    fn any_number_is_a_time_limit_or_a_refusal(ms in f64::ANY) {
        match timeout(Some(ms)) {
            Ok(Some(limit)) => {
                assert!(ms > 0.0);
                assert!(limit.as_secs_f64() <= TIMEOUT_S_MAX);
            }
            Ok(None) => assert!(ms == 0.0 || ms.is_nan()),
            Err(_) => assert!(ms < 0.0),
        }
    }
}

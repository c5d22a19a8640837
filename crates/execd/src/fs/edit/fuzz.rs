//! Replacement against a model that works on whole texts.

use proptest::prelude::any;

use super::tests::{change, done};
use super::*;

barchan_testkit::fuzz! {
    fn edits_agree_with_the_model(
        text in "[ab\r\n€]{0,40}",
        old in "[ab\r\n]{1,4}",
        new in "[ac\r\n]{0,4}",
        all in any::<bool>(),
    ) {
        let lf = |text: &str| text.replace("\r\n", "\n");
        let crlf = |text: &str| lf(text).replace('\n', "\r\n");
        let forms = [(old.clone(), new.clone()), (crlf(&old), crlf(&new)), (lf(&old), lf(&new))];
        let wanted = match forms.iter().find(|(old, _)| text.contains(old.as_str())) {
            None => Err(Unchanged::Missing),
            Some((old, new)) => match text.matches(old.as_str()).count() as u64 {
                count if count > 1 && !all => Err(Unchanged::Ambiguous(count)),
                count => Ok((text.replace(old.as_str(), new), count)),
            },
        };
        assert_eq!(done(&text, &change(&old, &new, all)), wanted);
    }
}

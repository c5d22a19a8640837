use barchan_testkit::fuzz;
use barchan_testkit::inputs::bytes_from;
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::strategy::Strategy;

use super::*;
use crate::address::{Kind, nature};
use crate::naive;
use crate::table::Table;

const WORDS: &[&[u8]] = &[
    b"\0\x07\x01\0\0\x01\0\0\0\0\0\0",
    b"\0\x07\x81\x80\0\x01\0\x02\0\0\0\0",
    b"\0\x07\x01\0\0\x01\0\0\0\0\0\x01",
    b"\x01a\x03com\0",
    b"\x01b\x01a\x03com\0",
    b"\0\x01\0\x01",
    b"\0\x05\0\x01",
    b"\0\x1c\0\x01",
    b"\0\x41\0\x01",
    b"\xc0\x0c",
    b"\0\0\0\x3c\0\x04\x01\x02\x03\x04",
    b"\0\0\0\x3c\0\x04\x0a\0\0\x01",
    b"\0\0\0\x3c\0\x02\xc0\x0c",
    b"\0\0\x29\x04\xd0\0\0\0\0\0\0",
];

/// A question for `a.com`, or something like it.
fn near_question() -> impl Strategy<Value = Vec<u8>> {
    let whole = [WORDS[0], WORDS[3], WORDS[5]].concat();
    vec((any::<proptest::sample::Index>(), any::<u8>()), 0..3).prop_map(move |changes| {
        let mut bytes = whole.clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    })
}

fn assert_sound(bytes: &[u8], table: &Table) {
    let asked = match Asked::read(bytes) {
        Ok(asked) => asked,
        Err(NoQuestion::Silence) => return,
        Err(NoQuestion::Answer(message)) => {
            assert!(message.to_vec().unwrap().len() <= 12);
            return;
        }
    };
    let judged = asked.judge(table);
    let answer = asked.to_bytes(&asked.answer(judged.fate), true);
    assert!(
        answer.len() <= 512 && answer[..2] == bytes[..2],
        "{answer:?}"
    );
    let outside = asked.outside(1).to_vec().unwrap();
    let again = Asked::read(&outside).unwrap();
    assert_eq!(again.host(), asked.host());
    assert_eq!(again.judge(table), judged);
}

fuzz! {
    fn any_bytes_are_a_question_or_none(bytes in bytes_from(WORDS), said in naive::said()) {
        assert_sound(&bytes, &naive::both(&said).1);
    }

    fn a_question_is_judged_by_what_it_is(bytes in near_question(), said in naive::said()) {
        assert_sound(&bytes, &naive::both(&said).1);
    }

    fn any_answer_is_sifted(bytes in bytes_from(WORDS), said in naive::said()) {
        let table = naive::both(&said).1;
        let asked = Asked::read(&[WORDS[0], WORDS[3], WORDS[5]].concat()).unwrap();
        let whole = [WORDS[1], WORDS[3], WORDS[5], &bytes].concat();
        for bytes in [bytes, whole] {
            let Ok(answer) = Message::from_vec(&bytes) else { continue };
            let Ok(sifted) = sift(&table, &asked, &answer) else { continue };
            for (address, _) in &sifted.pins {
                assert!(nature(*address).kind == Kind::Public || table.opens(*address).is_some());
            }
            let sent = asked.to_bytes(&sifted.message, false);
            let read = Message::from_vec(&sent).unwrap();
            assert_eq!(read.answers.len(), sifted.message.answers.len());
            assert!(read.authorities.is_empty() && read.additionals.is_empty());
        }
    }
}

use barchan_testkit::fuzz;
use barchan_testkit::inputs::text_from;
use proptest::collection::vec;
use proptest::prelude::any;

use super::*;

const WORDS: &[&str] = &[
    ":",
    "root",
    "ann",
    "0",
    "1000",
    "4294967295",
    "4294967296",
    "-1",
    "\n",
    "x",
    ",",
    ":x:0:0:",
    "ann:x:1000:1000:Ann:/home/ann:/bin/sh\n",
    "#",
    "audio:x:29:ann,bob\n",
];

fuzz! {
    fn any_table_of_users_is_read(
        passwd in text_from(WORDS),
        group in text_from(WORDS),
        uid in any::<u32>(),
    ) {
        let users = Users { passwd, group };
        for uid in [uid, 0, 1000] {
            assert!(!users.user_name(uid).is_empty());
            if let Some(user) = users.user(uid) {
                assert_eq!(users.groups_of(&user).first(), Some(&user.gid));
            }
        }
        assert!(users.uid("4294967295").is_none() || users.passwd.contains("4294967295:"));
    }

    fn users_that_were_written_are_found(ids in vec(0_u32..4_294_967_295, 1..8)) {
        let line = |id: &u32| format!("u{id}:x:{id}:{id}::/home/{id}:/bin/sh\n");
        let users = Users { passwd: ids.iter().map(line).collect(), group: String::new() };
        for id in ids {
            assert_eq!(users.uid(&format!("u{id}")), Some(id));
            assert_eq!(users.user(id).unwrap().home, format!("/home/{id}"));
        }
    }
}

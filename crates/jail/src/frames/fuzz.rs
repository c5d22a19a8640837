use barchan_testkit::fuzz;
use proptest::collection::vec;
use proptest::prelude::any;

use super::*;

fuzz! {
    fn messages_arrive_whole_and_apart(
        messages in vec((vec(any::<u8>(), 1..2000), 0_usize..FRAME_FDS_MAX + 3), 1..4),
    ) {
        let (here, there) = pair().unwrap();
        for (bytes, fds) in &messages {
            let sent = send(here.as_fd(), bytes, &vec![here.as_fd(); *fds]);
            if *fds > FRAME_FDS_MAX {
                assert!(sent.is_err());
                continue;
            }
            sent.unwrap();
            let (received, carried) = receive(&there, true).unwrap().unwrap();
            assert_eq!((&received, carried.len()), (bytes, *fds));
        }
        drop(here);
        assert!(receive(&there, true).unwrap().is_none());
    }

    fn a_message_that_does_not_fit_is_an_error(extra in 1_usize..70_000) {
        let (here, there) = pair().unwrap();
        let large = vec![b'x'; FRAME_BYTES_MAX + extra];
        assert!(send(here.as_fd(), &large, &[]).is_err());
        // As somebody would who keeps to no limit.
        if rustix::io::write(&here, &large).is_ok() {
            assert!(receive(&there, true).is_err());
        }
    }
}

use barchan_testkit::fuzz;
use proptest::collection::vec;
use proptest::prelude::any;

use super::tests::ring;
use super::*;

fuzz! {
    fn the_tail_is_the_end_of_all_that_was_written(sizes in vec(0_usize..70_000, 0..6)) {
        let file = ring();
        let mut all = Vec::new();
        for (number, size) in sizes.into_iter().enumerate() {
            let piece: Vec<u8> = (0..size).map(|at| (at * 7 + number) as u8).collect();
            // Each time a writer that goes on where another stopped.
            Writer::new(file.try_clone().unwrap()).unwrap().append(&piece).unwrap();
            all.extend(piece);
        }
        let start = all.len().saturating_sub(RING_BYTES as usize);
        assert!(read_tail(&file).unwrap() == all[start..]);
    }

    fn a_hostile_header_changes_no_size(total in any::<u64>(), piece in vec(any::<u8>(), 0..40)) {
        let file = ring();
        for total in [total, total >> 40, u64::MAX, RING_BYTES, RING_BYTES + 1] {
            file.write_all_at(&total.to_le_bytes(), 0).unwrap();
            assert!(read_tail(&file).unwrap().len() as u64 <= RING_BYTES);
            let mut writer = Writer::new(file.try_clone().unwrap()).unwrap();
            let _ = writer.append(&piece);
            assert_eq!(file.metadata().unwrap().len(), FILE_BYTES);
        }
    }
}

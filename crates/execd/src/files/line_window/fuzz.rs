use barchan_testkit::fuzz;
use barchan_testkit::inputs::{bytes_from, cut, with_cuts};
use proptest::option;

use super::*;

fuzz! {
    fn windows_are_the_lines_that_were_asked_for(
        (text, places) in with_cuts(bytes_from(&[b"\n", b"\r\n", b"x", b"line", b"\n\n"])),
        first in 0_u64..12,
        limit in option::of(0_u64..12),
    ) {
        let mut window = LineWindow::new(first, limit);
        let pieces = cut(&text, &places).into_iter();
        let found: Vec<u8> = pieces.flat_map(|piece| piece[window.cut(piece)].to_vec()).collect();
        let skipped = first.saturating_sub(1) as usize;
        let taken = limit.map_or(usize::MAX, |limit| limit as usize);
        let lines = text.split_inclusive(|byte| *byte == b'\n').skip(skipped).take(taken);
        assert_eq!(found, lines.flatten().copied().collect::<Vec<u8>>());
    }
}

//! Pages against a model that holds the whole text, and cut off early.

use super::*;

/// Lines of a whole text, and whether the last one has an end.
fn lines(text: &str) -> (Vec<String>, bool) {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let ends = text.is_empty() || text.ends_with('\n');
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    if ends {
        lines.pop();
    }
    (lines, ends)
}

pub(super) fn model(text: &str, offset: u64, limit: u64, bytes_max: usize) -> Result<Cut, u64> {
    let (lines, final_newline) = lines(text);
    let total = lines.len() as u64;
    let mut page = String::new();
    let (mut taken, mut cut) = (0, false);
    for line in lines.iter().skip(offset as usize).take(limit as usize) {
        let piece = if taken == 0 {
            line.clone()
        } else {
            format!("\n{line}")
        };
        if page.len() + piece.len() > bytes_max {
            cut = true;
            let mut room = bytes_max - page.len();
            while !piece.is_char_boundary(room) {
                room -= 1;
            }
            page.push_str(&piece[..room]);
            break;
        }
        page.push_str(&piece);
        taken += 1;
    }
    if taken == 0 && !cut {
        return Err(total);
    }
    let end = offset + taken.max(1);
    Ok(Cut {
        text: page.into_bytes(),
        lines: taken.max(1),
        total: Some(total),
        next: (end < total).then_some(end),
        cut,
        final_newline: Some(final_newline),
    })
}

pub(super) fn page(
    text: &str,
    offset: u64,
    limit: u64,
    bytes_max: usize,
    block: usize,
) -> Result<Cut, u64> {
    let mut page = Page::new(offset, limit, bytes_max);
    for block in text.as_bytes().chunks(block) {
        page.feed(block);
    }
    page.finish(true)
}

barchan_testkit::fuzz! {
    fn pages_agree_with_the_model(
        text in "[ab\n\r€🤣]{0,40}",
        offset in 0_u64..12,
        limit in 1_u64..12,
        bytes_max in 4_usize..40,
        block in 1_usize..9,
    ) {
        let found = page(&text, offset, limit, bytes_max, block);
        assert_eq!(found, model(&text, offset, limit, bytes_max));
    }

    fn a_settled_page_does_not_change(
        text in "[ab\n\r€]{0,30}",
        offset in 0_u64..6,
        limit in 1_u64..6,
        bytes_max in 4_usize..20,
    ) {
        let mut short = Page::new(offset, limit, bytes_max);
        for byte in text.as_bytes() {
            short.feed(&[*byte]);
            if short.is_settled() {
                break;
            }
        }
        let at_end = !short.is_settled();
        let whole = model(&text, offset, limit, bytes_max);
        match (short.finish(at_end), whole) {
            (Ok(short), Ok(whole)) => {
                assert_eq!(short.text, whole.text);
                assert_eq!(short.next, whole.next);
            }
            (short, whole) => assert_eq!(short, whole),
        }
    }
}

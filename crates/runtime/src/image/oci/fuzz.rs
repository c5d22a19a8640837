use std::io::Write;

use barchan_testkit::fuzz;
use proptest::prelude::any;

use super::*;

fn read_all(file: std::fs::File) -> Result<(), OciError> {
    let archive = Archive::open(file)?;
    let (_, layers) = archive.image()?;
    let mut left = 1 << 16;
    let mut each = layers.iter();
    each.try_for_each(|layer| archive.unpack(layer, &mut left, |_| Ok::<_, OciError>(())))
}

fuzz! {
    /// Bytes that were changed anywhere end in an error, or in an image whose layers are verified.
    fn damaged_images_are_read_or_refused(
        changes in proptest::collection::vec((0_usize..65_536, any::<u8>()), 1..4),
    ) {
        let mut bytes = tests::image();
        for (at, byte) in changes {
            let length = bytes.len();
            bytes[at % length] = byte;
        }
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let _ = read_all(file);
    }
}

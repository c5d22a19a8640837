use std::path::{Path, PathBuf};

use barchan_testkit::fuzz;
use proptest::collection::vec;
use proptest::prelude::any;

use super::ops::{Op, Verb, apply, op};
use super::view::{assert_same, based, in_memory, merged, open, overlay, view};
use super::*;

const LIMITS: Limits = Limits {
    entries_max: 1 << 16,
    bytes_max: 1 << 30,
};

/// Makes an image and layers on it by real overlays; the layers' folders, top first, then the
/// image's.
fn layers(place: &Path, image: &[Op], layers: &[Vec<Op>]) -> Vec<PathBuf> {
    let folder = |name: String| {
        let path = place.join(name);
        std::fs::create_dir(&path).unwrap();
        path
    };
    let bottom = folder("image".to_owned());
    for (verb, path, other, number) in image.iter().cloned() {
        // Marks of overlays mean themselves here, and nobody could write these.
        let number = match verb {
            Verb::Note => number - number % 3,
            _ => number,
        };
        let _ = apply(&open(&bottom), &(verb, path, other, number));
    }
    let mut all = vec![bottom];
    for (number, ops) in layers.iter().enumerate() {
        let (upper, work) = (folder(format!("{number}")), folder(format!("work{number}")));
        let root = overlay(&all, Some((&upper, &work)));
        for op in ops {
            let _ = apply(&root, op);
        }
        all.insert(0, upper);
    }
    all
}

fuzz! {
    fn merged_layers_give_the_same_tree(
        image in vec(op(), 0..30),
        ops in vec(vec(op(), 1..16), 2..6),
        cut in any::<(u8, u8)>(),
    ) {
        if !rustix::process::geteuid().is_root() {
            // Others cannot mount overlays.
            return;
        }
        let place = match cut.0 % 16 {
            0 => tempfile::tempdir().unwrap(),
            _ => in_memory(),
        };
        let all = layers(place.path(), &image, &ops);
        let expected = view(&all);
        let (image, steps) = all.split_last().unwrap();
        let at = |name: &str| place.path().join(name);

        let first = usize::from(cut.0) % steps.len();
        let end = first + 1 + usize::from(cut.1) % (steps.len() - first);
        merged(&steps[first..end], &at("middle"), 0, LIMITS).unwrap();
        let mut shorter = steps.to_vec();
        shorter.splice(first..end, [at("middle")]);
        shorter.push(image.clone());
        assert_same("a part of them", &view(&shorter), &expected);

        merged(steps, &at("whole"), 0, LIMITS).unwrap();
        assert_same("all of them", &view(&[at("whole"), image.clone()]), &expected);
        shorter.pop();
        merged(&shorter, &at("again"), 0, LIMITS).unwrap();
        assert_same("one merged before", &view(&[at("again"), image.clone()]), &expected);

        const BASE: u32 = 1_000_000_000;
        merged(&all, &at("copied"), BASE, LIMITS).unwrap();
        std::fs::create_dir(at("empty")).unwrap();
        let copied = view(&[at("copied"), at("empty")]);
        assert_same("copies", &copied, &based(expected, BASE));
    }
}

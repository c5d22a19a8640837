//! Puts the three guests into the program when `BARCHAN_GUESTS_DIR` says where they lie, as
//! `make build` does. Without it the program looks for them when it runs.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{env, fs};

const GUESTS: [&str; 3] = ["barchan-egress", "barchan-execd", "barchan-jail"];

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-env-changed=BARCHAN_GUESTS_DIR");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let code = match env::var_os("BARCHAN_GUESTS_DIR").map(PathBuf::from) {
        None => "None".to_owned(),
        Some(folder) => embed(&folder)?,
    };
    let file = out.join("guests.rs");
    fs::write(&file, code).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// The expression that holds the files, and a digest by which a copy on disk is known again.
fn embed(folder: &Path) -> Result<String, String> {
    let mut hasher = DefaultHasher::new();
    let mut code = String::from("Some(Embedded { files: [");
    for name in GUESTS {
        let path = folder.join(name);
        println!("cargo::rerun-if-changed={}", path.display());
        let bytes = fs::read(&path).map_err(|error| {
            format!(
                "cannot read {}: {error}; `make guests` builds it",
                path.display()
            )
        })?;
        bytes.hash(&mut hasher);
        code.push_str(&format!("({name:?}, include_bytes!({path:?})),"));
    }
    Ok(format!("{code}], digest: \"{:016x}\" }})", hasher.finish()))
}

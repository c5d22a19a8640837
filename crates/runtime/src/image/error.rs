//! What can go wrong with images, in words for the operator.

use std::io;
use std::path::Path;

/// Says what was tried, on what, and what to do next; [`ImageError::code`] is stable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// No image of this name is in the store and no alias leads to one.
    #[error("{message}")]
    Unknown {
        /// The whole sentence, with how to build or alias the image.
        message: String,
    },
    /// A name that cannot be an image's name in the store.
    #[error(
        "'{name}' cannot name an image: use 1 to 64 of a-z, 0-9, '.', '_' and '-', beginning with \
         a letter or digit"
    )]
    Name {
        /// What was given, shortened.
        name: String,
    },
    /// A recipe that cannot be read.
    #[error("recipe {recipe}: {reason}")]
    Recipe {
        /// The recipe's name or path.
        recipe: String,
        /// What is wrong with it and what is expected.
        reason: String,
    },
    /// A step of a build ended badly.
    #[error("building '{image}', step {step} of {of} ({title}) {reason}{}", tail_of(.output))]
    Step {
        /// The image being built.
        image: String,
        /// Counted from 1.
        step: usize,
        /// How many steps there are.
        of: usize,
        /// What the step was to do.
        title: String,
        /// How it ended: `exited with 1`, `took longer than 600 s`.
        reason: String,
        /// The tail of what it printed.
        output: String,
    },
    /// The build cannot be done on this host.
    #[error("building '{image}': {reason}")]
    Build {
        /// The image being built.
        image: String,
        /// What is missing and how to get it.
        reason: String,
    },
    /// The result of a build may not become a layer.
    #[error("sealing the layer of '{image}': {reason}")]
    Seal {
        /// The image being built.
        image: String,
        /// What was found where.
        reason: String,
    },
    /// The image, or a layer of it, is used by a sandbox or by another image.
    #[error("image '{name}' is in use by {by}; delete that first")]
    InUse {
        /// The image.
        name: String,
        /// Who uses it.
        by: String,
    },
    /// A stored file that does not say what it should.
    #[error("{path}: {reason}; run `barchan image rm` and build the image again")]
    Corrupt {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The disk refused.
    #[error("cannot {what} {path}: {source}")]
    Disk {
        /// What was tried: `create`, `rename`.
        what: &'static str,
        /// On what.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

impl ImageError {
    /// A stable word for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "image_unknown",
            Self::Name { .. } => "image_name",
            Self::Recipe { .. } => "image_recipe",
            Self::Step { .. } => "image_step",
            Self::Build { .. } => "image_build",
            Self::Seal { .. } => "image_seal",
            Self::InUse { .. } => "image_in_use",
            Self::Corrupt { .. } => "image_corrupt",
            Self::Disk { .. } => "image_disk",
        }
    }

    /// Turns an I/O error into one that names what was tried on which path.
    pub(super) fn disk(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self::Disk { what, path, source }
    }
}

fn tail_of(output: &str) -> String {
    if output.trim().is_empty() {
        String::new()
    } else {
        format!(":\n{}", output.trim_end())
    }
}

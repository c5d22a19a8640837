//! Receives files: the parts of an upload become files beside their places, and all of them are put
//! in place when the whole body has arrived in good order.

use std::path::PathBuf;

use barchan_wire::execd::file::UploadMetadata;
use bytes::Bytes;

use super::multipart::Piece;
use super::permission::Rights;
use super::spelling::Spelling;
use super::stage::Staged;
use crate::environment::Variables;
use crate::fault::{Fault, Kind};
use crate::limits::{METADATA_BYTES_MAX, UPLOAD_FILES_MAX};
use crate::small_file;
use crate::users::Users;

/// What the part that is being received is.
#[derive(Debug)]
enum Part {
    None,
    Metadata(Vec<u8>),
    File(Staged),
    /// One that no route knows; browsers add some.
    Other,
}

/// An upload being received. Dropped before [`Upload::finish`], it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Upload {
    cwd: PathBuf,
    variables: Variables,
    spelling: Spelling,
    users: Users,
    part: Part,
    metadata: Vec<UploadMetadata>,
    files: Vec<Staged>,
}

impl Upload {
    /// An upload whose paths are spelled so, expanded with these variables, and start from there.
    pub(crate) fn new(cwd: PathBuf, variables: Variables, spelling: Spelling) -> Self {
        Self {
            cwd,
            variables,
            spelling,
            users: small_file::users(),
            part: Part::None,
            metadata: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Takes the next piece of the body.
    ///
    /// # Errors
    /// When its metadata is broken, or its file cannot be written.
    pub(crate) fn take(&mut self, piece: Piece) -> Result<(), Fault> {
        match piece {
            Piece::Start(name) => {
                self.part = match name.as_str() {
                    "metadata" => Part::Metadata(Vec::new()),
                    "file" => Part::File(self.begin_file()?),
                    _ => Part::Other,
                };
            }
            Piece::Data(data) => self.data(&data)?,
            Piece::End => match std::mem::replace(&mut self.part, Part::None) {
                Part::Metadata(text) => self.metadata.push(read_metadata(&text)?),
                Part::File(file) => self.files.push(file),
                Part::None | Part::Other => {}
            },
        }
        Ok(())
    }

    /// The body was complete: puts every file in its place.
    ///
    /// # Errors
    /// When there was no file, or metadata without one, or the kernel refuses.
    pub(crate) fn finish(self) -> Result<(), Fault> {
        if self.files.is_empty() || self.files.len() != self.metadata.len() {
            let (metadata, files) = (self.metadata.len(), self.files.len());
            let message = format!(
                "an upload needs pairs of parts, first `metadata` and then `file`; there were \
                 {metadata} and {files}"
            );
            return Err(Fault::new(Kind::BadFile, message));
        }
        self.files.into_iter().try_for_each(Staged::commit)
    }

    fn begin_file(&self) -> Result<Staged, Fault> {
        let Some(metadata) = self.metadata.get(self.files.len()) else {
            let message = "a `file` part came before its `metadata` part";
            return Err(Fault::new(Kind::BadFile, message));
        };
        if self.files.len() >= UPLOAD_FILES_MAX {
            let message = format!("more than {UPLOAD_FILES_MAX} files in one upload");
            return Err(Fault::new(Kind::TooLarge, message));
        }
        let lookup = |name: &str| self.variables.get(name).cloned();
        let named = self.spelling.read(metadata.path.as_bytes(), &lookup)?;
        let path = self.cwd.join(named);
        Staged::new(&path, Rights::new(&metadata.permission, &self.users))
    }

    fn data(&mut self, data: &Bytes) -> Result<(), Fault> {
        match &mut self.part {
            Part::File(file) => file.write(data),
            Part::Metadata(text) if text.len() + data.len() > METADATA_BYTES_MAX => {
                let message =
                    format!("the metadata is too long, {METADATA_BYTES_MAX} bytes at most");
                Err(Fault::new(Kind::BadMetadata, message))
            }
            Part::Metadata(text) => {
                text.extend_from_slice(data);
                Ok(())
            }
            Part::None | Part::Other => Ok(()),
        }
    }
}

fn read_metadata(text: &[u8]) -> Result<UploadMetadata, Fault> {
    serde_json::from_slice(text).map_err(|error| {
        Fault::new(
            Kind::BadMetadata,
            format!("the metadata is not the JSON this needs: {error}"),
        )
    })
}

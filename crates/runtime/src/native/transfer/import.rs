//! Makes a snapshot of an image: its layers are unpacked one over the other into one.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use barchan_jail::capture::stream::{self, Sender};
use barchan_jail::capture::transfer::{COMMIT, NEXT};
use barchan_jail::capture::{Captured, Outcome, UnpackOrder};
use barchan_jail::proto::Request;

use super::{Connection, Patience, failed, spool};
use crate::image::Store;
use crate::image::oci::{Archive, Layer};
use crate::native::snapshots::ENTRIES_MAX;
use crate::native::{Native, Settings, internal};
use crate::{ArchiveFault, ErrorKind, ImportOrder, Imported, Pieces, RuntimeError};

/// What layers may have beyond content: a head for each file, and more for what is left out.
const OVERHEAD_BYTES: u64 = 2 << 30;

impl Native {
    pub(in crate::native) async fn import(
        &self,
        order: ImportOrder,
        archive: Pieces,
    ) -> Result<Imported, RuntimeError> {
        let folder = self.settings.state.join("images/tmp");
        let file = spool::receive(&folder, archive, order.bytes_max).await?;
        let (store, settings) = (Arc::clone(&self.store), self.settings.clone());
        let (patience, waiting) = Patience::new(order.wait);
        let id = order.snapshot.clone();
        let job = move || import(&store, &settings, file, &order, &patience);
        let imported = tokio::task::spawn_blocking(job).await;
        drop(waiting);
        let imported = imported.unwrap_or_else(|error| Err(internal(&error.to_string())));
        if imported.is_err() {
            // What is unfinished the launcher removes by itself.
            let _ = self.ask(Request::RemoveSnapshot(id.to_string())).await;
        }
        imported
    }
}

fn import(
    store: &Store,
    settings: &Settings,
    file: File,
    order: &ImportOrder,
    patience: &Patience,
) -> Result<Imported, RuntimeError> {
    let archive = Archive::open(file)?;
    let (image, layers) = archive.image()?;
    let mut connection = Connection::open(
        settings,
        Request::Unpack(UnpackOrder {
            snapshot: order.snapshot.to_string(),
            bytes_max: order.bytes_max,
            entries_max: ENTRIES_MAX,
            on_host: image.on_host,
        }),
    )?;
    let captured = unpack(&archive, &layers, order, &mut connection, patience)?;
    let digest = image.digest.clone();
    let saved = image.saved(&order.snapshot, captured.bytes);
    store.save(&order.snapshot, &saved).map_err(|error| {
        let message = format!("its record was not written: {error}");
        RuntimeError::new(ErrorKind::SnapshotFailed, message)
    })?;
    Ok(Imported {
        bytes: captured.bytes,
        digest,
    })
}

/// Why a layer is not sent on.
enum Stop {
    /// Its process does not take it.
    Gone(io::Error),
    Because(RuntimeError),
}

impl From<crate::image::oci::OciError> for Stop {
    fn from(error: crate::image::oci::OciError) -> Self {
        Self::Because(error.into())
    }
}

fn unpack(
    archive: &Archive,
    layers: &[Layer],
    order: &ImportOrder,
    connection: &mut Connection,
    patience: &Patience,
) -> Result<Captured, RuntimeError> {
    match send(archive, layers, order, connection, patience) {
        Err(Stop::Because(error)) => return Err(error),
        // It says why.
        Err(Stop::Gone(error)) => match connection.outcome() {
            Ok(outcome) => return Err(failed(outcome, ArchiveFault::Invalid)),
            Err(_) => return Err(internal(&format!("send a layer to be unpacked: {error}"))),
        },
        Ok(()) => {}
    }
    match connection.outcome()? {
        Outcome::Done(captured) => Ok(captured),
        outcome => Err(failed(outcome, ArchiveFault::Invalid)),
    }
}

fn send(
    archive: &Archive,
    layers: &[Layer],
    order: &ImportOrder,
    connection: &Connection,
    patience: &Patience,
) -> Result<(), Stop> {
    let out = connection.reader.get_ref();
    let mut left = order.bytes_max.saturating_add(OVERHEAD_BYTES);
    for layer in layers {
        stream::say(out, NEXT).map_err(Stop::Gone)?;
        let mut sender = Sender::new(out);
        archive.unpack(layer, &mut left, |piece| {
            patience.check().map_err(Stop::Because)?;
            sender.write_all(piece).map_err(Stop::Gone)
        })?;
        sender.end().map_err(Stop::Gone)?;
    }
    stream::say(out, COMMIT).map_err(Stop::Gone)
}

//! Packs a snapshot. Each layer is packed twice: once for its digest, which an archive tells before
//! the content, and once for the archive. So nothing is kept on the disk meanwhile, and a layer
//! that changed between the two breaks the archive off.

use std::io::{self, Read, Write};
use std::sync::Arc;

use barchan_jail::capture::stream::Receiver;
use barchan_jail::proto::{Request, Tree};
use bytes::{Bytes, BytesMut};
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Connection, EXPORTS_MAX, PAUSE_MAX, Patience, failed, span_of};
use crate::image::oci::{Described, Layout, Packed};
use crate::image::{ImageError, Saved, Store};
use crate::native::{Native, Settings, internal};
use crate::{ArchiveFault, ErrorKind, Export, ExportOrder, RuntimeError};

/// Bytes of a piece of the archive, and how many of them wait for a slow reader.
pub(super) const PIECE_BYTES: usize = 256 * 1024;
pub(super) const PIECES: usize = 8;

impl Native {
    pub(in crate::native) async fn export(
        &self,
        order: ExportOrder,
    ) -> Result<Export, RuntimeError> {
        let place = Arc::clone(&self.exports).try_acquire_owned();
        let place = place.map_err(|_| {
            let kind = ErrorKind::Archive(ArchiveFault::Busy);
            let words = format!("{EXPORTS_MAX} snapshots are packed already: try again later");
            RuntimeError::new(kind, words)
        })?;
        let (patience, _waiting) = Patience::new(order.wait);
        let (store, settings) = (Arc::clone(&self.store), self.settings.clone());
        let job = move || Packing::prepare(&store, settings, &order, &patience);
        let prepared = tokio::task::spawn_blocking(job).await;
        let packing = prepared.map_err(|error| internal(&error.to_string()))??;
        let (digest, bytes) = (packing.layout.digest.clone(), packing.layout.bytes());
        let (sender, pieces) = mpsc::channel(PIECES);
        let handle = Handle::current();
        // It ends when its reader is gone or too slow.
        drop(tokio::task::spawn_blocking(move || {
            let _place = place;
            let mut out = Out {
                sender,
                handle,
                piece: BytesMut::new(),
                until: Instant::now() + span_of(bytes),
            };
            if let Err(error) = packing.write(&mut out) {
                tracing::warn!(%error, "a snapshot's archive broke off");
            }
        }));
        Ok(Export {
            digest,
            bytes,
            pieces,
        })
    }
}

/// An image whose layers are known.
struct Packing {
    settings: Settings,
    trees: Vec<Tree>,
    packed: Vec<Packed>,
    layout: Layout,
}

impl Packing {
    fn prepare(
        store: &Store,
        settings: Settings,
        order: &ExportOrder,
        patience: &Patience,
    ) -> Result<Self, RuntimeError> {
        let id = &order.snapshot;
        let saved = store.saved(id).map_err(|error: ImageError| {
            let message = format!("snapshot {id} cannot be read: {error}");
            RuntimeError::new(ErrorKind::UnknownSnapshot, message)
        })?;
        if saved.image.on_host && !order.without_host {
            let message = format!(
                "snapshot {id} stands on this host's own system, which is no part of it: export \
                 it without (`withoutHost=true`, `--without-host`), for a host of the same \
                 system, or take snapshots of sandboxes that are made of a standalone image"
            );
            let kind = ErrorKind::Archive(ArchiveFault::OnHost);
            return Err(RuntimeError::new(kind, message));
        }
        let trees = trees(&saved);
        let mut packed = Vec::new();
        for tree in &trees {
            packed.push(measure(&settings, tree, patience)?);
        }
        let described = Described {
            saved: &saved,
            created: &order.created,
            without_host: saved.image.on_host,
        };
        let layout = Layout::new(&described, packed.clone(), id.as_str())?;
        Ok(Self {
            settings,
            trees,
            packed,
            layout,
        })
    }

    fn write(&self, out: &mut Out) -> io::Result<()> {
        self.layout.write(out, |at, out| {
            let (Some(tree), Some(packed)) = (self.trees.get(at), self.packed.get(at)) else {
                return Err(io::ErrorKind::NotFound.into());
            };
            let mut digest = Sha256::new();
            let mut size = 0;
            let read = pack(&self.settings, tree, |piece| {
                size += piece.len() as u64;
                if size > packed.size {
                    return Err(changed());
                }
                digest.update(piece);
                out.write_all(piece)
                    .map_err(|error| internal(&error.to_string()))
            });
            read.map_err(|error| io::Error::other(error.to_string()))?;
            match size == packed.size && hex::encode(digest.finalize()) == packed.digest {
                true => Ok(()),
                false => Err(io::Error::other(changed().message)),
            }
        })
    }
}

fn changed() -> RuntimeError {
    internal("a layer of the snapshot changed while it was packed")
}

/// The layers of a snapshot, the lowest first.
fn trees(saved: &Saved) -> Vec<Tree> {
    let own = saved.stack.iter().map(|id| Tree::Snapshot(id.to_string()));
    let image = saved.image.layers.iter().cloned().map(Tree::Image);
    let mut trees: Vec<Tree> = own.chain(image).collect();
    trees.reverse();
    trees
}

fn measure(settings: &Settings, tree: &Tree, patience: &Patience) -> Result<Packed, RuntimeError> {
    let (mut digest, mut size) = (Sha256::new(), 0);
    pack(settings, tree, |piece| {
        patience.check()?;
        digest.update(piece);
        size += piece.len() as u64;
        Ok(())
    })?;
    Ok(Packed {
        digest: hex::encode(digest.finalize()),
        size,
    })
}

/// Has a layer packed, and gives its pieces to `take`.
fn pack(
    settings: &Settings,
    tree: &Tree,
    mut take: impl FnMut(&[u8]) -> Result<(), RuntimeError>,
) -> Result<(), RuntimeError> {
    let mut connection = Connection::open(settings, Request::Pack(tree.clone()))?;
    let mut buffer = vec![0; PIECE_BYTES];
    let mut stream = Receiver::new(&mut connection.reader);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(got) => take(buffer.get(..got).unwrap_or_default())?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {
                let outcome = connection.outcome()?;
                return Err(failed(outcome, ArchiveFault::Unspeakable));
            }
            Err(error) => return Err(internal(&format!("a layer broke off: {error}"))),
        }
    }
}

/// Where the archive goes.
pub(super) struct Out {
    pub(super) sender: mpsc::Sender<Bytes>,
    pub(super) handle: Handle,
    pub(super) piece: BytesMut,
    /// When it is over, however steadily it goes.
    pub(super) until: Instant,
}

impl Out {
    /// Sends what is left, and a piece of no length for the end.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.flush()?;
        self.send(Bytes::new())
    }

    fn send(&self, piece: Bytes) -> io::Result<()> {
        let until = self.until.min(Instant::now() + PAUSE_MAX);
        let send = self.sender.send(piece);
        // The timer is made where the runtime is around it.
        let sent = async { tokio::time::timeout_at(until, send).await };
        let sent = self.handle.block_on(sent);
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = self.piece.split().freeze();
        match piece.is_empty() {
            true => Ok(()),
            false => self.send(piece),
        }
    }
}

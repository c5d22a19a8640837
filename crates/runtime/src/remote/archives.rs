//! What the other process sends over connections of their own: archives, and what differs between
//! layers.

use std::os::fd::OwnedFd;
use std::sync::{MutexGuard, PoisonError};

use tokio::task::JoinSet;

use super::words::{Ask, Said};
use super::{Remote, strange, streams};
use crate::{CompareOrder, Comparison, Export, ExportOrder, RuntimeError};

impl Remote {
    pub(super) async fn exported(&self, order: ExportOrder) -> Result<Export, RuntimeError> {
        let ask = Ask::ExportSnapshot(order);
        match self.ask_with(ask, Vec::new()).await? {
            (Said::Export(digest, bytes), mut fds) => Ok(Export {
                digest,
                bytes,
                pieces: self.bring(fds.pop_front(), streams::read)?.pieces,
            }),
            _ => Err(strange()),
        }
    }

    pub(super) async fn compared(&self, order: CompareOrder) -> Result<Comparison, RuntimeError> {
        let ask = Ask::Compare(order);
        match self.ask_with(ask, Vec::new()).await? {
            (Said::Done, mut fds) => self.bring(fds.pop_front(), streams::read_told),
            _ => Err(strange()),
        }
    }

    /// Has brought here what comes out of a connection.
    fn bring(
        &self,
        from: Option<OwnedFd>,
        read: streams::Read,
    ) -> Result<Comparison, RuntimeError> {
        let (brought, bringing) = streams::pieces_of(from.ok_or_else(strange)?, read)?;
        let mut archives = self.archives();
        while archives.try_join_next().is_some() {}
        archives.spawn(bringing);
        Ok(brought)
    }

    fn archives(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.archives.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! What differs between two layers, as the launcher's process tells it.

use std::io::{self, Read, Write};
use std::time::Duration;

use barchan_jail::capture::stream::Receiver;
use barchan_jail::diff::Limits;
use barchan_jail::proto::{self, Request};
use bytes::BytesMut;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::Connection;
use super::export::{Out, PIECE_BYTES, PIECES};
use crate::native::{Native, Settings, internal};
use crate::{ArchiveFault, CompareOrder, Comparison, ErrorKind, Full, RuntimeError};

/// Longest time to tell what differs, however slowly it is heard.
const COMPARING_MAX: Duration = Duration::from_secs(600);

/// Whoever asked hears once that it begins, or why it does not.
type Begun = oneshot::Sender<Result<(), RuntimeError>>;

impl Native {
    pub(in crate::native) async fn compare_layers(
        &self,
        order: CompareOrder,
    ) -> Result<Comparison, RuntimeError> {
        let place = self.comparisons.take(order.sandbox.as_str());
        let place = place.map_err(|full| {
            let words = match full {
                Full::All(most) => format!("{most} layers are compared already"),
                Full::Own(most) => format!(
                    "{most} layers of sandbox {} are compared already",
                    order.sandbox
                ),
            };
            let kind = ErrorKind::Archive(ArchiveFault::Busy);
            RuntimeError::new(kind, format!("{words}: try again later"))
        })?;
        let limits = Limits::default();
        let until = Instant::now() + COMPARING_MAX;
        let request = Request::Compare(proto::CompareOrder {
            sandbox: order.sandbox.to_string(),
            from: order.from,
            to: order.to,
            form: order.form,
            limits,
        });
        let (sender, pieces) = mpsc::channel(PIECES);
        let (begun, is_begun) = oneshot::channel();
        let mut out = Out {
            sender,
            handle: Handle::current(),
            piece: BytesMut::new(),
            until,
        };
        let settings = self.settings.clone();
        // It ends when its reader is gone or too slow.
        drop(tokio::task::spawn_blocking(move || {
            let _place = place;
            if let Err(error) = pass_on(&settings, request, begun, &mut out) {
                tracing::warn!(%error, "what differs between layers broke off");
            }
        }));
        let broken = || internal("what compares layers has a fault; the log says more");
        is_begun.await.map_err(|_| broken())??;
        Ok(Comparison { pieces })
    }
}

fn pass_on(
    settings: &Settings,
    request: Request,
    begun: Begun,
    out: &mut Out,
) -> Result<(), RuntimeError> {
    let mut begun = Some(begun);
    let done = pass_pieces(settings, request, &mut begun, out);
    match (done, begun.take()) {
        (Err(error), Some(begun)) => {
            // Whoever asked may be gone.
            let _ = begun.send(Err(error));
            Ok(())
        }
        (done, _) => done,
    }
}

fn pass_pieces(
    settings: &Settings,
    request: Request,
    begun: &mut Option<Begun>,
    out: &mut Out,
) -> Result<(), RuntimeError> {
    let lost = |error: io::Error| internal(&format!("what differs is not read: {error}"));
    let mut connection = Connection::open(settings, request)?;
    let mut buffer = vec![0; PIECE_BYTES];
    let mut stream = Receiver::new(&mut connection.reader);
    loop {
        let got = match stream.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {
                let outcome = connection.outcome()?;
                return Err(super::failed_of(outcome, ErrorKind::LayerFailed));
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let words = "the process that compares layers ended before it was done: try again";
                return Err(RuntimeError::new(ErrorKind::LayerFailed, words));
            }
            got => got.map_err(|error| internal(&format!("a comparison broke off: {error}")))?,
        };
        if let Some(begun) = begun.take()
            && begun.send(Ok(())).is_err()
        {
            return Ok(());
        }
        if got == 0 {
            return out.end().map_err(lost);
        }
        out.write_all(buffer.get(..got).unwrap_or_default())
            .map_err(lost)?;
    }
}

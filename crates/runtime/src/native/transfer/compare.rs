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
use uuid::Uuid;

use super::Connection;
use super::export::{Out, PIECE_BYTES, PIECES};
use crate::native::{Native, Settings, internal};
use crate::{ArchiveFault, CompareOrder, Comparison, ErrorKind, Form, Full, RuntimeError};

/// Longest time to tell what differs, however slowly it is heard.
const COMPARING_MAX: Duration = Duration::from_secs(600);
/// Longest line: a path of a thousand folders, and the lines of a text that differ.
const LINE_BYTES_MAX: usize = 4 << 20;

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
        let (sender, pieces) = mpsc::channel(PIECES);
        let (begun, is_begun) = oneshot::channel();
        let (breaks, broken) = oneshot::channel();
        let out = Out {
            sender,
            handle: Handle::current(),
            piece: BytesMut::new(),
            until: Instant::now() + COMPARING_MAX,
        };
        let telling = Telling {
            settings: self.settings.clone(),
            order: proto::CompareOrder {
                sandbox: order.sandbox.to_string(),
                from: order.from,
                to: order.to,
                form: order.form,
                limits: Limits::default(),
                ticket: Uuid::new_v4().to_string(),
            },
            out,
            line: Vec::new(),
        };
        // It ends when its reader is gone or too slow.
        drop(tokio::task::spawn_blocking(move || {
            let _place = place;
            telling.pass_on(begun, breaks);
        }));
        let lost = || internal("what compares layers has a fault; the log says more");
        is_begun.await.map_err(|_| lost())??;
        Ok(Comparison { pieces, broken })
    }
}

/// A comparison on its way to its reader.
struct Telling {
    settings: Settings,
    order: proto::CompareOrder,
    out: Out,
    /// The beginning of a line whose end has not come: half of one is told to nobody.
    line: Vec<u8>,
}

impl Telling {
    /// Tells all of it, or why not: to whoever waits for its beginning, or behind the last piece.
    fn pass_on(mut self, begun: Begun, breaks: oneshot::Sender<RuntimeError>) {
        let mut begun = Some(begun);
        let Err(error) = self.pass_pieces(&mut begun) else {
            return;
        };
        // In both cases whoever asked may be gone.
        if let Some(begun) = begun {
            let _ = begun.send(Err(error));
            return;
        }
        tracing::warn!(%error, "what differs between layers broke off");
        // What was told is right, if it still finds somebody who takes it.
        let _ = self.out.flush();
        let _ = breaks.send(error);
    }

    fn pass_pieces(&mut self, begun: &mut Option<Begun>) -> Result<(), RuntimeError> {
        let request = Request::Compare(self.order.clone());
        let mut connection = Connection::open(&self.settings, request)?;
        let mut buffer = vec![0; PIECE_BYTES];
        let mut stream = Receiver::new(&mut connection.reader);
        loop {
            let got = match stream.read(&mut buffer) {
                Ok(got) => got,
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => continue,
                    io::ErrorKind::ConnectionAborted => {
                        let outcome = connection.outcome()?;
                        return Err(super::failed_of(outcome, ErrorKind::LayerFailed));
                    }
                    io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                        return Err(self.why_broken());
                    }
                    _ => return Err(internal(&format!("a comparison broke off: {error}"))),
                },
            };
            if let Some(begun) = begun.take()
                && begun.send(Ok(())).is_err()
            {
                return Ok(());
            }
            if got == 0 {
                return self.out.end().map_err(|error| unread(&error));
            }
            self.take(buffer.get(..got).unwrap_or_default())?;
        }
    }

    /// Hands a piece on; of lines, those that are whole.
    fn take(&mut self, piece: &[u8]) -> Result<(), RuntimeError> {
        let end = match self.order.form {
            Form::Lines => piece.iter().rposition(|byte| *byte == b'\n'),
            Form::Tar | Form::Exact => piece.len().checked_sub(1),
        };
        let (whole, rest) = piece.split_at(end.map_or(0, |at| at + 1));
        if !whole.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.out.write_all(&line).map_err(|error| unread(&error))?;
            self.out.write_all(whole).map_err(|error| unread(&error))?;
        }
        self.line.extend_from_slice(rest);
        match self.line.len() > LINE_BYTES_MAX {
            true => Err(internal("what compares layers tells of a path without end")),
            false => Ok(()),
        }
    }

    /// Why the process ended without a word: its launcher knows, unless it ended itself.
    fn why_broken(&self) -> RuntimeError {
        let asked = Request::WhyBroken(self.order.ticket.clone());
        match Connection::open(&self.settings, asked) {
            Err(why) if why.kind == ErrorKind::LayerFailed => why,
            _ => {
                let words = "the launcher ended while it had layers compared, and with it its \
                             sandboxes";
                RuntimeError::new(ErrorKind::LayerFailed, words)
            }
        }
    }
}

/// Why nothing more can be handed on.
fn unread(error: &io::Error) -> RuntimeError {
    let words = match error.kind() {
        io::ErrorKind::TimedOut => format!(
            "what differs was read too slowly: nothing of it for {} s, or not all of it in {} s",
            super::PAUSE_MAX.as_secs(),
            COMPARING_MAX.as_secs()
        ),
        _ => format!("what differs is not read: {error}"),
    };
    RuntimeError::new(ErrorKind::LayerFailed, words)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use bytes::Bytes;

    use super::*;
    use crate::image::Aliases;

    fn telling(form: Form) -> (Telling, mpsc::Receiver<Bytes>) {
        let (sender, pieces) = mpsc::channel(PIECES);
        let settings = Settings {
            state: PathBuf::new(),
            jail: PathBuf::new(),
            execd: PathBuf::new(),
            egress: None,
            blanks: 0,
            disk_bytes: 0,
            aliases: Aliases::default(),
            host_paths: None,
            devices: PathBuf::new(),
        };
        let order = proto::CompareOrder {
            sandbox: String::new(),
            from: 0,
            to: 1,
            form,
            limits: Limits::default(),
            ticket: String::new(),
        };
        let out = Out {
            sender,
            handle: Handle::current(),
            piece: BytesMut::new(),
            until: Instant::now() + COMPARING_MAX,
        };
        let line = Vec::new();
        let telling = Telling {
            settings,
            order,
            out,
            line,
        };
        (telling, pieces)
    }

    #[tokio::test]
    async fn half_a_line_is_told_to_nobody_and_one_has_an_end() {
        for (form, expected) in [
            (Form::Lines, "one\ntwo\nthree\n"),
            (Form::Tar, "one\ntwo\nthree\nhalf"),
        ] {
            let (mut telling, mut pieces) = telling(form);
            let told = tokio::task::spawn_blocking(move || {
                for piece in ["on", "e\nt", "wo\nthree\nha", "lf"] {
                    telling.take(piece.as_bytes()).unwrap();
                }
                telling.out.flush().unwrap();
                let endless = vec![b'x'; LINE_BYTES_MAX];
                telling.take(&endless).is_ok()
            });
            assert_eq!(pieces.recv().await.unwrap(), expected, "{form:?}");
            pieces.close();
            let is_taken = told.await.unwrap();
            assert!(!is_taken || form == Form::Tar);
        }
    }
}

//! A stream of bytes into a port of the sandbox, whatever is spoken there.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use barchan_daemon::payload::Payload;
use barchan_daemon::splice::{Terms, splice};
use barchan_wire::execd::PORT;
use barchan_wire::header::{GATEWAY, GATEWAY_REFUSED, STREAM};
use barchan_wire::limits::{PORT_STREAM_SILENCE_MS, PORT_STREAMS_MAX};
use http::header::HeaderValue;
use http::{Request, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::answer::{Answer, done, fault};
use super::proxy::{connect, set_upgrade, upgrade_of};
use crate::app::App;
use crate::fault::{Fault, Kind};

/// Places of streams.
#[derive(Debug)]
pub(crate) struct Streams(Arc<Semaphore>);

impl Default for Streams {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(PORT_STREAMS_MAX)))
    }
}

impl Streams {
    fn take(&self) -> Result<OwnedSemaphorePermit, Fault> {
        Arc::clone(&self.0).try_acquire_owned().map_err(|_| {
            let message = format!(
                "{PORT_STREAMS_MAX} streams lead to ports of this sandbox, and no more may at \
                 once: close some"
            );
            Fault::new(Kind::Busy, message)
        })
    }
}

/// `GET /x/tcp/{port}`
pub(super) async fn open(
    app: &App,
    port: &str,
    mut request: Request<Payload>,
) -> Result<Answer, Fault> {
    let port = number(port)?;
    let asks = upgrade_of(request.headers())
        .is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(STREAM.as_bytes()));
    if !asks {
        let message = format!("connect to this route with `Upgrade: {STREAM}`");
        return Err(Fault::new(Kind::BadRequest, message));
    }
    let place = app.streams.take()?;
    let Some(program) = connect(port).await else {
        let message = format!("nothing listens on port {port} of this sandbox");
        let mut answer = fault(&Fault::new(Kind::Unreached, message));
        let kind = HeaderValue::from_static(GATEWAY_REFUSED);
        answer.headers_mut().insert(GATEWAY, kind);
        return Ok(answer);
    };
    let caller = hyper::upgrade::on(&mut request);
    tokio::task::spawn_local(join(caller, program, place));
    let mut answer = done();
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    set_upgrade(answer.headers_mut(), HeaderValue::from_static(STREAM));
    Ok(answer)
}

async fn join(caller: OnUpgrade, mut program: TcpStream, place: OwnedSemaphorePermit) {
    let _place = place;
    let Ok(caller) = caller.await else { return };
    let terms = Terms {
        silence: Duration::from_millis(PORT_STREAM_SILENCE_MS),
        listens: ready(true),
    };
    // Either side may break off; dropping both tells the other.
    let _ = splice(TokioIo::new(caller), &mut program, terms, |_, _| {}).await;
}

/// A port that a program may have.
fn number(port: &str) -> Result<u16, Fault> {
    let is_plain = port.bytes().all(|byte| byte.is_ascii_digit());
    let number = port.parse().ok().filter(|port| *port > 0 && is_plain);
    match number {
        Some(PORT) => {
            let message = format!("port {PORT} is this daemon, which is asked over HTTP");
            Err(Fault::new(Kind::BadRequest, message))
        }
        Some(port) => Ok(port),
        None => {
            let message = "the port is no number from 1 to 65535";
            Err(Fault::new(Kind::BadRequest, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_programs_are_told_from_others() {
        for (text, expected) in [
            ("1", Some(1)),
            ("08080", Some(8080)),
            ("65535", Some(65535)),
            ("65536", None),
            ("0", None),
            ("+80", None),
            ("-1", None),
            ("", None),
            ("44772", None),
            ("http", None),
        ] {
            assert_eq!(number(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn there_are_so_many_places_and_no_more() {
        let streams = Streams::default();
        let mut taken: Vec<_> = (0..PORT_STREAMS_MAX)
            .map(|_| streams.take().unwrap())
            .collect();
        assert_eq!(streams.take().unwrap_err().kind, Kind::Busy);
        taken.pop();
        assert!(streams.take().is_ok());
    }
}

//! One request into a sandbox, until its answer begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::code;
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;

use super::counted::Counted;
use super::link::{self, Deafness, Link, Upload};
use super::relay::Relay;
use super::{Way, renews};
use crate::api::Api;
use crate::api::errors::Refusal;
use crate::lifecycle::LifecycleError;

/// Between two tries to connect into a sandbox that does not listen yet.
const RETRY_FIRST: Duration = Duration::from_millis(2);
const RETRY_MAX: Duration = Duration::from_millis(50);

/// An answer that has begun, and the connection on which it goes on.
pub(super) type Begun = (Response<Incoming>, Link);

impl Api {
    /// Sends a request whose body is here, and returns when its answer begins.
    pub(in crate::api) async fn exchange_whole(
        &self,
        way: &Way,
        request: Request<Bytes>,
    ) -> Result<Response<Relay>, Refusal> {
        let moved = Arc::<AtomicU64>::default();
        let streams = &self.observe.metrics().streams;
        let bytes = streams.bytes_in.clone();
        let request = request.map(|body| Upload::whole(body, Arc::clone(&moved), bytes));
        let in_use = self.lifecycle.enter(&way.id, renews(request.headers()));
        let (response, link) = self.exchange(way, request, &moved).await?;
        let pool = self.proxy.pool.clone();
        let counted = Counted::open(streams);
        Ok(response.map(|body| Relay::new(body, link, pool, way.id.clone(), counted, in_use)))
    }

    /// Sends a request on a kept connection, or on a new one. What a kept connection did not take
    /// is sent again: its other end may have closed it in the meantime.
    pub(super) async fn exchange(
        &self,
        way: &Way,
        mut request: Request<Upload>,
        moved: &AtomicU64,
    ) -> Result<Begun, Refusal> {
        loop {
            let (link, is_new) = match self.proxy.pool.take(&way.id) {
                Some(link) => (link, false),
                None => (self.connect(way, Deafness::Borne).await?, true),
            };
            match self.in_time(&way.id, moved, link.send(request)).await? {
                Ok(begun) => return Ok(begun),
                Err(mut error) => match error.take_message().filter(|_| !is_new) {
                    Some(unsent) => request = unsent,
                    None => return Err(broke_off(way, error.error())),
                },
            }
        }
    }

    /// Waits for an answer to begin, as long as the request moves on. What a paused sandbox was
    /// asked is given up at once: nobody knows when it goes on.
    pub(super) async fn in_time<T>(
        &self,
        id: &SandboxId,
        moved: &AtomicU64,
        answer: impl Future<Output = T>,
    ) -> Result<T, Refusal> {
        let wait = self.proxy.waits.answer;
        let mut answer = std::pin::pin!(answer);
        let mut before = moved.load(Ordering::Relaxed);
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return Ok(answer),
                () = self.lifecycle.paused(id) => return Err(self.interrupted(id)),
                () = tokio::time::sleep(wait) => {}
            }
            let now = moved.load(Ordering::Relaxed);
            if now == before {
                let message = format!(
                    "the program in the sandbox began no answer within {} s",
                    wait.as_secs()
                );
                return Err(Refusal::new(504, code::BACKEND_TIMEOUT, message));
            }
            before = now;
        }
    }

    /// What becomes of a request whose sandbox was paused before its answer began.
    fn interrupted(&self, id: &SandboxId) -> Refusal {
        let message = match self.lifecycle.running(id) {
            Err(LifecycleError::NotRunning { id, standing }) => format!("sandbox {id} {standing}"),
            Err(error) => return error.into(),
            Ok(_) => format!("sandbox {id} was paused"),
        };
        let message = format!(
            "{message}: the request was given up, and what the program made of it is not known"
        );
        Refusal::new(409, code::NOT_RUNNING, message)
    }

    /// Connects into a sandbox, and waits for it to listen as long as it runs.
    pub(super) async fn connect(&self, way: &Way, deafness: Deafness) -> Result<Link, Refusal> {
        let (id, socket) = (&way.id, &way.upstream.socket);
        let wait = self.proxy.waits.connect;
        let mut pause = RETRY_FIRST;
        let tries = async {
            loop {
                match Link::open(socket, deafness).await {
                    Ok(link) => return Ok(link),
                    Err(error) if !link::may_pass(&error) => {
                        let message = format!("the sandbox cannot be reached: {error}");
                        return Err(Refusal::new(502, code::BACKEND_CONNECTION_FAILED, message));
                    }
                    Err(_) => {}
                }
                self.lifecycle.look_again(id).await;
                self.lifecycle.running(id)?;
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(RETRY_MAX);
            }
        };
        tokio::time::timeout(wait, tries).await.unwrap_or_else(|_| {
            let message = format!("the sandbox took no connection within {} s", wait.as_secs());
            Err(Refusal::new(502, code::BACKEND_CONNECTION_FAILED, message))
        })
    }
}

/// Why there is no answer.
pub(super) fn broke_off(way: &Way, error: &hyper::Error) -> Refusal {
    if error.is_user() {
        let message = "the request's body broke off";
        return Refusal::new(400, code::BAD_REQUEST, message);
    }
    let message = format!(
        "the program on port {} of the sandbox broke off: {error}",
        way.port
    );
    Refusal::new(502, code::BACKEND_RESPONSE_FAILED, message)
}

//! Plain HTTP on one connection: each request is judged by itself, as a later one may be for
//! another host than the first.

use std::cell::Cell;

use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::beginning::{self, Beginning, read_some};
use crate::call::{Call, Mode};
use crate::framing::{Body, Shape, Switch};
use crate::limits::HEAD_BYTES_MAX;
use crate::meter::Way;
use crate::relay::{End, Half, end};

/// Most fields of an answer's head.
const FIELDS_MAX: usize = 128;
/// How much of a body is read at once.
const BODY_BYTES: usize = 16 * 1024;

/// Whether the server took up the other protocol that a request asked for.
#[derive(Debug, Default)]
pub(crate) struct Switched {
    known: Cell<Option<bool>>,
    news: Notify,
}

impl Switched {
    fn tell(&self, switched: bool) {
        self.known.set(Some(switched));
        self.news.notify_one();
    }

    async fn wait(&self) -> bool {
        loop {
            if let Some(switched) = self.known.get() {
                return switched;
            }
            self.news.notified().await;
        }
    }
}

/// Carries requests, the first of which is judged already.
pub(crate) async fn carry(
    call: &Call<'_>,
    (client, server): (&TcpStream, &TcpStream),
    first: Beginning,
    mut shape: Shape,
    switched: &Switched,
) -> Result<Half, End> {
    let flow = call.flow(Way::Out);
    let Beginning {
        mut bytes,
        mut has_ended,
        ..
    } = first;
    loop {
        let rest = bytes.split_off(shape.head_bytes.min(bytes.len()));
        flow.write(server, &bytes).await?;
        bytes = rest;
        has_ended |= pass_body(call, (client, server), &mut bytes, shape.body).await?;
        if shape.switch != Switch::No && switched.wait().await {
            return opaque(call, (client, server), bytes, has_ended).await;
        }
        if has_ended && bytes.is_empty() {
            end(server);
            return Ok(Half::Ended);
        }
        let next = beginning::read(client, bytes, (None, call.patience())).await?;
        if next.is_silent() {
            end(server);
            return Ok(Half::Ended);
        }
        match call.admit(&next).await? {
            Mode::Opaque => {
                return opaque(call, (client, server), next.bytes, next.has_ended).await;
            }
            Mode::Requests(next_shape) if next_shape.switch == Switch::No => shape = next_shape,
            // What was carried until here is not known well enough to be gone on with.
            Mode::Intercepted(..) => return Err(End::Cut("http_host_late")),
            // The answers before it are not looked at, so the one to it could not be found.
            Mode::Requests(_) => return Err(End::Cut("http_upgrade_late")),
        }
        (bytes, has_ended) = (next.bytes, next.has_ended);
    }
}

/// Carries what is not looked at any more.
pub(crate) async fn opaque(
    call: &Call<'_>,
    (client, server): (&TcpStream, &TcpStream),
    bytes: Vec<u8>,
    has_ended: bool,
) -> Result<Half, End> {
    let flow = call.flow(Way::Out);
    flow.write(server, &bytes).await?;
    drop(bytes);
    if has_ended {
        end(server);
        return Ok(Half::Ended);
    }
    flow.run(client, server, None).await
}

/// Carries the body of a request, some of which may be there already; leaves what is behind it.
/// Whether the client has ended.
async fn pass_body(
    call: &Call<'_>,
    (client, server): (&TcpStream, &TcpStream),
    bytes: &mut Vec<u8>,
    mut body: Body,
) -> Result<bool, End> {
    let flow = call.flow(Way::Out);
    while !body.is_done() {
        if bytes.is_empty() && read_some(client, bytes, BODY_BYTES).await? == 0 {
            // The server sees for itself that the body is not whole.
            return Ok(true);
        }
        let passed = body.pass(bytes).map_err(|_| End::Cut("http_malformed"))?;
        let rest = bytes.split_off(passed);
        flow.write(server, bytes).await?;
        *bytes = rest;
    }
    if bytes.is_empty() {
        // A connection that waits for the next request holds no memory.
        *bytes = Vec::new();
    }
    Ok(false)
}

/// Looks for the answer to a request that asks for another protocol, and passes it on.
pub(crate) async fn look_for_switch(
    call: &Call<'_>,
    (client, server): (&TcpStream, &TcpStream),
    switch: Switch,
    switched: &Switched,
) -> Result<Half, End> {
    let flow = call.flow(Way::In);
    let mut bytes = Vec::new();
    loop {
        if read_some(server, &mut bytes, 4096).await? == 0 {
            flow.write(client, &bytes).await?;
            switched.tell(false);
            end(client);
            return Ok(Half::Ended);
        }
        while let Some((head_bytes, code)) = answer(&bytes) {
            let rest = bytes.split_off(head_bytes);
            flow.write(client, &bytes).await?;
            bytes = rest;
            let is_final = code == 101 || !(100..200).contains(&code);
            if is_final {
                let tunnels = switch == Switch::Connect && (200..300).contains(&code);
                switched.tell(code == 101 || tunnels);
                flow.write(client, &bytes).await?;
                return Ok(Half::Stopped);
            }
        }
        // BOUNDARY: outside → host. Test: an_answer_without_an_end_switches_nothing
        if bytes.len() > HEAD_BYTES_MAX {
            switched.tell(false);
            flow.write(client, &bytes).await?;
            return Ok(Half::Stopped);
        }
    }
}

/// The length of an answer's head and its code, if all of it is there. What is no answer has a code
/// that switches nothing.
fn answer(bytes: &[u8]) -> Option<(usize, u16)> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut answer = httparse::Response::new(&mut fields);
    match answer.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => Some((length, answer.code.unwrap_or(0))),
        Ok(httparse::Status::Partial) => None,
        Err(_) => Some((bytes.len(), 0)),
    }
}

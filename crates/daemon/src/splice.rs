//! Two connections made one: bytes go both ways as they come, and each way ends by itself.

use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::time::timeout;

/// Bytes of one read; both ways of an idle connection cost twice this.
const PIECE_BYTES: usize = 16 * 1024;

/// Where bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the near connection to the far one.
    Far,
    /// From the far connection to the near one.
    Near,
}

/// What holds while two connections are one.
#[derive(Debug)]
pub struct Terms<S> {
    /// How long one way may be silent once the other one has ended. Nobody can tell a caller who
    /// waits for an answer from one who went away, and the latter must not be waited for for ever.
    pub silence: Duration,
    /// Asked when the far connection has said its last and the near one has not: whether what is
    /// behind it is still there to listen.
    pub listens: S,
}

/// Passes bytes on until both ways have ended; what is moved is told to `moved`.
///
/// # Errors
/// When a connection breaks, which ends both ways at once, or one way is silent for too long after
/// the end of the other.
pub async fn splice<N, F, S>(
    near: N,
    far: F,
    terms: Terms<S>,
    moved: impl Fn(Way, usize),
) -> io::Result<()>
where
    N: AsyncRead + AsyncWrite,
    F: AsyncRead + AsyncWrite,
    S: Future<Output = bool>,
{
    let (from_near, to_near) = split(near);
    let (from_far, to_far) = split(far);
    let (pieces, moved) = (AtomicU64::new(0), &moved);
    let told = |way| {
        let pieces = &pieces;
        move |bytes| {
            pieces.fetch_add(1, Ordering::Relaxed);
            moved(way, bytes);
        }
    };
    let mut away = pin!(pump(from_near, to_far, told(Way::Far)));
    let mut back = pin!(pump(from_far, to_near, told(Way::Near)));
    tokio::select! {
        ended = &mut away => {
            ended?;
            patiently(back, &pieces, terms.silence).await
        }
        ended = &mut back => {
            ended?;
            let listens = tokio::select! {
                biased;
                ended = &mut away => return ended,
                listens = terms.listens => listens,
            };
            match listens {
                true => patiently(away, &pieces, terms.silence).await,
                false => Err(io::ErrorKind::ConnectionAborted.into()),
            }
        }
    }
}

/// Waits for one way to end, as long as it moves on.
async fn patiently(
    way: impl Future<Output = io::Result<()>>,
    pieces: &AtomicU64,
    silence: Duration,
) -> io::Result<()> {
    let mut way = pin!(way);
    loop {
        let before = pieces.load(Ordering::Relaxed);
        match timeout(silence, way.as_mut()).await {
            Ok(ended) => return ended,
            Err(_) if pieces.load(Ordering::Relaxed) == before => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(_) => {}
        }
    }
}

/// Moves bytes until there are no more, then says so.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    moved: impl Fn(usize),
) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    while let read @ 1.. = from.read(&mut piece).await? {
        to.write_all(piece.get(..read).unwrap_or_default()).await?;
        to.flush().await?;
        moved(read);
    }
    // The other side may be gone already.
    let _ = to.shutdown().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::atomic::AtomicUsize;

    use tokio::io::{DuplexStream, duplex};
    use tokio::task::JoinSet;

    use super::*;

    /// Two connections that are one, and the ends of them that are not.
    fn joined(
        tasks: &mut JoinSet<io::Result<()>>,
        silence: Duration,
        listens: bool,
    ) -> (DuplexStream, DuplexStream) {
        let (caller, near) = duplex(1000);
        let (program, far) = duplex(1000);
        let terms = Terms {
            silence,
            listens: ready(listens),
        };
        tasks.spawn(splice(near, far, terms, |_, _| {}));
        (caller, program)
    }

    async fn end(tasks: &mut JoinSet<io::Result<()>>) -> Result<(), io::ErrorKind> {
        let ended = tasks.join_next().await.unwrap().unwrap();
        ended.map_err(|error| error.kind())
    }

    #[tokio::test]
    async fn each_way_ends_by_itself() {
        let tasks = &mut JoinSet::new();
        let (mut caller, mut program) = joined(tasks, Duration::from_secs(60), true);
        let (mut heard, mut answered) = (Vec::new(), Vec::new());
        caller.write_all(b"question").await.unwrap();
        caller.shutdown().await.unwrap();
        program.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, b"question");
        let answer = vec![0xa5; 100_000];
        let (read, written) = tokio::join!(caller.read_to_end(&mut answered), async {
            program.write_all(&answer).await.unwrap();
            program.shutdown().await
        });
        assert_eq!((read.unwrap(), answered == answer), (100_000, true));
        written.unwrap();
        assert_eq!(end(tasks).await, Ok(()));
    }

    #[tokio::test]
    async fn bytes_are_counted_by_their_way() {
        let counts = [AtomicUsize::new(0), AtomicUsize::new(0)];
        let (mut caller, near) = duplex(1000);
        let (mut program, far) = duplex(1000);
        let terms = Terms {
            silence: Duration::from_secs(60),
            listens: ready(true),
        };
        caller.write_all(b"abc").await.unwrap();
        program.write_all(b"defg").await.unwrap();
        caller.shutdown().await.unwrap();
        program.shutdown().await.unwrap();
        let count = |way, bytes| {
            let at = usize::from(way == Way::Near);
            counts[at].fetch_add(bytes, Ordering::Relaxed);
        };
        splice(near, far, terms, count).await.unwrap();
        assert_eq!(counts.map(AtomicUsize::into_inner), [3, 4]);
    }

    #[tokio::test]
    async fn a_half_that_says_nothing_more_is_ended() {
        let tasks = &mut JoinSet::new();
        let (mut caller, mut program) = joined(tasks, Duration::from_millis(20), true);
        caller.shutdown().await.unwrap();
        assert_eq!(end(tasks).await, Err(io::ErrorKind::TimedOut));
        let mut rest = Vec::new();
        assert_eq!(program.read_to_end(&mut rest).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn what_breaks_or_is_gone_ends_both_ways() {
        let tasks = &mut JoinSet::new();
        let (mut caller, program) = joined(tasks, Duration::from_secs(3600), true);
        drop(program);
        caller.write_all(b"to nobody").await.unwrap();
        assert_eq!(end(tasks).await, Err(io::ErrorKind::BrokenPipe));
        let (mut caller, mut program) = joined(tasks, Duration::from_secs(3600), false);
        program.write_all(b"last words").await.unwrap();
        drop(program);
        let mut heard = Vec::new();
        caller.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, b"last words");
        assert_eq!(end(tasks).await, Err(io::ErrorKind::ConnectionAborted));
    }
}

//! Warms a sandbox up: what its first command costs more than the second is paid before anybody
//! waits for it.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// The command. Whether the image has a shell or not, the daemon has started one process then.
const COMMAND: &str = r#"{"command":":"}"#;
/// Longest time for it.
const WAIT: Duration = Duration::from_secs(30);
/// Most bytes of the answer that are taken: a few events.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Runs the command to its end, whatever comes of it.
// BOUNDARY: sandbox → host. Test: of_an_endless_answer_only_the_start_is_taken
pub(super) async fn up(socket: &Path) -> io::Result<()> {
    let run = tokio::time::timeout(WAIT, run(socket)).await;
    run.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn run(socket: &Path) -> io::Result<()> {
    let length = COMMAND.len();
    let question = format!(
        "POST /command HTTP/1.1\r\nhost: execd\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{COMMAND}"
    );
    let mut stream = UnixStream::connect(socket).await?;
    stream.write_all(question.as_bytes()).await?;
    let mut answer = Vec::new();
    stream
        .take(ANSWER_BYTES_MAX)
        .read_to_end(&mut answer)
        .await?;
    match answer.starts_with(b"HTTP/1.1 200 ") {
        true => Ok(()),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::UnixListener;

    #[tokio::test]
    async fn of_an_endless_answer_only_the_start_is_taken() {
        for (says, is_fine) in [
            (&b"HTTP/1.1 200 OK\r\n\r\n"[..], true),
            (b"HTTP/1.1 500 ", false),
        ] {
            let home = tempfile::tempdir().unwrap();
            let socket = home.path().join("s");
            let listener = UnixListener::bind(&socket).unwrap();
            let daemon = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.write_all(says).await.unwrap();
                // Until whoever has heard enough is gone.
                while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
            };
            let (answer, ()) = tokio::join!(up(&socket), daemon);
            assert_eq!(answer.is_ok(), is_fine);
        }
    }
}

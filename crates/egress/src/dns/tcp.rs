//! Questions over TCP.

use std::io;
use std::rc::Rc;

use barchan_egress::question::QUESTION_BYTES_MAX;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::app::App;
use crate::limits::{QUESTION_WAIT, QUESTIONS_PER_SECOND};
use crate::sandbox::Sandbox;

/// Answers one question after the other, until the sandbox has asked its last.
pub(crate) async fn serve(app: &Rc<App>, sandbox: &Sandbox, mut client: TcpStream) {
    // Whatever goes wrong, the sandbox sees it, and asks again.
    let _ = talk(app, sandbox, &mut client).await;
}

async fn talk(app: &Rc<App>, sandbox: &Sandbox, client: &mut TcpStream) -> io::Result<()> {
    loop {
        let Some(question) = timeout(QUESTION_WAIT, read(client)).await?? else {
            return Ok(());
        };
        let Ok(_turn) = sandbox.questions.acquire().await else {
            return Ok(());
        };
        let rate = &sandbox.question_rate;
        app.wait_for_share(rate, QUESTIONS_PER_SECOND).await;
        let Some(answer) = super::answer(app, sandbox, &question, false).await else {
            return Ok(());
        };
        let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
        let whole = [&length.to_be_bytes(), answer.as_slice()].concat();
        timeout(QUESTION_WAIT, client.write_all(&whole)).await??;
    }
}

/// A question; `None` where none comes, or a longer one than any.
async fn read(client: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    // BOUNDARY: sandbox → host. Test: a_question_over_tcp_is_answered_and_a_long_one_is_not
    let length = usize::from(client.read_u16().await?);
    if length > QUESTION_BYTES_MAX {
        return Ok(None);
    }
    let mut question = vec![0; length];
    client.read_exact(&mut question).await?;
    Ok(Some(question))
}

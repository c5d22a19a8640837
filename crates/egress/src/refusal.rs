//! How a caller that speaks plain HTTP is told that it was refused.

use barchan_egress::verdict::Said;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::beginning::read_some;
use crate::limits::{FAREWELL, FAREWELL_BYTES_MAX};
use crate::ruling::Ruling;

/// Answers a request with the reason why it goes nowhere, and hears the caller out, so that the
/// answer is not lost.
pub(crate) async fn answer(client: &mut TcpStream, said: Option<&Said>, ruling: &Ruling) {
    let text = text(said, ruling);
    let talk = async {
        client.write_all(text.as_bytes()).await?;
        client.shutdown().await?;
        let mut heard = Vec::new();
        let mut total = 0;
        while total < FAREWELL_BYTES_MAX {
            heard.clear();
            match read_some(client, &mut heard, 4096).await? {
                0 => break,
                more => total += more,
            }
        }
        std::io::Result::Ok(())
    };
    // Whoever is slower than this, or gone, does not read it.
    let _ = timeout(FAREWELL, talk).await;
}

/// The answer; all in it is of the form that our own parsers give.
fn text(said: Option<&Said>, ruling: &Ruling) -> String {
    let host = said.and_then(Said::host).map(ToString::to_string);
    let host = host.unwrap_or_else(|| "its destination".to_owned());
    let by = match &ruling.rule {
        Some(rule) => format!(", by the rule `{rule}`"),
        None => String::new(),
    };
    let body = format!(
        "The outbound policy of this sandbox refuses {host}: {reason}{by}. Ask whoever runs it for \
         a rule that allows this.\n",
        reason = ruling.reason,
    );
    format!(
        "HTTP/1.1 403 Forbidden\r\ncontent-type: text/plain; charset=utf-8\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_whole_and_says_why() {
        let text = text(None, &Ruling::refusal("name_not_pinned"));
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())));
        assert!(body.contains("name_not_pinned"));
    }
}

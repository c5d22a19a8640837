use tokio::net::UnixListener;

use super::*;

/// A daemon that says this to whoever connects, and hangs up.
async fn asked(says: Vec<u8>) -> io::Result<bool> {
    let home = tempfile::tempdir().unwrap();
    let socket = home.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    let daemon = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut question = [0; LIFE.len()];
        stream.read_exact(&mut question).await.unwrap();
        assert_eq!(question, LIFE);
        // Whoever has heard enough is gone already.
        let _ = stream.write_all(&says).await;
    };
    let (answer, ()) = tokio::join!(ask(&socket, LIFE), daemon);
    answer
}

#[tokio::test]
async fn only_an_answer_counts() {
    for (says, counts) in [
        (b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), Some(true)),
        (b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(), Some(false)),
        (
            [b"HTTP/1.1 200 OK\r\n".as_slice(), &[b'x'; 1 << 20]].concat(),
            Some(true),
        ),
        (b"HTTP/1.1 503 No\r\n\r\n".to_vec(), None),
        (vec![b'x'; 1 << 20], None),
        (b"HTTP/1.1 20".to_vec(), None),
        (Vec::new(), None),
    ] {
        let start = says.len().min(20);
        assert_eq!(
            asked(says.clone()).await.ok(),
            counts,
            "{:?}",
            &says[..start]
        );
    }
}

#[tokio::test]
async fn a_lack_of_descriptors_is_nobodys_wedge() {
    for (error, ours) in [
        (io::Error::from(Errno::MFILE), true),
        (io::Error::from(Errno::AGAIN), false),
        (io::Error::from(Errno::CONNREFUSED), false),
        (io::ErrorKind::InvalidData.into(), false),
    ] {
        assert_eq!(is_ours(&error), ours, "{error}");
    }
}

use super::*;

const TYPE: &str = "multipart/form-data; boundary=b0";

/// The parts of a body that arrives in these reads: names and contents.
pub(super) fn parts_of(
    content_type: &str,
    reads: &[&[u8]],
) -> Result<Vec<(String, Vec<u8>)>, Broken> {
    let mut parser = Parser::new(content_type)?;
    let mut parts: Vec<(String, Vec<u8>)> = Vec::new();
    let mut open = false;
    for read in reads {
        parser.feed(Bytes::copy_from_slice(read));
        while let Some(piece) = parser.next()? {
            match piece {
                Piece::Start(name) => {
                    assert!(!open, "a part began inside another");
                    open = true;
                    parts.push((name, Vec::new()));
                }
                Piece::Data(data) => {
                    assert!(open && !data.is_empty());
                    parts.last_mut().unwrap().1.extend_from_slice(&data);
                }
                Piece::End => open = false,
            }
        }
    }
    parser.finish()?;
    assert!(!open);
    Ok(parts)
}

fn part(name: &str, content: &[u8]) -> Vec<u8> {
    let head = format!("Content-Disposition: form-data; name=\"{name}\"; filename=\"f\"\r\n");
    [
        b"--b0\r\n",
        head.as_bytes(),
        b"Content-Type: x/y\r\n\r\n",
        content,
        b"\r\n",
    ]
    .concat()
}

#[test]
fn parts_come_out_whole_wherever_the_reads_end() {
    let tricky = b"\r\n--b\r\n--\r\r\n-\r\n--b1\r\n\r\n";
    let contents: [&[u8]; 4] = [b"{}", b"", tricky, b"\r\n"];
    let mut body = b"preamble\r\n".to_vec();
    for content in contents {
        body.extend(part("file", content));
    }
    body.extend(b"--b0--\r\nepilogue");
    let wanted: Vec<_> = contents
        .iter()
        .map(|it| ("file".to_owned(), it.to_vec()))
        .collect();
    assert_eq!(parts_of(TYPE, &[&body]).unwrap(), wanted);
    let single: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(parts_of(TYPE, &single).unwrap(), wanted);
    for first in 0..body.len() {
        let (one, two) = body.split_at(first);
        assert_eq!(
            parts_of(TYPE, &[one, two]).unwrap(),
            wanted,
            "cut at {first}"
        );
        for width in [2, 3, 7] {
            let (middle, rest) = two.split_at(width.min(two.len()));
            assert_eq!(parts_of(TYPE, &[one, middle, rest]).unwrap(), wanted);
        }
    }
}

#[test]
fn content_types_and_heads_are_read_as_clients_write_them() {
    for (content_type, head, name) in [
        (TYPE, "content-disposition:form-data;name=a", Some("a")),
        (
            "Multipart/Form-Data; charset=x; Boundary=\"b0\"",
            "Content-Disposition: form-data; name=a",
            Some("a"),
        ),
        (
            TYPE,
            r#"Content-Disposition: form-data; filename="x\"; name=no"; name="a b""#,
            Some("a b"),
        ),
        (
            TYPE,
            "X: y\r\nContent-Disposition: form-data; name=\"文\"",
            Some("文"),
        ),
        (TYPE, "Content-Disposition: form-data", None),
        (TYPE, "Content-Disposition: attachment; name=a", None),
        (TYPE, "Content-Type: x/y", None),
        (TYPE, "\r\nContent-Disposition: form-data; name=a", None),
        (
            "application/json",
            "Content-Disposition: form-data; name=a",
            None,
        ),
        (
            "multipart/form-data",
            "Content-Disposition: form-data; name=a",
            None,
        ),
        (
            "multipart/form-data; boundary=",
            "Content-Disposition: form-data; name=a",
            None,
        ),
    ] {
        let body = format!("--b0 \r\n{head}\r\n\r\nx\r\n--b0--");
        let found = parts_of(content_type, &[body.as_bytes()]).ok();
        let found = found
            .and_then(|parts| parts.into_iter().next())
            .map(|part| part.0);
        assert_eq!(found.as_deref(), name, "{content_type} {head}");
    }
}

#[test]
fn broken_bodies_are_refused() {
    let good = [part("a", b"x"), b"--b0--\r\n".to_vec()].concat();
    for cut in 0..good.len() - 2 {
        assert!(parts_of(TYPE, &[&good[..cut]]).is_err(), "cut at {cut}");
    }
    let endless = [b"--b0\r\nX: ".to_vec(), vec![b'x'; 20_000]].concat();
    for body in [
        &b"nothing"[..],
        b"--b0garbage\r\n\r\n",
        b"--b0\r\n\r\nx\r\n--b0--",
        &endless,
    ] {
        assert!(parts_of(TYPE, &[body]).is_err());
    }
}

#[test]
fn content_is_not_copied() {
    let mut parser = Parser::new(TYPE).unwrap();
    let body = Bytes::from([part("file", &[b'x'; 100_000]), b"--b0--".to_vec()].concat());
    parser.feed(body.clone());
    assert!(matches!(parser.next(), Ok(Some(Piece::Start(_)))));
    let Ok(Some(Piece::Data(data))) = parser.next() else {
        panic!("no data")
    };
    assert_eq!(data.len(), 100_000);
    assert!(body.as_ptr_range().contains(&data.as_ptr()));
}

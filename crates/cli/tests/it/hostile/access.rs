//! Who may ask, under which name, for which port.

use super::raw::Served;

#[tokio::test(flavor = "multi_thread")]
async fn every_spelling_of_a_port_is_one_port_or_none() {
    let served = Served::start().await;
    let own = served.create();
    for (port, endpoint, proxied) in [
        ("44772", "200", "200"),
        ("044772", "200", "200"),
        ("%34%34772", "200", "200"),
        ("0xAEE4", "422", "422"),
        ("4_4772", "422", "422"),
        ("%D9%A4", "422", "422"),
        ("99999999999999999999", "422", "422"),
        ("44772%00", "422", "422"),
        ("0", "400 DOCKER::INVALID_PORT", "400 DOCKER::INVALID_PORT"),
        ("-1", "400 DOCKER::INVALID_PORT", "400 DOCKER::INVALID_PORT"),
        (
            "65536",
            "400 DOCKER::INVALID_PORT",
            "400 DOCKER::INVALID_PORT",
        ),
    ] {
        let path = format!("/v1/sandboxes/{own}/endpoints/{port}");
        assert_eq!(served.get(&path).code(), endpoint, "{port}");
        let path = format!("/v1/sandboxes/{own}/proxy/{port}/ping");
        assert_eq!(served.get(&path).code(), proxied, "{port}");
    }
}

/// However a port or an id is spelled, the token of one sandbox opens no other.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_opens_its_own_sandbox_alone() {
    let served = Served::start().await;
    let (own, other) = (served.create(), served.create());
    let token = served.token(&own);
    let refused = "401 MISSING_OR_INVALID_SECURE_ACCESS";
    let ask = |id: &str, port: &str, token: &str| {
        let head = format!(
            "GET /v1/sandboxes/{id}/proxy/{port}/ping HTTP/1.1\r\nHost: localhost\r\n\
             X-EXECD-ACCESS-TOKEN: {token}\r\n\r\n"
        );
        served.raw(head.as_bytes()).code()
    };
    for (port, opened) in [
        ("44772", "200"),
        ("044772", "200"),
        ("+44772", "200"),
        ("%2B44772", "200"),
        ("44772%20", "200"),
        ("%2044772%09", "200"),
        ("4477%32", "200"),
        ("44772%00", "422"),
        ("44772%2F", "422"),
        ("44772@", "422"),
        ("44772:44772", "422"),
        ("44772;x", "422"),
    ] {
        assert_eq!(ask(&own, port, &token), opened, "{port}");
        assert_eq!(ask(&other, port, &token), refused, "{port}");
    }
    // A space ends the address, and what follows it is no version.
    assert_eq!(ask(&own, "44772 ", &token), "400");
    assert_eq!(ask(&other, "44772 ", &token), "400");
    for (id, port) in [
        (format!("{own}/../{other}"), "44772".to_owned()),
        (format!("{own}%2F..%2F{other}"), "44772".to_owned()),
        (own.clone(), format!("44772/../../../{other}/proxy/44772")),
        (
            format!("{own}/proxy/44772/../../{other}"),
            "44772".to_owned(),
        ),
        (format!("{own},{other}"), "44772".to_owned()),
        (format!("{other}%00{own}"), "44772".to_owned()),
    ] {
        let code = ask(&id, &port, &token);
        assert!(code.starts_with("40"), "{id} {port}: {code}");
    }
    for token in ["", &token[1..], &token.to_uppercase(), &format!("{token}0")] {
        assert_eq!(ask(&own, "44772", token), refused);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_pages_and_names_stay_out() {
    let served = Served::start().await;
    let id = served.create();
    for path in [
        "/v1/sandboxes",
        &format!("/v1/sandboxes/{id}/proxy/44772/ping"),
    ] {
        for (headers, expected) in [
            ("Host: localhost", "200"),
            ("Host: [::1]:1", "200"),
            ("Host: evil.example", "403 HOST_NOT_ALLOWED"),
            ("Host: 127.0.0.1.evil.example", "403 HOST_NOT_ALLOWED"),
            ("Host: localhost\r\nHost: evil.example", "400 BAD_REQUEST"),
            ("Host: ", "400 BAD_REQUEST"),
            (
                "Host: evil.example\r\nOrigin: http://evil.example",
                "403 HOST_NOT_ALLOWED",
            ),
        ] {
            let head = format!(
                "GET {path} HTTP/1.1\r\n{headers}\r\n{}\r\n",
                served.key_line()
            );
            assert_eq!(
                served.raw(head.as_bytes()).code(),
                expected,
                "{path} {headers}"
            );
        }
    }
    let head = format!(
        "POST /v1/sandboxes/{id}/pause HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n{}\r\n",
        served.key_line()
    );
    assert_eq!(served.raw(head.as_bytes()).code(), "403 ORIGIN_NOT_ALLOWED");
}

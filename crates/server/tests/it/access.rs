//! Who gets in, and what strangers learn.

use serde_json::json;

use crate::guest;
use crate::world::{Call, Set, World};

const NOBODY: &str = "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f";

#[tokio::test]
async fn every_route_but_two_needs_the_key() {
    let world = World::new().await;
    for path in ["/health", "/version"] {
        assert_eq!(world.bare("GET", path).send().await.status, 200, "{path}");
        assert_eq!(world.call("HEAD", path).send().await.status, 405, "{path}");
    }
    let health = world.bare("GET", "/health").send().await;
    assert_eq!(health.json(), json!({"status": "healthy"}));
    assert_eq!(
        world.bare("GET", "/version").send().await.json(),
        json!({"version": "1.1.1"})
    );
    for (method, path) in [
        ("GET", "/v1/sandboxes"),
        ("POST", "/sandboxes"),
        ("GET", "/v1/health"),
        ("GET", "/nowhere"),
        ("DELETE", "/v1/sandboxes/x"),
        ("POST", "/v1/metrics/events"),
        ("PATCH", "/sandboxes/x/metadata"),
        ("OPTIONS", "/sandboxes"),
        ("GET", "/health/"),
        ("GET", "/health/../sandboxes"),
        ("GET", "/versions"),
    ] {
        let none = world.bare(method, path).send().await;
        assert_eq!(none.code(), "401 MISSING_API_KEY", "{method} {path}");
        let wrong = world
            .bare(method, path)
            .header("open-sandbox-api-key", "x")
            .send()
            .await;
        assert_eq!(wrong.code(), "401 INVALID_API_KEY", "{method} {path}");
        assert!(!none.header("x-request-id").is_empty());
    }
    let alias = world
        .bare("GET", "/v1/sandboxes")
        .header("x-api-key", &world.key());
    assert_eq!(alias.send().await.status, 200);
}

#[tokio::test]
async fn a_key_of_the_settings_counts_and_no_file_is_made() {
    let world = World::with(&Set::settings("[server]\napi_key = \"0123456789abcdef\"\n")).await;
    assert!(!world.state_dir().join("server/api_key").exists());
    let call = world
        .bare("GET", "/sandboxes")
        .header("open-sandbox-api-key", "0123456789abcdef");
    assert_eq!(call.send().await.status, 200);
    let open = World::with(&Set::settings("[server]\napi_key = \"\"\n")).await;
    assert_eq!(open.bare("GET", "/sandboxes").send().await.status, 200);
}

#[tokio::test]
async fn the_unix_socket_knows_its_user() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new().await;
    let socket = world.unix_socket();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&socket), mode(&world.state_dir())), (0o600, 0o700));
    assert_eq!(
        Call::unix(&socket, "GET", "/v1/sandboxes")
            .send()
            .await
            .status,
        200
    );
    let id = world.sandbox().await;
    let inside = format!("/sandboxes/{id}/proxy/44772/ping");
    assert_eq!(Call::unix(&socket, "GET", &inside).send().await.status, 200);
    let endpoint = Call::unix(&socket, "GET", &format!("/sandboxes/{id}/endpoints/80"))
        .send()
        .await;
    let expected = format!("localhost/sandboxes/{id}/proxy/80");
    assert_eq!(endpoint.json()["endpoint"], expected.as_str());
}

/// Guessing is told to wait; who has the key, a token, or the operator's socket never is.
#[tokio::test]
async fn who_fails_too_often_is_told_to_wait() {
    let world = World::new().await;
    let id = world.sandbox().await;
    let (inside, socket) = (format!("/sandboxes/{id}/proxy/8080/"), world.unix_socket());
    for _ in 0..3 {
        for number in 0..60 {
            let (path, code) = match number % 3 {
                0 => (inside.as_str(), "401 MISSING_OR_INVALID_SECURE_ACCESS"),
                1 => ("/v1/sandboxes", "401 INVALID_API_KEY"),
                _ => ("/nowhere", "401 INVALID_API_KEY"),
            };
            let call = world.bare("GET", path).header("x-api-key", "guess");
            let answer = call.send().await;
            let is_limited = number >= 50;
            let code = if is_limited {
                "429 TOO_MANY_FAILURES"
            } else {
                code
            };
            assert_eq!(answer.code(), code, "{number}");
            assert_eq!(answer.header("retry-after") == "1", is_limited, "{number}");
        }
        for (call, status) in [
            (world.call("GET", "/v1/sandboxes"), 200),
            (world.inside(&id, 8080, "GET", "/").await, 200),
            (world.bare("GET", "/health"), 200),
            (Call::unix(&socket, "GET", "/v1/sandboxes"), 200),
            (
                Call::unix(&socket, "GET", "/v1/sandboxes").header("x-api-key", "guess"),
                200,
            ),
        ] {
            assert_eq!(call.send().await.status, status);
        }
        world.hand.advance(std::time::Duration::from_secs(1));
    }
}

#[tokio::test]
async fn pages_of_foreign_origins_stay_out() {
    let world = World::new().await;
    let own = format!("http://{}", world.address());
    let evil_host = world
        .call("GET", "/v1/sandboxes")
        .header("host", "evil.example")
        .send()
        .await;
    assert_eq!(evil_host.code(), "403 HOST_NOT_ALLOWED");
    for (method, origin, expected) in [
        ("POST", "http://evil.example", 403),
        ("POST", "null", 403),
        ("DELETE", "http://localhost:1", 403),
        ("POST", own.as_str(), 422),
        ("GET", "http://evil.example", 405),
    ] {
        let call = world
            .call(method, "/v1/sandboxes/x/pause")
            .header("origin", origin);
        let call = if origin == own {
            world.call(method, "/v1/sandboxes").header("origin", origin)
        } else {
            call
        };
        let answer = call.send().await;
        assert_eq!(answer.status, expected, "{method} {origin}");
        assert!(
            answer
                .headers
                .keys()
                .all(|name| !name.as_str().starts_with("access-control"))
        );
    }
    let preflight = world
        .bare("OPTIONS", "/v1/sandboxes")
        .header("origin", "http://evil.example");
    assert_eq!(preflight.send().await.status, 403);
}

/// B100: an address that looks proxied opens nothing else.
#[tokio::test]
async fn no_spelling_of_a_path_gets_around_the_key() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world
        .sandbox_with(&json!({"metadata": {"mark": "found-me"}}))
        .await;
    for path in [
        format!("/v1/sandboxes/{id}/proxy/44772/../../../sandboxes"),
        format!("/v1/sandboxes/{id}/proxy/44772/%2e%2e/%2e%2e/%2e%2e/sandboxes"),
        format!("/v1/sandboxes/{id}/proxy/44772/%252e%252e/sandboxes"),
        format!("/v1/sandboxes/{id}/proxy/44772//v1/sandboxes"),
        format!("//v1/sandboxes/{id}"),
        format!("/v1//sandboxes/{id}"),
        format!("/V1/SANDBOXES/{id}"),
        format!("/v1/sandboxes/{id}/proxy/abc/x"),
        format!("/v1/sandboxes/{id}/proxy/"),
        format!("/v1/sandboxes/{id}/proxy/99999/x"),
        "/v1/sandboxes/x/proxy/44772/../../../sandboxes".to_owned(),
        format!("/v1/sandboxes/..%2fsandboxes%2f{id}/proxy/1"),
        format!("http://elsewhere/v1/sandboxes/{id}"),
        format!("/health/../v1/sandboxes/{id}"),
        format!("/health?/v1/sandboxes/{id}"),
    ] {
        let answer = world.bare("GET", &path).send().await;
        let is_health = path.starts_with("/health?");
        let refused = matches!(answer.status, 400 | 401 | 404);
        assert!(refused || is_health, "{path}: {answer:?}");
        assert!(!answer.text().contains("found-me"), "{path}");
    }
    for (path, expected) in [
        (format!("/v1/sandboxes/{id}/proxy/abc/x"), "422"),
        (
            format!("/v1/sandboxes/{id}/proxy/0"),
            "400 DOCKER::INVALID_PORT",
        ),
        (
            format!("/v1/sandboxes/{id}/proxy/65536"),
            "400 DOCKER::INVALID_PORT",
        ),
        (
            format!("/v1/sandboxes/{NOBODY}/proxy/80"),
            "404 DOCKER::SANDBOX_NOT_FOUND",
        ),
        (
            "/v1/sandboxes/x/proxy/80".to_owned(),
            "404 DOCKER::SANDBOX_NOT_FOUND",
        ),
        (
            "/v1/sandboxes/x/proxy/0".to_owned(),
            "400 DOCKER::INVALID_PORT",
        ),
    ] {
        assert_eq!(
            world.call("GET", &path).send().await.code(),
            expected,
            "{path}"
        );
    }
}

/// A8: what no id can be names nothing, whatever it contains.
#[tokio::test]
async fn no_id_leads_out_of_the_list() {
    let world = World::new().await;
    for id in [
        "..%2F..%2Fetc",
        "%2Fetc%2Fpasswd",
        "%00",
        "a",
        &"a".repeat(10_000),
        "%F0%9F%98%80",
        NOBODY,
    ] {
        for (method, rest) in [
            ("GET", ""),
            ("DELETE", ""),
            ("POST", "/pause"),
            ("GET", "/endpoints/80"),
        ] {
            let answer = world
                .call(method, &format!("/v1/sandboxes/{id}{rest}"))
                .send()
                .await;
            assert_eq!(
                answer.code(),
                "404 DOCKER::SANDBOX_NOT_FOUND",
                "{method} {id}{rest}"
            );
            assert!(answer.body.len() < 300);
        }
    }
}

#[tokio::test]
async fn request_ids_are_echoed_or_made() {
    let world = World::new().await;
    let long = "x".repeat(500);
    for (sent, is_echoed) in [
        ("abc-123", true),
        ("Root=1-67891233:a/b.c_d+e@f~", true),
        (&long[..128], true),
        (&long[..129], false),
        (long.as_str(), false),
        ("", false),
        ("a b", false),
        ("a\"b", false),
        ("a\\nb", false),
        ("${jndi:x}", false),
        ("a%0ab", false),
        ("<b>", false),
        ("a;b", false),
        ("a,b", false),
    ] {
        let call = world
            .call("GET", &format!("/sandboxes/{NOBODY}"))
            .header("x-request-id", sent);
        let answer = call.send().await;
        let told = answer.header("x-request-id");
        assert_eq!(told == sent, is_echoed, "{sent}");
        assert!(is_echoed || (told.len() == 32 && told.bytes().all(|b| b.is_ascii_hexdigit())));
    }
}

#[tokio::test]
async fn unknown_routes_and_methods_say_so_in_both_ways() {
    let world = World::new().await;
    let nowhere = world.call("GET", "/nowhere").send().await;
    assert_eq!(nowhere.code(), "404 NOT_FOUND");
    assert_eq!(nowhere.json()["detail"], "Not Found");
    let method = world.call("PUT", "/v1/sandboxes").send().await;
    assert_eq!(method.code(), "405 METHOD_NOT_ALLOWED");
    assert_eq!(
        (method.header("allow"), &method.json()["detail"]),
        ("POST, GET", &json!("Method Not Allowed"))
    );
    let slash = world.call("POST", "/v1/sandboxes/?a=%20b").send().await;
    let expected = format!("http://{}/v1/sandboxes?a=%20b", world.address());
    assert_eq!(
        (slash.status, slash.header("location"), slash.body.len()),
        (307, expected.as_str(), 0)
    );
    for (method, path, expected) in [
        (
            "POST",
            "/v1/templates".to_owned(),
            "501 FSB::API_NOT_SUPPORTED",
        ),
        (
            "GET",
            format!("/v1/sandboxes/{NOBODY}/networkpolicy"),
            "404 DOCKER::SANDBOX_NOT_FOUND",
        ),
        (
            "GET",
            format!("/v1/sandboxes/{NOBODY}/diagnostics/events"),
            "404 DOCKER::SANDBOX_NOT_FOUND",
        ),
    ] {
        assert_eq!(
            world.call(method, &path).send().await.code(),
            expected,
            "{method} {path}"
        );
    }
    let id = world.sandbox().await;
    let policy = world
        .call("GET", &format!("/v1/sandboxes/{id}/networkpolicy"))
        .send()
        .await;
    assert_eq!(policy.code(), "502 BACKEND_CONNECTION_FAILED");
}

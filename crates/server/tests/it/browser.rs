//! Signed addresses as a browser meets them: cookies, origins, pages.

use crate::guest;
use crate::signed::{follow, signed};
use crate::world::{Answer, Set, World};

const EXPIRED: &str = "401 SIGNED_ADDRESS_EXPIRED";
const PAGE: &str = "text/html,application/xhtml+xml";

/// The first pair of the cookie that an answer sets.
fn cookie(answer: &Answer) -> String {
    let set = answer.header("set-cookie");
    set.split(';').next().unwrap().to_owned()
}

/// In a browser the address becomes a cookie, and the page's own address shows no secret.
#[tokio::test]
async fn a_browser_gets_a_cookie_for_its_address() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let address = signed(&world, &id, 8080, "").await;
    let signature = address.rsplit('/').next().unwrap();
    for (rest, place) in [
        ("/show?a=1", "/show?a=1"),
        ("", "/"),
        ("//evil.example/", "/.//evil.example/"),
    ] {
        let call = follow(&world, "GET", &format!("{address}{rest}")).header("accept", PAGE);
        let led = call.send().await;
        assert_eq!((led.status, led.header("location")), (303, place));
        assert_eq!(led.header("referrer-policy"), "no-referrer");
        assert_eq!(led.header("cache-control"), "no-store");
        let set = led.header("set-cookie");
        let attributes = set.split_once(';').unwrap().1;
        assert_eq!(attributes, " Path=/; Max-Age=60; HttpOnly; SameSite=Lax");
        assert!(
            !set.contains(signature),
            "a leaked one does not serve for the other"
        );
    }
}

/// The cookie opens its own host, and goes no further.
#[tokio::test]
async fn a_cookie_opens_its_host_until_its_time_is_over() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let address = signed(&world, &id, 8080, "").await;
    let host = address.split('/').next().unwrap();
    let signature = address.rsplit('/').next().unwrap();
    let led = follow(&world, "GET", &address)
        .header("sec-fetch-mode", "navigate")
        .header("x-forwarded-proto", "https");
    let led = led.send().await;
    assert!(led.header("set-cookie").ends_with("; Secure"), "{led:?}");
    let cookie = cookie(&led);
    let with = |method: &str, place: &str, cookie: &str| {
        follow(&world, method, &format!("{host}{place}")).header("cookie", cookie)
    };
    let both = format!("own=1; {cookie}; other=2");
    let shown = with("GET", "/show", &both)
        .header("authorization", "Basic x")
        .send()
        .await;
    assert!(
        shown.text().contains("cookie: own=1; other=2\n"),
        "{shown:?}"
    );
    assert!(
        shown.text().contains("authorization: Basic x\n"),
        "{shown:?}"
    );
    assert!(
        shown.text().contains(&format!("host: {host}\n")),
        "{shown:?}"
    );
    assert!(!shown.text().contains("barchan-port"), "{shown:?}");
    for method in ["HEAD", "OPTIONS", "PUT", "PROPFIND"] {
        assert_eq!(
            with(method, "/x", &cookie).send().await.status,
            200,
            "{method}"
        );
    }
    assert_eq!(with("TRACE", "/x", &cookie).send().await.status, 405);
    let (name, value) = cookie.split_once('=').unwrap();
    let forged = format!("{name}={}", value.replace('-', "-0"));
    let none = "401 MISSING_OR_INVALID_SECURE_ACCESS";
    for (cookie, expected) in [
        ("", none),
        (forged.as_str(), none),
        (&format!("{name}={signature}"), none),
    ] {
        assert_eq!(with("GET", "/show", cookie).send().await.code(), expected);
    }
    let neighbour = follow(&world, "GET", &host.replace("8080-", "8081-"));
    assert_eq!(
        neighbour.header("cookie", &cookie).send().await.code(),
        none
    );
    let api = world
        .bare("GET", &format!("/v1/sandboxes/{id}"))
        .header("cookie", &cookie);
    assert_eq!(api.send().await.code(), "401 MISSING_API_KEY");
    world.hand.advance(std::time::Duration::from_secs(61));
    assert_eq!(with("GET", "/show", &cookie).send().await.code(), EXPIRED);
}

/// Pages of other origins may lead to a page, and use it for nothing.
#[tokio::test]
async fn a_cookie_serves_its_own_pages_alone() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let address = signed(&world, &id, 8080, "").await;
    let led = follow(&world, "GET", &address)
        .header("accept", PAGE)
        .send()
        .await;
    let cookie = cookie(&led);
    let host = address.split('/').next().unwrap();
    let own = format!("http://{host}");
    let other = own.replace("8080-", "3000-");
    for (method, headers, status) in [
        ("GET", &[("sec-fetch-site", "same-origin")][..], 200),
        ("GET", &[("sec-fetch-site", "none")], 200),
        (
            "GET",
            &[
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", "navigate"),
            ],
            200,
        ),
        ("GET", &[("sec-fetch-site", "same-site")], 403),
        (
            "GET",
            &[
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", "no-cors"),
            ],
            403,
        ),
        ("POST", &[("origin", own.as_str())], 200),
        ("POST", &[("origin", other.as_str())], 403),
        ("OPTIONS", &[("origin", other.as_str())], 403),
        ("POST", &[("origin", "null")], 403),
    ] {
        let mut call = follow(&world, method, &format!("{host}/x")).header("cookie", &cookie);
        for (name, value) in headers {
            call = call.header(name, value);
        }
        assert_eq!(call.send().await.status, status, "{method} {headers:?}");
    }
}

/// Who follows an address in a browser reads a page; a program gets the code as always.
#[tokio::test]
async fn refusals_of_addresses_are_pages_for_people() {
    let world = World::new().await;
    let id = world.sandbox().await;
    let forged = format!("/sandboxes/{id}/signed/80/a-b-c/");
    for (host, path, code) in [
        ("localhost", forged.as_str(), "SIGNED_ADDRESS_INVALID"),
        (
            &format!("80-{id}.localhost"),
            "/",
            "MISSING_OR_INVALID_SECURE_ACCESS",
        ),
        ("80-x.localhost", "/", "NOT_FOUND"),
    ] {
        let call = || follow(&world, "GET", &format!("{host}{path}"));
        let page = call().header("accept", PAGE).send().await;
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        let policy = page.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none';"), "{policy}");
        assert!(page.text().contains(code), "{page:?}");
        assert!(call().send().await.code().contains(code), "{path}");
    }
    let api = world.bare("GET", "/v1/sandboxes").header("accept", PAGE);
    assert_eq!(api.send().await.code(), "401 MISSING_API_KEY");
}

/// The path form runs in a browser too, in an origin that it shares with nobody.
#[tokio::test]
async fn pages_of_the_path_form_are_confined_and_may_send_forms() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let address = signed(&world, &id, 8080, "&form=path").await;
    let page = follow(&world, "GET", &format!("{address}/show")).header("accept", PAGE);
    let page = page.send().await;
    assert_eq!(
        (page.status, page.header("x-content-type-options")),
        (200, "nosniff")
    );
    let policy = page.header("content-security-policy");
    assert!(
        policy.starts_with("sandbox ") && !policy.contains("same-origin"),
        "{policy}"
    );
    let form = follow(&world, "POST", &format!("{address}/show")).header("origin", "null");
    assert_eq!(form.body("a=b").send().await.status, 200);
    let moved = follow(&world, "GET", &format!("{address}/relative"))
        .send()
        .await;
    let path = address.split_once('/').unwrap().1;
    assert_eq!(moved.header("location"), format!("/{path}/login"));
    let unsigned = world.call("POST", &format!("/sandboxes/{id}/proxy/8080/show"));
    assert_eq!(unsigned.header("origin", "null").send().await.status, 403);
}

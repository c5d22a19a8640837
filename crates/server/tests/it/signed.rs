//! Signed addresses: who has one needs nothing else, until its time is over.

use barchan_wire::id::SandboxId;

use crate::guest;
use crate::world::{Call, Set, World};

/// The world's clock stands here when a test begins.
const NOW: u64 = 1_900_000_000;
const INVALID: &str = "401 SIGNED_ADDRESS_INVALID";
const EXPIRED: &str = "401 SIGNED_ADDRESS_EXPIRED";

/// An address of a port, signed for a minute; `more` is more of the query.
pub(crate) async fn signed(world: &World, id: &SandboxId, port: u16, more: &str) -> String {
    let until = NOW + 60;
    let path = format!("/v1/sandboxes/{id}/endpoints/{port}?expires={until}{more}");
    let answer = world.call("GET", &path).send().await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.json()["headers"].is_null(), "{answer:?}");
    answer.json()["endpoint"].as_str().unwrap().to_owned()
}

/// A call of an address as it was handed out, without any credential.
pub(crate) fn follow(world: &World, method: &str, address: &str) -> Call {
    let (host, path) = address.split_once('/').unwrap_or((address, ""));
    world.bare(method, &format!("/{path}")).header("host", host)
}

#[tokio::test]
async fn addresses_have_the_form_that_fits_their_caller() {
    let world = World::new().await;
    let id = world.sandbox().await;
    let at = world.address().port();
    for (query, begin) in [
        ("", format!("80-{id}.localhost:{at}/.barchan/")),
        ("&form=host", format!("80-{id}.localhost:{at}/.barchan/")),
        (
            "&form=path",
            format!("127.0.0.1:{at}/v1/sandboxes/{id}/signed/80/"),
        ),
    ] {
        let address = signed(&world, &id, 80, query).await;
        assert!(address.starts_with(&begin), "{query}: {address}");
    }
    let settings = "[server]\ndomain = \"box.example:443\"\n";
    let public = World::with(&Set::settings(settings)).await;
    let id = public.sandbox().await;
    let address = signed(&public, &id, 80, "").await;
    let begin = format!("80-{id}.box.example:443/.barchan/");
    assert!(address.starts_with(&begin), "{address}");
    let path = format!("/sandboxes/{id}/endpoints/80?form=host");
    let unsigned = public.call("GET", &path).send().await.json();
    assert_eq!(unsigned["endpoint"], format!("80-{id}.box.example:443"));
    assert!(!unsigned["headers"].is_null());
    let settings = "[server]\npublic_host = \"server.example\"\n";
    let nameless = World::with(&Set::settings(settings)).await;
    let id = nameless.sandbox().await;
    let address = signed(&nameless, &id, 80, "").await;
    let begin = format!("server.example/v1/sandboxes/{id}/signed/80/");
    assert!(address.starts_with(&begin), "{address}");
    let path = format!("/sandboxes/{id}/endpoints/80?form=host");
    let refused = nameless.call("GET", &path).send().await;
    assert_eq!(refused.code(), "400 SANDBOX::INVALID_PARAMETER");
}

#[tokio::test]
async fn an_address_opens_one_port_until_its_time_is_over() {
    let (guest, _) = guest::echo();
    let mut world = World::with(&Set::guest(guest)).await;
    let (id, other) = (world.sandbox().await, world.sandbox().await);
    for form in ["host", "path"] {
        let address = signed(&world, &id, 8080, &format!("&form={form}")).await;
        let show = format!("{address}/show?a=%2F");
        let shown = follow(&world, "POST", &show).body("b").send().await;
        let (head, body) = shown.text().split_once("\n\n").unwrap();
        assert!(head.starts_with("POST /proxy/8080/show?a=%2F\n"), "{head}");
        assert_eq!(body, "b");
        let signature = address.rsplit('/').next().unwrap();
        assert!(!head.contains(signature), "it goes no further: {head}");
        let changed = |from: &str, to: &str| show.replace(from, to);
        let flipped = match signature.as_bytes().last() {
            Some(b'0') => "1",
            _ => "0",
        };
        let cut = &signature[..signature.len() - 1];
        for bad in [
            changed("8080", "8081"),
            changed(id.as_str(), other.as_str()),
            changed(id.as_str(), "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f"),
            changed(signature, &format!("{cut}{flipped}")),
            changed(signature, &signature.to_uppercase()),
            changed(signature, "x"),
            // A byte more of its time.
            changed(signature, &format!("z{signature}")),
        ] {
            let refused = follow(&world, "GET", &bad).send().await;
            assert_eq!(refused.code(), INVALID, "{bad}");
        }
    }
    let by_path = signed(&world, &id, 8080, "&form=path").await;
    let api = follow(&world, "GET", &by_path.replace("/signed/8080", ""));
    assert_eq!(api.send().await.code(), "401 MISSING_API_KEY");
    let addresses = [
        signed(&world, &id, 8080, "&form=host").await,
        signed(&world, &id, 8080, "&form=path").await,
    ];
    world.kill().await;
    world.start().await.unwrap();
    for address in &addresses {
        let shown = follow(&world, "GET", &format!("{address}/show"));
        assert_eq!(shown.send().await.status, 200, "it outlives the server");
    }
    world.hand.advance(std::time::Duration::from_secs(61));
    for address in &addresses {
        let late = follow(&world, "GET", &format!("{address}/show"));
        assert_eq!(late.send().await.code(), EXPIRED, "{address}");
        let (name, token) = world.token(&id).await;
        let known = follow(&world, "GET", &format!("{address}/show")).header(&name, &token);
        assert_eq!(
            known.send().await.status,
            200,
            "who has the token needs no other"
        );
    }
}

/// A host of its own leads nowhere but to its program, whatever the path.
#[tokio::test]
async fn the_api_has_no_such_host() {
    let (guest, counts) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let host = format!("8080-{id}.localhost");
    let key = world.key();
    for path in [
        "/v1/sandboxes",
        "/health",
        "/sandboxes/x/proxy/80/",
        "/x/events",
        "/.barchan",
    ] {
        let bare = follow(&world, "GET", &format!("{host}{path}")).send().await;
        assert_eq!(
            bare.code(),
            "401 MISSING_OR_INVALID_SECURE_ACCESS",
            "{path}"
        );
        let call = follow(&world, "GET", &format!("{host}{path}"));
        let inside = call.header("open-sandbox-api-key", &key).send().await;
        assert_eq!((inside.status, inside.body.len()), (200, 0), "{path}");
    }
    assert!(counts.ever() > 0);
    for (host, expected) in [
        (format!("x.8080-{id}.localhost"), "404 NOT_FOUND"),
        ("8080-x.localhost".to_owned(), "404 NOT_FOUND"),
        (format!("0-{id}.localhost"), "400 DOCKER::INVALID_PORT"),
        (
            "80-0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f.localhost".to_owned(),
            "404 DOCKER::SANDBOX_NOT_FOUND",
        ),
        (format!("80-{id}.evil.example"), "403 HOST_NOT_ALLOWED"),
    ] {
        let call = follow(&world, "GET", &format!("{host}/v1/sandboxes"));
        let answer = call.header("open-sandbox-api-key", &key).send().await;
        assert_eq!(answer.code(), expected, "{host}");
    }
}

#[tokio::test]
async fn secrets_of_addresses_are_changed_by_hand() {
    let mut world = World::new().await;
    let id = world.sandbox().await;
    let address = signed(&world, &id, 8080, "&form=path").await;
    let file = world.state_dir().join("server/link_keys");
    let old = std::fs::read_to_string(&file).unwrap();
    for (secrets, expected) in [
        (format!("{}\n{old}", "5".repeat(64)), "200"),
        ("5".repeat(64), INVALID),
    ] {
        world.stop().await;
        std::fs::write(&file, secrets).unwrap();
        world.start().await.unwrap();
        let answer = follow(&world, "GET", &address).send().await;
        assert_eq!(answer.code(), expected);
    }
    world.stop().await;
    std::fs::write(&file, "short").unwrap();
    let error = world.start().await.unwrap_err().to_string();
    assert!(
        error.contains("link_keys") && !error.contains("short"),
        "{error}"
    );
}

/// Addresses that another server made are accepted when the operator names its keys, and only then.
#[tokio::test]
async fn addresses_of_osep_0011_open_what_they_name() {
    let settings = "[proxy]\nosep_keys = [\"a=c2VjcmV0LWtleS0x\"]\n";
    for (settings, is_known) in [(settings, true), ("", false)] {
        let (guest, _) = guest::echo();
        let world = World::with(&Set {
            settings,
            ..Set::guest(guest)
        })
        .await;
        let id = world.sandbox().await;
        let (moment, until) = ("x2qxvk", 2_000_000_000);
        let signature = osep(id.as_str(), 8080, moment);
        let by_path = format!("127.0.0.1/{id}/8080/{moment}/{signature}/show");
        let by_host = format!("{id}-8080-{moment}-{signature}.localhost/show");
        for address in [&by_path, &by_host] {
            let answer = follow(&world, "GET", address).send().await;
            let expected = if is_known { 200 } else { 401 };
            assert_eq!(answer.status, expected, "{address}");
            let bad = address.replace(&signature, "00000000a");
            assert_eq!(
                follow(&world, "GET", &bad).send().await.status,
                401,
                "{bad}"
            );
        }
        world
            .hand
            .set_wall(jiff::Timestamp::from_second(until + 1).unwrap());
        let late = follow(&world, "GET", &by_path).send().await;
        let expected = if is_known {
            EXPIRED
        } else {
            "401 MISSING_API_KEY"
        };
        assert_eq!(late.code(), expected);
    }
}

#[tokio::test]
async fn keys_of_osep_0011_change_with_the_settings() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let signature = osep(id.as_str(), 8080, "x2qxvk");
    let address = format!("127.0.0.1/{id}/8080/x2qxvk/{signature}/show");
    let key = "[proxy]\nosep_keys = [\"a=c2VjcmV0LWtleS0x\"]\n";
    let other = "[proxy]\nosep_keys = [\"a=c2VjcmV0LWtleS0y\"]\n";
    for (settings, expected) in [("", 401), (key, 200), (other, 401), (key, 200), ("", 401)] {
        world.write(settings);
        let reloaded = world.call("POST", "/x/reload").send().await;
        let is_told = reloaded.text().contains("proxy.osep_keys");
        assert!(is_told || reloaded.json()["revision"] == 1, "{reloaded:?}");
        assert!(!reloaded.text().contains("c2Vj"), "{reloaded:?}");
        let answer = follow(&world, "GET", &address).send().await;
        assert_eq!(answer.status, expected, "{settings}");
    }
}

/// A signature as OSEP-0011 describes it, with the key of the test above.
fn osep(id: &str, port: u16, moment: &str) -> String {
    use sha2::{Digest, Sha256};
    let key = b"secret-key-1";
    let text = format!("v1\nshort\n{id}\n{port}\n{moment}\n");
    let mut hash = Sha256::new();
    for part in [&key[..], text.as_bytes()] {
        hash.update(u32::try_from(part.len()).unwrap().to_be_bytes());
        hash.update(part);
    }
    format!("{}a", &hex::encode(hash.finalize())[..8])
}

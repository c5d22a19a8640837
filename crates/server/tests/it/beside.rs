//! A key that comes along with a credential of the sandbox itself.

use std::time::Duration;

use barchan_server::audit::{Line, Reader, folder};
use barchan_wire::id::SandboxId;
use serde_json::json;

use crate::guest;
use crate::world::{Call, Set, World};

const KEY: &str = "open-sandbox-api-key";
const SETTINGS: &str = "[audit]\nproxied = true\n[access]\ntenant_rate_per_s = 1\n\
                        tenant_burst = 2\nadmin_rate_per_s = 1\nadmin_burst = 40\n";

/// The path of an address that is signed for an hour.
async fn signed(world: &World, id: &SandboxId) -> String {
    let path = format!("/v1/sandboxes/{id}/endpoints/8080?expires=1900003600&form=path");
    let address = world.call("GET", &path).send().await.json()["endpoint"].clone();
    let address = address.as_str().unwrap();
    format!("{}/show", &address[address.find('/').unwrap()..])
}

/// Who sent the requests into sandboxes that were noted, as the log says when the server stopped.
async fn senders(world: &mut World) -> Vec<String> {
    world.stop().await;
    let mut reader = Reader::open(&folder(&world.state_dir())).unwrap();
    let lines = std::iter::from_fn(|| reader.next_line().unwrap());
    let inside = lines.filter(|line| line.operation == "sandbox.proxy");
    let sender = |line: Line| match line.actor.tenant {
        Some(tenant) => format!("{} of {tenant}", line.actor.kind),
        None => line.actor.kind,
    };
    inside.map(sender).collect()
}

/// A key opens nothing more where a token or a signature does, but it says who asks: its rate holds
/// and the log names it. Without a key both are nobody's.
#[tokio::test]
async fn it_is_paced_and_named() {
    let set = Set {
        settings: SETTINGS,
        ..Set::guest(guest::echo().0)
    };
    let mut world = World::with(&set).await;
    let keys = [
        world.tenant("a", &json!({})).await,
        world.tenant("b", &json!({})).await,
    ];
    let id = world.sandbox_of(&keys[0]).await;
    let token = world.token(&id).await.1;
    let signed = signed(&world, &id).await;
    let path = format!("/v1/sandboxes/{id}/proxy/8080/show");
    let mut expected = Vec::new();
    for (path, header, kind) in [
        (&path, "x-execd-access-token", "token"),
        (&path, "opensandbox-secure-access", "token"),
        (&signed, "x-of-nothing", "signature"),
    ] {
        let call = || world.bare("POST", path).header(header, &token);
        for (key, tenant) in keys.iter().zip(["a", "b"]) {
            world.hand.advance(Duration::from_secs(60));
            for wanted in ["200", "200", "429 RATE_LIMITED"] {
                let answer = call().header(KEY, key).send().await;
                assert_eq!(answer.code(), wanted, "{kind} beside {tenant}");
            }
            expected.extend([format!("key of {tenant}"), format!("key of {tenant}")]);
            assert_eq!(call().send().await.code(), "200", "nobody's");
            expected.push(kind.to_owned());
        }
        assert_eq!(call().header(KEY, &world.key()).send().await.code(), "200");
        expected.push("settings_key".to_owned());
        let unknown = call().header(KEY, "guess").send().await;
        assert_eq!(
            unknown.code(),
            "200",
            "a key that is none takes nothing away"
        );
        expected.push(kind.to_owned());
    }
    assert_eq!(senders(&mut world).await, expected);
}

/// The socket has no rate, and the settings' key is nothing there that the kernel does not say.
#[tokio::test]
async fn the_socket_has_no_rate_on_the_way_inside() {
    const STRICT: &str =
        "[audit]\nproxied = true\n[access]\nadmin_rate_per_s = 1\nadmin_burst = 9\n";
    let set = Set {
        settings: STRICT,
        ..Set::guest(guest::echo().0)
    };
    let mut world = World::with(&set).await;
    let id = world.sandbox().await;
    let signed = signed(&world, &id).await;
    for path in [format!("/v1/sandboxes/{id}/proxy/8080/show"), signed] {
        for number in 0..12 {
            let call = Call::unix(&world.unix_socket(), "POST", &path);
            let answer = call.header(KEY, &world.key()).send().await;
            assert_eq!(answer.code(), "200", "{number} {path}");
        }
    }
    let senders = senders(&mut world).await;
    assert_eq!(senders, [["socket"; 12], ["signature"; 12]].concat());
}

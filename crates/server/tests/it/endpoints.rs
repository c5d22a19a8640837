//! Where ports of sandboxes are reached, and by whom.

use crate::guest;
use crate::world::{Set, World};

const NOBODY: &str = "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f";

#[tokio::test]
async fn endpoints_lead_back_to_this_server() {
    let world = World::new().await;
    let id = world.sandbox().await;
    let host = world.address();
    for (path, expected) in [
        (
            format!("/v1/sandboxes/{id}/endpoints/44772"),
            format!("{host}/v1/sandboxes/{id}/proxy/44772"),
        ),
        (
            format!("/sandboxes/{id}/endpoints/18080"),
            format!("{host}/sandboxes/{id}/proxy/18080"),
        ),
        (
            format!("/sandboxes/{id}/endpoints/08080?use_server_proxy=YES"),
            format!("{host}/sandboxes/{id}/proxy/8080"),
        ),
        (
            format!("/sandboxes/{id}/endpoints/80?use_server_proxy=false"),
            format!("{host}/sandboxes/{id}/proxy/80"),
        ),
    ] {
        let answer = world.call("GET", &path).send().await;
        assert_eq!(answer.json()["endpoint"], expected.as_str(), "{path}");
        let header = match path.contains("18080") {
            true => "OPENSANDBOX-EGRESS-AUTH",
            false => "X-EXECD-ACCESS-TOKEN",
        };
        let token = answer.json()["headers"][header].clone();
        assert_eq!(token.as_str().unwrap().len(), 64, "{path}");
    }
    let public = World::with(&Set::settings(
        "[server]\npublic_host = \"box.example:443\"\n",
    ))
    .await;
    let id = public.sandbox().await;
    let answer = public
        .call("GET", &format!("/v1/sandboxes/{id}/endpoints/80"))
        .send()
        .await;
    assert_eq!(
        answer.json()["endpoint"],
        format!("box.example:443/v1/sandboxes/{id}/proxy/80")
    );
}

#[tokio::test]
async fn endpoints_that_make_no_sense_are_refused() {
    let world = World::new().await;
    let id = world.sandbox().await;
    for (path, expected) in [
        (
            format!("/sandboxes/{id}/endpoints/80?expires=1899999999"),
            "400 SANDBOX::INVALID_PARAMETER",
        ),
        (format!("/sandboxes/{id}/endpoints/80?expires=-1"), "422"),
        (
            format!("/sandboxes/{id}/endpoints/80?form=other"),
            "400 SANDBOX::INVALID_PARAMETER",
        ),
        (
            format!("/sandboxes/{id}/endpoints/80?expires=9999999999&use_server_proxy=1"),
            "400 SANDBOX::INVALID_PARAMETER",
        ),
        (
            format!("/sandboxes/{id}/endpoints/80?use_server_proxy="),
            "422",
        ),
        (format!("/sandboxes/{id}/endpoints/80?expires="), "422"),
        (format!("/sandboxes/{id}/endpoints/http"), "422"),
        (
            format!("/sandboxes/{id}/endpoints/0"),
            "400 DOCKER::INVALID_PORT",
        ),
        (
            format!("/sandboxes/{NOBODY}/endpoints/70000"),
            "400 DOCKER::INVALID_PORT",
        ),
        (
            format!("/sandboxes/{NOBODY}/endpoints/80"),
            "404 DOCKER::SANDBOX_NOT_FOUND",
        ),
    ] {
        assert_eq!(
            world.call("GET", &path).send().await.code(),
            expected,
            "{path}"
        );
    }
}

/// A9: a token opens its own sandbox's ports and nothing else, and dies with it.
#[tokio::test]
async fn a_token_opens_one_sandbox_only() {
    let (guest, _) = guest::echo();
    let mut world = World::with(&Set::guest(guest)).await;
    let (mine, other) = (world.sandbox().await, world.sandbox().await);
    let (name, token) = world.token(&mine).await;
    let with_token = |path: String| world.bare("GET", &path).header(&name, &token);
    let port = |id| format!("/v1/sandboxes/{id}/proxy/8080/show");
    assert_eq!(with_token(port(&mine)).send().await.status, 200);
    let refused = "401 MISSING_OR_INVALID_SECURE_ACCESS";
    assert_eq!(with_token(port(&other)).send().await.code(), refused);
    assert_eq!(world.bare("GET", &port(&mine)).send().await.code(), refused);
    assert_eq!(
        with_token(format!("/v1/sandboxes/{mine}"))
            .send()
            .await
            .status,
        401
    );
    let shown = with_token(port(&mine)).send().await;
    assert!(
        !shown.text().contains(&token),
        "it goes no further: {shown:?}"
    );
    let keyed = world
        .call("GET", &port(&mine))
        .header("authorization", "Bearer b")
        .send()
        .await;
    assert!(!keyed.text().contains(&world.key()) && !keyed.text().contains("Bearer"));
    world.kill().await;
    world.start().await.unwrap();
    assert_eq!(world.token(&mine).await.1, token, "it outlives the server");
    let with_token = |path: String| world.bare("GET", &path).header(&name, &token);
    world
        .call("DELETE", &format!("/v1/sandboxes/{mine}"))
        .send()
        .await;
    assert_eq!(
        with_token(port(&mine)).send().await.code(),
        "404 DOCKER::SANDBOX_NOT_FOUND"
    );
}

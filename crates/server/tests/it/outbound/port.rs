//! Where a policy is read and changed, and by whom.

use barchan_runtime::EndReason;
use serde_json::json;

use super::{at_port, guarded, is_told, policy};

#[tokio::test]
async fn the_port_is_opened_by_its_own_token_and_never_leads_inside() {
    let (world, program) = guarded("").await;
    let key = world.tenant("a", &json!({})).await;
    let other = world.tenant("b", &json!({})).await;
    let id = world.sandbox_of(&key).await;
    let (name, inside) = world.token(&id).await;
    let path = format!("/v1/sandboxes/{id}/proxy/18080");
    let refused = world.bare("GET", &format!("{path}/policy")).send().await;
    assert_eq!((refused.status, refused.text()), (401, "unauthorized"));
    assert!(
        refused.header("content-type").starts_with("text/plain"),
        "{refused:?}"
    );
    let endpoint = format!("/v1/sandboxes/{id}/endpoints/18080?expires=1900000060");
    let signed = world.call("GET", &endpoint).send().await;
    assert_eq!(signed.code(), "400 SANDBOX::INVALID_PARAMETER");
    let ours = "open-sandbox-api-key";
    for (header, value, rest, expected) in [
        (name.as_str(), inside.as_str(), "/policy", 401),
        ("opensandbox-egress-auth", inside.as_str(), "/policy", 401),
        ("opensandbox-egress-auth", "", "/policy", 401),
        (ours, "guessed", "/policy", 401),
        (ours, key.as_str(), "/policy", 200),
        (ours, key.as_str(), "/healthz", 200),
        (ours, other.as_str(), "/policy", 404),
        (ours, key.as_str(), "/../../settings", 404),
        (ours, key.as_str(), "/%2e%2e/%2e%2e/settings", 404),
        (ours, key.as_str(), "/credential-vault", 412),
        (ours, key.as_str(), "/credential-vault/credentials/a", 412),
        (ours, key.as_str(), "/credential-vault/_active", 403),
        (ours, "guessed", "/credential-vault/_active", 403),
    ] {
        let call = world
            .bare("GET", &format!("{path}{rest}"))
            .header(header, value);
        let answer = call.send().await;
        assert_eq!(answer.status, expected, "{header} {rest}: {answer:?}");
    }
    let open = at_port(&world, &id, "GET", "/policy").await.send().await;
    assert_eq!(open.status, 200, "{open:?}");
    let large = at_port(&world, &id, "PUT", "/policy").await;
    assert_eq!(
        large.body(vec![b' '; (1 << 20) + 1]).send().await.status,
        413
    );
    let other_id = world.sandbox_of(&other).await;
    let mixed = at_port(&world, &id, "GET", "/policy").await;
    let token = mixed.token("opensandbox-egress-auth");
    let foreign = format!("/v1/sandboxes/{other_id}/proxy/18080/policy");
    let foreign = world
        .bare("GET", &foreign)
        .header("opensandbox-egress-auth", &token);
    assert_eq!(foreign.send().await.status, 401);
    let requests = program.known().requests.join(" ");
    assert!(
        !requests.contains("..") && !requests.contains("%2e"),
        "{requests}"
    );
}

#[tokio::test]
async fn the_routes_of_this_api_are_the_same() {
    let (world, program) = guarded("").await;
    let id = world.sandbox().await;
    let path = format!("/v1/sandboxes/{id}/networkpolicy");
    for (method, body, expected) in [
        ("PUT", policy(&["a.example"]), "200"),
        (
            "PATCH",
            json!([{"action": "allow", "target": "b.example"}]),
            "200",
        ),
        ("DELETE", json!(["a.example"]), "200"),
        ("PUT", policy(&["bad"]), "400 SANDBOX::INVALID_PARAMETER"),
        ("PUT", json!([]), "422"),
        ("PATCH", json!([]), "422"),
        ("DELETE", json!([1]), "422"),
    ] {
        let answer = world.call(method, &path).json(&body).send().await;
        assert_eq!(answer.code(), expected, "{method} {body}");
    }
    assert!(is_told(&program, &id, &["b.example"], 4));
    let now = world.call("GET", &path).send().await.json();
    assert_eq!(now["policy"]["egress"][0]["target"], "b.example");
    world.fake.end(&id, EndReason::Exit(0));
    world.await_state(&id, "Terminated").await;
    let ended = world.call("GET", &path).send().await;
    assert_eq!(ended.code(), "409 DOCKER::SANDBOX_NOT_RUNNING");
}

#[tokio::test]
async fn connections_are_told_as_json_and_nothing_else() {
    let (world, _program) = guarded("").await;
    let id = world.sandbox().await;
    let path = format!("/x/sandboxes/{id}/connections");
    let answer = world.call("GET", &path).send().await;
    assert_eq!(
        answer.json()["connections"][0]["verdict"],
        "deny",
        "{answer:?}"
    );
    assert!(!answer.text().contains('\u{1b}'), "{answer:?}");
}

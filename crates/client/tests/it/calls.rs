//! Calls that ask once and are answered once.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Json, Router};
use barchan_client::{Client, ClientError, Filter, Limits, Target};
use barchan_wire::lifecycle::approval::{ApprovalState, Decide, Word};
use barchan_wire::lifecycle::{CreateSandbox, Image, State, Time};
use serde_json::{Value, json};

use crate::server::{KEY, Served, id, pieces, serve};

/// A server that answers everything alike, after checking how it was asked.
fn answering(method: &'static str, path: &'static str, status: u16, body: Value) -> Served {
    let answer = move |request: Request| async move {
        assert_eq!(request.headers().get("open-sandbox-api-key").unwrap(), KEY);
        assert_eq!(request.headers().get("host").unwrap(), "localhost");
        let uri = request.uri().path_and_query().unwrap().to_string();
        assert_eq!((request.method().as_str(), uri.as_str()), (method, path));
        (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
    };
    serve(Router::new().fallback(any(answer)))
}

fn a_sandbox() -> Value {
    json!({
        "id": id().to_string(),
        "status": {"state": "Running"},
        "createdAt": "2030-01-01T00:00:00Z",
        "entrypoint": ["tail", "-f", "/dev/null"],
    })
}

const HERE: &str = "/v1/sandboxes/0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f";

#[tokio::test]
async fn a_sandbox_is_created_and_looked_at() {
    let request = CreateSandbox {
        image: Some(Image::new("host")),
        ..CreateSandbox::default()
    };
    let served = answering("POST", "/v1/sandboxes", 202, a_sandbox());
    assert_eq!(served.client.create(&request).await.unwrap().id, id());

    let served = answering("GET", HERE, 200, a_sandbox());
    assert_eq!(
        served.client.get(&id()).await.unwrap().status.state,
        State::Running
    );
}

#[tokio::test]
async fn verbs_without_an_answer_succeed_on_an_empty_body() {
    let served = serve(Router::new().fallback(any(|| async { StatusCode::ACCEPTED })));
    let client = &served.client;
    client.pause(&id()).await.unwrap();
    client.pause_to_disk(&id()).await.unwrap();
    client.resume(&id()).await.unwrap();
    client.delete(&id()).await.unwrap();
    client.health().await.unwrap();
    client.sandbox(&id()).ping().await.unwrap();
    client.sandbox(&id()).interrupt("c1").await.unwrap();
}

#[tokio::test]
async fn renewing_answers_what_the_server_noted() {
    let path = "/v1/sandboxes/0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f/renew-expiration";
    let noted = "2030-01-01T00:10:00Z";
    let served = answering("POST", path, 200, json!({"expiresAt": noted}));
    let until = Time::read(&json!("2030-01-01T00:10:00.5Z")).unwrap();
    assert_eq!(
        served.client.renew(&id(), until).await.unwrap().to_string(),
        noted
    );
}

#[tokio::test]
async fn a_list_is_read_to_its_last_page() {
    let routes = any(|request: Request| async move {
        let last = request.uri().query().unwrap().starts_with("page=3&");
        let page = json!({
            "items": [a_sandbox(), a_sandbox()],
            "pagination": {"page": 1, "pageSize": 2, "totalItems": 6, "totalPages": 3,
                           "hasNextPage": !last},
        });
        Json(page)
    });
    let served = serve(Router::new().fallback(routes));
    assert_eq!(
        served.client.list(&Filter::default()).await.unwrap().len(),
        6
    );
}

#[tokio::test]
async fn a_refusal_keeps_status_code_and_message() {
    let body = json!({"code": "DOCKER::SANDBOX_NOT_FOUND", "message": "no sandbox 0b0e"});
    let served = answering("GET", HERE, 404, body);
    let Err(ClientError::Api(error)) = served.client.get(&id()).await else {
        panic!()
    };
    assert_eq!(
        (error.status, error.code.as_str()),
        (404, "DOCKER::SANDBOX_NOT_FOUND")
    );
    assert_eq!(error.message, "no sandbox 0b0e");
}

#[tokio::test]
async fn an_answer_that_is_not_the_apis_is_named_so() {
    for body in [json!({"id": 7}), json!([])] {
        let served = answering("GET", HERE, 200, body);
        let error = served.client.get(&id()).await.unwrap_err();
        assert!(matches!(error, ClientError::Protocol(_)), "{error}");
    }
}

#[tokio::test]
async fn an_endless_answer_is_refused() {
    async fn endless() -> Response {
        pieces(vec![vec![b' '; 1024 * 1024]; 64])
    }
    let served = serve(Router::new().fallback(any(endless)));
    let error = served.client.get(&id()).await.unwrap_err();
    assert!(matches!(error, ClientError::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn nobody_there_is_told_with_the_address() {
    let folder = tempfile::TempDir::new().unwrap();
    let target = Target::Unix(folder.path().join("none"));
    let client = Client::new(target, None, Limits::default()).unwrap();
    let error = client.health().await.unwrap_err();
    assert!(matches!(error, ClientError::Connect { .. }), "{error:?}");
    assert!(error.to_string().contains("/none"), "{error}");
}

#[tokio::test]
async fn connections_and_approvals_are_asked_for() {
    let path = "/x/sandboxes/0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f/connections";
    let list = json!({"connections": [], "forgotten": 7});
    let served = answering("GET", path, 200, list);
    assert_eq!(served.client.connections(&id()).await.unwrap().forgotten, 7);

    let approval = json!({
        "id": "a/b", "kind": "egress", "subject": "a.example", "state": "approved",
        "askedAt": "2030-01-01T00:00:00Z", "deadline": "2030-01-01T00:02:00Z", "default": "reject",
    });
    let path = "/x/approvals?state=pending&state=expired";
    let served = answering("GET", path, 200, json!({"items": [approval]}));
    let states = [ApprovalState::Pending, ApprovalState::Expired];
    assert_eq!(served.client.approvals(&states).await.unwrap().len(), 1);

    let served = answering("POST", "/x/approvals/a%2Fb/approve", 200, approval);
    let said = Decide::default();
    let decided = served.client.decide("a/b", Word::Approve, &said);
    assert_eq!(decided.await.unwrap().state, ApprovalState::Approved);
}

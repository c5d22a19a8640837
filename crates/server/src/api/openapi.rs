//! This API described in OpenAPI 3.1, made of the table of routes: what is served is what is told.

mod operations;

use std::sync::LazyLock;

use bytes::Bytes;
use http::Response;
use serde_json::{Map, Value, json};

use super::reply::{self, Body};
use super::routes;
use operations::{Described, Parameter, Says, described};

/// The version of the contract that this API keeps, as OpenSandbox counts them.
const CONTRACT_VERSION: &str = "0.1.0";
/// The shapes of requests and answers, by their names.
const SCHEMAS: &str = include_str!("openapi/schemas.json");

static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| document().to_string().into());

/// The description as it is served.
pub(super) fn answer() -> Response<Body> {
    reply::raw_json(200, DOCUMENT.clone())
}

fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in routes::all() {
        let entry = paths.entry(route.path.clone()).or_insert(json!({}));
        entry[route.method.as_str().to_ascii_lowercase()] = operation(&route);
    }
    let key = |name: &str| json!({"type": "apiKey", "in": "header", "name": name});
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Barchan",
            "version": CONTRACT_VERSION,
            "description": "Sandboxes for AI agents. What begins with /v1 is served without it as \
                            well; what begins with /x is Barchan's own.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": {"key": key("OPEN-SANDBOX-API-KEY")},
        },
    })
}

fn schemas() -> Value {
    serde_json::from_str(SCHEMAS).unwrap_or_default()
}

fn operation(route: &routes::Told) -> Value {
    let told = described(route.operation);
    let parameters: Vec<Value> = (route.names.iter().map(|name| path_parameter(name)))
        .chain(told.query.iter().map(query_parameter))
        .collect();
    let mut operation = json!({
        "operationId": format!("{} {}", route.method, route.path),
        "summary": told.summary,
        "parameters": parameters,
        "responses": responses(route, &told),
    });
    if let Some(body) = told.body {
        operation["requestBody"] = json!({
            "required": body.is_required,
            "content": {body.kind: {"schema": reference(body.schema)}},
        });
    }
    if !route.is_open {
        operation["security"] = json!([{"key": []}]);
    }
    operation
}

fn path_parameter(name: &str) -> Value {
    let schema = match name {
        "port" => json!({"type": "integer", "minimum": 1, "maximum": 65535}),
        _ => json!({"type": "string"}),
    };
    json!({"name": name, "in": "path", "required": true, "schema": schema})
}

fn query_parameter(parameter: &Parameter) -> Value {
    let Parameter { name, schema } = parameter;
    json!({"name": name, "in": "query", "schema": reference(schema)})
}

fn responses(route: &routes::Told, told: &Described) -> Value {
    let mut responses = Map::new();
    let (status, says) = told.answer;
    let content = match says {
        Says::Nothing => json!({}),
        Says::Json(schema) => json!({"application/json": {"schema": reference(schema)}}),
        Says::Text(kind) => json!({kind: {"schema": {"type": "string"}}}),
        Says::Lines(schema, other) => json!({
            "application/x-ndjson": {"schema": reference(schema)},
            other: {"schema": {"type": "string"}},
        }),
        Says::JsonOrText(schema) => json!({
            "application/json": {"schema": reference(schema)},
            "text/plain": {"schema": {"type": "string"}},
        }),
    };
    responses.insert(
        status.to_string(),
        json!({"description": told.summary, "content": content}),
    );
    for status in refusals(route, told) {
        responses.insert(status.to_string(), refusal(status));
    }
    Value::Object(responses)
}

/// The statuses with which a request may be refused.
fn refusals(route: &routes::Told, told: &Described) -> Vec<u16> {
    // A head with two readings; a foreign host or page, or a switch of the operator's.
    let mut statuses = vec![400, 403];
    if !route.is_open {
        statuses.extend([401, 429]);
    }
    if !route.names.is_empty() {
        statuses.push(404);
    }
    if told.body.is_some() {
        statuses.extend([408, 413, 422]);
    }
    if !told.query.is_empty() {
        statuses.push(422);
    }
    statuses.extend(told.refusals);
    statuses
}

fn refusal(status: u16) -> Value {
    let (schema, words) = match status {
        400 => ("Error", "Not acceptable."),
        401 => ("Error", "No key, or a wrong one."),
        403 => ("Error", "Not allowed, or switched off."),
        404 => ("Error", "There is none."),
        408 => ("Error", "The body came too slowly."),
        409 => ("Error", "Not in this state."),
        413 => ("Error", "The body is too large."),
        422 => ("Invalid", "Malformed."),
        429 => ("Error", "Too much at present."),
        501 => ("Error", "Not offered by this server."),
        503 => ("Error", "Not at present."),
        _ => (
            "Error",
            "The server's or its host's fault; the code says which.",
        ),
    };
    let mut refusal = json!({
        "description": words,
        "content": {"application/json": {"schema": reference(schema)}},
    });
    if matches!(status, 429 | 503) {
        refusal["headers"] = json!({
            "Retry-After": {"schema": {"type": "integer", "minimum": 1}, "required": true},
        });
    }
    refusal
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(object) => {
                for (name, value) in object {
                    match (name.as_str(), value.as_str()) {
                        ("$ref", Some(target)) => {
                            found.insert(target.to_owned());
                        }
                        _ => references(value, found),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn every_shape_is_there_and_used() {
        let mut named = BTreeSet::new();
        references(&document(), &mut named);
        let there: BTreeSet<String> = (schemas().as_object().unwrap().keys())
            .map(|name| format!("#/components/schemas/{name}"))
            .collect();
        assert_eq!(named, there);
    }

    #[test]
    fn every_operation_is_told_of() {
        let document = document();
        for route in routes::all() {
            let told = &document["paths"][&route.path];
            let method = route.method.as_str().to_ascii_lowercase();
            assert!(
                told[&method]["responses"].is_object(),
                "{method} {}",
                route.path
            );
        }
    }
}

//! Stories of tools over plain HTTP: calling them, and the OpenAPI document made of the catalog.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that trips has failed"
)]

#[path = "stories/crib.rs"]
#[allow(dead_code, reason = "shared with the other test files")]
mod crib;

use axum::{
    Router,
    http::{StatusCode, header},
};
use crib::{ADMIN, Crib, USER, answer, ask, crib, json, request, text};
use toolcrib_rest::tools_router;

async fn router() -> Router {
    tools_router(crib().await.desk)
}

const CALL: &str = "POST /api/call";

#[tokio::test]
async fn a_result_reaches_the_caller_byte_for_byte() {
    let router = router().await;
    let arguments = r#"{"n":1, "big" : 123456789012345678901234567890, "x":{"é":1.50}}"#;
    for body in [
        format!(r#"{{"server":"s","tool":"echo","args":{arguments}}}"#),
        format!(r#"{{"tool":"s:echo","arguments":{arguments}}}"#),
        format!(r#"{{"args":{arguments},"tool":"s__echo"}}"#),
    ] {
        let (status, result) = ask(&router, CALL, Some(USER), Some(&body)).await;
        assert_eq!((status, result.as_str()), (StatusCode::OK, arguments));
    }
    let (_, result) = ask(&router, "POST /api/tools/s/echo", Some(USER), Some(arguments)).await;
    assert_eq!(result, arguments);
    let (status, result) = ask(&router, "POST /api/tools/s/echo", Some(USER), None).await;
    assert_eq!((status, result.as_str()), (StatusCode::OK, "{}"), "no body, no arguments");
    let (status, _) = ask(&router, "POST /api/tools/s/odd%20name%2F%7Bx%7D", Some(USER), None).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn a_tool_that_fails_is_an_answer_and_a_refusal_is_not() {
    let router = router().await;
    let (status, _) = ask(&router, CALL, Some(USER), Some(r#"{"tool":"s:fail"}"#)).await;
    assert_eq!(status, StatusCode::OK);
    for (body, status, kind) in [
        (r#"{"server":"s","tool":"secret"}"#, 404, "unknown"),
        (r#"{"server":"x","tool":"echo"}"#, 404, "unknown"),
        (r#"{"tool":"s:echo","args":{"n":"no number"}}"#, 422, "invalid_arguments"),
        (r#"{"tool":"s:echo","args":[1]}"#, 422, "invalid_arguments"),
        (r#"{"tool":"s:echo","args":{},"arguments":{}}"#, 400, "bad_request"),
        (r#"{"tool":"s:echo","arg":{}}"#, 400, "bad_request"),
        (r#"{"tool":"a","tool":"b"}"#, 400, "bad_request"),
        (r#"{"tool":1}"#, 400, "bad_request"),
        (r#"{"server":"s"}"#, 400, "bad_request"),
        ("{", 400, "bad_request"),
        ("[]", 400, "bad_request"),
        ("", 400, "bad_request"),
    ] {
        let (found, told) = ask(&router, CALL, Some(USER), Some(body)).await;
        assert_eq!(
            (found.as_u16(), json(&told)["error"]["kind"].as_str()),
            (status, Some(kind)),
            "{body}: {told}"
        );
    }
}

#[tokio::test]
async fn nobody_calls_without_a_token() {
    let Crib { desk, source, .. } = crib().await;
    let router = tools_router(desk);
    for line in [CALL, "POST /api/tools/s/echo", "GET /openapi.json"] {
        for token in [None, Some("wrong"), Some("")] {
            let (status, _) = ask(&router, line, token, Some(r#"{"tool":"s:echo"}"#)).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{line}");
        }
    }
    assert!(source.invoked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_foreign_page_and_a_large_body_are_stopped_at_the_door() {
    let Crib { mut desk, source, .. } = crib().await;
    desk.largest_body = 64;
    let router = tools_router(desk);
    let small = r#"{"tool":"s:echo"}"#;
    let large = format!(r#"{{"tool":"s:echo","args":{{"x":"{}"}}}}"#, "x".repeat(64));
    let post = |body: &str| request("POST", "/api/call", Some(USER), Some(body));
    let mut foreign = post(small);
    foreign.headers_mut().insert(header::ORIGIN, "https://evil.example".parse().unwrap());
    let mut rebound = post(small);
    rebound.headers_mut().insert(header::HOST, "evil.example".parse().unwrap());
    let mut form = post(small);
    form.headers_mut().insert(header::CONTENT_TYPE, "text/plain".parse().unwrap());
    let mut announced = post(&large);
    announced.headers_mut().insert(header::CONTENT_LENGTH, large.len().into());
    for (request, status) in
        [(foreign, 403), (rebound, 403), (form, 415), (announced, 413), (post(&large), 413)]
    {
        let response = answer(&router, request).await;
        assert_eq!(response.status().as_u16(), status);
        assert!(json(&text(response).await)["error"]["kind"].is_string());
    }
    assert!(source.invoked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_document_has_one_operation_for_each_visible_tool() {
    let router = router().await;
    let (_, body) = ask(&router, "GET /openapi.json", Some(USER), None).await;
    let document = json(&body);
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    let listed: Vec<&str> = paths.keys().map(String::as_str).collect();
    let odd = "/api/tools/s/odd%20name%2F%7Bx%7D";
    assert_eq!(listed, ["/api/call", "/api/tools/s/echo", "/api/tools/s/fail", "/api/tools/s/hang", odd]);
    let mut ids: Vec<&str> =
        paths.values().map(|item| item["post"]["operationId"].as_str().unwrap()).collect();
    assert!(
        ids.iter().all(|id| id.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))),
        "{ids:?}"
    );
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), paths.len(), "each id once");
    let echo = &paths["/api/tools/s/echo"]["post"];
    let schema = &echo["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(schema["properties"]["n"]["type"], "integer");
    assert_eq!(document["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
    for path in listed {
        let status = ask(&router, &format!("POST {path}"), Some(USER), Some("[]")).await.0;
        assert_ne!(status, StatusCode::NOT_FOUND, "what is described is there: {path}");
    }
}

#[tokio::test]
async fn an_unchanged_document_is_not_sent_again() {
    let router = router().await;
    let fetch = async |token, known: Option<&str>| {
        let mut request = request("GET", "/openapi.json", Some(token), None);
        if let Some(known) = known {
            request.headers_mut().insert(header::IF_NONE_MATCH, known.parse().unwrap());
        }
        let response = answer(&router, request).await;
        let tag = response.headers()[header::ETAG].to_str().unwrap().to_owned();
        (response.status(), tag)
    };
    let (status, tag) = fetch(USER, None).await;
    assert_eq!(status, StatusCode::OK);
    for known in [tag.clone(), format!("W/{tag}"), format!("\"old\", {tag}"), "*".into()] {
        assert_eq!(fetch(USER, Some(&known)).await.0, StatusCode::NOT_MODIFIED, "{known}");
    }
    assert_eq!(fetch(USER, Some("\"old\"")).await.0, StatusCode::OK);
    let (status, other) = fetch(ADMIN, Some(&tag)).await;
    assert_eq!(status, StatusCode::OK, "somebody else sees another document");
    assert_ne!(other, tag);
}

#[tokio::test]
async fn it_merges_with_a_router_beside_it() {
    let beside =
        Router::new().route("/mcp", axum::routing::post(async || "mcp")).fallback(async || "fallback");
    let both = beside.merge(router().await);
    assert_eq!(ask(&both, "POST /mcp", None, None).await.1, "mcp");
    assert_eq!(ask(&both, "GET /else", None, None).await.1, "fallback");
    assert_eq!(ask(&both, CALL, None, None).await.0, StatusCode::UNAUTHORIZED);
}

//! Stories of the admin API, through the router without a socket. Who may do what is in `authority.rs`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that trips has failed"
)]

#[path = "stories/crib.rs"]
#[allow(dead_code, reason = "shared with the other test files")]
mod crib;

use std::sync::{Arc, atomic::Ordering};

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
};
use crib::{ADMIN, Crib, OTHER, USER, answer, ask, crib, json, request};
use toolcrib_core::{
    caller::{Caller, CallerKind, Callers, Role, Roll},
    doorway::Doorway,
    id::CallerId,
    policy::Access,
    testing::call,
};
use toolcrib_rest::admin_router;

#[tokio::test]
async fn a_server_is_connected_and_disconnected_by_hand() {
    let Crib { desk, .. } = crib().await;
    let router = admin_router(desk);
    let (_, list) = ask(&router, "GET /servers", Some(ADMIN), None).await;
    assert_eq!(json(&list)["servers"][0]["state"], "idle");
    for (action, state) in [("connect", "ready"), ("restart", "ready"), ("disconnect", "stopped")] {
        let (status, body) = ask(&router, &format!("POST /servers/s/{action}"), Some(ADMIN), None).await;
        assert_eq!(
            (status, json(&body)["state"].as_str()),
            (StatusCode::OK, Some(state)),
            "{action}: {body}"
        );
    }
    let (_, shown) = ask(&router, "GET /servers/s", Some(ADMIN), None).await;
    let shown = json(&shown);
    assert_eq!((&shown["transport"], &shown["inFlight"]), (&"scripted".into(), &0.into()));
    for unknown in ["GET /servers/none", "POST /servers/none/connect", "POST /servers/a%20b/restart"] {
        let (status, body) = ask(&router, unknown, Some(ADMIN), None).await;
        assert_eq!((status, json(&body)["error"]["kind"].as_str()), (StatusCode::NOT_FOUND, Some("unknown")));
    }
}

#[tokio::test]
async fn a_server_that_is_down_says_so() {
    let Crib { desk, source, .. } = crib().await;
    source.refuse.store(true, Ordering::Relaxed);
    let router = admin_router(desk);
    let (status, body) = ask(&router, "POST /servers/s/connect", Some(ADMIN), None).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(json(&body)["error"]["retry"], "may_help", "{body}");
    let (_, shown) = ask(&router, "GET /servers/s", Some(ADMIN), None).await;
    assert_eq!(json(&shown)["lastError"], "nobody home");
    let (status, health) = ask(&router, "GET /health", Some(ADMIN), None).await;
    assert_eq!((status, &json(&health)["ready"]), (StatusCode::OK, &true.into()), "the crib itself is well");
}

#[tokio::test]
async fn tools_are_those_the_caller_may_see() {
    let router = admin_router(crib().await.desk);
    let names = |body: &str| -> Vec<String> {
        let tools = json(body)["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["toolId"].as_str().unwrap().to_owned()).collect()
    };
    let (_, all) = ask(&router, "GET /tools", Some(ADMIN), None).await;
    assert_eq!(names(&all), ["s:echo", "s:fail", "s:hang", "s:odd name/{x}", "s:secret"]);
    let first = &json(&all)["tools"][0];
    assert_eq!((&first["serverId"], &first["name"]), (&"s".into(), &"s__echo".into()));
    assert_eq!(first["tool"]["inputSchema"]["type"], "object");
    let (_, seen) = ask(&router, "GET /tools?q=SE", Some(USER), None).await;
    assert!(names(&seen).is_empty(), "`secret` is not there to be searched");
    let (_, some) = ask(&router, "GET /tools?source=s&q=ECH", Some(USER), None).await;
    assert_eq!(names(&some), ["s:echo"]);
    let (_, none) = ask(&router, "GET /tools?source=t", Some(USER), None).await;
    assert!(names(&none).is_empty());
    for (path, status) in
        [("s:echo", 200), ("s__echo", 200), ("s:odd%20name%2F%7Bx%7D", 200), ("s:secret", 404)]
    {
        let (found, body) = ask(&router, &format!("GET /tools/{path}"), Some(USER), None).await;
        assert_eq!(found.as_u16(), status, "{path}: {body}");
    }
    let (status, body) = ask(&router, "GET /tools?query=x", Some(USER), None).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(body.contains("query"), "{body}");
}

#[tokio::test]
async fn a_user_reads_its_own_calls_as_they_were_told_to_it() {
    let Crib { desk, ledger, .. } = crib().await;
    let (gateway, callers) = (desk.gateway.clone(), desk.callers.clone());
    let router = admin_router(desk);
    let who = |token| callers.recognise(Some(token)).unwrap();
    for (token, tool) in [(USER, "s:echo"), (USER, "s:secret"), (USER, "s:nothing"), (OTHER, "s:echo")] {
        let _ = gateway.call(call(&who(token), tool, "{}")).finish().await;
    }
    let read = async |token, query: &str| {
        let (_, body) = ask(&router, &format!("GET /calls?finished=10{query}"), Some(token), None).await;
        let entries = json(&body)["entries"].as_array().unwrap().clone();
        let word = |entry: &serde_json::Value, key: &str| entry[key].as_str().unwrap_or("-").to_owned();
        entries
            .iter()
            .map(|e| format!("{} {} {}", word(e, "caller"), word(e, "target"), word(e, "outcome")))
            .collect()
    };
    let all: Vec<String> = read(ADMIN, "").await;
    let told = ["bob s:echo done", "ann s:nothing unknown", "ann s:secret denied", "ann s:echo done"];
    assert_eq!(all, told);
    let own: Vec<String> = read(USER, "&caller=bob").await;
    assert_eq!(own, ["ann s:nothing unknown", "ann s:secret unknown", "ann s:echo done"]);
    let unknown: Vec<String> = read(USER, "&outcome=unknown").await;
    assert_eq!(unknown, ["ann s:nothing unknown", "ann s:secret unknown"]);
    assert!(Vec::<String>::is_empty(&read(USER, "&outcome=denied").await));

    let secret = ledger.lines.lock().unwrap()[1].call.clone();
    let (_, to_root) = ask(&router, &format!("GET /calls/{secret}"), Some(ADMIN), None).await;
    assert_eq!((&json(&to_root)["layer"], &json(&to_root)["outcome"]), (&"access".into(), &"denied".into()));
    let (_, to_ann) = ask(&router, &format!("GET /calls/{secret}"), Some(USER), None).await;
    assert_eq!((&json(&to_ann)["layer"], &json(&to_ann)["detail"]), (&().into(), &().into()), "{to_ann}");
    let (status, _) = ask(&router, &format!("GET /calls/{secret}"), Some(OTHER), None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn running_calls_are_listed_to_their_caller_and_to_administrators() {
    let Crib { desk, .. } = crib().await;
    let gateway = desk.gateway.clone();
    let ann = desk.callers.recognise(Some(USER)).unwrap();
    let router = admin_router(desk);
    let running = gateway.call(call(&ann, "s:hang", "{}"));
    while gateway.roster().calls().is_empty() {
        tokio::task::yield_now().await;
    }
    for (token, count) in [(USER, 1), (OTHER, 0), (ADMIN, 1)] {
        let (_, body) = ask(&router, "GET /calls", Some(token), None).await;
        assert_eq!(json(&body)["running"].as_array().unwrap().len(), count, "{token}: {body}");
        assert_eq!(json(&body)["entries"].as_array().unwrap().len(), 0);
    }
    running.cancel.cancel();
    assert!(running.finish().await.is_err());
}

#[tokio::test]
async fn health_tells_strangers_little_and_fails_without_a_ledger() {
    let Crib { desk, ledger, .. } = crib().await;
    let closing = desk.closing.clone();
    let router = admin_router(desk);
    let (status, stranger) = ask(&router, "GET /health", None, None).await;
    assert_eq!((status, json(&stranger).get("sources")), (StatusCode::OK, None), "{stranger}");
    let (_, root) = ask(&router, "GET /health", Some(ADMIN), None).await;
    assert_eq!(json(&root)["sources"]["s"], "idle");
    ledger.broken.store(true, Ordering::Relaxed);
    let (status, body) = ask(&router, "GET /health", None, None).await;
    assert_eq!((status, &json(&body)["live"]), (StatusCode::SERVICE_UNAVAILABLE, &true.into()));
    let (status, body) = ask(&router, "GET /calls?finished=1", Some(ADMIN), None).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(!body.contains("/secret/place"), "{body}");
    ledger.broken.store(false, Ordering::Relaxed);
    closing.cancel();
    assert_eq!(ask(&router, "GET /health", None, None).await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(ask(&router, "GET /health/live", None, None).await.0, StatusCode::OK);
}

#[tokio::test]
async fn health_names_sources_to_those_who_may_see_a_tool_of_theirs() {
    let Crib { mut desk, .. } = crib().await;
    let mut roll = crib::roll();
    let (id, kind, role, access) = (CallerId::new("eve"), CallerKind::Agent, Role::User, Access::nothing());
    roll.add("eve-token", Caller { id, kind, role, access });
    desk.callers = Arc::new(Callers::new(roll));
    let router = admin_router(desk);
    ask(&router, "GET /tools", Some(USER), None).await;
    for (token, sources) in [(USER, r#"{"s":"ready"}"#), (ADMIN, r#"{"s":"ready"}"#), ("eve-token", "{}")] {
        let (_, health) = ask(&router, "GET /health", Some(token), None).await;
        assert_eq!(json(&health)["sources"].to_string(), sources, "{token}");
    }
}

#[tokio::test]
async fn a_hidden_tool_cannot_be_found_by_asking_for_its_calls() {
    let Crib { desk, .. } = crib().await;
    let (gateway, ann) = (desk.gateway.clone(), desk.callers.recognise(Some(USER)).unwrap());
    let router = admin_router(desk);
    for tool in ["s__secret", "s__echo"] {
        let _ = gateway.call(call(&ann, tool, "{}")).finish().await;
    }
    for (query, count) in
        [("source=s", 1), ("about=s:secret", 0), ("about=S__SECRET", 1), ("about=s:echo", 1)]
    {
        let (_, body) = ask(&router, &format!("GET /calls?finished=10&{query}"), Some(USER), None).await;
        assert_eq!(json(&body)["entries"].as_array().unwrap().len(), count, "{query}: {body}");
    }
}

#[tokio::test]
async fn metrics_count_calls_and_sources() {
    let Crib { mut desk, .. } = crib().await;
    desk.sessions = Some(Arc::new(|| 7));
    let gateway = desk.gateway.clone();
    let ann = desk.callers.recognise(Some(USER)).unwrap();
    for _ in 0..3 {
        gateway.call(call(&ann, "s:echo", "{}")).finish().await.unwrap();
    }
    let (_, page) = ask(&admin_router(desk), "GET /metrics", Some(ADMIN), None).await;
    for line in [
        r#"toolcrib_calls_total{source="s",outcome="done"} 3"#,
        r#"toolcrib_call_duration_seconds_count{source="s",outcome="done"} 3"#,
        r#"toolcrib_sources{state="ready"} 1"#,
        "toolcrib_calls_running 0",
        "toolcrib_sessions 7",
    ] {
        assert!(page.lines().any(|each| each == line), "{line} in\n{page}");
    }
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

#[tokio::test]
async fn an_open_crib_on_loopback_needs_no_token_but_a_right_host() {
    let Crib { mut desk, .. } = crib().await;
    desk.callers = Arc::new(Callers::new(Roll::open(Caller::local(Access::everything()))));
    desk.doorway = Arc::new(Doorway { hosts: vec!["crib.example".into()], origins: vec![] });
    let router = admin_router(desk);
    assert_eq!(ask(&router, "GET /servers", None, None).await.0, StatusCode::OK);
    assert_eq!(ask(&router, "GET /servers", Some("stale"), None).await.0, StatusCode::UNAUTHORIZED);
    let with = |name: header::HeaderName, value: &str| {
        let mut request = request("POST", "/servers/s/connect", None, None);
        request.headers_mut().insert(name, value.parse().unwrap());
        request
    };
    for (request, status) in [
        (with(header::HOST, "crib.example"), 200),
        (with(header::HOST, "rebound.example"), 403),
        (with(header::ORIGIN, "https://evil.example"), 403),
        (with(header::ORIGIN, "http://localhost:3100"), 200),
        (with(header::CONTENT_TYPE, "application/x-www-form-urlencoded"), 415),
        (with(header::AUTHORIZATION, "Basic Zm9vOmJhcg=="), 401),
    ] {
        let told = format!("{:?}", request.headers());
        assert_eq!(answer(&router, request).await.status().as_u16(), status, "{told}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_told_in_json() {
    let router = admin_router(crib().await.desk);
    let (status, body) = ask(&router, "GET /nothing", None, None).await;
    assert_eq!((status, json(&body)["error"]["kind"].as_str()), (StatusCode::NOT_FOUND, Some("unknown")));
    let (status, body) = ask(&router, "DELETE /servers", Some(ADMIN), None).await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    assert!(json(&body)["error"]["message"].is_string());
    let unauthorised = answer(&router, request("GET", "/servers", None, None)).await;
    assert_eq!(unauthorised.headers()[header::WWW_AUTHENTICATE], "Bearer");
    let hostless = Request::builder().uri("/health").body(Body::empty()).unwrap();
    assert_eq!(answer(&router, hostless).await.status(), StatusCode::FORBIDDEN);
}

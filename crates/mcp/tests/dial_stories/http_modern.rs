//! Modern sources over Streamable HTTP, and the old HTTP+SSE.

use std::sync::{Arc, Mutex};

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolcrib_core::{
    call::{Carry, Events, Verb},
    catalog::{
        Item, ItemKind,
        entry::{Facets, HeaderParam},
    },
    error::Kind,
    id::SourceId,
    source::{Dialer, Tidings},
};
use toolcrib_mcp::dial::{HttpDialer, HttpKind};

use crate::{
    stage::{connect, permit, permit_for, tool},
    web::{Web, event, feed, json_body, modern, status},
};

fn dialer(web: &Web) -> HttpDialer {
    HttpDialer::new(web.url.clone(), vec![], HttpKind::Auto)
}

#[tokio::test]
async fn headers_say_what_the_body_says() {
    let web =
        Web::serve(|asked| async move { modern(&asked).unwrap_or_else(|| asked.result(&json!({}))) }).await;
    let stage = connect(&dialer(&web)).await.unwrap();
    assert_eq!(stage.connection.facts().protocol.as_deref(), Some("2026-07-28"));
    stage.connection.offer().await.unwrap();
    let headers = vec![HeaderParam { header: "Region".into(), path: vec!["where".into(), "region".into()] }];
    let mut item = Item::unlisted(ItemKind::Tool, &SourceId::new("s").unwrap(), "café");
    item.facets = Some(Arc::new(Facets { headers, ..Facets::default() }));
    let arguments = r#"{"where":{"region":"eu west"},"n":1}"#;
    stage.run(permit_for(item, Verb::Use, Some(arguments), Carry::default())).await.unwrap();
    let method =
        permit(ItemKind::Method, Verb::Use, "tasks/get", Some(r#"{"taskId":"t-1"}"#), Carry::default());
    stage.run(method).await.unwrap();

    let call = web.asked("tools/call").remove(0);
    assert_eq!(call.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(call.header("mcp-method"), Some("tools/call"));
    assert_eq!(call.header("mcp-name"), Some("=?base64?Y2Fmw6k=?="));
    assert_eq!(call.header("mcp-param-region"), Some("eu west"));
    assert_eq!(call.header("mcp-session-id"), None);
    let task = web.asked("tasks/get").remove(0);
    assert_eq!(task.header("mcp-name"), Some("t-1"));
    assert_eq!(task.body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(web.asked("tools/list")[0].header("mcp-method"), Some("tools/list"));
    assert_eq!(web.asked("server/discover")[0].header("mcp-protocol-version"), Some("2026-07-28"));
    assert!(web.asked_by(&Method::GET).is_empty() && web.asked("initialize").is_empty());
    stage.connection.close().await;
    assert!(web.asked_by(&Method::DELETE).is_empty());
}

#[tokio::test]
async fn an_error_beside_a_status_is_passed_on_whole() {
    let web = Web::serve(|asked| async move {
        modern(&asked).unwrap_or_else(|| asked.error(StatusCode::BAD_REQUEST, -32021))
    })
    .await;
    let stage = connect(&dialer(&web)).await.unwrap();
    let failure = stage.run(tool("t", "{}")).await.unwrap_err();
    assert_eq!((failure.kind, failure.peer.unwrap().code), (Kind::Refused, -32021));
    stage.connection.close().await;
}

#[tokio::test]
async fn what_a_source_says_of_this_hop_is_not_the_callers_business() {
    let codes = Arc::new(Mutex::new(vec![-32022, -32020]));
    let web = Web::serve(move |asked| {
        let codes = codes.clone();
        async move {
            modern(&asked)
                .unwrap_or_else(|| asked.error(StatusCode::BAD_REQUEST, codes.lock().unwrap().pop().unwrap()))
        }
    })
    .await;
    let mut stage = connect(&dialer(&web)).await.unwrap();
    for code in ["-32020", "-32022"] {
        let failure = stage.run(tool("t", "{}")).await.unwrap_err();
        assert_eq!(failure.kind, Kind::BadSource);
        assert!(failure.peer.is_none() && failure.told.contains(code), "{failure:?}");
    }
    // The tool is not what it was when its headers were worked out: its definition is read anew.
    assert!(matches!(stage.next_tidings().await, Tidings::ListChanged(lists) if lists.tools));
    assert!(stage.tidings.try_recv().is_err());
    stage.connection.close().await;
}

#[tokio::test]
async fn a_status_without_a_message_says_whose_fault_it_is() {
    let codes = Arc::new(Mutex::new(vec![500u16, 418]));
    let web = Web::serve(move |asked| {
        let codes = codes.clone();
        async move {
            match modern(&asked) {
                Some(response) => response,
                None => status(codes.lock().unwrap().remove(0)),
            }
        }
    })
    .await;
    let stage = connect(&dialer(&web)).await.unwrap();
    assert_eq!(stage.run(tool("t", "{}")).await.unwrap_err().kind, Kind::Unavailable);
    assert_eq!(stage.run(tool("t", "{}")).await.unwrap_err().kind, Kind::BadSource);
    stage.connection.close().await;
}

#[tokio::test]
async fn calling_off_closes_the_stream_and_says_nothing() {
    let (left, mut leaving) = mpsc::channel(1);
    let web = Web::serve(move |asked| {
        let left = left.clone();
        async move {
            match modern(&asked) {
                Some(response) => response,
                None => {
                    let (sender, response) = feed();
                    sender.send(": thinking\n\n".into()).await.unwrap();
                    tokio::spawn(async move {
                        sender.closed().await;
                        left.send(()).await
                    });
                    response
                }
            }
        }
    })
    .await;
    let stage = connect(&dialer(&web)).await.unwrap();
    let cancel = CancellationToken::new();
    let (events, _heard) = Events::channel();
    let call = stage.connection.invoke(tool("t", "{}"), events, cancel.clone());
    let (failure, ()) = tokio::join!(call, async {
        web.until(|web| !web.asked("tools/call").is_empty()).await;
        cancel.cancel();
    });
    assert_eq!(failure.unwrap_err().kind, Kind::Cancelled);
    tokio::time::timeout(std::time::Duration::from_secs(10), leaving.recv()).await.unwrap().unwrap();
    assert!(web.asked("notifications/cancelled").is_empty());
    stage.connection.close().await;
}

#[tokio::test]
async fn a_modern_source_is_listened_to_over_one_long_answer() {
    let web = Web::serve(|asked| async move {
        match asked.rpc() {
            "server/discover" => asked.result(&json!({
                "supportedVersions": ["2025-11-25", "2026-07-28"], "capabilities": { "tools": { "listChanged": true } },
            })),
            "subscriptions/listen" => {
                let (sender, response) = feed();
                let id = &asked.body["id"];
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
                for method in ["notifications/subscriptions/acknowledged", "notifications/tools/list_changed"] {
                    let told = json!({ "jsonrpc": "2.0", "method": method, "params": { "_meta": meta } });
                    sender.send(event(&told)).await.unwrap();
                }
                tokio::spawn(async move { sender.closed().await });
                response
            }
            _ => status(404),
        }
    })
    .await;
    let mut stage = connect(&dialer(&web)).await.unwrap();
    assert!(matches!(stage.next_tidings().await, Tidings::ListChanged(lists) if lists.tools));
    assert_eq!(
        web.asked("subscriptions/listen")[0].body["params"]["notifications"],
        json!({ "toolsListChanged": true })
    );
    stage.connection.close().await;
}

/// HTTP+SSE: GET opens the stream, POSTs to the endpoint are answered on it.
async fn old_sse(endpoint: &'static str) -> Web {
    let stream: Arc<Mutex<Option<mpsc::Sender<String>>>> = Arc::default();
    Web::serve(move |asked| {
        let stream = stream.clone();
        async move {
            if asked.method == Method::GET {
                let (sender, response) = feed();
                sender.send(format!("event: endpoint\ndata: {endpoint}\n\n")).await.unwrap();
                *stream.lock().unwrap() = Some(sender);
                return response;
            }
            let sender = stream.lock().unwrap().clone();
            let Some(sender) = sender.filter(|_| asked.path == "/messages") else { return status(405) };
            let result = match asked.rpc() {
                "initialize" => json!({ "protocolVersion": "2024-11-05", "capabilities": { "tools": {} } }),
                "tools/list" => json!({ "tools": [{ "name": "t" }] }),
                "tools/call" => json!({ "content": [] }),
                "hang-up" => {
                    stream.lock().unwrap().take();
                    return status(202);
                }
                _ => Value::Null,
            };
            if !asked.body["id"].is_null() {
                let answer = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": result });
                sender.send(event(&answer)).await.unwrap();
            }
            status(202)
        }
    })
    .await
}

#[tokio::test]
async fn the_oldest_transport_is_found_and_remembered() {
    let web = old_sse("/messages?session=1").await;
    let dialer = dialer(&web);
    assert_eq!(dialer.transport(), "http");
    for _ in 0..2 {
        let stage = connect(&dialer).await.unwrap();
        assert_eq!(stage.connection.facts().protocol.as_deref(), Some("2024-11-05"));
        assert_eq!(stage.connection.offer().await.unwrap().tools.len(), 1);
        assert_eq!(stage.run(tool("t", "{}")).await.unwrap().result.get(), r#"{"content":[]}"#);
        assert_eq!(dialer.transport(), "sse");
        stage.connection.close().await;
    }
    assert_eq!(web.asked("server/discover").len(), 1);
    let direct = HttpDialer::new(web.url.clone(), vec![], HttpKind::Sse);
    let stage = connect(&direct).await.unwrap();
    let hang_up = permit(ItemKind::Method, Verb::Use, "hang-up", None, Carry::default());
    assert_eq!(stage.run(hang_up).await.unwrap_err().kind, Kind::Unavailable);
    assert!(stage.connection.lost().await.contains("ended the event stream"));
    stage.connection.close().await;
}

#[tokio::test]
async fn an_endpoint_of_another_origin_is_refused() {
    let web = old_sse("http://127.0.0.1:1/messages").await;
    let direct = HttpDialer::new(web.url.clone(), vec![], HttpKind::Sse);
    assert!(connect(&direct).await.err().unwrap().told.contains("another origin"));
}

#[tokio::test]
async fn a_page_that_is_not_mcp_is_told_with_its_status() {
    let web = Web::serve(|_| async { status(404) }).await;
    let failure = connect(&dialer(&web)).await.err().unwrap();
    assert!(failure.told.contains("404"), "{}", failure.told);
    let page = Web::serve(|_| async { json_body(StatusCode::OK, &json!({ "hello": 1 })) }).await;
    assert_eq!(connect(&dialer(&page)).await.err().unwrap().kind, Kind::BadSource);
}

#[tokio::test]
async fn an_answer_over_the_limit_is_not_read_to_its_end() {
    let web = Web::serve(|asked| async move {
        match modern(&asked) {
            Some(response) => response,
            None => asked.result(&json!({ "x": "x".repeat(65 * 1024 * 1024) })),
        }
    })
    .await;
    let stage = connect(&dialer(&web)).await.unwrap();
    assert_eq!(stage.run(tool("t", "{}")).await.unwrap_err().kind, Kind::TooLarge);
    stage.connection.close().await;
}

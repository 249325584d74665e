//! Old sources over Streamable HTTP: sessions, their stream, and how both are lost.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use http::{Method, StatusCode};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolcrib_core::{
    call::{Carry, Event, Events, Level, Progress, Verb},
    catalog::ItemKind,
    error::Kind,
    source::{Dialer, Tidings},
};
use toolcrib_mcp::dial::{HttpDialer, HttpKind};

use crate::{
    stage::{connect, permit, tool},
    web::{Web, event, events, feed, legacy, status},
};

fn dialer(web: &Web) -> HttpDialer {
    HttpDialer::new(web.url.clone(), vec![("authorization".into(), "Bearer k".into())], HttpKind::Auto)
}

#[tokio::test]
async fn a_session_is_kept_and_given_back() {
    let web = Web::serve(|asked| async move {
        legacy(&asked, "s1").unwrap_or_else(|| asked.result(&json!({ "content": [] })))
    })
    .await;
    let stage = connect(&dialer(&web)).await.unwrap();
    assert_eq!(stage.connection.facts().protocol.as_deref(), Some("2025-11-25"));
    assert_eq!(stage.connection.offer().await.unwrap().tools.len(), 1);
    stage.run(tool("t", "{}")).await.unwrap();
    let call = web.asked("tools/call").remove(0);
    assert_eq!(call.header("mcp-session-id"), Some("s1"));
    assert_eq!(call.header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!((call.header("mcp-method"), call.header("authorization")), (None, Some("Bearer k")));
    assert_eq!(web.asked("initialize")[0].header("mcp-session-id"), None);
    web.until(|web| !web.asked_by(&Method::GET).is_empty()).await;
    stage.connection.close().await;
    assert_eq!(web.asked_by(&Method::DELETE)[0].header("mcp-session-id"), Some("s1"));
}

#[tokio::test]
async fn a_forgotten_session_is_opened_anew_and_the_request_repeated_once() {
    let greetings = Arc::new(AtomicUsize::new(0));
    let counted = greetings.clone();
    let web = Web::serve(move |asked| {
        if asked.rpc() == "initialize" {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        let session = format!("s{}", counted.load(Ordering::Relaxed));
        async move {
            match (legacy(&asked, &session), asked.header("mcp-session-id")) {
                (Some(response), _) => response,
                (None, Some("s1")) if asked.rpc() == "tools/call" => status(404),
                (None, _) => asked.result(&json!({})),
            }
        }
    })
    .await;
    let stage = connect(&dialer(&web)).await.unwrap();
    stage.connection.watch(BTreeSet::from(["a:b".to_owned()])).await.unwrap();
    stage.connection.hear(Level::Info).await.unwrap();
    stage.run(tool("t", "{}")).await.unwrap();
    assert_eq!(greetings.load(Ordering::Relaxed), 2);
    assert_eq!(web.asked("notifications/initialized").len(), 2);
    let sessions: Vec<_> = web
        .asked("tools/call")
        .iter()
        .map(|call| call.header("mcp-session-id").unwrap().to_owned())
        .collect();
    assert_eq!(sessions, ["s1", "s2"]);
    // The new session is asked for what the old one was asked for.
    web.until(|web| web.asked("resources/subscribe").len() == 2 && web.asked("logging/setLevel").len() == 2)
        .await;
    stage.connection.close().await;
}

#[tokio::test]
async fn while_a_session_is_opened_anew_no_call_goes_out_without_one() {
    let (greetings, second) = (Arc::new(AtomicUsize::new(0)), Arc::new(tokio::sync::Notify::new()));
    let web = Web::serve(move |asked| {
        let (greetings, second) = (greetings.clone(), second.clone());
        async move {
            if asked.rpc() == "initialize" && greetings.fetch_add(1, Ordering::Relaxed) == 1 {
                // The second greeting is answered only once another call has come meanwhile.
                second.notified().await;
            }
            if asked.body["params"]["name"] == "second" {
                second.notify_one();
            }
            let session = format!("s{}", greetings.load(Ordering::Relaxed));
            match (legacy(&asked, &session), asked.header("mcp-session-id")) {
                (Some(response), _) => response,
                (None, Some("s1")) => status(404),
                (None, _) => asked.result(&json!({})),
            }
        }
    })
    .await;
    let stage = connect(&dialer(&web)).await.unwrap();
    let (first, second) = tokio::join!(stage.run(tool("first", "{}")), async {
        web.until(|web| web.asked("initialize").len() == 2).await;
        stage.run(tool("second", "{}")).await
    });
    assert!(first.is_ok() && second.is_ok(), "{first:?} {second:?}");
    let calls = web.asked("tools/call");
    let sessions: Vec<_> = calls.iter().map(|call| call.header("mcp-session-id")).collect();
    assert_eq!(sessions, [Some("s1"), Some("s1"), Some("s2"), Some("s2")]);
    assert!(calls.iter().all(|call| call.header("mcp-protocol-version") == Some("2025-11-25")));
    assert_eq!(web.asked("initialize")[1].header("mcp-session-id"), None);
    assert_eq!(web.asked("notifications/initialized")[1].header("mcp-session-id"), Some("s2"));
    stage.connection.close().await;
}

#[tokio::test]
async fn a_source_that_forgets_every_session_fails_and_is_not_asked_forever() {
    let web = Web::serve(|asked| async move { legacy(&asked, "s").unwrap_or_else(|| status(404)) }).await;
    let stage = connect(&dialer(&web)).await.unwrap();
    assert_eq!(stage.run(tool("t", "{}")).await.unwrap_err().kind, Kind::BadSource);
    assert_eq!(web.asked("tools/call").len(), 2);
    stage.connection.close().await;
}

#[tokio::test]
async fn what_comes_on_the_stream_of_a_call_belongs_to_the_call() {
    let web = Web::serve(|asked| async move {
        if let Some(response) = legacy(&asked, "s") {
            return response;
        }
        if asked.rpc() != "tools/call" {
            return status(202);
        }
        let token = &asked.body["params"]["_meta"]["progressToken"];
        events(&[
            ": hello\n\n".into(),
            event(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": token } })),
            event(&json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info" } })),
            event(&json!({ "jsonrpc": "2.0", "method": "notifications/odd" })),
            event(&json!({ "jsonrpc": "2.0", "id": "q", "method": "ping" })),
            format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"x\": 1.50}}}}\n\n", asked.body["id"]),
        ])
    })
    .await;
    let stage = connect(&dialer(&web)).await.unwrap();
    let carry = Carry { progress: Progress::Wanted, ..Carry::default() };
    let (reply, heard) = stage.run_hearing(permit(ItemKind::Tool, Verb::Use, "t", None, carry)).await;
    assert_eq!(reply.unwrap().result.get(), r#"{"x": 1.50}"#);
    assert!(matches!(heard.as_slice(), [Event::Progress(_), Event::Log { .. }, Event::Notice { .. }]));
    web.until(|web| web.asked_by(&Method::POST).iter().any(|asked| asked.body["result"] == json!({}))).await;
    stage.connection.close().await;
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_taken_up_where_it_was() {
    let open = Arc::new(Mutex::new(json!(null)));
    let web = Web::serve(move |asked| {
        let open = open.clone();
        async move {
            match (asked.method.as_str(), asked.rpc(), asked.header("last-event-id")) {
                ("POST", "tools/call", _) => {
                    *open.lock().unwrap() = asked.body["id"].clone();
                    events(&["id: e7\nretry: 10\ndata:\n\n".into()])
                }
                ("GET", _, Some("e7")) => {
                    let id = open.lock().unwrap().clone();
                    events(&[event(&json!({ "jsonrpc": "2.0", "id": id, "result": { "late": true } }))])
                }
                _ => legacy(&asked, "s").unwrap(),
            }
        }
    })
    .await;
    let stage = connect(&dialer(&web)).await.unwrap();
    assert_eq!(stage.run(tool("t", "{}")).await.unwrap().result.get(), r#"{"late":true}"#);
    stage.connection.close().await;
}

#[tokio::test]
async fn the_stream_of_the_session_brings_news_and_is_resumed() {
    let opened = Arc::new(AtomicUsize::new(0));
    let web = Web::serve(move |asked| {
        let opened = opened.clone();
        async move {
            if asked.method != Method::GET {
                return legacy(&asked, "s").unwrap();
            }
            let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
            match opened.fetch_add(1, Ordering::Relaxed) {
                0 => events(&[format!("id: g1\nretry: 10\n{}", event(&changed))]),
                1 => events(&[event(&changed)]),
                _ => status(405),
            }
        }
    })
    .await;
    let mut stage = connect(&dialer(&web)).await.unwrap();
    assert!(matches!(stage.next_tidings().await, Tidings::ListChanged(_)));
    assert!(matches!(stage.next_tidings().await, Tidings::ListChanged(_)));
    assert_eq!(web.asked_by(&Method::GET)[1].header("last-event-id"), Some("g1"));
    stage.connection.close().await;
}

#[tokio::test]
async fn calling_off_is_said_and_not_meant_by_leaving() {
    let web = Web::serve(|asked| async move {
        match legacy(&asked, "s") {
            Some(response) => response,
            None => {
                let (sender, response) = feed();
                sender.send(": thinking\n\n".into()).await.unwrap();
                tokio::spawn(async move { sender.closed().await });
                response
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
    web.until(|web| !web.asked("notifications/cancelled").is_empty()).await;
    let id = web.asked("tools/call")[0].body["id"].clone();
    assert_eq!(web.asked("notifications/cancelled")[0].body["params"]["requestId"], id);
    stage.connection.close().await;
}

#[tokio::test]
async fn a_source_that_wants_credentials_says_which_and_where() {
    for code in [401, 403] {
        let web = Web::serve(move |_| async move { status(code) }).await;
        let url = web.url.replace("http://", "http://me:pw@") + "?key=secret";
        let failure = connect(&HttpDialer::new(url, vec![], HttpKind::Auto)).await.err().unwrap();
        assert_eq!(failure.kind, Kind::SourceUnauthorized);
        assert!(failure.told.contains(&web.url) && failure.told.contains("credentials"), "{}", failure.told);
        assert!(!failure.told.contains("secret") && !failure.told.contains("pw"), "{}", failure.told);
        assert_eq!(web.asked_by(&Method::GET).len(), 0);
    }
}

#[tokio::test]
async fn a_redirect_is_followed_at_home_only() {
    let redirect = |code: StatusCode, to: String| {
        http::Response::builder().status(code).header("location", to).body(axum::body::Body::empty()).unwrap()
    };
    let home = Web::serve(move |asked| async move {
        if asked.path == "/mcp" {
            return redirect(StatusCode::TEMPORARY_REDIRECT, "/moved".into());
        }
        legacy(&asked, "s").unwrap_or_else(|| asked.result(&json!({})))
    })
    .await;
    let stage = connect(&dialer(&home)).await.unwrap();
    stage.run(tool("t", "{}")).await.unwrap();
    stage.connection.close().await;

    let stranger = Web::serve(|asked| async move { legacy(&asked, "s").unwrap() }).await;
    let away = stranger.url.clone();
    let web = Web::serve(move |_| {
        let away = away.clone();
        async move { redirect(StatusCode::PERMANENT_REDIRECT, away) }
    })
    .await;
    let failure = connect(&dialer(&web)).await.err().unwrap();
    assert!(failure.told.contains("redirects"), "{}", failure.told);
    assert!(stranger.asked_by(&Method::POST).is_empty());
}

#[tokio::test]
async fn nobody_there_is_said_plainly() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let dialer = HttpDialer::new(url, vec![], HttpKind::Auto);
    let failure = connect(&dialer).await.err().unwrap();
    assert_eq!(failure.kind, Kind::Unavailable);
    assert!(
        failure.told.contains("cannot be reached") && failure.told.contains("refused"),
        "{}",
        failure.told
    );
    assert_eq!(dialer.transport(), "http");
}

#[tokio::test]
async fn a_server_that_went_away_is_noticed() {
    let web = Web::serve(|asked| async move {
        let mut response = legacy(&asked, "s").unwrap_or_else(|| asked.result(&json!({})));
        response.headers_mut().insert("connection", "close".parse().unwrap());
        response
    })
    .await;
    let stage = connect(&dialer(&web)).await.unwrap();
    stage.run(tool("t", "{}")).await.unwrap();
    web.stop().await;
    assert_eq!(stage.run(tool("t", "{}")).await.unwrap_err().kind, Kind::Unavailable);
    assert!(stage.connection.lost().await.contains("cannot be reached"));
    stage.connection.close().await;
}

#[tokio::test]
async fn a_session_that_cannot_be_opened_anew_is_the_end() {
    let greetings = Arc::new(AtomicUsize::new(0));
    let web = Web::serve(move |asked| {
        let first = asked.rpc() != "initialize" || greetings.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            match legacy(&asked, "s") {
                Some(response) if first => response,
                Some(_) => status(503),
                None => status(404),
            }
        }
    })
    .await;
    let stage = connect(&dialer(&web)).await.unwrap();
    assert_eq!(stage.run(tool("t", "{}")).await.unwrap_err().kind, Kind::Unavailable);
    assert!(stage.connection.lost().await.contains("503"));
    stage.connection.close().await;
}

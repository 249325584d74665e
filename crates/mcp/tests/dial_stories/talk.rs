//! What is said during and beside calls, over a process.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolcrib_core::{
    call::{Carry, Event, Events, Level, Outcome, Progress, Verb},
    catalog::ItemKind,
    source::{Lists, Tidings},
    testing::json as raw,
};

use crate::stage::{connect, peer, permit, tool};

fn following() -> Carry {
    Carry { progress: Progress::Wanted, ..Carry::default() }
}

#[tokio::test]
async fn a_result_arrives_as_the_bytes_it_was() {
    let stage = connect(&peer("legacy")).await.unwrap();
    let reply = stage.run(tool("raw", r#"{"a" : 12345678901234567890123}"#)).await.unwrap();
    assert_eq!(reply.result.get(), r#"{"content": [ ],"odd":{"big":12345678901234567890123, "f":1.50}}"#);
    assert_eq!(reply.outcome, Outcome::Done);
    assert_eq!(stage.run(tool("fail", "{}")).await.unwrap().outcome, Outcome::ToolError);
    assert_eq!(stage.run(tool("ask", "{}")).await.unwrap().outcome, Outcome::InputRequired);
    let refused = stage.run(tool("nope", "{}")).await.unwrap_err().peer.unwrap();
    assert_eq!(refused.code, -32602);
    assert_eq!(refused.object.get(), r#"{"code": -32602, "message": "no such tool", "data": {"odd": 1}}"#);
    stage.connection.close().await;
}

#[tokio::test]
async fn a_source_that_asks_gets_a_pong_and_nothing_else() {
    let stage = connect(&peer("legacy")).await.unwrap();
    stage.text("questions", "{}").await;
    let answers: Vec<Value> =
        stage.seen().await.into_iter().filter(|message| message.get("method").is_none()).collect();
    assert_eq!(answers[0], json!({ "jsonrpc": "2.0", "id": "q1", "result": {} }));
    assert_eq!((&answers[1]["id"], &answers[1]["error"]["code"]), (&json!("q2"), &json!(-32601)));
    stage.connection.close().await;
}

#[tokio::test]
async fn progress_has_a_token_of_its_own_per_call() {
    let stage = connect(&peer("legacy")).await.unwrap();
    let mut tokens = BTreeSet::new();
    for _ in 0..3 {
        let permit = permit(ItemKind::Tool, Verb::Use, "progress", Some("{}"), following());
        let (reply, events) = stage.run_hearing(permit).await;
        tokens.insert(reply.unwrap().result.get().to_owned());
        assert_eq!(events.len(), 2);
        assert!(events.iter().all(|event| match event {
            Event::Progress(params) => params.get().contains(r#""odd": true"#),
            _ => false,
        }));
    }
    assert_eq!(tokens.len(), 3);
    // Nobody follows: no token is sent, and what comes anyway is nobody's.
    let (reply, events) = stage.run_hearing(tool("progress", "{}")).await;
    assert!(reply.unwrap().result.get().contains(r#""text": "null""#) && events.is_empty());
    stage.connection.close().await;
}

#[tokio::test]
async fn a_modern_call_carries_exactly_what_the_asking_program_declared() {
    let stage = connect(&peer("modern")).await.unwrap();
    let carry = Carry {
        fields: vec![("inputResponses".into(), raw(r#"{"a":1.0}"#)), ("name".into(), raw(r#""forged""#))],
        meta: vec![
            ("traceparent".into(), raw(r#""00-1""#)),
            ("io.modelcontextprotocol/protocolVersion".into(), raw(r#""forged""#)),
        ],
        progress: Progress::Wanted,
        log: Some(Level::Warning),
        abilities: Some(raw(r#"{"elicitation":{"url":{}}}"#)),
    };
    stage.run(permit(ItemKind::Tool, Verb::Use, "raw", Some(r#"{"x":1}"#), carry)).await.unwrap();
    let sent = stage.seen_of("tools/call").await.remove(0);
    assert_eq!(sent["params"]["name"], "raw");
    assert_eq!(sent["params"]["arguments"], json!({ "x": 1 }));
    assert_eq!(sent["params"]["inputResponses"], json!({ "a": 1.0 }));
    let meta = sent["params"]["_meta"].as_object().unwrap();
    assert!(meta["progressToken"].is_u64());
    assert_eq!(meta["traceparent"], "00-1");
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({ "elicitation": { "url": {} } }));
    assert_eq!(meta["io.modelcontextprotocol/logLevel"], "warning");
    assert_eq!(meta.len(), 6);
    stage.connection.close().await;
}

#[tokio::test]
async fn each_kind_of_thing_is_asked_for_in_its_own_way() {
    let stage = connect(&peer("legacy")).await.unwrap();
    let argument =
        Carry { fields: vec![("argument".into(), raw(r#"{"name":"x","value":"v"}"#))], ..Carry::default() };
    let asks = [
        (
            permit(ItemKind::Prompt, Verb::Use, "p", Some(r#"{"a":"b"}"#), Carry::default()),
            json!({ "name": "p", "arguments": { "a": "b" } }),
            "prompts/get",
        ),
        (
            permit(ItemKind::Resource, Verb::Use, "a:b", None, Carry::default()),
            json!({ "uri": "a:b" }),
            "resources/read",
        ),
        (
            permit(ItemKind::Prompt, Verb::Complete, "p", None, argument.clone()),
            json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "x", "value": "v" } }),
            "completion/complete",
        ),
        (
            permit(ItemKind::Template, Verb::Complete, "a:{x}", None, argument),
            json!({ "ref": { "type": "ref/resource", "uri": "a:{x}" }, "argument": { "name": "x", "value": "v" } }),
            "completion/complete",
        ),
        (
            permit(
                ItemKind::Method,
                Verb::Use,
                "vendor/do",
                Some(r#"{"z":1,"_meta":{"k":2,"progressToken":3}}"#),
                Carry::default(),
            ),
            json!({ "z": 1, "_meta": { "k": 2 } }),
            "vendor/do",
        ),
    ];
    for (permit, params, method) in asks {
        let reply = stage.run(permit).await.unwrap();
        let echo: Value = serde_json::from_str(reply.result.get()).unwrap();
        assert_eq!((&echo["echo"]["method"], &echo["echo"]["params"]), (&json!(method), &params));
    }
    let bare = permit(ItemKind::Method, Verb::Use, "vendor/bare", None, Carry::default());
    assert!(!stage.run(bare).await.unwrap().result.get().contains("params"));
    stage.connection.close().await;
}

#[tokio::test]
async fn news_reaches_the_supervisor() {
    let mut stage = connect(&peer("legacy")).await.unwrap();
    stage.text("news", "{}").await;
    let tools = Lists { tools: true, ..Lists::default() };
    assert!(matches!(stage.next_tidings().await, Tidings::ListChanged(lists) if lists == tools));
    match stage.next_tidings().await {
        Tidings::ResourceUpdated { uri, message } => {
            assert_eq!((uri.as_str(), message.get()), ("a:b", r#"{"uri": "a:b", "odd": 1}"#));
        }
        other => panic!("{other:?}"),
    }
    // The call that caused it does not listen to logs, and nobody else may.
    assert!(
        matches!(stage.next_tidings().await, Tidings::Notice { method, .. } if method == "notifications/vendor/thing")
    );
    stage.connection.close().await;
}

#[tokio::test]
async fn what_a_process_logs_belongs_to_the_call_that_runs_alone_and_listens() {
    let mut stage = connect(&peer("legacy")).await.unwrap();
    let chatter = |about: &str, log: Option<Level>| {
        let arguments = json!({ "about": about }).to_string();
        permit(ItemKind::Tool, Verb::Use, "chatter", Some(&arguments), Carry { log, ..Carry::default() })
    };
    let (_, heard) = stage.run_hearing(chatter("mine", Some(Level::Info))).await;
    assert!(matches!(heard.as_slice(), [Event::Log { level: Level::Error, message }]
        if message.get().contains("about mine")));
    // A call that does not listen, and one of two: nobody can tell whose it is.
    let (_, heard) = stage.run_hearing(chatter("nobody's", None)).await;
    assert!(heard.is_empty());
    let (events, mut beside) = Events::channel();
    let cancel = CancellationToken::new();
    let other = stage.connection.invoke(tool("hang", "{}"), events, cancel.clone());
    let (_, heard) = tokio::join!(other, async {
        stage.seen().await;
        let (_, heard) = stage.run_hearing(chatter("either's", Some(Level::Info))).await;
        cancel.cancel();
        heard
    });
    assert!(heard.is_empty() && beside.try_recv().is_err());
    // What may be about somebody's call is nobody else's to read: the next news is of something else.
    stage.text("news", "{}").await;
    assert!(matches!(stage.next_tidings().await, Tidings::ListChanged(_)));
    stage.connection.close().await;
}

#[tokio::test]
async fn an_old_source_is_asked_for_the_difference_of_what_is_watched() {
    let stage = connect(&peer("legacy")).await.unwrap();
    let set = |uris: &[&str]| uris.iter().map(|uri| (*uri).to_owned()).collect::<BTreeSet<_>>();
    stage.connection.watch(set(&["a:1", "a:2"])).await.unwrap();
    stage.connection.watch(set(&["a:2", "a:3"])).await.unwrap();
    stage.connection.hear(Level::Warning).await.unwrap();
    let uris = |messages: Vec<Value>| {
        messages.iter().map(|m| m["params"]["uri"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(uris(stage.seen_of("resources/subscribe").await), ["a:1", "a:2", "a:3"]);
    assert_eq!(uris(stage.seen_of("resources/unsubscribe").await), ["a:1"]);
    assert_eq!(stage.seen_of("logging/setLevel").await[0]["params"], json!({ "level": "warning" }));
    stage.connection.close().await;
}

#[tokio::test]
async fn a_modern_source_is_listened_to_and_anew_when_other_things_are_watched() {
    let mut stage = connect(&peer("modern")).await.unwrap();
    // Nothing is called before the first listening is known to have begun.
    while stage.seen_of("subscriptions/listen").await.is_empty() {}
    stage.connection.watch(BTreeSet::from(["a:b".to_owned()])).await.unwrap();
    match stage.next_tidings().await {
        Tidings::ResourceUpdated { uri, message } => {
            assert_eq!((uri.as_str(), message.get()), ("a:b", r#"{"uri":"a:b","_meta":{"own":1}}"#));
        }
        other => panic!("{other:?}"),
    }
    let asked = stage.seen_of("subscriptions/listen").await;
    let lists = json!({ "toolsListChanged": true, "resourcesListChanged": true });
    assert_eq!(asked[0]["params"]["notifications"], lists);
    assert_eq!(asked[1]["params"]["notifications"]["resourceSubscriptions"], json!(["a:b"]));
    let off = stage.seen_of("notifications/cancelled").await;
    assert_eq!(off[0]["params"]["requestId"], asked[0]["id"]);
    stage.connection.close().await;
}

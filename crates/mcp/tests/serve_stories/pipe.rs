//! Both eras on one pipe: nothing but JSON-RPC comes out, and the end of the input is the end.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use toolcrib_core::{id::SourceId, news::News, source::State, testing::ScriptedSource};
use toolcrib_mcp::serve::stdio;

use crate::desk::{Counter, patient, sources};

struct Client {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    served: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Client {
    fn new(counter: &Counter) -> Self {
        Self::with_grace(counter, Duration::from_secs(10))
    }

    fn with_grace(counter: &Counter, grace: Duration) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (read, write) = tokio::io::split(theirs);
        let served = tokio::spawn(stdio::serve_with_grace(counter.desk.clone(), read, write, grace));
        let (read, write) = tokio::io::split(ours);
        Self { input: write, output: BufReader::new(read).lines(), served }
    }

    async fn say(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        serde_json::from_str(&self.output.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn initialize(&mut self, version: &str) {
        self.say(&legacy(0, "initialize", json!({ "protocolVersion": version }))).await;
        assert_eq!(self.answer().await["result"]["protocolVersion"], version);
    }

    /// The next message with an id.
    async fn answer(&mut self) -> Value {
        loop {
            let message = self.hear().await;
            if message.get("id").is_some() {
                return message;
            }
        }
    }
}

fn legacy(id: u64, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn modern(id: u64, method: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

#[tokio::test]
async fn both_eras_share_the_pipe() {
    let counter = Counter::new(&sources()).await;
    let mut client = Client::new(&counter);
    client.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
    assert_eq!(client.answer().await["error"]["code"], -32600, "nothing was opened yet");
    client.say(&modern(2, "tools/call", json!({ "name": "echo", "arguments": { "n": 3 } }))).await;
    assert_eq!(client.answer().await["result"]["n"], 3);
    client
        .say(r#"{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#)
        .await;
    assert_eq!(client.answer().await["result"]["protocolVersion"], "2025-11-25");
    client
        .say(r#"{"jsonrpc":"2.0","id":"four","method":"tools/call","params":{"name":"echo","arguments":{}}}"#)
        .await;
    let told = client.answer().await;
    assert_eq!((&told["id"], &told["result"]), (&json!("four"), &json!({})));
}

#[tokio::test]
async fn garbage_is_answered_and_survived() {
    let counter = Counter::new(&sources()).await;
    let mut client = Client::new(&counter);
    client.say("{nope").await;
    assert_eq!(client.hear().await["error"]["code"], -32700);
    client.input.write_all(b"\xff\xfe\n\n").await.unwrap();
    assert_eq!(client.hear().await["error"]["code"], -32700);
    client.say(&modern(1, "server/discover", json!({}))).await;
    assert_eq!(client.answer().await["id"], 1);
}

#[tokio::test]
async fn a_cancelled_request_is_not_answered_and_the_end_of_input_ends_the_service() {
    let counter = Counter::new(&sources()).await;
    let mut client = Client::new(&counter);
    client.say(&modern(1, "tools/call", json!({ "name": "hang", "arguments": {} }))).await;
    while counter.crib.gateway.roster().calls().is_empty() {
        tokio::task::yield_now().await;
    }
    client.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await;
    client.say(&modern(2, "tools/list", json!({}))).await;
    assert_eq!(client.answer().await["id"], 2);
    client.input.shutdown().await.unwrap();
    client.served.await.unwrap().unwrap();
    assert!(client.output.next_line().await.unwrap().is_none());
    assert_eq!(counter.crib.ledger.outcomes(), ["cancelled"]);
}

#[tokio::test]
async fn an_answer_is_one_line_whatever_the_source_wrote() {
    let counter = Counter::new(&sources()).await;
    let mut client = Client::new(&counter);
    let call = modern(1, "tools/call", json!({ "name": "echo", "arguments": { "x": [1] } }));
    client.say(&call.replace("[1]", "[\r1]")).await;
    assert!(!client.output.next_line().await.unwrap().unwrap().contains('\r'));
}

const CANCEL_1: &str = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;

#[tokio::test]
async fn a_cancellation_right_behind_its_request_is_heard() {
    let counter = Counter::new(&sources()).await;
    let mut client = Client::new(&counter);
    client.initialize("2025-11-25").await;
    let hang = json!({ "name": "hang", "arguments": {} });
    let (new, old) = (modern(1, "tools/call", hang.clone()), legacy(1, "tools/call", hang));
    for call in [new, old] {
        client.say(&format!("{call}\n{CANCEL_1}\n{}", legacy(2, "ping", json!({})))).await;
        assert_eq!(client.answer().await["id"], 2);
    }
    client.input.shutdown().await.unwrap();
    client.served.await.unwrap().unwrap();
    assert_eq!(counter.crib.ledger.outcomes(), ["cancelled", "cancelled"]);
}

#[tokio::test]
async fn a_hung_call_holds_the_pipe_no_longer_than_the_grace() {
    let counter = Counter::new(&[]).await;
    patient(&counter, &ScriptedSource::with_tools(&["hang"]));
    let mut client = Client::with_grace(&counter, Duration::from_millis(50));
    client.initialize("2025-11-25").await;
    client.say(&legacy(1, "tools/call", json!({ "name": "hang", "arguments": {} }))).await;
    while counter.crib.gateway.roster().calls().is_empty() {
        tokio::task::yield_now().await;
    }
    client.input.shutdown().await.unwrap();
    tokio::time::timeout(Duration::from_secs(5), client.served).await.unwrap().unwrap().unwrap();
    while counter.crib.ledger.outcomes().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(counter.crib.ledger.outcomes(), ["cancelled"]);
}

#[tokio::test]
async fn a_full_house_refuses_and_still_hears_cancellations() {
    let slow = ScriptedSource::with_tools(&[]);
    *slow.slow.lock().unwrap() = Duration::from_secs(3600);
    let counter = Counter::new(&[("s", slow)]).await;
    let mut client = Client::new(&counter);
    for id in 1..=64 {
        client.say(&modern(1000 + id, "subscriptions/listen", json!({ "notifications": {} }))).await;
        assert_eq!(client.hear().await["method"], "notifications/subscriptions/acknowledged");
    }
    client.say(&modern(2000, "subscriptions/listen", json!({ "notifications": {} }))).await;
    assert_eq!(client.hear().await["error"]["data"]["kind"], "overloaded", "one listener too many");
    for id in 1..=256 {
        client.say(&modern(id, "tools/list", json!({}))).await;
    }
    client.say(&modern(257, "tools/list", json!({}))).await;
    let told = client.answer().await;
    assert_eq!((&told["id"], &told["error"]["code"]), (&json!(257), &json!(-31429)));
    client.say(&CANCEL_1.replace('1', "1001")).await;
    loop {
        client.say(&modern(3000, "subscriptions/listen", json!({ "notifications": {} }))).await;
        if client.hear().await["method"] == "notifications/subscriptions/acknowledged" {
            return;
        }
    }
}

#[tokio::test]
async fn who_missed_news_is_told_to_look_at_every_list() {
    let counter = Counter::new(&[]).await;
    let mut client = Client::new(&counter);
    client.initialize("2025-11-25").await;
    for _ in 0..2000 {
        let source = SourceId::new("s").unwrap();
        counter.crib.gateway.newsroom().tell(News::Source { source, state: State::Ready, error: None });
    }
    for list in ["tools", "prompts", "resources"] {
        assert_eq!(client.hear().await["method"], format!("notifications/{list}/list_changed"));
    }
}

#[tokio::test]
async fn only_the_one_revision_that_has_batches_takes_them_from_a_pipe() {
    let counter = Counter::new(&sources()).await;
    let mut client = Client::new(&counter);
    let (ping, echo) =
        (legacy(1, "ping", json!({})), legacy(2, "tools/call", json!({ "name": "echo", "arguments": {} })));
    let batch = format!("[{ping},{echo},{CANCEL_1},7]");
    client.say(&batch).await;
    assert_eq!(client.hear().await["error"]["code"], -32600, "nobody was introduced");
    client.initialize("2025-06-18").await;
    client.say(&batch).await;
    assert_eq!(client.answer().await["error"]["code"], -32600);
    client.initialize("2025-03-26").await;
    client.say(&batch).await;
    let told = loop {
        let told = client.hear().await;
        if told.is_array() {
            break told;
        }
    };
    assert_eq!(told.as_array().unwrap().len(), 3);
    assert_eq!((&told[0]["id"], &told[1]["result"]), (&json!(1), &json!({})));
    client.say(&format!("[{CANCEL_1}]")).await;
    client.say(&legacy(3, "ping", json!({}))).await;
    assert_eq!(client.answer().await["id"], 3, "what asks nothing is not answered");
}

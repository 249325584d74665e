//! Both eras on one pipe: nothing but JSON-RPC comes out, and the end of the input is the end.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use toolcrib_mcp::serve::stdio;

use crate::desk::{Counter, sources};

struct Client {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    served: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Client {
    fn new(counter: &Counter) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (read, write) = tokio::io::split(theirs);
        let served = tokio::spawn(stdio::serve(counter.desk.clone(), read, write));
        let (read, write) = tokio::io::split(ours);
        Self { input: write, output: BufReader::new(read).lines(), served }
    }

    async fn say(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        serde_json::from_str(&self.output.next_line().await.unwrap().unwrap()).unwrap()
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
    client.say(&modern(1, "tools/call", json!({ "name": "echo", "arguments": {} })).replace("{}", "{\r}")).await;
    assert!(!client.output.next_line().await.unwrap().unwrap().contains('\r'));
}

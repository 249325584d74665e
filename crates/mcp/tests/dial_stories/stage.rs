//! What the stories share: permits, invocations, and the dialer of the scripted process.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolcrib_core::{
    call::{Carry, Event, Events, Invocation, Reply, Verb},
    catalog::{Item, ItemKind},
    error::Failure,
    id::{CallId, SourceId},
    policy::{Decision, Permit, Policy},
    source::{Connection, Dialer, Tidings},
    testing::{caller, json},
};
use toolcrib_mcp::dial::StdioDialer;

const PEER: &str = include_str!("peer.py");

pub fn peer(mode: &str) -> StdioDialer {
    let args = vec!["-u".into(), "-c".into(), PEER.into(), mode.into()];
    StdioDialer::new("python3", args, vec![("CRIB_TEST".into(), "yes".into())], None)
}

pub struct Stage {
    pub connection: Arc<dyn Connection>,
    pub tidings: mpsc::Receiver<Tidings>,
}

pub async fn connect(dialer: &dyn Dialer) -> Result<Stage, Failure> {
    let (sender, tidings) = mpsc::channel(64);
    dialer.dial(sender).await.map(|connection| Stage { connection, tidings })
}

pub fn permit(kind: ItemKind, verb: Verb, own: &str, arguments: Option<&str>, carry: Carry) -> Permit {
    permit_for(Item::unlisted(kind, &SourceId::new("s").unwrap(), own), verb, arguments, carry)
}

pub fn permit_for(item: Item, verb: Verb, arguments: Option<&str>, carry: Carry) -> Permit {
    let invocation = Invocation {
        call: CallId::fresh(),
        caller: caller("somebody", &["*"], &[]),
        verb,
        item,
        arguments: arguments.map(json),
        carry,
        patience: Duration::from_secs(10),
    };
    match Policy::by_access().decide(invocation) {
        Decision::Allow(permit) => permit,
        other => panic!("{other:?}"),
    }
}

pub fn tool(own: &str, arguments: &str) -> Permit {
    permit(ItemKind::Tool, Verb::Use, own, Some(arguments), Carry::default())
}

impl Stage {
    pub async fn run(&self, permit: Permit) -> Result<Reply, Failure> {
        self.run_hearing(permit).await.0
    }

    pub async fn run_hearing(&self, permit: Permit) -> (Result<Reply, Failure>, Vec<Event>) {
        let (events, mut heard) = Events::channel();
        let reply = self.connection.invoke(permit, events, CancellationToken::new()).await;
        let mut all = Vec::new();
        while let Ok(event) = heard.try_recv() {
            all.push(event);
        }
        (reply, all)
    }

    /// The text a tool answered.
    pub async fn text(&self, own: &str, arguments: &str) -> String {
        let reply = self.run(tool(own, arguments)).await.unwrap();
        let value: Value = serde_json::from_str(reply.result.get()).unwrap();
        value["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Every message the scripted process has read so far.
    pub async fn seen(&self) -> Vec<Value> {
        serde_json::from_str(&self.text("seen", "{}").await).unwrap()
    }

    pub async fn seen_of(&self, method: &str) -> Vec<Value> {
        self.seen().await.into_iter().filter(|message| message["method"] == method).collect()
    }

    pub async fn next_tidings(&mut self) -> Tidings {
        tokio::time::timeout(Duration::from_secs(10), self.tidings.recv()).await.unwrap().unwrap()
    }
}

//! The crib's own source, `crib`: tools about the tools. They see exactly what their caller may see.

use std::{
    collections::BTreeSet,
    sync::{Arc, Weak},
};

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    call::{Events, Invocation, Level, Outcome, Reply, Verb},
    caller::{Caller, Role},
    catalog::{Entry, ItemKind, LiveCatalog, Offer, Style},
    error::{Failure, Kind},
    ledger::{Filter, Ledger, Line},
    policy::{Permit, Policy},
    raw::{self, Members, Raw},
    source::{Connection, Dialer, Facts, Source, Tidings, supervisor::Supervisor},
};

/// The id of this source.
pub const ID: &str = "crib";

/// What the built-in tools look at.
#[derive(Clone)]
pub struct Builtin {
    pub catalog: Arc<LiveCatalog>,
    pub policy: Policy,
    pub ledger: Arc<dyn Ledger>,
    /// Weak, because the supervisor owns this source too.
    pub supervisor: Weak<Supervisor>,
}

#[derive(Deserialize)]
struct Search {
    query: String,
    #[serde(default = "ten")]
    limit: usize,
}

#[derive(Deserialize)]
struct Describe {
    tool: String,
}

#[derive(Deserialize)]
struct Recent {
    #[serde(default = "ten")]
    limit: usize,
}

fn ten() -> usize {
    10
}

fn definitions() -> Vec<Raw> {
    let read_only = json!({ "readOnlyHint": true, "openWorldHint": false });
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": 100, "description": "at most this many; 10 if absent" });
    [
        json!({
            "name": "search_tools",
            "title": "Search the tools of this crib",
            "description": "Finds tools by words in their names and descriptions, best match first. Use it when the list of tools is long or you do not know what something is called.",
            "inputSchema": { "type": "object", "required": ["query"], "additionalProperties": false, "properties": {
                "query": { "type": "string", "minLength": 1, "description": "words to look for" }, "limit": limit.clone() } },
            "annotations": read_only.clone(),
        }),
        json!({
            "name": "describe_tool",
            "title": "Show one tool in full",
            "description": "Gives a tool's full definition: description, input schema, annotations. Takes any spelling of its name.",
            "inputSchema": { "type": "object", "required": ["tool"], "additionalProperties": false, "properties": {
                "tool": { "type": "string", "minLength": 1, "description": "a tool's name or id" } } },
            "annotations": read_only.clone(),
        }),
        json!({
            "name": "list_sources",
            "title": "Show the sources of this crib",
            "description": "Lists the servers behind this crib, whether each is connected, how many tools it has and its last error. Use it to find out why a tool is missing or failing.",
            "inputSchema": { "type": "object", "additionalProperties": false, "properties": {} },
            "annotations": read_only.clone(),
        }),
        json!({
            "name": "recent_calls",
            "title": "Show recent calls",
            "description": "Lists your latest calls through this crib with outcome and duration, newest first. Arguments and results are not kept.",
            "inputSchema": { "type": "object", "additionalProperties": false, "properties": { "limit": limit } },
            "annotations": read_only,
        }),
    ]
    .iter()
    .map(raw::from)
    .collect()
}

impl Builtin {
    /// The entries of tools the caller may see.
    fn visible(&self, caller: &Caller) -> Vec<Arc<Entry>> {
        self.catalog.snapshot().tools().visible(caller, &self.policy).cloned().collect()
    }

    fn search(&self, caller: &Caller, ask: &Search) -> Value {
        let words: Vec<String> = ask.query.split_whitespace().map(str::to_lowercase).collect();
        let mut found: Vec<(usize, Arc<Entry>, String)> = self
            .visible(caller)
            .into_iter()
            .filter_map(|entry| {
                let text = entry.described();
                let score = score(&words, &entry.item.id.to_lowercase(), &text.to_lowercase());
                (score > 0).then_some((score, entry, text))
            })
            .collect();
        found.sort_by_key(|(score, ..)| std::cmp::Reverse(*score));
        let tools: Vec<Value> = found
            .into_iter()
            .take(ask.limit.clamp(1, 100))
            .map(|(_, entry, text)| json!({ "id": &*entry.item.id, "name": &*entry.names.safe, "description": text }))
            .collect();
        json!({ "tools": tools })
    }

    fn describe(&self, caller: &Caller, ask: &Describe) -> Result<Value, Failure> {
        let catalog = self.catalog.snapshot();
        let entry = catalog.pick(catalog.tools(), "tool", &ask.tool, caller, &self.policy)?;
        let definition: Value = serde_json::from_str(entry.listing(Style::Safe).get()).unwrap_or_default();
        Ok(json!({ "id": &*entry.item.id, "tool": definition }))
    }

    fn sources(&self, caller: &Caller) -> Value {
        let seen: BTreeSet<_> = self.visible(caller).iter().map(|entry| entry.item.source.clone()).collect();
        let statuses = self.supervisor.upgrade().map(|supervisor| supervisor.statuses()).unwrap_or_default();
        let sources: Vec<Value> = statuses
            .iter()
            .filter(|status| caller.role == Role::Admin || seen.contains(&status.id))
            .map(|status| {
                // Why a source failed may quote what others sent to it.
                let error = status.last_error.as_ref().filter(|_| caller.role == Role::Admin);
                json!({ "id": status.id, "state": status.state, "transport": status.transport,
                        "tools": status.tools, "lastError": error })
            })
            .collect();
        json!({ "sources": sources })
    }

    async fn recent(&self, caller: &Caller, ask: &Recent) -> Result<Value, Failure> {
        let filter = Filter {
            caller: Some(caller.id.to_string()),
            limit: ask.limit.clamp(1, 100),
            ..Filter::default()
        };
        let lines = self.ledger.read(filter).await;
        let lines = lines.map_err(|down| Failure::new(Kind::LedgerDown, down.to_string()))?;
        let lines: Vec<Line> = match caller.role {
            Role::Admin => lines,
            Role::User => lines.into_iter().map(Line::told_to_user).collect(),
        };
        Ok(json!({ "calls": lines }))
    }

    async fn run(&self, invocation: &Invocation) -> Result<Value, Failure> {
        if invocation.item.kind != ItemKind::Tool || invocation.verb != Verb::Use {
            return Err(Failure::unknown("item", &invocation.item.own));
        }
        let caller = &*invocation.caller;
        let arguments = invocation.arguments.as_deref();
        match &*invocation.item.own {
            "search_tools" => Ok(self.search(caller, &parsed(arguments)?)),
            "describe_tool" => self.describe(caller, &parsed(arguments)?),
            "list_sources" => Ok(self.sources(caller)),
            "recent_calls" => self.recent(caller, &parsed(arguments)?).await,
            other => Err(Failure::unknown("tool", other)),
        }
    }
}

/// How well the words fit: a hit in the id counts more than one in the description; every word must hit.
fn score(words: &[String], id: &str, text: &str) -> usize {
    let each = words.iter().map(|word| 3 * usize::from(id.contains(word)) + usize::from(text.contains(word)));
    let each: Vec<usize> = each.collect();
    if each.contains(&0) { 0 } else { each.iter().sum() }
}

fn parsed<T: for<'a> Deserialize<'a>>(arguments: Option<&serde_json::value::RawValue>) -> Result<T, Failure> {
    let text = arguments.map_or("{}", |raw| raw.get());
    serde_json::from_str(text).map_err(|error| Failure::new(Kind::InvalidArguments, error.to_string()))
}

#[async_trait]
impl Dialer for Builtin {
    async fn dial(&self, tidings: mpsc::Sender<Tidings>) -> Result<Arc<dyn Connection>, Failure> {
        Ok(Arc::new(Counter { builtin: self.clone(), _tidings: tidings }))
    }
    fn transport(&self) -> &'static str {
        "builtin"
    }
    fn address(&self) -> String {
        "in this process".into()
    }
}

/// The built-in source, connected. It holds the sender of its tidings, since a closed one reads as a lost connection.
struct Counter {
    builtin: Builtin,
    _tidings: mpsc::Sender<Tidings>,
}

#[async_trait]
impl Source for Counter {
    async fn invoke(&self, permit: Permit, _: Events, _: CancellationToken) -> Result<Reply, Failure> {
        let invocation = permit.spend();
        let (value, outcome) = match self.builtin.run(&invocation).await {
            Ok(value) => (value, Outcome::Done),
            Err(failure) => (json!({ "error": failure.told }), Outcome::ToolError),
        };
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        let result = raw::from(&json!({
            "content": [{ "type": "text", "text": text }],
            "structuredContent": value,
            "isError": outcome == Outcome::ToolError,
        }));
        Ok(Reply { result, outcome })
    }
}

#[async_trait]
impl Connection for Counter {
    fn facts(&self) -> Facts {
        Facts::default()
    }

    async fn offer(&self) -> Result<Offer, Failure> {
        let mut offer = Offer::default();
        for raw in definitions() {
            let name = Members::parse_lenient(&raw).text("name").unwrap_or_default();
            offer.tools.push(crate::catalog::Definition { name, raw: Arc::from(raw) });
        }
        Ok(offer)
    }

    async fn watch(&self, _: BTreeSet<String>) -> Result<(), Failure> {
        Ok(())
    }

    async fn hear(&self, _: Level) -> Result<(), Failure> {
        Ok(())
    }

    async fn lost(&self) -> String {
        std::future::pending().await
    }

    async fn close(&self) {}
}

//! A crib put together in this process for one command. Its caller is `local`, as on a pipe.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use toolcrib_core::call::{Call, Carry, Event, Progress, Surface, Target};
use toolcrib_core::catalog::Entry;
use toolcrib_core::error::{Failure, Kind};
use toolcrib_core::gateway::abandoned;
use toolcrib_core::id::SourceId;
use toolcrib_core::source::State;
use toolcrib_core::source::supervisor::Status;

use super::{Server, Tool};
use crate::assemble::Crib;
use crate::cli::trouble::Trouble;
use crate::config::{Config, Names};

/// How long a call that was interrupted may take to end.
const LAST_WORDS: Duration = Duration::from_secs(2);

pub struct Here {
    crib: Crib,
    names: Names,
}

impl Here {
    pub async fn assemble(config: &Config) -> Result<Self, Trouble> {
        Ok(Self { crib: Crib::assemble(config).await?, names: config.names })
    }

    pub async fn close(self) {
        self.crib.close(Duration::ZERO).await;
    }

    /// Connects every server that is switched on, all at once; how it went is in their states.
    pub async fn servers(&self) -> Result<Vec<Server>, Trouble> {
        let supervisor = self.crib.gateway.supervisor();
        let mut attempts = JoinSet::new();
        for status in supervisor.statuses().into_iter().filter(|status| status.enabled) {
            let supervisor = supervisor.clone();
            attempts.spawn(async move { supervisor.connect(&status.id).await });
        }
        attempts.join_all().await;
        Ok(supervisor.statuses().into_iter().map(server).collect())
    }

    pub async fn server(&self, id: &str) -> Result<Server, Trouble> {
        let supervisor = self.crib.gateway.supervisor();
        let id = SourceId::new(id).map_err(|_| Failure::unknown("source", id))?;
        if supervisor.status(&id)?.enabled {
            // Why it failed is in its state.
            let _ = supervisor.connect(&id).await;
        }
        Ok(server(supervisor.status(&id)?))
    }

    /// Connects one server and tells how that went.
    pub async fn connect(&self, id: &str) -> Result<(), Trouble> {
        let id = SourceId::new(id).map_err(|_| Failure::unknown("source", id))?;
        Ok(self.crib.gateway.supervisor().connect(&id).await?)
    }

    pub fn glance(&self) -> Vec<Server> {
        self.crib.gateway.supervisor().statuses().into_iter().map(server).collect()
    }

    pub async fn tools(&self, source: Option<&str>) -> Result<Vec<Tool>, Trouble> {
        match source {
            Some(id) => self.connect(id).await?,
            None => drop(self.servers().await?),
        }
        Ok(self.known_tools(source))
    }

    pub fn known_tools(&self, source: Option<&str>) -> Vec<Tool> {
        let catalog = self.crib.gateway.catalog().snapshot();
        let local = self.crib.local();
        catalog
            .tools()
            .visible(&local, self.crib.gateway.policy())
            .filter(|entry| source.is_none_or(|source| entry.item.source.as_str() == source))
            .map(|entry| self.shown(entry))
            .collect()
    }

    pub async fn tool(&self, spelling: &str) -> Result<Tool, Trouble> {
        self.make_known(spelling).await?;
        let catalog = self.crib.gateway.catalog().snapshot();
        let policy = self.crib.gateway.policy();
        let entry = catalog.pick(catalog.tools(), "tool", spelling, &self.crib.local(), policy)?;
        Ok(self.shown(entry))
    }

    fn shown(&self, entry: &Arc<Entry>) -> Tool {
        let name = match self.names {
            Names::Safe => &entry.names.safe,
            Names::Colon => &entry.names.colon,
            Names::Bare => &entry.names.bare,
        };
        Tool {
            tool_id: entry.item.id.to_string(),
            server_id: entry.item.source.to_string(),
            name: name.to_string(),
            description: entry.described(),
            tool: serde_json::from_str(entry.definition.get()).unwrap_or_default(),
        }
    }

    /// Connects the server a spelling names, and nothing else; all of them where it names none. Only a question of whom
    /// to wake: what the spelling means is still looked up in the catalog.
    async fn make_known(&self, spelling: &str) -> Result<(), Trouble> {
        let statuses = self.crib.gateway.supervisor().statuses();
        let named = statuses.iter().filter(|status| {
            let rest = spelling.strip_prefix(status.id.as_str());
            rest.is_some_and(|rest| rest.starts_with(':') || rest.starts_with("__"))
        });
        match named.max_by_key(|status| status.id.as_str().len()) {
            Some(status) if status.state == State::Disabled => {
                let told = format!("server `{}` is switched off in the config", status.id);
                Err(Failure::new(Kind::Unavailable, told).into())
            }
            Some(status) => Ok(self.crib.gateway.supervisor().connect(&status.id).await?),
            None => self.servers().await.map(drop),
        }
    }

    pub async fn call(
        &self,
        tool: &str,
        arguments: Box<RawValue>,
        progress: mpsc::Sender<String>,
    ) -> Result<Box<RawValue>, Trouble> {
        self.make_known(tool).await?;
        let carry = Carry { progress: Progress::Wanted, ..Carry::default() };
        let call = Call::new(self.crib.local(), Surface::Cli, Target::Tool(tool.to_owned()), Some(arguments));
        let mut running = self.crib.gateway.call(call.carrying(carry));
        let mut hearing = true;
        let interrupted = tokio::signal::ctrl_c();
        tokio::pin!(interrupted);
        let reply = loop {
            tokio::select! {
                reply = &mut running.reply => break reply,
                event = running.events.recv(), if hearing => match event {
                    // A person who looks away misses some of it; that is all.
                    Some(event) => drop(progress.try_send(said(&event))),
                    None => hearing = false,
                },
                _ = &mut interrupted => {
                    running.cancel.cancel();
                    let ended = tokio::time::timeout(LAST_WORDS, running.reply).await;
                    break ended.unwrap_or_else(|_| Ok(Err(Failure::new(Kind::Cancelled, "interrupted"))));
                }
            }
        };
        Ok(reply.unwrap_or_else(|_| Err(abandoned()))?.result)
    }
}

fn server(status: Status) -> Server {
    let word = |value: Result<Value, serde_json::Error>| match value {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    };
    Server {
        id: status.id.to_string(),
        name: status.name,
        description: status.description,
        transport: status.transport.to_owned(),
        address: status.address,
        enabled: status.enabled,
        connect: word(serde_json::to_value(status.connect)),
        state: status.state.word().to_owned(),
        last_error: status.last_error,
        tools: status.tools,
        prompts: status.prompts,
        resources: status.resources,
        in_flight: status.in_flight,
        protocol: status.facts.protocol,
        server: status.facts.server.and_then(|raw| serde_json::from_str(raw.get()).ok()),
        pid: status.facts.pid,
        warnings: status.warnings,
    }
}

/// An event of a call as a line for a person.
fn said(event: &Event) -> String {
    let value = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).unwrap_or_default();
    match event {
        Event::Progress(raw) => {
            let params = value(raw);
            let number = |key: &str| params.get(key).and_then(Value::as_f64);
            let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
            match (number("progress"), number("total")) {
                (Some(done), Some(total)) if total > 0.0 => {
                    format!("{:3.0}% {message}", done / total * 100.0)
                }
                (Some(done), _) => format!("{done} {message}"),
                _ => message.to_owned(),
            }
        }
        Event::Log { level, message } => {
            let params = value(message);
            let words = params.get("data").unwrap_or(&params);
            let words = words.as_str().map_or_else(|| words.to_string(), str::to_owned);
            format!("{}: {words}", level.word())
        }
        Event::Notice { method, .. } => method.clone(),
    }
}

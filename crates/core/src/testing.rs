//! In-memory ports for story tests: a ledger that can be broken, sources that follow a script.

#![allow(
    clippy::unwrap_used,
    reason = "only tests use it, also where another crate's tests bring it in by its feature"
)]

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::{
    call::{Call, Event, Events, Invocation, Level, Outcome, Reply, Surface, Target},
    caller::{Caller, CallerKind, Role},
    catalog::{LiveCatalog, Offer, offer::ShelfSettings},
    error::{Failure, Kind},
    gateway::{Gateway, Parts},
    id::{CallerId, SourceId},
    ledger::{Closing, Entry, Filter, Ledger, LedgerDown, Line, Opening},
    news::Newsroom,
    policy::{Access, Permit, Policy},
    raw::{self, Raw},
    source::{
        ConnectMode, Connection, Dialer, Facts, Source, Tidings,
        supervisor::{SourceSpec, Supervisor},
        terms::Terms,
    },
};

/// A ledger in memory.
#[derive(Default)]
pub struct MemoryLedger {
    pub opened: Mutex<Vec<Opening>>,
    pub closed: Mutex<Vec<(i64, Closing)>>,
    pub broken: AtomicBool,
    next: AtomicI64,
}

impl MemoryLedger {
    pub fn outcomes(&self) -> Vec<&'static str> {
        self.closed.lock().unwrap().iter().map(|(_, closing)| closing.ending.word()).collect()
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn open(&self, opening: Opening) -> Result<Entry, LedgerDown> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(LedgerDown("broken by the test".into()));
        }
        self.opened.lock().unwrap().push(opening);
        Ok(Entry { number: self.next.fetch_add(1, Ordering::Relaxed) })
    }
    async fn close(&self, entry: Entry, closing: Closing) -> Result<(), LedgerDown> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(LedgerDown("broken by the test".into()));
        }
        self.closed.lock().unwrap().push((entry.number, closing));
        Ok(())
    }
    async fn read(&self, _: Filter) -> Result<Vec<Line>, LedgerDown> {
        Ok(Vec::new())
    }
}

/// What a scripted source does when invoked, by the tool's own name: `echo` answers its arguments, `hang` never
/// answers, `chatty` reports progress and then hangs, `fail` reports a tool error, anything else answers `{}`.
#[derive(Default)]
pub struct ScriptedSource {
    pub tools: Vec<&'static str>,
    pub dials: AtomicUsize,
    pub refuse: AtomicBool,
    pub invoked: Mutex<Vec<String>>,
    pub cancelled: Arc<AtomicUsize>,
    /// While set, connections take this long to close and dials this long to succeed.
    pub slow: Mutex<Duration>,
    pub refuse_watch: AtomicBool,
    pub watched: Mutex<Vec<BTreeSet<String>>>,
    /// Ends the connections there are.
    pub lose: Notify,
    pub open: AtomicUsize,
}

impl ScriptedSource {
    pub fn with_tools(tools: &[&'static str]) -> Arc<Self> {
        Arc::new(Self { tools: tools.to_vec(), ..Self::default() })
    }
}

/// The way to a [`ScriptedSource`].
pub struct ScriptedDialer(pub Arc<ScriptedSource>);

#[async_trait]
impl Dialer for ScriptedDialer {
    async fn dial(&self, tidings: mpsc::Sender<Tidings>) -> Result<Arc<dyn Connection>, Failure> {
        self.0.dials.fetch_add(1, Ordering::Relaxed);
        let slow = *self.0.slow.lock().unwrap();
        tokio::time::sleep(slow).await;
        if self.0.refuse.load(Ordering::Relaxed) {
            return Err(Failure::new(Kind::Unavailable, "nobody home"));
        }
        self.0.open.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(ScriptedConnection { source: self.0.clone(), _tidings: tidings }))
    }
    fn transport(&self) -> &'static str {
        "scripted"
    }
    fn address(&self) -> String {
        "memory".into()
    }
}

struct ScriptedConnection {
    source: Arc<ScriptedSource>,
    _tidings: mpsc::Sender<Tidings>,
}

struct Hanging(Arc<AtomicUsize>);

impl Drop for Hanging {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl Source for ScriptedConnection {
    async fn invoke(&self, permit: Permit, events: Events, _: CancellationToken) -> Result<Reply, Failure> {
        let Invocation { item, arguments, .. } = permit.spend();
        self.source.invoked.lock().unwrap().push(item.own.to_string());
        let done = |result: Raw| Ok(Reply { result, outcome: Outcome::Done });
        match &*item.own {
            "echo" => done(arguments.unwrap_or_else(raw::empty_object)),
            "fail" => Ok(Reply { result: raw::empty_object(), outcome: Outcome::ToolError }),
            "hang" => {
                let _hanging = Hanging(self.source.cancelled.clone());
                std::future::pending().await
            }
            "chatty" => {
                for _ in 0..5 {
                    tokio::time::sleep(Duration::from_millis(40)).await;
                    events.emit(Event::Progress(raw::empty_object()));
                }
                done(raw::empty_object())
            }
            _ => done(raw::empty_object()),
        }
    }
}

#[async_trait]
impl Connection for ScriptedConnection {
    fn facts(&self) -> Facts {
        Facts::default()
    }
    async fn offer(&self) -> Result<Offer, Failure> {
        let mut offer = Offer::default();
        let raws = self.source.tools.iter().map(|name| tool(name)).collect();
        Offer::read(&mut offer.tools, "name", raws, &mut offer.mishaps);
        Ok(offer)
    }
    async fn watch(&self, uris: BTreeSet<String>) -> Result<(), Failure> {
        if self.source.refuse_watch.load(Ordering::Relaxed) {
            return Err(Failure::new(Kind::Refused, "not here"));
        }
        self.source.watched.lock().unwrap().push(uris);
        Ok(())
    }
    async fn hear(&self, _: Level) -> Result<(), Failure> {
        Ok(())
    }
    async fn lost(&self) -> String {
        self.source.lose.notified().await;
        "lost by the test".into()
    }
    async fn close(&self) {
        let slow = *self.source.slow.lock().unwrap();
        tokio::time::sleep(slow).await;
        self.source.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A definition whose `n`, if given, must be an integer.
pub fn tool(name: &str) -> Raw {
    json(&format!(
        r#"{{"name":{name:?},"description":"d","inputSchema":{{"type":"object","properties":{{"n":{{"type":"integer"}}}}}}}}"#
    ))
}

pub fn json(text: &str) -> Raw {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// A crib with in-memory parts.
pub struct TestCrib {
    pub gateway: Arc<Gateway>,
    pub ledger: Arc<MemoryLedger>,
}

impl TestCrib {
    pub async fn new(sources: &[(&str, Arc<ScriptedSource>)]) -> Self {
        Self::with_policy(sources, Policy::by_access()).await
    }

    pub async fn with_policy(sources: &[(&str, Arc<ScriptedSource>)], policy: Policy) -> Self {
        let newsroom = Newsroom::default();
        let catalog = Arc::new(LiveCatalog::new(newsroom.clone()));
        let supervisor = Supervisor::new(catalog.clone(), newsroom.clone());
        let specs = sources.iter().map(|(id, source)| spec(id, source)).collect();
        supervisor.apply(specs);
        let ledger = Arc::new(MemoryLedger::default());
        let parts = Parts {
            catalog,
            policy,
            ledger: ledger.clone(),
            supervisor,
            newsroom,
            tracer: None,
            most_calls: 8,
        };
        Self { gateway: Gateway::new(parts), ledger }
    }

    pub async fn call(&self, caller: &Arc<Caller>, tool: &str, arguments: &str) -> Result<Reply, Failure> {
        self.gateway.call(call(caller, tool, arguments)).finish().await
    }
}

pub fn call(caller: &Arc<Caller>, tool: &str, arguments: &str) -> Call {
    Call::new(caller.clone(), Surface::Cli, Target::Tool(tool.into()), Some(json(arguments)))
}

/// A source with a patience of 100 ms.
pub fn spec(id: &str, source: &Arc<ScriptedSource>) -> SourceSpec {
    SourceSpec {
        terms: Terms {
            id: SourceId::new(id).unwrap(),
            title: None,
            description: None,
            enabled: true,
            mode: ConnectMode::OnDemand,
            idle_after: Duration::from_secs(600),
            connect_limit: Duration::from_secs(30),
            shelf: Arc::new(ShelfSettings {
                patience: Duration::from_millis(100),
                ..ShelfSettings::default()
            }),
        },
        dialer: Arc::new(ScriptedDialer(source.clone())),
        dial_print: id.into(),
        terms_print: String::new(),
    }
}

pub fn caller(id: &str, allow: &[&str], deny: &[&str]) -> Arc<Caller> {
    let list = |globs: &[&str]| globs.iter().map(|g| (*g).to_owned()).collect::<Vec<_>>();
    Arc::new(Caller {
        id: CallerId::new(id),
        kind: CallerKind::Agent,
        role: Role::User,
        access: Access::new(&list(allow), &list(deny)).unwrap(),
    })
}

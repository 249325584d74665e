//! A crib with one scripted source, three callers and a ledger that can be read, for the tests of this folder.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::{
    Router,
    body::Body,
    http::{Request, Response, StatusCode, header},
};
use http_body_util::BodyExt as _;
use toolcrib_core::{
    caller::{Caller, CallerKind, Callers, Role, Roll},
    catalog::{LiveCatalog, offer::ShelfSettings},
    gateway::{Gateway, Parts},
    id::CallerId,
    ledger::{Closing, Entry, Filter, Ledger, LedgerDown, Line, Opening, Progress},
    news::Newsroom,
    policy::{Access, Policy},
    source::supervisor::Supervisor,
    testing::{ScriptedSource, spec},
};
use toolcrib_rest::Desk;
use tower::ServiceExt as _;

pub const USER: &str = "user-token";
pub const OTHER: &str = "other-token";
pub const ADMIN: &str = "admin-token";

pub struct Crib {
    pub desk: Desk,
    pub source: Arc<ScriptedSource>,
    pub ledger: Arc<Lines>,
}

/// Source `s` with tools; `ann` and `bob` may not see `s:secret`, `root` may and is an administrator.
pub async fn crib() -> Crib {
    let source = ScriptedSource::with_tools(&["echo", "fail", "hang", "secret", "odd name/{x}"]);
    let newsroom = Newsroom::default();
    let catalog = Arc::new(LiveCatalog::new(newsroom.clone()));
    let supervisor = Supervisor::new(catalog.clone(), newsroom.clone());
    let mut patient = spec("s", &source);
    patient.terms.shelf = Arc::new(ShelfSettings::default());
    supervisor.apply(vec![patient]);
    let ledger = Arc::new(Lines::default());
    let policy = Policy::by_access();
    let parts =
        Parts { catalog, policy, ledger: ledger.clone(), supervisor, newsroom, most_calls: 8, tracer: None };
    let desk = Desk::new(Gateway::new(parts), Arc::new(Callers::new(roll())));
    Crib { desk, source, ledger }
}

pub fn roll() -> Roll {
    let mut roll = Roll::closed(Caller::local(Access::nothing()));
    let narrowed = || Access::new(&["s:*".into()], &["s:secret".into()]).unwrap();
    roll.add(USER, somebody("ann", Role::User, narrowed()));
    roll.add(OTHER, somebody("bob", Role::User, narrowed()));
    roll.add(ADMIN, somebody("root", Role::Admin, Access::everything()));
    roll
}

fn somebody(id: &str, role: Role, access: Access) -> Caller {
    Caller { id: CallerId::new(id), kind: CallerKind::Agent, role, access }
}

/// A request as a local client sends it.
pub fn request(method: &str, path: &str, token: Option<&str>, body: Option<&str>) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path).header(header::HOST, "localhost:3100");
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    if body.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    request.body(body.map_or_else(Body::empty, |body| Body::from(body.to_owned()))).unwrap()
}

pub async fn answer(router: &Router, request: Request<Body>) -> Response<Body> {
    router.clone().oneshot(request).await.unwrap()
}

/// Status and body of `method path` with `token`.
pub async fn ask(
    router: &Router,
    line: &str,
    token: Option<&str>,
    body: Option<&str>,
) -> (StatusCode, String) {
    let (method, path) = line.split_once(' ').unwrap();
    let response = answer(router, request(method, path, token, body)).await;
    let status = response.status();
    (status, text(response).await)
}

pub async fn text(response: Response<Body>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A ledger in memory that reads back by call, caller and outcome.
#[derive(Default)]
pub struct Lines {
    pub lines: Mutex<Vec<Line>>,
    pub broken: std::sync::atomic::AtomicBool,
}

#[async_trait]
impl Ledger for Lines {
    async fn open(&self, opening: Opening) -> Result<Entry, LedgerDown> {
        let mut lines = self.lines.lock().unwrap();
        let number = lines.len() as i64;
        lines.push(Line {
            number,
            call: opening.call.to_string(),
            at: opening.at,
            caller: opening.caller.to_string(),
            caller_kind: "agent".into(),
            surface: opening.surface.word().into(),
            kind: opening.kind.into(),
            target: opening.target,
            progress: Progress::Running,
            item: None,
            source: None,
            outcome: None,
            duration_us: None,
            bytes_in: opening.bytes_in,
            bytes_out: None,
            layer: None,
            detail: None,
        });
        Ok(Entry { number })
    }

    async fn close(&self, entry: Entry, closing: Closing) -> Result<(), LedgerDown> {
        let line = &mut self.lines.lock().unwrap()[entry.number as usize];
        line.progress = Progress::Finished;
        line.item = closing.item;
        line.source = closing.source.map(|source| source.to_string());
        line.outcome = Some(closing.ending.word().into());
        line.duration_us = Some(closing.duration_us);
        line.layer = closing.layer.map(str::to_owned);
        line.detail = closing.detail;
        Ok(())
    }

    async fn read(&self, filter: Filter) -> Result<Vec<Line>, LedgerDown> {
        if self.broken.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(LedgerDown("disk on fire at /secret/place".into()));
        }
        let fits =
            |wanted: &Option<String>, found: Option<&String>| wanted.is_none() || wanted.as_ref() == found;
        let most = if filter.limit == 0 { 10_000 } else { filter.limit };
        let lines = self.lines.lock().unwrap();
        let found = lines.iter().rev().filter(|line| {
            fits(&filter.call, Some(&line.call))
                && fits(&filter.caller, Some(&line.caller))
                && fits(&filter.outcome, line.outcome.as_ref())
        });
        Ok(found.take(most).cloned().collect())
    }
}

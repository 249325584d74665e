//! The legacy wire over HTTP: `initialize` opens a session, POSTs belong to it, GET is its standing stream, DELETE ends
//! it. A client that leaves has not cancelled: its answer waits in a stream it can resume.

use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use toolcrib_core::{
    caller::Caller,
    gateway::abandoned,
    raw::{Members, Raw},
};

use crate::{
    codes::{Fault, INVALID_REQUEST},
    meta::RequestMeta,
    serve::{
        Desk,
        batch::Batch,
        conversation::{Conversation, Step},
        dispatch::{self, Answer},
        http::{Endpoint, SESSION_ID, VERSION, accepted, fault, json, not_allowed, refusal, text},
        modern::event_stream,
        session::Session,
        stream::{KEEP_ALIVE, Stream},
        underway::Ticket,
        visit::{Asker, Visit, Who},
    },
    version::{Era, Version},
    wire::{self, Id, Message},
};

pub async fn post(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    asker: Asker,
    message: Message,
    meta: RequestMeta,
) -> Result<Response, Response> {
    if let Message::Request { id, method, params } = &message
        && method == "initialize"
    {
        return initialize(endpoint, asker, id, params.as_deref());
    }
    let session = session(endpoint, headers, &asker.caller)?;
    match message {
        Message::Request { id, method, params } => {
            let ticket = session.under_way.enter(&id);
            request(endpoint, session, Asked { ticket, method, params, meta }).await
        }
        Message::Notification { method, params } => {
            session.under_way.noted(&method, params.as_deref());
            Ok(accepted())
        }
        // The crib asks legacy clients nothing, so no answer is awaited.
        Message::Response { .. } => Ok(accepted()),
    }
}

fn initialize(
    endpoint: &Endpoint,
    asker: Asker,
    id: &Id,
    params: Option<&RawValue>,
) -> Result<Response, Response> {
    let desk = &endpoint.desk;
    let asked = params.map(Members::parse_lenient).and_then(|members| members.text("protocolVersion"));
    let Some(asked) = asked else {
        let told = crate::serve::request::invalid("`params.protocolVersion` must be a string");
        return Err(fault(Some(id), &told));
    };
    let version = Version::negotiate(&asked);
    let result = dispatch::initialized(desk, &asker, version);
    let visit = Visit::new(Who::new(&desk.callers, &asker), version, desk.gateway.clone());
    let session = endpoint.sessions.begin(visit, &desk.gateway, &desk.closing).map_err(|_| {
        let told = format!("{} sessions are open already, try again later", desk.settings.most_sessions);
        fault(Some(id), &Fault::new(INVALID_REQUEST, &told).at(StatusCode::SERVICE_UNAVAILABLE))
    })?;
    let mut response = json(StatusCode::OK, wire::success(Some(id), result.get()));
    if let Ok(value) = HeaderValue::from_str(&session.id) {
        response.headers_mut().insert(SESSION_ID, value);
    }
    Ok(response)
}

/// The session a request belongs to, and nobody else's.
fn session(endpoint: &Endpoint, headers: &HeaderMap, caller: &Caller) -> Result<Arc<Session>, Response> {
    let Some(id) = text(headers, SESSION_ID) else {
        let told = "`Mcp-Session-Id` is missing: send `initialize` first, or name 2026-07-28 in `_meta`";
        return Err(refusal(StatusCode::BAD_REQUEST, told));
    };
    if let Some(named) = text(headers, VERSION)
        && Version::parse(named).is_none_or(|version| version.era() == Era::Modern)
    {
        let told = format!("`MCP-Protocol-Version: {named}` is not a revision that has sessions here");
        return Err(refusal(StatusCode::BAD_REQUEST, &told));
    }
    let found = endpoint.sessions.find(id, &caller.id);
    found.ok_or_else(|| refusal(StatusCode::NOT_FOUND, "no such session; send `initialize` again"))
}

struct Asked {
    ticket: Ticket,
    method: String,
    params: Option<Raw>,
    meta: RequestMeta,
}

/// How a request is answered: at once, or on a stream that goes on without its reader.
enum Told {
    Message(String),
    Stream(Arc<Stream>),
}

/// On a task of its own from the start: a client that leaves has not cancelled, and may still do so.
async fn request(endpoint: &Endpoint, session: Arc<Session>, asked: Asked) -> Result<Response, Response> {
    let (tell, told) = oneshot::channel();
    tokio::spawn(attend(endpoint.desk.clone(), session, asked, tell));
    match told.await {
        Ok(Told::Message(message)) => Ok(json(StatusCode::OK, message)),
        Ok(Told::Stream(stream)) => Ok(event_stream(stream.read(None))),
        Err(_) => Err(lost()),
    }
}

/// The task ended without an answer: a defect.
fn lost() -> Response {
    refusal(StatusCode::INTERNAL_SERVER_ERROR, &abandoned().told)
}

async fn attend(desk: Arc<Desk>, session: Arc<Session>, asked: Asked, tell: oneshot::Sender<Told>) {
    let Asked { ticket, method, params, meta } = asked;
    let (id, params) = (&ticket.id, params.as_deref());
    let message = match dispatch::legacy(&desk, &session.visit, id.clone(), &method, params, meta).await {
        Answer::Now(Ok(result)) => wire::success(Some(id), &result),
        Answer::Now(Err(told)) => wire::failure(Some(id), &told.object),
        Answer::Later(conversation) => return converse(&session, conversation.heeding(&ticket), tell).await,
    };
    let _ = tell.send(Told::Message(message));
}

/// One JSON answer where nothing is said before it, else a stream.
async fn converse(session: &Session, mut conversation: Conversation, tell: oneshot::Sender<Told>) {
    let first = match tokio::time::timeout(KEEP_ALIVE, conversation.next()).await {
        Ok(Step::Done { message, .. }) => {
            // A client that left before the first word has no event to resume after.
            let _ = tell.send(Told::Message(message));
            return;
        }
        Ok(Step::Notify(message)) => Some(message),
        Err(_) => None,
    };
    let stream = session.streams.open();
    if let Some(message) = first {
        session.streams.push(&stream, &message);
    }
    let _ = tell.send(Told::Stream(stream.clone()));
    loop {
        match conversation.next().await {
            Step::Notify(message) => session.streams.push(&stream, &message),
            Step::Done { message, .. } => {
                session.streams.push(&stream, &message);
                return stream.end();
            }
        }
    }
}

/// GET: the standing stream, or any stream after `Last-Event-ID`.
pub fn open_stream(endpoint: &Endpoint, headers: &HeaderMap, caller: &Caller) -> Result<Response, Response> {
    if !headers.contains_key(SESSION_ID) {
        return Err(not_allowed());
    }
    let wants = text(headers, header::ACCEPT.as_str()).unwrap_or_default();
    if !(wants.contains("text/event-stream") || wants.contains("*/*")) {
        return Err(refusal(StatusCode::NOT_ACCEPTABLE, "`Accept` must include `text/event-stream`"));
    }
    let session = session(endpoint, headers, caller)?;
    let (stream, after): (Arc<Stream>, Option<u64>) = match text(headers, "last-event-id") {
        None => (session.streams.standing.clone(), None),
        Some(last) => match session.streams.resume(last) {
            Some((stream, event)) => (stream, Some(event)),
            None => {
                return Err(refusal(
                    StatusCode::NOT_FOUND,
                    "the stream named by `Last-Event-ID` is no longer kept",
                ));
            }
        },
    };
    Ok(event_stream(stream.read(after)))
}

pub fn end_session(endpoint: &Endpoint, headers: &HeaderMap, caller: &Caller) -> Result<Response, Response> {
    if !headers.contains_key(SESSION_ID) {
        return Err(not_allowed());
    }
    endpoint.sessions.end(&*session(endpoint, headers, caller)?);
    let mut response = accepted();
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// Several messages at once.
pub async fn batch(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    asker: &Asker,
    body: &Bytes,
) -> Result<Response, Response> {
    let session = session(endpoint, headers, &asker.caller)?;
    let batch = Batch::take(body, &session.visit, &session.under_way).map_err(|told| fault(None, &told))?;
    let desk = endpoint.desk.clone();
    let answered = tokio::spawn(async move { batch.answer(&desk, &session.visit).await });
    match answered.await {
        Ok(Some(answers)) => Ok(json(StatusCode::OK, answers)),
        Ok(None) => Ok(accepted()),
        Err(_) => Err(lost()),
    }
}

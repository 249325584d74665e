//! The legacy wire over HTTP: `initialize` opens a session, POSTs belong to it, GET is its standing stream, DELETE ends
//! it. A client that leaves has not cancelled: its answer waits in a stream it can resume.

use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::value::RawValue;
use toolcrib_core::caller::Caller;
use toolcrib_core::raw::Members;

use crate::{
    codes::{Fault, INVALID_REQUEST},
    meta::RequestMeta,
    serve::{
        conversation::{Conversation, Step},
        dispatch::{self, Answer},
        http::{
            Endpoint, SESSION_ID, VERSION, accepted, fault, json, malformed_fault, not_allowed, refusal, text,
        },
        modern::event_stream,
        session::Session,
        stream::{KEEP_ALIVE, Stream},
        visit::{Asker, Visit, Who},
    },
    version::{Era, Version},
    wire::{self, Id, Message},
};

/// Most messages in one batch.
const LONGEST_BATCH: usize = 100;

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
            request(endpoint, session, id, &method, params.as_deref(), meta).await
        }
        Message::Notification { method, params } => {
            noted(&session.visit, &method, params.as_deref());
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
    let mut response = json(StatusCode::OK, wire::success(Some(id), &result));
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

/// What a client tells without waiting for an answer.
pub fn noted(visit: &Visit, method: &str, params: Option<&RawValue>) {
    if method == "notifications/cancelled"
        && let Some(id) =
            params.map(Members::parse_lenient).and_then(|m| m.find("requestId")).and_then(Id::parse)
    {
        visit.cancel(&id);
    }
}

async fn request(
    endpoint: &Endpoint,
    session: Arc<Session>,
    id: Id,
    method: &str,
    params: Option<&RawValue>,
    meta: RequestMeta,
) -> Result<Response, Response> {
    match dispatch::legacy(&endpoint.desk, &session.visit, id.clone(), method, params, meta).await {
        Answer::Now(Ok(result)) => Ok(json(StatusCode::OK, wire::success(Some(&id), &result))),
        Answer::Now(Err(told)) => Err(fault(Some(&id), &told.at(StatusCode::OK))),
        Answer::Later(conversation) => Ok(converse(session, *conversation).await),
    }
}

/// One JSON answer where nothing is said before it, else a stream that goes on without its reader.
async fn converse(session: Arc<Session>, mut conversation: Conversation) -> Response {
    let tracked = session.visit.track(conversation.id(), conversation.cancel_token());
    let first = tokio::time::timeout(KEEP_ALIVE, conversation.next()).await;
    let stream = match first {
        Ok(Step::Done { message, .. }) => return json(StatusCode::OK, message),
        Ok(Step::Notify(message)) => {
            let stream = session.open_stream();
            stream.push(&message);
            stream
        }
        Err(_) => session.open_stream(),
    };
    let read = stream.read(None);
    tokio::spawn(async move {
        let _tracked = tracked;
        loop {
            match conversation.next().await {
                Step::Notify(message) => stream.push(&message),
                Step::Done { message, .. } => {
                    stream.push(&message);
                    stream.end();
                    return;
                }
            }
        }
    });
    match read {
        Ok(events) => event_stream(events),
        Err(_) => refusal(StatusCode::CONFLICT, "the stream of this request is read already"),
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
        None => (session.standing.clone(), None),
        Some(last) => match session.resume(last) {
            Some((stream, event)) => (stream, Some(event)),
            None => {
                return Err(refusal(
                    StatusCode::NOT_FOUND,
                    "the stream named by `Last-Event-ID` is no longer kept",
                ));
            }
        },
    };
    match stream.read(after) {
        Ok(events) => Ok(event_stream(events)),
        Err(_) => Err(refusal(StatusCode::CONFLICT, "this session's stream is read already")),
    }
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

/// Several messages at once, which revision 2025-03-26 has and the others have not.
pub async fn batch(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    asker: &Asker,
    body: &Bytes,
) -> Result<Response, Response> {
    let session = session(endpoint, headers, &asker.caller)?;
    if session.visit.version != Version::V2025_03_26 {
        return Err(refusal(
            StatusCode::BAD_REQUEST,
            "only revision 2025-03-26 has batches; send one message at a time",
        ));
    }
    let messages: Vec<&RawValue> = serde_json::from_slice(body)
        .map_err(|error| refusal(StatusCode::BAD_REQUEST, &format!("not a batch: {error}")))?;
    if messages.is_empty() || messages.len() > LONGEST_BATCH {
        let told = format!("a batch has 1 to {LONGEST_BATCH} messages");
        return Err(refusal(StatusCode::BAD_REQUEST, &told));
    }
    let answers: Vec<_> =
        messages.into_iter().map(|message| one_of_batch(endpoint, &session, message)).collect();
    let answers: Vec<String> = futures_util::future::join_all(answers).await.into_iter().flatten().collect();
    if answers.is_empty() {
        Ok(accepted())
    } else {
        Ok(json(StatusCode::OK, format!("[{}]", answers.join(","))))
    }
}

async fn one_of_batch(endpoint: &Endpoint, session: &Arc<Session>, message: &RawValue) -> Option<String> {
    match Message::parse(message.get().as_bytes()) {
        Err(malformed) => Some(wire::failure(None, &malformed_fault(&malformed).object)),
        Ok(Message::Response { .. }) => None,
        Ok(Message::Notification { method, params }) => {
            noted(&session.visit, &method, params.as_deref());
            None
        }
        Ok(Message::Request { id, method, params }) => {
            let (desk, visit, meta) = (&endpoint.desk, &session.visit, RequestMeta::of(params.as_deref()));
            let answer = dispatch::legacy(desk, visit, id.clone(), &method, params.as_deref(), meta).await;
            Some(match answer {
                Answer::Now(Ok(result)) => wire::success(Some(&id), &result),
                Answer::Now(Err(told)) => wire::failure(Some(&id), &told.object),
                Answer::Later(conversation) => finished(*conversation).await,
            })
        }
    }
}

async fn finished(mut conversation: Conversation) -> String {
    loop {
        if let Step::Done { message, .. } = conversation.next().await {
            return message;
        }
    }
}

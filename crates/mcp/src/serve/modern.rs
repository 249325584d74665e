//! The modern wire over HTTP: every request by itself. The envelope is checked against its headers, then dispatched;
//! a client that closes its stream has cancelled.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, StatusCode};
use serde_json::{json, value::RawValue};
use toolcrib_core::{
    call::Target,
    raw::{self, Members},
};

use crate::{
    codes::{Fault, HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, UNSUPPORTED_VERSION},
    meta::{self, RequestMeta},
    param_headers,
    serve::{
        Desk,
        conversation::{Conversation, Step},
        dispatch::{self, Answer},
        http::{VERSION, accepted, fault, json as json_response, respond, text},
        listen::Listening,
        stream::{COMMENT, KEEP_ALIVE, event},
        visit::Asker,
    },
    version::Version,
    wire::{self, Message},
};

const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

pub async fn post(
    desk: &Desk,
    headers: &HeaderMap,
    asker: Asker,
    message: Message,
    meta: RequestMeta,
) -> Result<Response, Response> {
    let (id, method, params) = match message {
        Message::Request { id, method, params } => (id, method, params),
        Message::Notification { .. } => return Ok(accepted()),
        Message::Response { id, .. } => {
            let told = "this wire has no requests from server to client, so there is nothing to answer";
            return Err(fault(id.as_ref(), &Fault::new(INVALID_REQUEST, told)));
        }
    };
    let refuse = |told: Fault| fault(Some(&id), &told);
    check_version(headers, &meta).map_err(refuse)?;
    check_headers(headers, &method, params.as_deref()).map_err(refuse)?;
    if method == "tools/call" {
        check_params(desk, &asker, headers, params.as_deref()).await.map_err(refuse)?;
    }
    if method == "subscriptions/listen" {
        let listening = Listening::begin(desk, &asker, id, params.as_deref()).await;
        return Ok(listen_response(listening));
    }
    match dispatch::modern(desk, &asker, id.clone(), &method, params.as_deref(), meta).await {
        Answer::Now(Ok(result)) => Ok(json_response(StatusCode::OK, wire::success(Some(&id), &result))),
        Answer::Now(Err(told)) => Err(refuse(told)),
        Answer::Later(conversation) => Ok(converse(conversation.on_a_leash()).await),
    }
}

/// The revision, in the body and in the header: there, the same, and one the crib speaks.
pub(super) fn check_version(headers: &HeaderMap, meta: &RequestMeta) -> Result<(), Fault> {
    let Some(asked) = meta.protocol_version.as_deref() else {
        return Err(missing(meta::PROTOCOL_VERSION));
    };
    if text(headers, VERSION) != Some(asked) {
        return Err(mismatch("`MCP-Protocol-Version` is missing or differs from the version in `_meta`"));
    }
    check_envelope(meta)
}

/// What the body alone must say.
pub(super) fn check_envelope(meta: &RequestMeta) -> Result<(), Fault> {
    let Some(asked) = meta.protocol_version.as_deref() else {
        return Err(missing(meta::PROTOCOL_VERSION));
    };
    if Version::parse(asked) != Some(Version::LATEST) {
        let data = raw::from(&json!({ "supported": [Version::LATEST.text()], "requested": asked }));
        let told = format!("this crib speaks {} on this wire", Version::LATEST.text());
        return Err(Fault::with(UNSUPPORTED_VERSION, &told, Some(&data)));
    }
    if meta.client_capabilities.is_none() {
        return Err(missing(meta::CLIENT_CAPABILITIES));
    }
    Ok(())
}

fn missing(key: &str) -> Fault {
    let told = format!("`params._meta` must have `{key}`");
    Fault::new(INVALID_PARAMS, &told).at(StatusCode::BAD_REQUEST)
}

fn mismatch(told: &str) -> Fault {
    Fault::new(HEADER_MISMATCH, told)
}

/// `Mcp-Method` and `Mcp-Name` say what the body says.
fn check_headers(headers: &HeaderMap, method: &str, params: Option<&RawValue>) -> Result<(), Fault> {
    if text(headers, METHOD) != Some(method) {
        return Err(mismatch("`Mcp-Method` is missing or differs from the method in the body"));
    }
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(()),
    };
    let Some(named) = params.map(Members::parse_lenient).and_then(|members| members.text(key)) else {
        return Ok(());
    };
    match text(headers, NAME).and_then(param_headers::decode) {
        Some(header) if header == named => Ok(()),
        _ => Err(mismatch(&format!("`Mcp-Name` is missing or differs from `params.{key}`"))),
    }
}

/// `Mcp-Param-*` say what the annotated arguments say. A tool the caller cannot see has no annotations.
async fn check_params(
    desk: &Desk,
    asker: &Asker,
    headers: &HeaderMap,
    params: Option<&RawValue>,
) -> Result<(), Fault> {
    let members = params.map(Members::parse_lenient).unwrap_or_default();
    let Some(name) = members.text("name") else { return Ok(()) };
    let found = desk.gateway.find(&Target::Tool(name), &asker.caller).await;
    let Some(facets) = found.ok().and_then(|item| item.facets) else { return Ok(()) };
    if facets.headers.is_empty() {
        return Ok(());
    }
    let expected = param_headers::expected(&facets.headers, members.find("arguments"));
    for param in &facets.headers {
        let header = format!("{}{}", param_headers::PREFIX, param.header.to_ascii_lowercase());
        let wanted = expected.iter().find(|(name, _)| *name == header).map(|(_, value)| value.as_str());
        let given =
            match headers.contains_key(&header) {
                false => None,
                true => Some(text(headers, &header).and_then(param_headers::decode).ok_or_else(|| {
                    mismatch(&format!("`{header}` is repeated, not text, or broken base64"))
                })?),
            };
        if given.as_deref() != wanted {
            return Err(mismatch(&format!("`{header}` is missing or differs from the argument in the body")));
        }
    }
    Ok(())
}

/// One JSON answer where nothing is said before it, else a stream. Leaving cancels.
async fn converse(mut conversation: Conversation) -> Response {
    let first = tokio::time::timeout(KEEP_ALIVE, conversation.next()).await;
    let head = match first {
        Ok(Step::Done { message, status }) => return json_response(status, message),
        Ok(Step::Notify(message)) => event(&message),
        Err(_) => Bytes::from_static(COMMENT),
    };
    let rest = stream::unfold(Some(conversation), |conversation| async move {
        let mut conversation = conversation?;
        match tokio::time::timeout(KEEP_ALIVE, conversation.next()).await {
            Ok(Step::Done { message, .. }) => Some((event(&message), None)),
            Ok(Step::Notify(message)) => Some((event(&message), Some(conversation))),
            Err(_) => Some((Bytes::from_static(COMMENT), Some(conversation))),
        }
    });
    event_stream(futures_util::StreamExt::chain(stream::iter([head]), rest))
}

fn listen_response(listening: Listening) -> Response {
    event_stream(stream::unfold(listening, |mut listening| async move {
        let bytes = match tokio::time::timeout(KEEP_ALIVE, listening.next()).await {
            Ok(message) => event(&message?),
            Err(_) => Bytes::from_static(COMMENT),
        };
        Some((bytes, listening))
    }))
}

pub(super) fn event_stream(events: impl stream::Stream<Item = Bytes> + Send + 'static) -> Response {
    let events = futures_util::StreamExt::map(events, Ok::<_, std::convert::Infallible>);
    respond(StatusCode::OK, "text/event-stream", Body::from_stream(events))
}

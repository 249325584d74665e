//! `/mcp` over HTTP: the caller, the body, and which era a request belongs to. What comes here passed the `door`.
//!
//! A request whose `_meta` or version header names the modern revision is served by itself; everything else belongs
//! to a legacy session. Next: `modern`, `legacy`.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::Response,
    routing::any,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use toolcrib_core::{call::Surface, caller::Caller, catalog::Style, doorway};

use crate::{
    codes::{Fault, INVALID_REQUEST, PARSE_ERROR},
    meta::RequestMeta,
    serve::{Desk, door, legacy, modern, session::Sessions, visit::Asker},
    version::{Era, Version},
    wire::{self, Id, Malformed, Message},
};

pub const SESSION_ID: &str = "mcp-session-id";
pub const VERSION: &str = "mcp-protocol-version";

/// The endpoint and what it keeps.
pub struct Endpoint {
    pub(super) desk: Arc<Desk>,
    pub(super) sessions: Arc<Sessions>,
}

/// The routes of this tongue, and the task that tidies up behind it.
pub fn router(desk: Arc<Desk>) -> Router {
    let Desk { settings, sessions, .. } = &*desk;
    let sessions = Sessions::new(settings.most_sessions, settings.session_idle, sessions.clone());
    tokio::spawn(sessions.clone().reap());
    Router::new().route("/mcp", any(answer)).with_state(Arc::new(Endpoint { desk, sessions }))
}

async fn answer(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let origin = match door::admit(&endpoint.desk.settings.doorway, request.headers()) {
        Ok(origin) => origin,
        Err(refusal) => return refusal,
    };
    let mut response = match origin.is_some() && request.method() == Method::OPTIONS {
        true => door::preflight(request.headers()),
        false => endpoint.answer(request).await.unwrap_or_else(|refusal| refusal),
    };
    if let Some(origin) = origin {
        door::share(&mut response, origin);
    }
    response
}

impl Endpoint {
    /// Both arms are responses; the error arm only ends the way early.
    async fn answer(&self, request: Request) -> Result<Response, Response> {
        let (head, body) = request.into_parts();
        let headers = &head.headers;
        let caller = self.recognise(headers)?;
        let style = style(head.uri.query()).unwrap_or(self.desk.settings.style);
        match head.method {
            Method::POST => {
                let body = self.body(headers, body).await?;
                self.post(headers, caller, style, &body).await
            }
            Method::GET => legacy::open_stream(self, headers, &caller),
            Method::DELETE => legacy::end_session(self, headers, &caller),
            _ => Err(not_allowed()),
        }
    }

    fn recognise(&self, headers: &HeaderMap) -> Result<Arc<Caller>, Response> {
        let bearer = match text(headers, header::AUTHORIZATION.as_str()) {
            None => None,
            Some(value) => {
                let told = "only `Authorization: Bearer <token>` is understood";
                Some(doorway::bearer(value).ok_or_else(|| unauthorized(told))?)
            }
        };
        self.desk.callers.recognise(bearer).map_err(|failure| unauthorized(&failure.told))
    }

    async fn body(&self, headers: &HeaderMap, body: Body) -> Result<Bytes, Response> {
        let json = text(headers, header::CONTENT_TYPE.as_str()).is_some_and(|kind| {
            kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
        });
        if !json {
            return Err(refusal(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "`Content-Type` must be `application/json`",
            ));
        }
        let limit = self.desk.settings.longest_body;
        match Limited::new(body, limit).collect().await {
            Ok(collected) => Ok(collected.to_bytes()),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, &format!("the body is larger than {limit} bytes")))
            }
            Err(_) => Err(refusal(StatusCode::BAD_REQUEST, "the body did not arrive whole")),
        }
    }

    async fn post(
        &self,
        headers: &HeaderMap,
        caller: Arc<Caller>,
        style: Style,
        body: &Bytes,
    ) -> Result<Response, Response> {
        let asker = |era| Asker { caller: caller.clone(), surface: Surface::McpHttp, era, style };
        if body.trim_ascii_start().starts_with(b"[") {
            return legacy::batch(self, headers, &asker(Era::Legacy), body).await;
        }
        let message = Message::parse(body).map_err(|malformed| malformed_response(&malformed))?;
        let mut meta = match &message {
            Message::Request { params, .. } | Message::Notification { params, .. } => {
                RequestMeta::of(params.as_deref())
            }
            Message::Response { .. } => RequestMeta::default(),
        };
        meta.trace_from(|name| text(headers, name));
        match era(headers, &meta) {
            Era::Modern => modern::post(&self.desk, headers, asker(Era::Modern), message, meta).await,
            Era::Legacy => legacy::post(self, headers, asker(Era::Legacy), message, meta).await,
        }
    }
}

/// Modern if the request says so, in its body or, where the body says nothing, in its version header.
fn era(headers: &HeaderMap, meta: &RequestMeta) -> Era {
    if meta.protocol_version.is_some() {
        return Era::Modern;
    }
    let named = text(headers, VERSION);
    let modern = named.and_then(Version::parse).is_some_and(|version| version.era() == Era::Modern);
    let sessionless = !headers.contains_key(SESSION_ID);
    if modern && sessionless { Era::Modern } else { Era::Legacy }
}

fn style(query: Option<&str>) -> Option<Style> {
    query?.split('&').find_map(|pair| pair.strip_prefix("names=")).and_then(Style::parse)
}

/// A header that occurs once and is text. Where another would be a danger the `door` has refused it.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() { None } else { value.to_str().ok().map(str::trim) }
}

pub(super) fn respond(status: StatusCode, kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

pub(super) fn json(status: StatusCode, message: String) -> Response {
    respond(status, "application/json", Body::from(message))
}

pub(super) fn fault(id: Option<&Id>, fault: &Fault) -> Response {
    json(fault.status, wire::failure(id, &fault.object))
}

/// An error that is about the HTTP request and not about a message in it.
pub(super) fn refusal(status: StatusCode, message: &str) -> Response {
    fault(None, &Fault::new(INVALID_REQUEST, message).at(status))
}

fn unauthorized(message: &str) -> Response {
    let mut response = refusal(StatusCode::UNAUTHORIZED, message);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

pub(super) fn not_allowed() -> Response {
    let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, "only POST is served here without a session");
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    response
}

pub(super) fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

pub(super) fn malformed_fault(malformed: &Malformed) -> Fault {
    match malformed {
        Malformed::Json(_) => Fault::new(PARSE_ERROR, &malformed.to_string()),
        Malformed::Envelope { .. } => Fault::new(INVALID_REQUEST, &malformed.to_string()),
    }
}

fn malformed_response(malformed: &Malformed) -> Response {
    let id = match malformed {
        Malformed::Json(_) => None,
        Malformed::Envelope { id, .. } => id.as_ref(),
    };
    fault(id, &malformed_fault(malformed))
}

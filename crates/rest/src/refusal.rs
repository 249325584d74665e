//! How a refusal looks on this wire: a status and `{"error": {"kind", "message", "retry"}}`.
//!
//! The only place where `core::error::Kind` becomes a status. What happened inside (`Failure::detail`) is not told.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use toolcrib_core::{
    error::{Failure, Kind, Retry},
    ledger::LedgerDown,
    raw::Raw,
};
use utoipa::ToSchema;

/// The caller closed the request, as nginx calls it; there is no registered status for that.
const CLOSED_REQUEST: u16 = 499;

/// The body of every answer that is not a success.
#[derive(Debug, Serialize, ToSchema)]
pub struct Refused {
    pub error: Reason,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// A word for programs: `unknown`, `denied`, `timeout`, …
    pub kind: &'static str,
    /// For people.
    pub message: String,
    /// Whether the same request can succeed later without anyone acting: `may_help` or `useless`.
    #[schema(value_type = String)]
    pub retry: Retry,
    /// The error object of the source, as it came, where the source refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub source: Option<Raw>,
}

#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    body: Refused,
}

impl Refusal {
    /// A refusal by this wire itself, before `core` is asked.
    pub fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        let error = Reason { kind, message: message.into(), retry: Retry::Useless, source: None };
        Self { status, body: Refused { error } }
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "denied", message)
    }

    pub fn too_large(limit: usize) -> Self {
        let told = format!("the body is larger than {limit} bytes, send less");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", told)
    }
}

fn status(kind: Kind) -> StatusCode {
    match kind {
        Kind::Unauthenticated => StatusCode::UNAUTHORIZED,
        Kind::Unknown => StatusCode::NOT_FOUND,
        Kind::Ambiguous => StatusCode::CONFLICT,
        Kind::InvalidArguments => StatusCode::UNPROCESSABLE_ENTITY,
        Kind::Denied | Kind::ApprovalRequired => StatusCode::FORBIDDEN,
        Kind::Overloaded | Kind::Unavailable | Kind::LedgerDown => StatusCode::SERVICE_UNAVAILABLE,
        Kind::SourceUnauthorized | Kind::Refused | Kind::BadSource | Kind::TooLarge => {
            StatusCode::BAD_GATEWAY
        }
        Kind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        Kind::Cancelled => StatusCode::from_u16(CLOSED_REQUEST).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let error = Reason {
            kind: failure.kind.word(),
            message: failure.told,
            retry: failure.kind.retry(),
            source: failure.peer.map(|peer| peer.object),
        };
        Self { status: status(failure.kind), body: Refused { error } }
    }
}

impl From<LedgerDown> for Refusal {
    fn from(down: LedgerDown) -> Self {
        tracing::error!(error = %down, "the ledger could not be read");
        Failure::new(Kind::LedgerDown, "the ledger cannot be read, the crib's log says why").into()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body)).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_inside_is_not_told() {
        let failure = Failure::new(Kind::Unknown, "unknown tool: `x`").detail("it exists").layer("access");
        let refusal = Refusal::from(failure);
        assert_eq!(refusal.status, StatusCode::NOT_FOUND);
        let told = serde_json::to_string(&refusal.body).unwrap();
        assert_eq!(told, r#"{"error":{"kind":"unknown","message":"unknown tool: `x`","retry":"useless"}}"#);
    }
}

//! What is asked for, taken out of a request: query parameters, a JSON body, the caller. What does not fit is refused
//! in the words of this wire, not of the framework.

use std::sync::Arc;

use axum::{
    extract::{FromRequest, FromRequestParts, Query, Request},
    http::request::Parts,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use toolcrib_core::{caller::Caller, error::Failure, error::Kind, raw::Raw};

use crate::{Desk, refusal::Refusal};

/// The query, as `T`. A parameter `T` does not know is an error.
pub struct Asked<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<Desk> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &Desk) -> Result<Self, Refusal> {
        let query = Query::<T>::try_from_uri(&parts.uri)
            .map_err(|error| Refusal::bad_request(format!("the query does not fit: {}", cause(&error))))?;
        Ok(Self(query.0))
    }
}

fn cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// The body, one JSON value, kept as it came; none where there is no body.
pub struct Body(pub Option<Raw>);

impl FromRequest<Desk> for Body {
    type Rejection = Refusal;

    async fn from_request(request: Request, desk: &Desk) -> Result<Self, Refusal> {
        let limit = desk.largest_body;
        let bytes =
            axum::body::to_bytes(request.into_body(), limit).await.map_err(|_| Refusal::too_large(limit))?;
        if bytes.is_empty() {
            return Ok(Self(None));
        }
        let raw = serde_json::from_slice::<Box<RawValue>>(&bytes)
            .map_err(|error| Refusal::bad_request(format!("the body is not JSON: {error}")))?;
        Ok(Self(Some(raw)))
    }
}

/// Who asks, as the door recognised it.
pub struct Asking(pub Arc<Caller>);

impl FromRequestParts<Desk> for Asking {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &Desk) -> Result<Self, Refusal> {
        // A route without a door has no caller, and nobody is not somebody.
        let caller = parts.extensions.get::<Arc<Caller>>().cloned();
        caller
            .map(Self)
            .ok_or_else(|| Failure::new(Kind::Unauthenticated, "nobody was recognised on this route").into())
    }
}

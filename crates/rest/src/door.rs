//! Who gets in: a bearer token becomes a caller, and a route asks for a role. What is behind no door here is open to
//! all, so `admin` and `tools` put every route behind one of the two, but for `/health`.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use toolcrib_core::{
    caller::{Caller, Role},
    doorway,
    error::{Failure, Kind},
};

use crate::{Desk, refusal::Refusal};

/// For everyone the crib recognises.
pub async fn known(State(desk): State<Desk>, mut request: Request, next: Next) -> Response {
    match recognise(&desk, request.headers()) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(failure) => Refusal::from(failure).into_response(),
    }
}

/// For administrators only.
pub async fn admin(State(desk): State<Desk>, mut request: Request, next: Next) -> Response {
    match recognise(&desk, request.headers()) {
        Ok(caller) if caller.role == Role::Admin => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Ok(_) => {
            Refusal::forbidden("this needs the role `admin`, the caller has the role `user`").into_response()
        }
        Err(failure) => Refusal::from(failure).into_response(),
    }
}

pub fn recognise(desk: &Desk, headers: &HeaderMap) -> Result<Arc<Caller>, Failure> {
    desk.callers.recognise(bearer(headers)?)
}

/// The token, where one is sent. A credential in a form that is not understood is refused, not overlooked.
pub fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Failure> {
    let refused = |told: String| Failure::new(Kind::Unauthenticated, told);
    let sent = headers.get_all(header::AUTHORIZATION).iter().map(|value| value.to_str().ok());
    match doorway::single(sent).map_err(|unclear| refused(format!("`Authorization` {unclear}")))? {
        None => Ok(None),
        Some(text) => match doorway::bearer(text) {
            Some(token) => Ok(Some(token)),
            None => Err(refused("`Authorization` must be `Bearer <token>`".to_owned())),
        },
    }
}

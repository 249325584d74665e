//! The tools of the catalog as plain HTTP, for scripts and for clients that speak OpenAPI instead of MCP. To be put
//! beside `/mcp` on the same listener: it has no fallback of its own, and its layers touch only its own routes.

mod call;
mod document;

use axum::{
    Router,
    middleware::from_fn_with_state,
    routing::{MethodRouter, get, post},
};

use crate::{Desk, door, guard};

/// `POST /api/call`, `POST /api/tools/{source}/{tool}`, `GET /openapi.json`.
pub fn tools_router(desk: Desk) -> Router {
    // Around each route whole: a browser asks with a method the route does not have.
    let behind = |route: MethodRouter<Desk>| {
        route
            .layer(from_fn_with_state(desk.clone(), door::known))
            .layer(from_fn_with_state(desk.clone(), guard::check))
    };
    Router::new()
        .route("/api/call", behind(post(call::by_name)))
        .route("/api/tools/{source}/{tool}", behind(post(call::by_path)))
        .route("/openapi.json", behind(get(document::openapi)))
        .with_state(desk)
}

//! The tools of the catalog as plain HTTP, for scripts and for clients that speak OpenAPI instead of MCP. To be put
//! beside `/mcp` on the same listener: it has no fallback of its own, and its layers touch only its own routes.

mod call;
mod document;

use axum::{
    Router,
    middleware::from_fn_with_state,
    routing::{get, post},
};

use crate::{Desk, door, guard};

/// `POST /api/call`, `POST /api/tools/{source}/{tool}`, `GET /openapi.json`.
pub fn tools_router(desk: Desk) -> Router {
    Router::new()
        .route("/api/call", post(call::by_name))
        .route("/api/tools/{source}/{tool}", post(call::by_path))
        .route("/openapi.json", get(document::openapi))
        .route_layer(from_fn_with_state(desk.clone(), door::known))
        .route_layer(from_fn_with_state(desk.clone(), guard::check))
        .with_state(desk)
}

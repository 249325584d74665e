//! `/health`: whether the crib lives and is ready. Open to all who pass the guard; how the sources are doing is told
//! only to somebody known, of the sources it may see a tool of. A source that is down does not make the crib unready: the others go on.

use std::collections::{BTreeMap, HashSet};

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use serde::Serialize;
use toolcrib_core::{
    caller::{Caller, Role},
    id::SourceId,
    ledger::Filter,
    source::State as SourceState,
};
use utoipa::ToSchema;

use crate::{Desk, door};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    live: bool,
    /// The ledger can be read and the crib is not shutting down.
    ready: bool,
    version: &'static str,
    uptime_seconds: u64,
    /// The state of each source, for callers that are known: all for administrators, for others those with a tool they
    /// may see.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    sources: Option<BTreeMap<String, SourceState>>,
}

#[derive(Serialize, ToSchema)]
pub struct Life {
    live: bool,
}

/// Whether the crib is ready for calls, and the state of its sources.
#[utoipa::path(get, path = "/health", tag = "about", operation_id = "health", security(()),
    responses((status = 200, description = "ready", body = Health),
              (status = 503, description = "not ready", body = Health)))]
pub async fn health(State(desk): State<Desk>, headers: HeaderMap) -> (StatusCode, Json<Health>) {
    let glance = Filter { limit: 1, ..Filter::default() };
    let ready = !desk.closing.is_cancelled() && desk.gateway.ledger().read(glance).await.is_ok();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let health = Health {
        live: true,
        ready,
        version: desk.version,
        uptime_seconds: desk.began.elapsed().as_secs(),
        sources: door::recognise(&desk, &headers).ok().map(|caller| sources(&desk, &caller)),
    };
    (status, Json(health))
}

fn sources(desk: &Desk, caller: &Caller) -> BTreeMap<String, SourceState> {
    let catalog = desk.gateway.catalog().snapshot();
    let seen: HashSet<&SourceId> =
        catalog.tools().visible(caller, desk.gateway.policy()).map(|entry| &entry.item.source).collect();
    let statuses = desk.gateway.supervisor().statuses().into_iter();
    let told = statuses.filter(|status| caller.role == Role::Admin || seen.contains(&status.id));
    told.map(|status| (status.id.to_string(), status.state)).collect()
}

/// Whether the process answers at all.
#[utoipa::path(get, path = "/health/live", tag = "about", operation_id = "live", security(()),
    responses((status = 200, body = Life)))]
pub async fn live() -> Json<Life> {
    Json(Life { live: true })
}

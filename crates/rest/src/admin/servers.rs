//! `/servers`: the sources of the crib, how they are doing, and connecting them by hand. For administrators.

use axum::{
    Json,
    extract::{Path, State},
};
use serde::Serialize;
use toolcrib_core::{
    error::Failure,
    id::SourceId,
    raw::Raw,
    source::{ConnectMode, State as SourceState, supervisor::Status},
};
use utoipa::ToSchema;

use crate::{
    Desk,
    refusal::{Refusal, Refused},
};

/// One source and how it is doing.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    #[schema(value_type = String)]
    id: SourceId,
    name: Option<String>,
    description: Option<String>,
    /// `stdio`, `http`, `sse`, `builtin`
    transport: &'static str,
    /// A URL or a command, without secrets.
    address: String,
    enabled: bool,
    /// `on-demand` or `always`
    #[schema(value_type = String)]
    connect: ConnectMode,
    /// `disabled`, `idle`, `connecting`, `ready`, `failed`, `stopped`
    #[schema(value_type = String)]
    state: SourceState,
    last_error: Option<String>,
    /// How many tools it offers; null until it was asked.
    tools: Option<usize>,
    prompts: Option<usize>,
    resources: Option<usize>,
    /// Calls under way there.
    in_flight: usize,
    /// The revision of its protocol that is spoken.
    protocol: Option<String>,
    /// What it says it is.
    #[schema(value_type = Option<Object>)]
    server: Option<Raw>,
    pid: Option<u32>,
    /// What of its offer had to be left out, and why.
    warnings: Vec<String>,
}

impl From<Status> for Server {
    fn from(status: Status) -> Self {
        Self {
            id: status.id,
            name: status.name,
            description: status.description,
            transport: status.transport,
            address: status.address,
            enabled: status.enabled,
            connect: status.connect,
            state: status.state,
            last_error: status.last_error,
            tools: status.tools,
            prompts: status.prompts,
            resources: status.resources,
            in_flight: status.in_flight,
            protocol: status.facts.protocol,
            server: status.facts.server,
            pid: status.facts.pid,
            warnings: status.warnings,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct Servers {
    servers: Vec<Server>,
}

/// An id that cannot be one is as unknown as any other.
fn source(id: &str) -> Result<SourceId, Refusal> {
    SourceId::new(id).map_err(|_| Failure::unknown("source", id).into())
}

fn shown(desk: &Desk, id: &SourceId) -> Result<Json<Server>, Refusal> {
    Ok(Json(desk.gateway.supervisor().status(id)?.into()))
}

/// All configured servers.
#[utoipa::path(get, path = "/servers", tag = "servers", operation_id = "listServers",
    responses((status = 200, body = Servers), (status = "4XX", body = Refused)))]
pub async fn list(State(desk): State<Desk>) -> Json<Servers> {
    let statuses = desk.gateway.supervisor().statuses();
    Json(Servers { servers: statuses.into_iter().map(Server::from).collect() })
}

/// One server.
#[utoipa::path(get, path = "/servers/{id}", tag = "servers", operation_id = "showServer",
    params(("id" = String, Path)),
    responses((status = 200, body = Server), (status = "4XX", body = Refused)))]
pub async fn show(State(desk): State<Desk>, Path(id): Path<String>) -> Result<Json<Server>, Refusal> {
    shown(&desk, &source(&id)?)
}

/// Connects a server now, whatever its mode; answers when it is ready.
#[utoipa::path(post, path = "/servers/{id}/connect", tag = "servers", operation_id = "connectServer",
    params(("id" = String, Path)),
    responses((status = 200, body = Server), (status = "4XX", body = Refused), (status = "5XX", body = Refused)))]
pub async fn connect(State(desk): State<Desk>, Path(id): Path<String>) -> Result<Json<Server>, Refusal> {
    let id = source(&id)?;
    desk.gateway.supervisor().connect(&id).await?;
    shown(&desk, &id)
}

/// Disconnects a server; it stays so until it is connected again.
#[utoipa::path(post, path = "/servers/{id}/disconnect", tag = "servers", operation_id = "disconnectServer",
    params(("id" = String, Path)),
    responses((status = 200, body = Server), (status = "4XX", body = Refused), (status = "5XX", body = Refused)))]
pub async fn disconnect(State(desk): State<Desk>, Path(id): Path<String>) -> Result<Json<Server>, Refusal> {
    let id = source(&id)?;
    desk.gateway.supervisor().disconnect(&id).await?;
    shown(&desk, &id)
}

/// Disconnects a server and connects it again.
#[utoipa::path(post, path = "/servers/{id}/restart", tag = "servers", operation_id = "restartServer",
    params(("id" = String, Path)),
    responses((status = 200, body = Server), (status = "4XX", body = Refused), (status = "5XX", body = Refused)))]
pub async fn restart(State(desk): State<Desk>, Path(id): Path<String>) -> Result<Json<Server>, Refusal> {
    let id = source(&id)?;
    desk.gateway.supervisor().restart(&id).await?;
    shown(&desk, &id)
}

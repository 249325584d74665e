//! `/tools`: the tools this caller may see, as policy says; an administrator is no exception.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolcrib_core::catalog::{Entry, Style};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Desk,
    ask::{Asked, Asking},
    refusal::{Refusal, Refused},
};

/// One tool.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// `server:tool`
    #[schema(value_type = String)]
    tool_id: Arc<str>,
    server_id: String,
    /// As MCP listings spell it; every spelling is accepted on a call.
    #[schema(value_type = String)]
    name: Arc<str>,
    /// The operator's, else the server's own.
    description: String,
    /// The definition exactly as the server gave it.
    #[schema(value_type = Object)]
    tool: Arc<RawValue>,
}

impl Tool {
    fn of(entry: &Entry, style: Style) -> Self {
        let name = match style {
            Style::Safe => &entry.names.safe,
            Style::Colon => &entry.names.colon,
            Style::Bare => &entry.names.bare,
        };
        Self {
            tool_id: entry.item.id.clone(),
            server_id: entry.item.source.to_string(),
            name: name.clone(),
            description: entry.described(),
            tool: entry.definition.clone(),
        }
    }

    /// Whether `text` (in lower case) is part of what names or describes it.
    fn is_about(&self, text: &str) -> bool {
        [&*self.tool_id, &*self.name, &self.description].iter().any(|part| part.to_lowercase().contains(text))
    }
}

#[derive(Serialize, ToSchema)]
pub struct Tools {
    /// Equal revisions mean equal catalogs.
    revision: String,
    tools: Vec<Tool>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Wanted {
    /// Only tools of this server.
    source: Option<String>,
    /// Only tools with this in their name or description, in any case.
    q: Option<String>,
}

/// The tools this caller may see.
#[utoipa::path(get, path = "/tools", tag = "tools", operation_id = "listTools", params(Wanted),
    responses((status = 200, body = Tools), (status = "4XX", body = Refused)))]
pub async fn list(
    State(desk): State<Desk>,
    Asking(caller): Asking,
    Asked(wanted): Asked<Wanted>,
) -> Json<Tools> {
    desk.gateway.supervisor().ensure_known().await;
    let catalog = desk.gateway.catalog().snapshot();
    let text = wanted.q.map(|text| text.to_lowercase());
    let tools = catalog
        .tools()
        .visible(&caller, desk.gateway.policy())
        .filter(|entry| wanted.source.as_ref().is_none_or(|source| entry.item.source.as_str() == source))
        .map(|entry| Tool::of(entry, desk.names))
        .filter(|tool| text.as_ref().is_none_or(|text| tool.is_about(text)))
        .collect();
    Json(Tools { revision: catalog.revision().to_owned(), tools })
}

/// One tool, by any of its spellings.
#[utoipa::path(get, path = "/tools/{id}", tag = "tools", operation_id = "showTool",
    params(("id" = String, Path, description = "`server:tool`, or any other spelling")),
    responses((status = 200, body = Tool), (status = "4XX", body = Refused)))]
pub async fn show(
    State(desk): State<Desk>,
    Asking(caller): Asking,
    Path(id): Path<String>,
) -> Result<Json<Tool>, Refusal> {
    desk.gateway.supervisor().ensure_known().await;
    let catalog = desk.gateway.catalog().snapshot();
    let entry = catalog.pick(catalog.tools(), "tool", &id, &caller, desk.gateway.policy())?;
    Ok(Json(Tool::of(entry, desk.names)))
}

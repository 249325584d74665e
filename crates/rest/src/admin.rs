//! The admin API: what is connected, what there is, what is happening. Behind `guard`, and by group behind a `door`.
//!
//! Every route is collected together with its description, so the OpenAPI document cannot miss one. Which role opens
//! which route is in `tests/authority.txt`.

mod servers;

mod catalog;

mod calls;
mod events;

mod health;
mod metrics;

use std::sync::Arc;

use axum::{
    Extension, Router,
    http::{StatusCode, Uri, header},
    middleware::{from_fn_with_state, map_response},
    response::{IntoResponse, Response},
};
use utoipa::openapi::{
    InfoBuilder, OpenApi, OpenApiBuilder,
    security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{Desk, door, guard, refusal::Refusal};

/// The whole admin API, to be served on a port of its own.
pub fn admin_router(desk: Desk) -> Router {
    let (router, document) = collected(&desk).split_for_parts();
    let text: Arc<str> = described(document, desk.version).to_json().unwrap_or_default().into();
    router
        .method_not_allowed_fallback(wrong_method)
        .fallback(nothing_here)
        .layer(Extension(Document(text)))
        .layer(map_response(never_sniffed))
        .layer(from_fn_with_state(desk.clone(), guard::check))
        .with_state(desk)
}

/// The three groups: for administrators, for everyone known, for all.
fn collected(desk: &Desk) -> OpenApiRouter<Desk> {
    let admins = OpenApiRouter::default()
        .routes(routes!(servers::list))
        .routes(routes!(servers::show))
        .routes(routes!(servers::connect))
        .routes(routes!(servers::disconnect))
        .routes(routes!(servers::restart))
        .routes(routes!(metrics::metrics))
        .routes(routes!(events::events))
        .route_layer(from_fn_with_state(desk.clone(), door::admin));
    let known = OpenApiRouter::default()
        .routes(routes!(catalog::list))
        .routes(routes!(catalog::show))
        .routes(routes!(calls::list))
        .routes(routes!(calls::show))
        .routes(routes!(openapi))
        .route_layer(from_fn_with_state(desk.clone(), door::known));
    let all = OpenApiRouter::default().routes(routes!(health::health)).routes(routes!(health::live));
    admins.merge(known).merge(all)
}

#[derive(Clone)]
struct Document(Arc<str>);

/// What the routes do not say themselves: the title, and that a token is sent.
fn described(mut document: OpenApi, version: &str) -> OpenApi {
    let head = OpenApiBuilder::new().info(
        InfoBuilder::new()
            .title("Toolcrib admin API")
            .version(version)
            .description(Some("Servers, tools, calls and the state of one crib.")),
    );
    document.info = head.build().info;
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    document.components.get_or_insert_default().add_security_scheme("bearer", bearer);
    document.security = Some(vec![SecurityRequirement::new("bearer", Vec::<String>::new())]);
    document
}

/// This API, described.
#[utoipa::path(get, path = "/openapi.json", tag = "about", operation_id = "openapi",
    responses((status = 200, description = "the OpenAPI document of this API", body = Object)))]
async fn openapi(Extension(document): Extension<Document>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], document.0.to_string())
}

async fn nothing_here(uri: Uri) -> Refusal {
    let told = format!("there is nothing at `{}`, see `/openapi.json`", uri.path());
    Refusal::new(StatusCode::NOT_FOUND, "unknown", told)
}

async fn wrong_method() -> Refusal {
    let told = "this path has no such method, see `/openapi.json`";
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "bad_request", told)
}

/// Answers carry text of others; no browser shall take it for a page.
async fn never_sniffed(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, header::HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(header::HeaderValue::from_static("no-store"));
    response
}

//! The OpenAPI document of the tools: one operation for each tool this caller may see, made from the catalog of the
//! moment. Input schemas are put in as the source wrote them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::value::RawValue;
use toolcrib_core::{
    catalog::{Catalog, Entry},
    raw::{Members, ObjectWriter, Raw},
};

use crate::{Desk, ask::Asking};

const RESULT: &str = r##"{"$ref":"#/components/schemas/ToolResult"}"##;

/// What is in the document whatever the catalog holds.
const COMPONENTS: &str = r##"{"securitySchemes":{"bearer":{"type":"http","scheme":"bearer"}},"schemas":{"ToolResult":{"type":"object","description":"What the tool answered, as it answered it","properties":{"content":{"type":"array","items":{"type":"object"}},"structuredContent":{},"isError":{"type":"boolean"}}},"Refused":{"type":"object","required":["error"],"properties":{"error":{"type":"object","required":["kind","message","retry"],"properties":{"kind":{"type":"string"},"message":{"type":"string"},"retry":{"enum":["useless","may_help"]},"source":{"type":"object"}}}}}},"responses":{"Refused":{"description":"The call was refused or failed","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Refused"}}}}}}"##;

/// `POST /api/call`, which takes any tool.
const ANY_CALL: &str = r##"{"post":{"operationId":"call","summary":"Call any tool by its name","tags":["crib"],"requestBody":{"required":true,"content":{"application/json":{"schema":{"type":"object","required":["tool"],"properties":{"server":{"type":"string"},"tool":{"type":"string"},"args":{"type":"object"}}}}}},"responses":{"200":{"description":"The tool's result, also when the tool says that it failed (`isError`)","content":{"application/json":{"schema":{"$ref":"#/components/schemas/ToolResult"}}}},"4XX":{"$ref":"#/components/responses/Refused"},"5XX":{"$ref":"#/components/responses/Refused"}}}}"##;

pub async fn openapi(State(desk): State<Desk>, Asking(caller): Asking, headers: HeaderMap) -> Response {
    desk.gateway.supervisor().ensure_known().await;
    let catalog = desk.gateway.catalog().snapshot();
    let entries: Vec<&Entry> =
        catalog.tools().visible(&caller, desk.gateway.policy()).map(|entry| &**entry).collect();
    let tag = tag(&desk, &catalog, &entries);
    let about = [
        (header::ETAG, tag.clone()),
        (header::CACHE_CONTROL, "private, no-cache".to_owned()),
        (header::VARY, "Authorization".to_owned()),
    ];
    if is_known(&headers, &tag) {
        return (StatusCode::NOT_MODIFIED, about).into_response();
    }
    let text: Box<str> = document(&desk, &entries).into();
    (about, [(header::CONTENT_TYPE, "application/json")], String::from(text)).into_response()
}

/// The revision of the catalog and what this caller sees of it.
fn tag(desk: &Desk, catalog: &Catalog, entries: &[&Entry]) -> String {
    let mut seen = DefaultHasher::new();
    desk.version.hash(&mut seen);
    for entry in entries {
        entry.item.id.hash(&mut seen);
    }
    let revision: String = catalog.revision().chars().filter(char::is_ascii_alphanumeric).collect();
    format!("\"{revision}-{:016x}\"", seen.finish())
}

fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let lists = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    lists
        .flat_map(|list| list.split(','))
        .map(|known| known.trim().trim_start_matches("W/"))
        .any(|known| known == tag || known == "*")
}

fn document(desk: &Desk, entries: &[&Entry]) -> Raw {
    let mut info = ObjectWriter::default();
    info.text("title", "Toolcrib tools")
        .text("version", desk.version)
        .text("description", "Every tool the caller may use. The body of a request is the tool's arguments.");
    let mut paths = ObjectWriter::with_capacity(1024 * (entries.len() + 1));
    paths.raw("/api/call", ANY_CALL);
    for entry in entries {
        paths.member(&path(entry), &operation(entry));
    }
    let mut document = ObjectWriter::default();
    document.text("openapi", "3.1.0").member("info", &info.finish()).member("paths", &paths.finish());
    document.raw("components", COMPONENTS).raw("security", r#"[{"bearer":[]}]"#);
    document.finish()
}

fn path(entry: &Entry) -> String {
    format!("/api/tools/{}/{}", entry.item.source, segment(&entry.name))
}

/// One segment of a path: all but the unreserved characters are escaped, so also `/` and the braces of a template.
fn segment(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

fn operation(entry: &Entry) -> Raw {
    let definition = Members::parse_lenient(&entry.definition);
    let title = definition.text("title").unwrap_or_else(|| entry.item.id.to_string());
    let input = schema(entry, definition.find("inputSchema"), "input");
    let mut post = ObjectWriter::with_capacity(input.get().len() + 512);
    // The safe listed name: unique in the catalog, and made of letters every generator takes.
    post.text("operationId", &entry.names.safe).text("summary", &title);
    post.text("description", &entry.described());
    post.raw("tags", &format!("[{}]", wrapped(entry.item.source.as_str())));
    post.member("requestBody", &json_content(&input, None));
    post.member("responses", &responses(entry, definition.find("outputSchema")));
    let mut item = ObjectWriter::default();
    item.member("post", &post.finish());
    item.finish()
}

fn wrapped(text: &str) -> String {
    let mut quoted = String::new();
    toolcrib_core::raw::push_quoted(&mut quoted, text);
    quoted
}

/// `{"description", "content": {"application/json": {"schema"}}}`
fn json_content(schema: &RawValue, description: Option<&str>) -> Raw {
    let mut media = ObjectWriter::default();
    media.member("schema", schema);
    let mut content = ObjectWriter::default();
    content.member("application/json", &media.finish());
    let mut holder = ObjectWriter::default();
    if let Some(description) = description {
        holder.text("description", description);
    }
    holder.member("content", &content.finish());
    holder.finish()
}

fn responses(entry: &Entry, output: Option<&RawValue>) -> Raw {
    let told = "The tool's result, also when the tool says that it failed (`isError`)";
    let mut result = ObjectWriter::default();
    match output {
        None => {
            result.raw("$ref", r##""#/components/schemas/ToolResult""##);
        }
        Some(output) => {
            let mut properties = ObjectWriter::default();
            properties.member("structuredContent", &schema(entry, Some(output), "output"));
            let mut narrowed = ObjectWriter::default();
            narrowed.text("type", "object").member("properties", &properties.finish());
            result.raw("allOf", &format!("[{RESULT},{}]", narrowed.finish().get()));
        }
    }
    let refused = r##"{"$ref":"#/components/responses/Refused"}"##;
    let mut all = ObjectWriter::default();
    all.member("200", &json_content(&result.finish(), Some(told))).raw("4XX", refused).raw("5XX", refused);
    all.finish()
}

/// A schema of the source, as it stands. One that points into itself (`#/$defs/…`) is given an id of its own: without
/// one, those pointers would start at the root of the whole document.
fn schema(entry: &Entry, found: Option<&RawValue>, part: &str) -> Raw {
    let members = found.map(Members::parse_lenient).unwrap_or_default();
    let mut object = ObjectWriter::default();
    match found {
        Some(found) if !members.is_empty() => {
            if !found.get().contains("\"#") || members.find("$id").is_some() {
                return found.to_owned();
            }
            object.text("$id", &format!("urn:toolcrib:{part}:{}", segment(&entry.item.id)));
            for (key, value) in members.iter() {
                object.member(key, value);
            }
        }
        _ => {
            object.text("type", "object");
        }
    }
    object.finish()
}

//! One call over plain HTTP. The result object of the tool is the answer, byte for byte, also when the tool says that it
//! failed (`isError`); a refusal by the crib is an error status. A client that goes away cancels the call.

use std::sync::Arc;

use axum::{
    extract::{Path, State},
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use toolcrib_core::{
    call::{Call, Carry, Surface, Target},
    caller::Caller,
    raw::{self, Members, Raw},
    trace,
};

use crate::{
    Desk,
    ask::{Asking, Body},
    refusal::Refusal,
};

/// `{"server", "tool", "args"}`, or `{"tool": "server:tool", "arguments"}` in any mixture.
pub async fn by_name(
    State(desk): State<Desk>,
    Asking(caller): Asking,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response, Refusal> {
    let (name, arguments) = asked(body)?;
    run(&desk, &headers, caller, name, arguments).await
}

/// The body is the arguments.
pub async fn by_path(
    State(desk): State<Desk>,
    Asking(caller): Asking,
    Path((source, tool)): Path<(String, String)>,
    headers: HeaderMap,
    Body(arguments): Body,
) -> Result<Response, Refusal> {
    run(&desk, &headers, caller, format!("{source}:{tool}"), arguments).await
}

async fn run(
    desk: &Desk,
    headers: &HeaderMap,
    caller: Arc<Caller>,
    name: String,
    arguments: Option<Raw>,
) -> Result<Response, Refusal> {
    let call = Call::new(caller, Surface::Rest, Target::Tool(name), arguments).carrying(trace(headers));
    let running = desk.gateway.call(call);
    // The server drops this future when the client leaves.
    let _called_off = running.cancel.clone().drop_guard();
    let reply = running.finish().await?;
    let result: Box<str> = reply.result.into();
    Ok(([(header::CONTENT_TYPE, "application/json")], String::from(result)).into_response())
}

/// The W3C trace context of the request, on its way to the source.
fn trace(headers: &HeaderMap) -> Carry {
    let member = |name: &str| {
        let text = headers.get(name)?.to_str().ok()?;
        Some((name.to_owned(), raw::from(text)))
    };
    let meta = [trace::TRACEPARENT, trace::TRACESTATE].into_iter().filter_map(member).collect();
    Carry { meta, ..Carry::default() }
}

fn asked(body: Option<Raw>) -> Result<(String, Option<Raw>), Refusal> {
    let shape = "send {\"server\": …, \"tool\": …, \"args\": {…}}";
    let body = body.ok_or_else(|| Refusal::bad_request(format!("the body is empty, {shape}")))?;
    let members = Members::parse(&body)
        .map_err(|error| Refusal::bad_request(format!("the body does not fit ({error}), {shape}")))?;
    let (mut server, mut tool, mut arguments) = (None, None, None);
    for (key, value) in members.iter() {
        match key {
            "server" => server = Some(text(key, &members)?),
            "tool" => tool = Some(text(key, &members)?),
            "args" | "arguments" if arguments.is_some() => {
                return Err(Refusal::bad_request("`args` and `arguments` mean the same, send one"));
            }
            "args" | "arguments" => arguments = Some(value.to_owned()),
            _ => return Err(Refusal::bad_request(format!("there is no member `{key}`, {shape}"))),
        }
    }
    let tool = tool.ok_or_else(|| Refusal::bad_request(format!("`tool` is missing, {shape}")))?;
    let name = match server {
        Some(server) => format!("{server}:{tool}"),
        None => tool,
    };
    Ok((name, arguments.filter(|arguments| arguments.get() != "null")))
}

fn text(key: &str, members: &Members<'_>) -> Result<String, Refusal> {
    members.text(key).ok_or_else(|| Refusal::bad_request(format!("`{key}` must be a text")))
}

//! A request's parameters become a [`Call`]: names and arguments are picked out, everything else is carried.

use serde_json::value::RawValue;
use toolcrib_core::{
    call::{Call, Carry, Level, Progress, Target},
    id::SourceId,
    raw::{Members, ObjectWriter, Raw},
};

use crate::{
    codes::{Fault, INVALID_PARAMS, METHOD_NOT_FOUND},
    meta::RequestMeta,
    serve::visit::Asker,
    version::Era,
};

/// The key by which a request for a method the crib does not know names its source.
const SOURCE: &str = "toolcrib/source";

/// What the protocol itself defines, in any era and for either side. Where the crib does not serve one of these, there is
/// none; it never becomes a source's business. Extensions, such as tasks, do.
const OWN: [&str; 18] = [
    "completion/complete",
    "elicitation/create",
    "initialize",
    "logging/setLevel",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "roots/list",
    "sampling/createMessage",
    "server/discover",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];

/// A call, and the client's own progress token.
pub struct Asked {
    pub call: Call,
    pub token: Option<Raw>,
}

pub fn asked(
    asker: &Asker,
    method: &str,
    params: Option<&RawValue>,
    mut meta: RequestMeta,
    session_log: Option<Level>,
) -> Result<Asked, Fault> {
    let members = match params {
        Some(params) => Members::parse(params).map_err(|error| invalid(&format!("`params`: {error}")))?,
        None => Members::default(),
    };
    let (target, taken) = target(method, &members, &mut meta)?;
    let whole = matches!(target, Target::Method { .. });
    let rest = || members.iter().filter(|(key, _)| *key != "_meta" && !taken.contains(key));
    let arguments = match &target {
        Target::Method { .. } => {
            let mut object = ObjectWriter::default();
            rest().for_each(|(key, value)| {
                object.member(key, value);
            });
            Some(object.finish())
        }
        Target::Tool(_) | Target::Prompt(_) => members.find("arguments").map(RawValue::to_owned),
        Target::Resource(_) | Target::CompletePrompt(_) | Target::CompleteResource(_) => None,
    };
    let fields = if whole { Vec::new() } else { rest().map(|(k, v)| (k.to_owned(), v.to_owned())).collect() };
    let carry = Carry {
        fields,
        progress: if meta.progress_token.is_some() { Progress::Wanted } else { Progress::Unwanted },
        log: match asker.era {
            Era::Modern => meta.log_level.as_deref().and_then(Level::parse),
            Era::Legacy => session_log,
        },
        abilities: match asker.era {
            Era::Modern => meta.client_capabilities,
            // What a legacy client declared at `initialize` is not offered to sources.
            Era::Legacy => None,
        },
        meta: meta.rest,
    };
    let call = Call::new(asker.caller.clone(), asker.surface, target, arguments).carrying(carry);
    Ok(Asked { call, token: meta.progress_token })
}

/// What is asked for, and the members that say so.
fn target(
    method: &str,
    members: &Members<'_>,
    meta: &mut RequestMeta,
) -> Result<(Target, &'static [&'static str]), Fault> {
    let text =
        |key: &str| members.text(key).ok_or_else(|| invalid(&format!("`params.{key}` must be a string")));
    Ok(match method {
        "tools/call" => (Target::Tool(text("name")?), &["name", "arguments"]),
        "prompts/get" => (Target::Prompt(text("name")?), &["name", "arguments"]),
        "resources/read" => (Target::Resource(text("uri")?), &["uri"]),
        "completion/complete" => (completed(members)?, &["ref"]),
        method if OWN.contains(&method) || method.starts_with("notifications/") => {
            return Err(no_such_method(method));
        }
        method => {
            let named = meta.rest.iter().position(|(key, _)| key == SOURCE).map(|at| meta.rest.remove(at).1);
            let source = named.and_then(|raw| toolcrib_core::raw::text(&raw));
            let source = source.map(|text| SourceId::new(&text)).transpose();
            let source = source.map_err(|error| invalid(&error.to_string()))?;
            (Target::Method { source, method: method.to_owned() }, &[])
        }
    })
}

fn completed(members: &Members<'_>) -> Result<Target, Fault> {
    let reference = members.find("ref").map(Members::parse_lenient).unwrap_or_default();
    let text = |key: &str| {
        reference.text(key).ok_or_else(|| invalid(&format!("`params.ref.{key}` must be a string")))
    };
    match reference.text("type").as_deref() {
        Some("ref/prompt") => Ok(Target::CompletePrompt(text("name")?)),
        Some("ref/resource") => Ok(Target::CompleteResource(text("uri")?)),
        _ => Err(invalid("`params.ref.type` must be `ref/prompt` or `ref/resource`")),
    }
}

pub fn invalid(message: &str) -> Fault {
    Fault::new(INVALID_PARAMS, message)
}

fn no_such_method(method: &str) -> Fault {
    let shown: String = method.chars().take(100).collect();
    Fault::new(METHOD_NOT_FOUND, &format!("no such method: `{shown}`"))
}

//! What is sent to a source: the params of each request, written anew for this hop.
//!
//! Arguments and unknown members keep their bytes; names are the source's own; the wire's keys in `_meta` are ours.

use std::collections::HashSet;

use serde_json::{Value, json, value::RawValue};
use toolcrib_core::{
    call::{Invocation, Verb},
    catalog::ItemKind,
    raw::{self, Members, ObjectWriter, Raw},
    trace::{TRACEPARENT, TRACESTATE},
};

use crate::{
    dial::link::Ask,
    meta, param_headers,
    version::{Era, Version},
};

pub(crate) fn client() -> Value {
    json!({ "name": "toolcrib", "version": env!("CARGO_PKG_VERSION") })
}

/// `params` of a request the crib makes for itself, with the `_meta` the modern wire wants.
pub(crate) fn modern(params: Raw) -> Raw {
    let mut object = ObjectWriter::with_capacity(params.get().len() + 256);
    for (key, value) in Members::parse_lenient(&params).iter() {
        object.member(key, value);
    }
    let mut stamp = ObjectWriter::default();
    stamp_modern(&mut stamp, None);
    object.member("_meta", &stamp.finish());
    object.finish()
}

/// The keys of the modern wire. `abilities`: what the asking program can do, mirrored exactly.
fn stamp_modern(stamp: &mut ObjectWriter, abilities: Option<&RawValue>) {
    stamp.text(meta::PROTOCOL_VERSION, Version::LATEST.text());
    match abilities {
        Some(abilities) => stamp.member(meta::CLIENT_CAPABILITIES, abilities),
        None => stamp.raw(meta::CLIENT_CAPABILITIES, "{}"),
    };
    stamp.member(meta::CLIENT_INFO, &raw::from(&client()));
}

/// The request an invocation is. `token`: our progress token, where the caller follows progress.
pub(crate) fn ask(invocation: &Invocation, era: Era, token: Option<u64>) -> Ask {
    let own = &*invocation.item.own;
    let mut params =
        ObjectWriter::with_capacity(invocation.arguments.as_ref().map_or(0, |a| a.get().len()) + 512);
    let mut written = HashSet::from(["_meta".to_owned()]);
    let mut ask = match (invocation.item.kind, invocation.verb) {
        (ItemKind::Prompt, Verb::Complete) => {
            params.member("ref", &raw::from(&json!({ "type": "ref/prompt", "name": own })));
            written.insert("ref".into());
            Ask::new("completion/complete", None)
        }
        (_, Verb::Complete) => {
            params.member("ref", &raw::from(&json!({ "type": "ref/resource", "uri": own })));
            written.insert("ref".into());
            Ask::new("completion/complete", None)
        }
        (ItemKind::Tool, Verb::Use) => named("tools/call", "name", own, &mut params, &mut written),
        (ItemKind::Prompt, Verb::Use) => named("prompts/get", "name", own, &mut params, &mut written),
        (ItemKind::Resource | ItemKind::Template, Verb::Use) => {
            named("resources/read", "uri", own, &mut params, &mut written)
        }
        (ItemKind::Method, Verb::Use) => Ask::new(own, None),
    };
    let passed = match (invocation.item.kind, &invocation.arguments) {
        (ItemKind::Method, Some(whole)) => {
            for (key, value) in Members::parse_lenient(whole).iter() {
                if written.insert(key.to_owned()) {
                    params.member(key, value);
                }
            }
            Members::parse_lenient(whole).find("_meta").map(meta::without_reserved).unwrap_or_default()
        }
        (_, Some(arguments)) if invocation.verb == Verb::Use => {
            params.member("arguments", arguments);
            written.insert("arguments".into());
            Vec::new()
        }
        _ => Vec::new(),
    };
    for (key, value) in &invocation.carry.fields {
        if written.insert(key.clone()) {
            params.member(key, value);
        }
    }
    if let Some(meta) = stamp(invocation, era, token, &passed) {
        params.member("_meta", &meta);
    }
    address(&mut ask, invocation);
    ask.log = invocation.carry.log;
    let params = params.finish();
    let bare = invocation.item.kind == ItemKind::Method && invocation.arguments.is_none();
    ask.params = (!bare || params.get() != "{}").then_some(params);
    ask
}

fn named(
    method: &str,
    key: &str,
    own: &str,
    params: &mut ObjectWriter,
    written: &mut HashSet<String>,
) -> Ask {
    params.text(key, own);
    written.insert(key.to_owned());
    Ask { name: Some(own.to_owned()), ..Ask::new(method, None) }
}

/// What the headers of the modern wire say about the request.
fn address(ask: &mut Ask, invocation: &Invocation) {
    for key in [TRACEPARENT, TRACESTATE] {
        let carried = invocation.carry.meta.iter().find(|(name, _)| name == key);
        ask.trace.extend(carried.and_then(|(_, value)| raw::text(value)).map(|text| (key, text)));
    }
    match invocation.item.kind {
        ItemKind::Method if ask.method.starts_with("tasks/") => {
            let arguments = invocation.arguments.as_deref();
            ask.name = arguments.map(Members::parse_lenient).and_then(|members| members.text("taskId"));
        }
        ItemKind::Tool => {
            if let Some(facets) = &invocation.item.facets {
                ask.mirrored = param_headers::expected(&facets.headers, invocation.arguments.as_deref());
            }
        }
        _ => {}
    }
}

fn stamp(invocation: &Invocation, era: Era, token: Option<u64>, passed: &[(String, Raw)]) -> Option<Raw> {
    let carry = &invocation.carry;
    let mut stamp = ObjectWriter::default();
    let mut written = HashSet::from([meta::PROGRESS_TOKEN]);
    for (key, value) in carry.meta.iter().chain(passed) {
        if !key.starts_with(meta::RESERVED) && written.insert(key) {
            stamp.member(key, value);
        }
    }
    if let Some(token) = token {
        stamp.raw(meta::PROGRESS_TOKEN, &token.to_string());
    }
    if era == Era::Modern {
        stamp_modern(&mut stamp, carry.abilities.as_deref());
        if let Some(level) = carry.log {
            stamp.text(meta::LOG_LEVEL, level.word());
        }
    }
    let stamp = stamp.finish();
    (stamp.get() != "{}").then_some(stamp)
}

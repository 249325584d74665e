//! A method becomes a list, a call, or a word of the crib's own. The same for every wire and both eras.

use std::sync::Arc;

use serde_json::value::RawValue;
use toolcrib_core::{
    call::{Level, Target},
    error::{Failure, Kind},
    raw::{Members, ObjectWriter, Raw},
    source::terms::Watch,
};

use crate::{
    codes::Fault,
    meta::RequestMeta,
    serve::{
        Desk, capabilities,
        conversation::{Conversation, Kindred},
        lists::{self, List},
        render::{self, Caching},
        request::{self, invalid},
        server_info,
        visit::{Asker, Visit},
    },
    version::{Era, Version},
    wire::Id,
};

pub enum Answer {
    /// The text of the result.
    Now(Result<String, Fault>),
    Later(Box<Conversation>),
}

/// A request in the modern era, its envelope checked. `subscriptions/listen` is not among them: it is a stream.
pub async fn modern(
    desk: &Desk,
    asker: &Asker,
    id: Id,
    method: &str,
    params: Option<&RawValue>,
    meta: RequestMeta,
) -> Answer {
    let done = |result| Answer::Now(Ok(render::result(result, Era::Modern, Caching::Silent)));
    if let Some(which) = List::of(method) {
        return Answer::Now(lists::list(&desk.gateway, asker, which, params).await);
    }
    match method {
        "server/discover" => done(discovered(desk, asker)),
        method => call(desk, asker, id, method, params, meta, None),
    }
}

/// A request within a legacy stay. `initialize` is not among them: it begins one.
pub async fn legacy(
    desk: &Desk,
    visit: &Arc<Visit>,
    id: Id,
    method: &str,
    params: Option<&RawValue>,
    meta: RequestMeta,
) -> Answer {
    let Some(asker) = visit.asker() else {
        let told = Failure::new(Kind::Unauthenticated, "this caller is no longer let in");
        return Answer::Now(Err(Fault::of(&told, Era::Legacy)));
    };
    if let Some(which) = List::of(method) {
        return Answer::Now(lists::list(&desk.gateway, &asker, which, params).await);
    }
    match method {
        "ping" => Answer::Now(Ok(nothing())),
        "logging/setLevel" => Answer::Now(set_level(desk, visit, params)),
        "resources/subscribe" => Answer::Now(watch(visit, &asker, params, Watch::More).await),
        "resources/unsubscribe" => Answer::Now(watch(visit, &asker, params, Watch::Fewer).await),
        method => call(desk, &asker, id, method, params, meta, Some(visit.log())),
    }
}

fn call(
    desk: &Desk,
    asker: &Asker,
    id: Id,
    method: &str,
    params: Option<&RawValue>,
    meta: RequestMeta,
    session_log: Option<Level>,
) -> Answer {
    let asked = match request::asked(asker, method, params, meta, session_log) {
        Ok(asked) => asked,
        Err(fault) => return Answer::Now(Err(fault)),
    };
    let kindred = match asked.call.target {
        Target::Tool(_) => Kindred::Tool,
        Target::Resource(_) => Kindred::Read,
        Target::Method { .. } => Kindred::Method,
        Target::Prompt(_) | Target::CompletePrompt(_) | Target::CompleteResource(_) => Kindred::Other,
    };
    let log = asked.call.carry.log;
    let running = desk.gateway.call(asked.call);
    Answer::Later(Box::new(Conversation::new(running, id, kindred, asker.era, asked.token, log)))
}

/// A result that says no more than that there is one.
fn nothing() -> String {
    "{}".to_owned()
}

fn set_level(desk: &Desk, visit: &Visit, params: Option<&RawValue>) -> Result<String, Fault> {
    let word = params.map(Members::parse_lenient).and_then(|members| members.text("level"));
    let level = word.as_deref().and_then(Level::parse).ok_or_else(|| {
        invalid(
            "`params.level` must be one of debug, info, notice, warning, error, critical, alert, emergency",
        )
    })?;
    visit.set_log(level);
    desk.gateway.supervisor().hear(level);
    Ok(nothing())
}

async fn watch(
    visit: &Visit,
    asker: &Asker,
    params: Option<&RawValue>,
    change: Watch,
) -> Result<String, Fault> {
    let uri = params.map(Members::parse_lenient).and_then(|members| members.text("uri"));
    let uri = uri.ok_or_else(|| invalid("`params.uri` must be a string"))?;
    let done = match change {
        Watch::More => visit.watch(&asker.caller, &uri).await,
        Watch::Fewer => visit.unwatch(&asker.caller, &uri).await,
    };
    done.map_err(|failure| Fault::of_resource(&failure, Era::Legacy))?;
    Ok(nothing())
}

/// The result of `initialize`.
pub fn initialized(desk: &Desk, asker: &Asker, version: Version) -> Raw {
    let mut result = ObjectWriter::default();
    result.text("protocolVersion", version.text());
    introduce(&mut result, desk, asker);
    result.member("serverInfo", &server_info());
    result.finish()
}

fn discovered(desk: &Desk, asker: &Asker) -> Raw {
    let mut result = ObjectWriter::default();
    result.raw("supportedVersions", &format!("[\"{}\"]", Version::LATEST.text()));
    introduce(&mut result, desk, asker);
    result.raw("ttlMs", "0").text("cacheScope", "private");
    result.finish()
}

/// The longest introduction, in bytes.
const LONGEST_INSTRUCTIONS: usize = 16 * 1024;

/// What the crib can do, and what the sources this caller sees say about themselves.
fn introduce(result: &mut ObjectWriter, desk: &Desk, asker: &Asker) {
    result.member("capabilities", &capabilities());
    let catalog = desk.gateway.catalog().snapshot();
    let seen: std::collections::HashSet<_> = catalog
        .tools()
        .visible(&asker.caller, desk.gateway.policy())
        .map(|entry| &entry.item.source)
        .collect();
    let mut text = String::new();
    for shelf in catalog.shelves().iter().filter(|shelf| seen.contains(&shelf.id)) {
        if let Some(own) = shelf.offer.instructions.as_deref()
            && text.len() + own.len() < LONGEST_INSTRUCTIONS
        {
            text.push_str(&format!("# {}\n{own}\n\n", shelf.id));
        }
    }
    if !text.is_empty() {
        result.text("instructions", text.trim_end());
    }
}

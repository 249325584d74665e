//! `/calls`: what runs now, and what the ledger remembers. A plain user sees its own calls, told as they were told to
//! it then: a tool it may not see stays unknown here too.

use axum::{
    Json,
    extract::{Path, State},
};
use serde::{Deserialize, Serialize};
use toolcrib_core::{
    caller::{Caller, Role},
    error::{Failure, Kind},
    gateway::roster::LiveCall,
    ledger::{Ending, Filter, Line, Order, Progress},
};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Desk,
    ask::{Asked, Asking},
    refusal::{Refusal, Refused},
};

/// One call. What is not known yet is null.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// The call's id, for life.
    call: String,
    /// Its number in the ledger; null in `running`.
    number: Option<i64>,
    /// When it came in, in milliseconds since 1970.
    at: u64,
    caller: String,
    caller_kind: Option<String>,
    /// `mcp_http`, `mcp_stdio`, `rest`, `cli`
    surface: String,
    /// `tool`, `prompt`, `resource`, `completion`, `method`
    kind: String,
    /// As the caller spelt it.
    target: String,
    /// `running`, `finished`, or `unfinished`: the process that ran it is gone.
    #[schema(value_type = String)]
    progress: Progress,
    /// What the target turned out to be.
    item: Option<String>,
    source: Option<String>,
    /// `done`, `tool_error`, `input_required`, `denied`, or the kind of failure.
    outcome: Option<String>,
    duration_us: Option<u64>,
    bytes_in: Option<u64>,
    bytes_out: Option<u64>,
    /// The layer of policy that refused. For administrators.
    layer: Option<String>,
    /// What happened. For administrators.
    detail: Option<String>,
}

impl From<LiveCall> for Call {
    fn from(live: LiveCall) -> Self {
        Self {
            call: live.call.to_string(),
            number: None,
            at: live.at,
            caller: live.caller,
            caller_kind: None,
            surface: live.surface.to_owned(),
            kind: live.kind.to_owned(),
            target: live.target,
            progress: Progress::Running,
            item: None,
            source: None,
            outcome: None,
            duration_us: None,
            bytes_in: None,
            bytes_out: None,
            layer: None,
            detail: None,
        }
    }
}

impl From<Line> for Call {
    fn from(line: Line) -> Self {
        Self {
            call: line.call,
            number: Some(line.number),
            at: line.at,
            caller: line.caller,
            caller_kind: Some(line.caller_kind),
            surface: line.surface,
            kind: line.kind,
            target: line.target,
            progress: line.progress,
            item: line.item,
            source: line.source,
            outcome: line.outcome,
            duration_us: line.duration_us,
            bytes_in: Some(line.bytes_in),
            bytes_out: line.bytes_out,
            layer: line.layer,
            detail: line.detail,
        }
    }
}

/// The line as `caller` may read it.
fn told(line: Line, caller: &Caller) -> Line {
    match caller.role {
        Role::Admin => line,
        Role::User => line.told_to_user(),
    }
}

#[derive(Serialize, ToSchema)]
pub struct Calls {
    /// Calls under way in this process, oldest first.
    running: Vec<Call>,
    /// Lines of the ledger, where they were asked for.
    entries: Vec<Call>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Wanted {
    /// How many lines of the ledger to add, at most 10,000; without it, none. The other parameters narrow these.
    finished: Option<usize>,
    call: Option<String>,
    /// For a plain user always the user itself.
    caller: Option<String>,
    source: Option<String>,
    /// Part of the target or of the item's id.
    about: Option<String>,
    /// Also `running` and `unfinished`.
    outcome: Option<String>,
    /// Milliseconds since 1970, inclusive.
    since: Option<u64>,
    /// Milliseconds since 1970, inclusive.
    until: Option<u64>,
    /// Only lines with a higher number.
    after: Option<i64>,
    /// `newest_first` (as without it) or `oldest_first`.
    #[param(value_type = Option<String>)]
    order: Option<Direction>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Direction {
    NewestFirst,
    OldestFirst,
}

/// Calls under way and, with `finished`, what the ledger remembers.
#[utoipa::path(get, path = "/calls", tag = "calls", operation_id = "listCalls", params(Wanted),
    responses((status = 200, body = Calls), (status = "4XX", body = Refused), (status = "5XX", body = Refused)))]
pub async fn list(
    State(desk): State<Desk>,
    Asking(caller): Asking,
    Asked(wanted): Asked<Wanted>,
) -> Result<Json<Calls>, Refusal> {
    let live = desk.gateway.roster().calls().into_iter();
    let running = live.filter(|call| may_read(&caller, &call.caller)).map(Call::from).collect();
    let entries = match wanted.finished {
        None | Some(0) => Vec::new(),
        Some(most) => remembered(&desk, &caller, wanted, most).await?,
    };
    Ok(Json(Calls { running, entries }))
}

fn may_read(caller: &Caller, whose: &str) -> bool {
    match caller.role {
        Role::Admin => true,
        Role::User => caller.id.as_str() == whose,
    }
}

async fn remembered(desk: &Desk, caller: &Caller, wanted: Wanted, most: usize) -> Result<Vec<Call>, Refusal> {
    let whose = match caller.role {
        Role::Admin => wanted.caller,
        Role::User => Some(caller.id.to_string()),
    };
    let hides = [Ending::Denied.word(), Kind::Unknown.word()]
        .into_iter()
        .find(|word| wanted.outcome.as_deref() == Some(word));
    let narrow = Narrow { outcome: hides, source: wanted.source.clone(), about: wanted.about.clone() };
    // What a user is not told must not be found by asking for it: it is looked for in the lines as they are told.
    let blurred = caller.role == Role::User && narrow.is_any();
    let filter = Filter {
        call: wanted.call,
        caller: whose,
        source: wanted.source,
        about: wanted.about,
        outcome: wanted.outcome.filter(|_| !(blurred && hides.is_some())),
        since: wanted.since,
        until: wanted.until,
        after: wanted.after,
        order: match wanted.order {
            None | Some(Direction::NewestFirst) => Order::NewestFirst,
            Some(Direction::OldestFirst) => Order::OldestFirst,
        },
        limit: if blurred { 0 } else { most },
    };
    let lines = desk.gateway.ledger().read(filter).await?;
    let lines = lines.into_iter().map(|line| told(line, caller));
    Ok(lines.filter(|line| !blurred || narrow.fits(line)).take(most).map(Call::from).collect())
}

/// What is asked for that told lines may no longer have.
struct Narrow {
    outcome: Option<&'static str>,
    source: Option<String>,
    about: Option<String>,
}

impl Narrow {
    fn is_any(&self) -> bool {
        self.outcome.is_some() || self.source.is_some() || self.about.is_some()
    }

    fn fits(&self, line: &Line) -> bool {
        let is =
            |wanted: Option<&str>, found: &Option<String>| wanted.is_none() || wanted == found.as_deref();
        let about = |text: &String| {
            let has = |part: &str| part.to_ascii_lowercase().contains(&text.to_ascii_lowercase());
            has(&line.target) || line.item.as_deref().is_some_and(has)
        };
        is(self.outcome, &line.outcome)
            && is(self.source.as_deref(), &line.source)
            && self.about.as_ref().is_none_or(about)
    }
}

/// One call.
#[utoipa::path(get, path = "/calls/{id}", tag = "calls", operation_id = "showCall",
    params(("id" = String, Path, description = "the call's id")),
    responses((status = 200, body = Call), (status = "4XX", body = Refused), (status = "5XX", body = Refused)))]
pub async fn show(
    State(desk): State<Desk>,
    Asking(caller): Asking,
    Path(id): Path<String>,
) -> Result<Json<Call>, Refusal> {
    let filter = Filter { call: Some(id.clone()), limit: 1, ..Filter::default() };
    let line = desk.gateway.ledger().read(filter).await?.into_iter().next();
    let line = line.map(|line| Call::from(told(line, &caller)));
    let live = || desk.gateway.roster().calls().into_iter().find(|live| live.call.to_string() == id);
    let found = line.or_else(|| live().map(Call::from)).filter(|call| may_read(&caller, &call.caller));
    let call =
        found.ok_or_else(|| Failure::new(Kind::Unknown, "there is no such call, or it is not yours"))?;
    Ok(Json(call))
}

//! `audit`: the ledger read back. It reads the file itself, so it works whether or not a crib is running, and it never
//! writes. Arguments and results are not in the ledger, so they cannot be shown.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};
use toolcrib_core::ledger::{Filter, Ledger as _, Line, Order, Progress, now};
use toolcrib_store::{SqliteLedger, StoreError};

use super::content::size;
use super::trouble::{Code, Trouble};
use super::{Desk, Ended, JsonBelow, moment};
use crate::output::{Cell, Table, Tint, tree};

/// Read the ledger: who called what, when, and how it ended
#[derive(Debug, Args)]
#[command(after_help = "\
Arguments and results of calls are not recorded. A call whose process died is shown as `unfinished`. Times are UTC.

Examples:
  toolcrib audit list --since 1h --outcome tool_error
  toolcrib audit list --about notion: --caller ci --limit 200 --json
  toolcrib audit show 0198f0c2a4b17e3f9d2b6c5a1e8f7d30
  toolcrib audit tail -f")]
pub struct Audit {
    #[command(flatten)]
    pub(super) form: JsonBelow,
    #[command(subcommand)]
    deed: Which,
}

#[derive(Debug, Subcommand)]
enum Which {
    /// Calls, newest first
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        narrow: Narrow,
        /// At most this many
        #[arg(long, short = 'n', default_value = "50")]
        limit: usize,
    },
    /// One call in full
    Show {
        /// The id of the call, or as much of its beginning as tells it apart
        call: String,
    },
    /// The last calls, oldest first
    Tail {
        #[command(flatten)]
        narrow: Narrow,
        /// Start with this many
        #[arg(long, short = 'n', default_value = "10")]
        limit: usize,
        /// Go on with each call as it ends
        #[arg(long, short)]
        follow: bool,
    },
}

/// Every flag narrows.
#[derive(Debug, Args)]
struct Narrow {
    /// Only calls of this caller
    #[arg(long)]
    caller: Option<String>,
    /// Only calls to this server
    #[arg(long, value_name = "SERVER", visible_alias = "server")]
    source: Option<String>,
    /// Only calls with this in the name they asked for
    #[arg(long, value_name = "TEXT")]
    about: Option<String>,
    /// Only calls that ended so: done, tool_error, denied, unknown, timeout, unfinished, running, …
    #[arg(long)]
    outcome: Option<String>,
    /// Only calls since then: `15m`, `2h`, `7d` or `2026-11-15T10:00` (UTC)
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only calls until then
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
}

impl Narrow {
    fn filter(&self) -> Result<Filter, Trouble> {
        let when = |flag: &str, text: &Option<String>| {
            let parse = |text: &String| {
                moment::parse(text, now())
                    .map_err(|hint| Trouble::usage(format!("`{flag} {text}` is not a time")).hint(hint))
            };
            text.as_ref().map(parse).transpose()
        };
        Ok(Filter {
            caller: self.caller.clone(),
            source: self.source.clone(),
            about: self.about.clone(),
            outcome: self.outcome.clone(),
            since: when("--since", &self.since)?,
            until: when("--until", &self.until)?,
            ..Filter::default()
        })
    }
}

pub async fn run(words: Audit, desk: &Desk) -> Ended {
    let config = desk.load()?.config;
    let ledger = match SqliteLedger::read_only(&config.data) {
        Ok(ledger) => Some(ledger),
        // Nothing was called yet; that is an answer, not a failure.
        Err(StoreError::Missing(_)) => None,
        Err(error) => return Err(error.into()),
    };
    match words.deed {
        Which::List { narrow, limit } => {
            let filter = Filter { limit, ..narrow.filter()? };
            let lines = match &ledger {
                Some(ledger) => ledger.read(filter).await?,
                None => Vec::new(),
            };
            list(&lines, desk)?;
        }
        Which::Show { call } => show(&find(ledger.as_ref(), &call).await?, desk)?,
        Which::Tail { narrow, limit, follow } => {
            let filter = narrow.filter()?;
            let Some(ledger) = ledger else {
                if follow {
                    return Err(StoreError::Missing(config.data).into());
                }
                return Ok(Code::Done);
            };
            tail(&ledger, filter, limit, if follow { Then::Follow } else { Then::Stop }, desk).await?;
        }
    }
    Ok(Code::Done)
}

/// A line as programs see it.
fn object(line: &Line) -> Value {
    json!({
        "number": line.number, "callId": line.call, "at": line.at, "time": moment::exact(line.at),
        "caller": line.caller, "callerKind": line.caller_kind, "surface": line.surface, "kind": line.kind,
        "target": line.target, "item": line.item, "source": line.source, "progress": line.progress,
        "outcome": line.outcome, "durationUs": line.duration_us, "bytesIn": line.bytes_in,
        "bytesOut": line.bytes_out, "layer": line.layer, "detail": line.detail,
    })
}

/// How it ended, or that it did not.
fn ending(line: &Line) -> &str {
    match line.progress {
        Progress::Running => "running",
        Progress::Unfinished => "unfinished",
        Progress::Finished => line.outcome.as_deref().unwrap_or("done"),
    }
}

fn tint(ending: &str) -> Tint {
    match ending {
        "done" => Tint::Good,
        "running" | "input_required" | "cancelled" => Tint::Faint,
        "unfinished" | "denied" | "unknown" | "invalid_arguments" | "ambiguous" | "unauthenticated" => {
            Tint::Warn
        }
        _ => Tint::Bad,
    }
}

fn row(line: &Line, when: String) -> Vec<Cell> {
    let ending = ending(line);
    vec![
        Cell::tinted(when, Tint::Faint),
        Cell::new(&line.caller),
        Cell::new(line.item.as_ref().unwrap_or(&line.target)),
        Cell::tinted(ending, tint(ending)),
        Cell::maybe(line.duration_us.map(moment::span)),
        Cell::tinted(&line.call, Tint::Faint),
    ]
}

fn list(lines: &[Line], desk: &Desk) -> std::io::Result<()> {
    if desk.output.is_json() {
        return desk.output.json(&json!({ "calls": lines.iter().map(object).collect::<Vec<_>>() }));
    }
    if lines.is_empty() {
        desk.output.aside("no calls are recorded that fit");
        return Ok(());
    }
    let now = now();
    let mut table = Table::new(&["WHEN", "CALLER", "ASKED FOR", "OUTCOME", "TOOK", "CALL"]);
    for line in lines {
        let when =
            if desk.output.is_terminal() { moment::relative(line.at, now) } else { moment::exact(line.at) };
        table.row(row(line, when));
    }
    desk.output.table(&table)
}

/// By the whole id, else by its beginning among the newest.
async fn find(ledger: Option<&SqliteLedger>, call: &str) -> Result<Line, Trouble> {
    const SHORTEST: usize = 4;
    let unknown = || {
        Trouble::unknown(format!("no call `{call}` is recorded"))
            .hint("`toolcrib audit list` shows their ids")
    };
    let ledger = ledger.ok_or_else(unknown)?;
    let exact = Filter { call: Some(call.to_owned()), limit: 1, ..Filter::default() };
    if let Some(line) = ledger.read(exact).await?.pop() {
        return Ok(line);
    }
    let mut alike = ledger.read(Filter::default()).await?;
    alike.retain(|line| call.len() >= SHORTEST && line.call.starts_with(call));
    match (alike.pop(), alike.is_empty()) {
        (Some(line), true) => Ok(line),
        (Some(_), false) => {
            Err(Trouble::usage(format!("several calls begin with `{call}`")).hint("give more of the id"))
        }
        (None, _) => Err(unknown()),
    }
}

fn show(line: &Line, desk: &Desk) -> std::io::Result<()> {
    if desk.output.is_json() {
        return desk.output.json(&object(line));
    }
    let told = json!({
        "call": line.call,
        "time": format!("{} ({})", moment::exact(line.at), moment::relative(line.at, now())),
        "caller": format!("{} ({})", line.caller, line.caller_kind),
        "through": line.surface,
        "asked for": format!("{} {}", line.kind, line.target),
        "found": line.item,
        "ended": ending(line),
        "took": line.duration_us.map(moment::span),
        "in": size(line.bytes_in as usize),
        "out": line.bytes_out.map(|bytes| size(bytes as usize)),
        "refused by": line.layer,
        "detail": line.detail,
    });
    desk.output.text(&tree(&told))
}

enum Then {
    Stop,
    Follow,
}

/// How often the ledger is looked at for more.
const POLL: Duration = Duration::from_millis(250);

async fn tail(
    ledger: &SqliteLedger,
    filter: Filter,
    limit: usize,
    then: Then,
    desk: &Desk,
) -> Result<(), Trouble> {
    let mut last = 0;
    if limit > 0 {
        let mut lines = ledger.read(Filter { limit, ..filter.clone() }).await?;
        lines.reverse();
        last = lines.last().map_or(0, |line| line.number);
        for line in &lines {
            print(line, desk)?;
        }
    }
    if matches!(then, Then::Stop) {
        return Ok(());
    }
    if last == 0 {
        // What was there before, whatever it was, is not shown again.
        let newest = ledger.read(Filter { limit: 1, ..Filter::default() }).await?;
        last = newest.first().map_or(0, |line| line.number);
    }
    let mut open: BTreeMap<i64, String> = BTreeMap::new();
    let mut tick = interval(POLL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let fresh = Filter { after: Some(last), order: Order::OldestFirst, outcome: None, ..filter.clone() };
        let mut lines = Vec::new();
        for call in open.values() {
            lines.extend(ledger.read(Filter { call: Some(call.clone()), ..Filter::default() }).await?);
        }
        lines.extend(ledger.read(fresh).await?);
        for line in &lines {
            last = last.max(line.number);
            if line.progress == Progress::Running {
                open.insert(line.number, line.call.clone());
                continue;
            }
            open.remove(&line.number);
            if filter.outcome.as_deref().is_none_or(|outcome| outcome == ending(line)) {
                print(line, desk)?;
            }
        }
    }
}

fn print(line: &Line, desk: &Desk) -> std::io::Result<()> {
    if desk.output.is_json() {
        return desk.output.json_line(&object(line));
    }
    let ending = ending(line);
    let took = line.duration_us.map(moment::span).unwrap_or_default();
    let what = crate::output::first_line(line.item.as_ref().unwrap_or(&line.target));
    desk.output.line(format!(
        "{}  {}  {}  {}  {took}",
        desk.output.paint(Tint::Faint, &moment::exact(line.at)),
        line.caller,
        what,
        desk.output.paint(tint(ending), ending),
    ))
}

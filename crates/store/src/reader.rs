//! Reads the ledger back, through connections that cannot write. Never waits for the writer.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, Row, params_from_iter, types::Value};
use toolcrib_core::ledger::{Filter, Line, Order, Progress};

use crate::boot;

/// Lines that one question gives at most; also what a limit of 0 means.
pub const MOST_LINES: usize = 10_000;
const BUSY_LIMIT: Duration = Duration::from_secs(5);
/// Connections kept for the next reader.
const SPARE: usize = 4;

pub struct Reader {
    dir: PathBuf,
    file: PathBuf,
    spare: Mutex<Vec<Connection>>,
}

pub fn connect(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(BUSY_LIMIT)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

impl Reader {
    pub fn new(dir: &Path, file: &Path) -> Self {
        Self { dir: dir.to_owned(), file: file.to_owned(), spare: Mutex::new(Vec::new()) }
    }

    /// Blocks; run it off the async threads.
    pub fn read(&self, filter: &Filter) -> rusqlite::Result<Vec<Line>> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match spare {
            Some(connection) => connection,
            None => connect(&self.file)?,
        };
        let lines = self.lines(&connection, filter)?;
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE {
            spare.push(connection);
        }
        Ok(lines)
    }

    fn lines(&self, connection: &Connection, filter: &Filter) -> rusqlite::Result<Vec<Line>> {
        // Asked before the lines are read: an entry still open after its process was found gone stays open for good.
        let gone = self.gone(connection)?;
        let (sql, values) = question(filter, &gone);
        let mut statement = connection.prepare_cached(&sql)?;
        let rows = statement.query_map(params_from_iter(values), |row| line(row, &gone))?;
        rows.collect()
    }

    /// The processes that left entries open and are gone.
    fn gone(&self, connection: &Connection) -> rusqlite::Result<HashSet<i64>> {
        let mut statement =
            connection.prepare_cached("SELECT DISTINCT boot FROM entries WHERE outcome IS NULL")?;
        let boots = statement.query_map([], |row| row.get::<_, i64>(0))?;
        boots.filter(|id| id.as_ref().map_or(true, |id| !boot::lives(&self.dir, *id))).collect()
    }
}

const COLUMNS: &str = "number, boot, call, at, caller, caller_kind, surface, kind, target, item, source, outcome, \
                       duration_us, bytes_in, bytes_out, layer, detail";

/// The filter as SQL. Only names of ours are in the text; every value is bound.
fn question(filter: &Filter, gone: &HashSet<i64>) -> (String, Vec<Value>) {
    let mut wheres: Vec<String> = Vec::new();
    let mut values: Vec<Value> = Vec::new();
    let mut narrow = |condition: &str, value: Value| {
        values.push(value);
        wheres.push(condition.replace('?', &format!("?{}", values.len())));
    };
    for (column, text) in [("call", &filter.call), ("caller", &filter.caller), ("source", &filter.source)] {
        if let Some(text) = text {
            narrow(&format!("{column} = ?"), text.clone().into());
        }
    }
    if let Some(about) = &filter.about {
        narrow(r"(target LIKE ? ESCAPE '\' OR item LIKE ? ESCAPE '\')", pattern(about).into());
    }
    for (condition, bound) in [("at >= ?", filter.since), ("at <= ?", filter.until)] {
        if let Some(bound) = bound {
            narrow(condition, i64::try_from(bound).unwrap_or(i64::MAX).into());
        }
    }
    if let Some(after) = filter.after {
        narrow("number > ?", after.into());
    }
    match filter.outcome.as_deref() {
        None => {}
        // Not outcomes in the table, but what an entry without one is called.
        Some("unfinished") => wheres.push(format!("outcome IS NULL AND boot IN ({})", listed(gone))),
        Some("running") => wheres.push(format!("outcome IS NULL AND boot NOT IN ({})", listed(gone))),
        Some(outcome) => narrow("outcome = ?", outcome.to_owned().into()),
    }
    let narrowed = if wheres.is_empty() { String::new() } else { format!(" WHERE {}", wheres.join(" AND ")) };
    let direction = match filter.order {
        Order::NewestFirst => "DESC",
        Order::OldestFirst => "ASC",
    };
    let limit = if filter.limit == 0 { MOST_LINES } else { filter.limit.min(MOST_LINES) };
    (format!("SELECT {COLUMNS} FROM entries{narrowed} ORDER BY number {direction} LIMIT {limit}"), values)
}

fn listed(ids: &HashSet<i64>) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// `text` anywhere, with LIKE's own signs taken literally.
fn pattern(text: &str) -> String {
    let escaped = text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_");
    format!("%{escaped}%")
}

fn line(row: &Row<'_>, gone: &HashSet<i64>) -> rusqlite::Result<Line> {
    let outcome: Option<String> = row.get("outcome")?;
    let boot: i64 = row.get("boot")?;
    let progress = match &outcome {
        Some(_) => Progress::Finished,
        None if gone.contains(&boot) => Progress::Unfinished,
        None => Progress::Running,
    };
    let count = |column: &str| row.get::<_, i64>(column).map(i64::cast_unsigned);
    let maybe = |column: &str| row.get::<_, Option<i64>>(column).map(|n| n.map(i64::cast_unsigned));
    Ok(Line {
        number: row.get("number")?,
        call: row.get("call")?,
        at: count("at")?,
        caller: row.get("caller")?,
        caller_kind: row.get("caller_kind")?,
        surface: row.get("surface")?,
        kind: row.get("kind")?,
        target: row.get("target")?,
        progress,
        item: row.get("item")?,
        source: row.get("source")?,
        outcome,
        duration_us: maybe("duration_us")?,
        bytes_in: count("bytes_in")?,
        bytes_out: maybe("bytes_out")?,
        layer: row.get("layer")?,
        detail: row.get("detail")?,
    })
}

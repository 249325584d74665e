//! The stories of any ledger on SQLite, and those only a file can tell: reopening, versions, trouble with the disk.
//! Everything here is a real file; what needs a second process is in `processes.rs`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that trips has failed"
)]

#[path = "stories/any_ledger.rs"]
mod any_ledger;

use std::{fs, path::Path, sync::Arc};

use any_ledger::{closing, entry, lines, opening};
use rusqlite::Connection;
use tempfile::TempDir;
use toolcrib_core::{
    call::Outcome,
    ledger::{Ending, Filter, Ledger, Progress},
};
use toolcrib_store::{Durability, SqliteLedger, StoreError};

const DONE: Ending = Ending::Ran(Outcome::Done);

fn fresh() -> (TempDir, Arc<dyn Ledger>) {
    let dir = TempDir::new().unwrap();
    let ledger = SqliteLedger::open(dir.path()).unwrap();
    (dir, Arc::new(ledger))
}

#[tokio::test]
async fn every_story_of_a_ledger_holds() {
    any_ledger::what_is_written_is_read_back(&*fresh().1).await;
    let (_dir, ledger) = fresh();
    any_ledger::every_filter_narrows(&*ledger).await;
    any_ledger::bounds_of_time_are_inclusive(&*ledger).await;
    any_ledger::an_entry_is_closed_once(&*ledger).await;
    any_ledger::one_bad_write_spoils_no_other(&ledger).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_producers_share_few_commits() {
    let dir = TempDir::new().unwrap();
    let ledger = Arc::new(SqliteLedger::open(dir.path()).unwrap());
    let port: Arc<dyn Ledger> = ledger.clone();
    any_ledger::numbers_grow_with_many_producers(&port, 64, 10).await;
    let (writes, commits) = (64 * 10 * 2, ledger.commits());
    assert!(commits * 4 < writes, "{writes} writes took {commits} commits");
}

#[tokio::test]
async fn reopening_keeps_what_was_written() {
    let (dir, ledger) = fresh();
    let first = entry(&*ledger, "ann", "git:status", DONE).await;
    drop(ledger);
    let again = SqliteLedger::open_with(dir.path(), Durability::Normal).unwrap();
    let second = entry(&again, "bob", "git:status", DONE).await;
    assert!(second > first);
    let callers: Vec<_> =
        lines(&again, Filter::default()).await.into_iter().map(|line| line.caller).collect();
    assert_eq!(callers, ["bob", "ann"]);
}

#[tokio::test]
async fn an_entry_left_open_is_running_until_its_writer_is_gone() {
    let (dir, ledger) = fresh();
    let left = ledger.open(opening("ann", "git:slow")).await.unwrap();
    let audit = SqliteLedger::read_only(dir.path()).unwrap();
    assert_eq!(lines(&audit, Filter::default()).await[0].progress, Progress::Running);
    drop(ledger);
    assert_eq!(lines(&audit, Filter::default()).await[0].progress, Progress::Unfinished);
    let unfinished = Filter { outcome: Some("unfinished".into()), ..Filter::default() };
    assert_eq!(lines(&audit, unfinished).await.len(), 1);
    let next = SqliteLedger::open(dir.path()).unwrap();
    assert!(next.close(left, closing("git:slow", DONE)).await.is_err(), "nobody closes another's entry");
}

#[tokio::test]
async fn lock_files_of_the_dead_are_removed_and_those_of_the_living_stay() {
    let dir = TempDir::new().unwrap();
    let locks = || fs::read_dir(dir.path().join("boots")).unwrap().count();
    let living = SqliteLedger::open(dir.path()).unwrap();
    for _ in 0..3 {
        drop(SqliteLedger::open(dir.path()).unwrap());
    }
    assert_eq!(locks(), 2, "the living one's, and the last one's until somebody starts");
    drop(living);
    let _last = SqliteLedger::open(dir.path()).unwrap();
    assert_eq!(locks(), 1);
}

#[tokio::test]
async fn reading_only_changes_nothing() {
    let dir = TempDir::new().unwrap();
    let missing = SqliteLedger::read_only(dir.path()).err().unwrap();
    assert!(matches!(missing, StoreError::Missing(_)), "{missing}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    drop(SqliteLedger::open(dir.path()).unwrap());
    let before = fs::read(dir.path().join("ledger.db")).unwrap();
    let audit = SqliteLedger::read_only(dir.path()).unwrap();
    assert!(lines(&audit, Filter::default()).await.is_empty());
    let refused = audit.open(opening("ann", "x")).await.unwrap_err();
    assert!(refused.to_string().contains("for reading only"), "{refused}");
    assert_eq!(fs::read(dir.path().join("ledger.db")).unwrap(), before);
}

#[test]
fn a_newer_file_is_refused_and_left_alone() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("ledger.db");
    Connection::open(&file).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(&file).unwrap();
    for refused in [SqliteLedger::open(dir.path()).err(), SqliteLedger::read_only(dir.path()).err()] {
        let told = refused.unwrap().to_string();
        assert!(told.contains("newer toolcrib (version 99"), "{told}");
    }
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn trouble_when_opening_is_an_error_that_names_the_place() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("a-file");
    fs::write(&file, "x").unwrap();
    let told = SqliteLedger::open(&file.join("below")).err().unwrap().to_string();
    assert!(told.contains("a-file"), "{told}");
    fs::write(dir.path().join("ledger.db"), "this is not a database, but long enough to look at".repeat(99))
        .unwrap();
    let told = SqliteLedger::open(dir.path()).err().unwrap().to_string();
    assert!(told.contains("ledger.db"), "{told}");
}

#[tokio::test]
async fn a_ledger_that_vanishes_refuses_and_recovers_when_it_is_back() {
    let (dir, ledger) = fresh();
    let (file, away) = (dir.path().join("ledger.db"), dir.path().join("away.db"));
    fs::rename(&file, &away).unwrap();
    let down = ledger.open(opening("ann", "x")).await.unwrap_err();
    assert!(down.to_string().contains("moved or deleted"), "{down}");
    fs::rename(&away, &file).unwrap();
    entry(&*ledger, "ann", "git:status", DONE).await;
}

#[tokio::test]
async fn a_disk_without_room_fails_its_batch_and_not_the_next() {
    let (dir, ledger) = fresh();
    let other = Connection::open(dir.path().join("ledger.db")).unwrap();
    // A trigger that raises is the nearest thing to a full disk that any user can make.
    let full = "CREATE TRIGGER full BEFORE INSERT ON entries BEGIN SELECT RAISE(ROLLBACK, 'no room'); END";
    other.execute_batch(full).unwrap();
    let down = ledger.open(opening("ann", "x")).await.unwrap_err();
    assert!(down.to_string().contains("no room"), "{down}");
    other.execute_batch("DROP TRIGGER full").unwrap();
    entry(&*ledger, "ann", "git:status", DONE).await;
    assert_eq!(lines(&*ledger, Filter::default()).await.len(), 1);
}

#[tokio::test]
async fn another_process_that_holds_the_file_is_waited_for() {
    let (dir, ledger) = fresh();
    let mut other = Connection::open(dir.path().join("ledger.db")).unwrap();
    let held = other.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let waiting = tokio::spawn(async move { ledger.open(opening("ann", "x")).await });
    tokio::task::yield_now().await;
    held.commit().unwrap();
    assert!(waiting.await.unwrap().is_ok());
}

#[test]
fn only_the_owner_can_read_the_files() {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = TempDir::new().unwrap();
        let home = dir.path().join("new").join("home");
        let _ledger = SqliteLedger::open(&home).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&home), 0o700);
        for file in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
            assert_eq!(mode(&home.join(file)), 0o600, "{file}");
        }
    }
}

#[test]
fn the_questions_people_ask_are_answered_by_an_index() {
    let dir = TempDir::new().unwrap();
    let _ledger = SqliteLedger::open(dir.path()).unwrap();
    let db = Connection::open(dir.path().join("ledger.db")).unwrap();
    let plan = |sql: &str| -> String {
        let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = statement.query_map([], |row| row.get::<_, String>(3)).unwrap();
        steps.map(Result::unwrap).collect::<Vec<_>>().join("; ")
    };
    for (condition, index) in [
        ("call = 1", "entries_call"),
        ("caller = 1", "entries_caller"),
        ("source = 1", "entries_source"),
        ("outcome = 1", "entries_outcome"),
    ] {
        let told = plan(&format!("SELECT * FROM entries WHERE {condition} ORDER BY number DESC LIMIT 50"));
        assert!(told.contains(index) && !told.contains("TEMP B-TREE"), "{condition}: {told}");
    }
    let old = plan("DELETE FROM entries WHERE at < 1");
    assert!(old.contains("entries_at"), "{old}");
}

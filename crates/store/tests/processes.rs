//! Stories with a second process: this test binary starts itself, plays a part, and is killed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that trips has failed"
)]

#[path = "stories/any_ledger.rs"]
#[allow(dead_code, reason = "shared with the other test files")]
mod any_ledger;

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::Arc,
};

use any_ledger::{entry, lines, opening};
use tempfile::TempDir;
use toolcrib_core::{
    call::Outcome,
    ledger::{Ending, Filter, Ledger, Order, Progress},
};
use toolcrib_store::SqliteLedger;

const DONE: Ending = Ending::Ran(Outcome::Done);
const PART: &str = "TOOLCRIB_TEST_PART";
const PLACE: &str = "TOOLCRIB_TEST_DIR";
const MARK: &str = "said: ";

/// Not a story: what a child process does. Without a part it is the parent's run, and there is nothing to do.
#[test]
fn a_child_plays_its_part() {
    let (Ok(part), Some(dir)) = (std::env::var(PART), std::env::var_os(PLACE)) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let ledger: Arc<dyn Ledger> = Arc::new(SqliteLedger::open(Path::new(&dir)).unwrap());
    runtime.block_on(async {
        match part.as_str() {
            "open and die" => {
                let _ = ledger.open(opening("child", "git:slow")).await.unwrap();
                std::process::abort();
            }
            "open and wait" => {
                let _ = ledger.open(opening("child", "git:slow")).await.unwrap();
                say("open");
                let _ = std::io::stdin().read_line(&mut String::new());
            }
            "write without end" => {
                for n in 0..8 {
                    let ledger = ledger.clone();
                    tokio::spawn(async move {
                        loop {
                            say(&entry(&*ledger, &format!("p{n}"), "git:status", DONE).await.to_string());
                        }
                    });
                }
                std::future::pending::<()>().await;
            }
            "write fifty" => {
                for _ in 0..50 {
                    entry(&*ledger, "child", "git:status", DONE).await;
                }
            }
            other => panic!("no such part: {other}"),
        }
    });
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{MARK}{text}").unwrap();
}

fn start(part: &str, dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_child_plays_its_part", "--nocapture"])
        .env(PART, part)
        .env(PLACE, dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What the child says, line by line, until it ends.
fn heard(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let out = BufReader::new(child.stdout.take().unwrap());
    out.lines().map_while(Result::ok).filter_map(|line| line.strip_prefix(MARK).map(str::to_owned))
}

#[tokio::test]
async fn a_call_whose_process_died_is_unfinished() {
    let dir = TempDir::new().unwrap();
    assert!(!start("open and die", dir.path()).wait().unwrap().success());
    let audit = SqliteLedger::read_only(dir.path()).unwrap();
    let line = lines(&audit, Filter::default()).await.remove(0);
    assert_eq!((line.progress, line.outcome), (Progress::Unfinished, None));
    let next = SqliteLedger::open(dir.path()).unwrap();
    assert_eq!(lines(&next, Filter::default()).await[0].progress, Progress::Unfinished, "for good");
}

#[tokio::test]
async fn a_call_of_another_living_process_is_running() {
    let dir = TempDir::new().unwrap();
    let mut child = start("open and wait", dir.path());
    let _stdin: Option<ChildStdin> = child.stdin.take();
    assert_eq!(heard(&mut child).next().as_deref(), Some("open"));
    // Starting beside it must not take its lock for a stale one.
    let beside = SqliteLedger::open(dir.path()).unwrap();
    assert_eq!(lines(&beside, Filter::default()).await[0].progress, Progress::Running);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(lines(&beside, Filter::default()).await[0].progress, Progress::Unfinished);
}

#[tokio::test]
async fn what_was_acknowledged_before_a_kill_is_there() {
    let dir = TempDir::new().unwrap();
    let mut child = start("write without end", dir.path());
    let mut told = heard(&mut child);
    let mut acknowledged: Vec<i64> = told.by_ref().take(200).map(|line| line.parse().unwrap()).collect();
    child.kill().unwrap();
    acknowledged.extend(told.filter_map(|line| line.parse::<i64>().ok()));
    child.wait().unwrap();
    assert!(acknowledged.len() >= 200);
    let audit = SqliteLedger::read_only(dir.path()).unwrap();
    let finished: Vec<i64> = lines(&audit, Filter { order: Order::OldestFirst, ..Filter::default() })
        .await
        .iter()
        .filter(|line| line.progress == Progress::Finished)
        .map(|line| line.number)
        .collect();
    let lost: Vec<_> = acknowledged.iter().filter(|number| !finished.contains(number)).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
}

#[tokio::test]
async fn several_processes_start_and_write_at_once() {
    let dir = TempDir::new().unwrap();
    let mut children: Vec<_> = (0..4).map(|_| start("write fifty", dir.path())).collect();
    let here = SqliteLedger::open(dir.path()).unwrap();
    for _ in 0..50 {
        entry(&here, "parent", "git:status", DONE).await;
    }
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let all = lines(&here, Filter::default()).await;
    assert_eq!(all.len(), 250);
    assert!(all.iter().all(|line| line.progress == Progress::Finished));
}

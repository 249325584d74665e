//! Hot reload: an edit of the config file arrives as a new reading, good or bad, well within a second.
//!
//! The folder is watched and not the file, because editors replace files and Kubernetes swaps a symlink beside them. A
//! glance at the file's stamp twice a second stands in where no events come (network shares, links into other folders,
//! a system out of watches). What a reading changes is for its receiver to decide; nothing is applied here.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::mistake::Mistakes;
use super::{Loaded, find, parse};

/// Where values of environment variables come from, for as long as the watch lasts.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Quiet this long means that the writer is done.
const SETTLED: Duration = Duration::from_millis(150);
/// A folder that is never quiet is read after this long all the same.
const PATIENCE: Duration = Duration::from_millis(500);
const GLANCE: Duration = Duration::from_millis(500);

/// Watches the file until the receiver is dropped. Each change of its text is one message; saving the same text is none.
///
/// Call it before [`super::load`], so that no edit falls between the two. Needs a running tokio runtime.
pub fn watch(path: &Path, env: Environment) -> Receiver<Result<Loaded, Mistakes>> {
    let (sender, receiver) = mpsc::channel(4);
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // Both are made before returning: from here on an edit is seen.
    let (hint, hints) = mpsc::channel(1);
    let eyes = Eyes { hints, _watcher: folder_watcher(&path, hint.clone()), _open: hint };
    let known = Known { stamp: stamp(&path), text: find::read(&path) };
    tokio::spawn(follow(path, env, eyes, known, sender));
    receiver
}

struct Eyes {
    hints: Receiver<()>,
    /// Held for what it sends. `None` when the system gives no events; then only glances find edits.
    _watcher: Option<RecommendedWatcher>,
    /// Keeps `hints` open without a watcher.
    _open: Sender<()>,
}

struct Known {
    stamp: Option<Stamp>,
    text: Result<String, Mistakes>,
}

async fn follow(
    path: PathBuf,
    env: Environment,
    mut eyes: Eyes,
    mut known: Known,
    sender: Sender<Result<Loaded, Mistakes>>,
) {
    let mut glances = interval(GLANCE);
    glances.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = sender.closed() => return,
            _ = eyes.hints.recv() => {}
            _ = glances.tick() => if stamp(&path) == known.stamp { continue },
        }
        settle(&mut eyes.hints).await;
        let Some(text) = known.renew(&path) else { continue };
        let reading = text.and_then(|text| parse(&text, Some(&path), &*env));
        if sender.send(reading).await.is_err() {
            return;
        }
    }
}

impl Known {
    /// The text of the file if it is not what it was.
    fn renew(&mut self, path: &Path) -> Option<Result<String, Mistakes>> {
        // The stamp is taken first: an edit during the read then shows at the next glance.
        let now = stamp(path);
        if now == self.stamp {
            return None;
        }
        let text = find::read(path);
        self.stamp = now;
        if text == self.text {
            return None;
        }
        self.text = text.clone();
        Some(text)
    }
}

async fn settle(hints: &mut Receiver<()>) {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end && matches!(timeout(SETTLED, hints.recv()).await, Ok(Some(()))) {}
}

fn folder_watcher(path: &Path, hint: Sender<()>) -> Option<RecommendedWatcher> {
    let folder = path.parent()?;
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Our own reads are events too; a full channel means that a hint is already waiting.
        if event.is_ok_and(|event| !event.kind.is_access()) {
            let _already_hinted = hint.try_send(());
        }
    })
    .ok()?;
    watcher.watch(folder, RecursiveMode::NonRecursive).ok()?;
    Some(watcher)
}

/// What changes whenever the file is written or replaced.
#[derive(PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    #[cfg(unix)]
    inode_and_change: (u64, i64, i64),
}

fn stamp(path: &Path) -> Option<Stamp> {
    #[cfg(unix)]
    use std::os::unix::fs::MetadataExt as _;
    let file = fs::metadata(path).ok()?;
    Some(Stamp {
        modified: file.modified().ok(),
        length: file.len(),
        #[cfg(unix)]
        inode_and_change: (file.ino(), file.ctime(), file.ctime_nsec()),
    })
}

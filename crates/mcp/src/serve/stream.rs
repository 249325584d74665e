//! One server-sent-event stream of a legacy session: numbered, kept for a while, resumable after `Last-Event-ID`.
//!
//! Bounded in events and bytes; what no longer fits is forgotten from the front.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::Stream as Flow;
use tokio::{sync::Notify, time::Instant};

const MOST_EVENTS: usize = 256;
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// A stream that ended can be resumed for this long: what was handed to the connection may never have arrived.
const KEPT: Duration = Duration::from_secs(60);
/// A comment goes out this often, so that nobody on the way takes the stream for dead.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
pub const COMMENT: &[u8] = b": keep-alive\n\n";

/// One event without a number, for streams that cannot be resumed.
pub fn event(message: &str) -> Bytes {
    Bytes::from(format!("event: message\ndata: {message}\n\n"))
}

pub struct Stream {
    /// Its number within the session.
    pub number: u64,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    /// The number of the last event.
    last: u64,
    /// The number of the last event a reader took.
    taken: u64,
    ended: Option<Instant>,
    /// Which reader is the present one; none: 0.
    reader: u64,
    readers: u64,
}

impl State {
    fn drop_first(&mut self) {
        if let Some((_, dropped)) = self.events.pop_front() {
            self.bytes -= dropped.len();
        }
    }
}

impl Stream {
    pub fn new(number: u64) -> Arc<Self> {
        Arc::new(Self { number, state: Mutex::default(), changed: Notify::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, message: &str) {
        {
            let mut state = self.state();
            state.last += 1;
            let number = state.last;
            let event =
                Bytes::from(format!("id: {}-{number}\nevent: message\ndata: {message}\n\n", self.number));
            state.bytes += event.len();
            state.events.push_back((number, event));
            while state.events.len() > MOST_EVENTS || (state.bytes > MOST_BYTES && state.events.len() > 1) {
                state.drop_first();
            }
        }
        self.changed.notify_waiters();
    }

    pub fn end(&self) {
        self.state().ended.get_or_insert_with(Instant::now);
        self.changed.notify_waiters();
    }

    pub fn has_ended(&self) -> bool {
        self.state().ended.is_some()
    }

    /// Ended so long ago that nobody comes back for it.
    pub fn is_stale(&self) -> bool {
        self.state().ended.is_some_and(|at| at.elapsed() >= KEPT)
    }

    pub fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// Forgets what was read, and all that was not but the last; tells how many bytes that were.
    pub fn shed(&self) -> usize {
        let mut state = self.state();
        let before = state.bytes;
        while state.events.front().is_some_and(|(number, _)| *number <= state.taken || *number < state.last) {
            state.drop_first();
        }
        before - state.bytes
    }

    pub fn is_read(&self) -> bool {
        self.state().reader != 0
    }

    /// Reads on from `after`, or from what nobody read yet. A reader takes the place of the one before, whose
    /// connection may be dead without anybody having noticed.
    pub fn read(self: &Arc<Self>, after: Option<u64>) -> impl Flow<Item = Bytes> + Send + use<> {
        let mut state = self.state();
        state.readers += 1;
        let me = state.readers;
        state.reader = me;
        let reader = Reader { stream: self.clone(), me, at: after.unwrap_or(state.taken) };
        drop(state);
        self.changed.notify_waiters();
        futures_util::stream::unfold(reader, |mut reader| async move {
            let bytes = reader.next().await?;
            Some((bytes, reader))
        })
    }
}

struct Reader {
    stream: Arc<Stream>,
    me: u64,
    at: u64,
}

impl Reader {
    /// The next event, or a comment after a while of silence; none when the stream ended or another reader took over.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let changed = self.stream.changed.notified();
            tokio::pin!(changed);
            // Registered before the state is looked at, so that nothing pushed in between is missed.
            changed.as_mut().enable();
            {
                let mut state = self.stream.state();
                if state.reader != self.me {
                    return None;
                }
                let next = state.events.iter().find(|(number, _)| *number > self.at).cloned();
                if let Some((number, event)) = next {
                    self.at = number;
                    state.taken = state.taken.max(number);
                    return Some(event);
                }
                if state.ended.is_some() {
                    return None;
                }
            }
            if tokio::time::timeout(KEEP_ALIVE, changed).await.is_err() {
                return Some(Bytes::from_static(COMMENT));
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.stream.state();
        if state.reader == self.me {
            state.reader = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;

    use super::*;

    #[tokio::test]
    async fn a_reader_that_was_cut_off_reads_on_where_it_was() {
        let stream = Stream::new(3);
        for n in 1..=4 {
            stream.push(&n.to_string());
        }
        let mut first = Box::pin(stream.read(None));
        assert_eq!(first.next().await.unwrap(), "id: 3-1\nevent: message\ndata: 1\n\n");
        let mut second = Box::pin(stream.read(Some(2)));
        assert!(second.next().await.unwrap().starts_with(b"id: 3-3\n"));
        assert!(first.next().await.is_none(), "the first reader was replaced");
        stream.end();
        assert!(second.next().await.unwrap().starts_with(b"id: 3-4\n"));
        assert!(second.next().await.is_none() && stream.has_ended());
        assert_eq!(stream.read(Some(0)).count().await, 4, "nothing says that it arrived");
    }

    #[tokio::test]
    async fn a_stream_nobody_reads_stays_small() {
        let stream = Stream::new(0);
        for n in 0..10_000 {
            stream.push(&n.to_string());
        }
        stream.end();
        assert_eq!(stream.read(None).count().await, MOST_EVENTS);
    }
}

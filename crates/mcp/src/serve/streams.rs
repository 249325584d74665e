//! The streams of one legacy session: the standing one, and one for each answer that took its time. Those that ended are
//! kept for a while, because what was sent may not have arrived; together they never keep more than the session may.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::serve::stream::Stream;

/// Answer streams a session keeps for clients that may come back for them.
const MOST_STREAMS: usize = 64;
/// And how much there is in them, in bytes.
const MOST_BYTES: usize = 8 * 1024 * 1024;

pub struct Streams {
    /// For notifications that belong to no request.
    pub standing: Arc<Stream>,
    answers: Mutex<Answers>,
}

#[derive(Default)]
struct Answers {
    last: u64,
    streams: BTreeMap<u64, Arc<Stream>>,
}

impl Default for Streams {
    fn default() -> Self {
        Self { standing: Stream::new(0), answers: Mutex::default() }
    }
}

impl Streams {
    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream for the answer to one request.
    pub fn open(&self) -> Arc<Stream> {
        let mut answers = self.answers();
        if answers.streams.len() >= MOST_STREAMS && answers.drop_ended().is_none() {
            answers.streams.pop_first();
        }
        answers.last += 1;
        let stream = Stream::new(answers.last);
        answers.streams.insert(stream.number, stream.clone());
        stream
    }

    /// Puts a message on one of these streams. What the session can no longer keep goes: ended streams first, then what
    /// waits in the oldest of the others.
    pub fn push(&self, stream: &Stream, message: &str) {
        stream.push(message);
        let mut answers = self.answers();
        let mut kept = self.standing.bytes() + answers.streams.values().map(|s| s.bytes()).sum::<usize>();
        while kept > MOST_BYTES
            && let Some(dropped) = answers.drop_ended()
        {
            kept = kept.saturating_sub(dropped.bytes());
        }
        for stream in answers.streams.values() {
            if kept > MOST_BYTES {
                kept = kept.saturating_sub(stream.shed());
            }
        }
    }

    /// The stream and place named by a `Last-Event-ID`.
    pub fn resume(&self, last_event: &str) -> Option<(Arc<Stream>, u64)> {
        let (stream, event) = last_event.split_once('-')?;
        let (stream, event) = (stream.parse::<u64>().ok()?, event.parse::<u64>().ok()?);
        let found = match stream {
            0 => Some(self.standing.clone()),
            number => self.answers().streams.get(&number).cloned(),
        };
        Some((found?, event))
    }

    pub fn are_read(&self) -> bool {
        self.standing.is_read() || self.answers().streams.values().any(|stream| stream.is_read())
    }

    /// Forgets what ended long enough ago.
    pub fn sweep(&self) {
        self.answers().streams.retain(|_, stream| !stream.is_stale());
    }

    pub fn end(&self) {
        self.standing.end();
        self.answers().streams.values().for_each(|stream| stream.end());
    }
}

impl Answers {
    /// Forgets the oldest stream that ended. Who reads it still reads it to its end.
    fn drop_ended(&mut self) -> Option<Arc<Stream>> {
        let number = self.streams.values().find(|stream| stream.has_ended())?.number;
        self.streams.remove(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    #[test]
    fn a_session_keeps_no_more_than_it_may_and_the_oldest_ended_go_first() {
        let streams = Streams::default();
        let large = "x".repeat(3 * MIB);
        let running = streams.open();
        streams.push(&running, &large);
        let ended: Vec<_> = (0..4)
            .map(|_| {
                let stream = streams.open();
                streams.push(&stream, &large);
                stream.end();
                stream.number
            })
            .collect();
        let kept: Vec<u64> = streams.answers().streams.keys().copied().collect();
        assert_eq!(kept, [running.number, *ended.last().unwrap()]);
        let other = streams.open();
        for _ in 0..4 {
            streams.push(&other, &large);
            streams.push(&running, "small");
        }
        let sum: usize = streams.answers().streams.values().map(|stream| stream.bytes()).sum();
        assert!(sum <= MOST_BYTES, "{sum}");
        assert!(other.bytes() > 0 && running.bytes() > 0, "what is newest is still there");
    }

    #[test]
    fn a_new_stream_takes_the_place_of_one_that_ended() {
        let streams = Streams::default();
        let running = streams.open();
        streams.open().end();
        for _ in 0..MOST_STREAMS - 1 {
            streams.open();
        }
        let answers = streams.answers();
        assert_eq!(answers.streams.len(), MOST_STREAMS);
        assert!(answers.streams.contains_key(&running.number) && !answers.streams.contains_key(&2));
    }
}

//! An event stream (SSE) read one event at a time, each bounded in size.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use reqwest::Response;
use sse_stream::{Sse, SseByteStream};
use toolcrib_core::error::{Failure, Kind};

use crate::dial::{
    link::LARGEST_MESSAGE,
    web::{reason, too_large},
};

type Chunks = Pin<Box<dyn Stream<Item = Result<Bytes, Broken>> + Send>>;

#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("too large")]
    TooLarge,
    #[error("{0}")]
    Off(String),
}

pub(crate) struct EventStream {
    events: SseByteStream<Chunks>,
    /// Bytes since the last event.
    pent: Arc<AtomicUsize>,
    /// The id of the last event that had one, to take the stream up again.
    pub last_id: Option<String>,
    /// How long the source wants us to wait before that, in milliseconds.
    pub retry_ms: Option<u64>,
}

impl EventStream {
    pub fn new(response: Response) -> Self {
        let pent = Arc::new(AtomicUsize::new(0));
        let counted = pent.clone();
        let chunks = response.bytes_stream().map(move |chunk| {
            let chunk = chunk.map_err(|error| Broken::Off(reason(error)))?;
            let pent = counted.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len();
            if pent > LARGEST_MESSAGE { Err(Broken::TooLarge) } else { Ok(chunk) }
        });
        Self { events: SseByteStream::new(Box::pin(chunks)), pent, last_id: None, retry_ms: None }
    }

    /// The next event; none at the end. A stream that breaks off is told apart from one that ends.
    pub async fn next(&mut self) -> Result<Option<Sse>, Failure> {
        let event = self.events.next().await;
        match event {
            None => Ok(None),
            Some(Ok(event)) => {
                self.pent.store(0, Ordering::Relaxed);
                if let Some(id) = event.id.as_ref().filter(|id| !id.is_empty()) {
                    self.last_id = Some(id.clone());
                }
                self.retry_ms = event.retry.or(self.retry_ms);
                Ok(Some(event))
            }
            Some(Err(_)) if self.pent.load(Ordering::Relaxed) > LARGEST_MESSAGE => Err(too_large()),
            Some(Err(error)) => {
                Err(Failure::new(Kind::Unavailable, format!("the event stream broke off: {error}")))
            }
        }
    }
}

/// The message in an event, if it is one: events of other names are not for us.
pub(crate) fn message(event: Sse) -> Option<String> {
    let named = event.event.as_deref().unwrap_or("message");
    event.data.filter(|data| matches!(named, "message" | "") && !data.trim().is_empty())
}

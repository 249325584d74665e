//! Many requests over one duplex of messages: answers are matched to requests by id, in any order.
//!
//! Used by `stdio` (lines of a child process) and `sse` (an event stream one way, POSTs the other). It knows no
//! bytes, only messages; when the duplex ends, every open request fails at once.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolcrib_core::{
    call::{Events, Level},
    error::{Failure, Kind},
    raw::{Members, Raw},
};

use crate::{
    dial::{
        ear::Ear,
        link::{Abandon, Ask, End, Ended, Link, Trouble, cancelled, object, retort},
    },
    wire::{self, Id, Message},
};

/// Messages waiting to be written; a source that does not read makes its callers wait here.
const QUEUE: usize = 64;
/// So many unreadable messages in a row, and the source is given up.
const MOST_GARBAGE: usize = 100;

const LAST_MOMENT: Duration = Duration::from_millis(200);

/// One message on its way out, and the request it is, if it is one.
pub(crate) struct Parcel {
    pub id: Option<u64>,
    pub text: String,
}

/// Why a message did not go out.
pub(crate) enum Unsent {
    /// Only this one.
    This(Trouble),
    /// And none after it.
    All(Failure),
}

#[async_trait]
pub(crate) trait Outbound: Send {
    async fn send(&mut self, text: String) -> Result<(), Unsent>;
}

#[async_trait]
pub(crate) trait Inbound: Send {
    /// The next message; how the duplex ended.
    async fn next(&mut self) -> Result<Vec<u8>, Ended>;
}

/// What has to happen when the link is closed, beside stopping to read and write.
#[async_trait]
pub(crate) trait Aftermath: Send + Sync {
    async fn finish(&self) {}
    fn pid(&self) -> Option<u32> {
        None
    }
}

pub(crate) struct Pipe {
    shared: Arc<Shared>,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
    aftermath: Box<dyn Aftermath>,
}

type Answer = Result<Raw, Trouble>;

/// Whom a log message on a shared pipe is about.
enum About {
    Nobody,
    Call(Events),
    SomebodyElse,
}

/// A request without an answer yet.
struct Open {
    settle: oneshot::Sender<Answer>,
    /// The call it is, and from which loudness on that wants log messages; none: the crib asks for itself.
    call: Option<(Events, Option<Level>)>,
}

struct Shared {
    out: mpsc::Sender<Parcel>,
    pending: Mutex<HashMap<u64, Open>>,
    next: AtomicU64,
    end: End,
    ear: Arc<Ear>,
}

impl Pipe {
    /// `stop` is cancelled when the pipe is closed or dropped; both directions end then.
    pub fn over(
        inbound: impl Inbound + 'static,
        outbound: impl Outbound + 'static,
        ear: Arc<Ear>,
        stop: CancellationToken,
        aftermath: impl Aftermath + 'static,
    ) -> Self {
        let (out, queue) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared {
            out,
            pending: Mutex::default(),
            next: AtomicU64::new(1),
            end: End::default(),
            ear,
        });
        tokio::spawn(shared.clone().read(inbound, stop.clone()));
        tokio::spawn(shared.clone().write(outbound, queue, stop.clone()));
        Self { shared, _stop_on_drop: stop.clone().drop_guard(), stop, aftermath: Box::new(aftermath) }
    }
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, HashMap<u64, Open>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, id: u64, answer: Answer) {
        // Nobody waiting means it was called off: a late answer is nobody's.
        if let Some(open) = self.pending().remove(&id) {
            let _ = open.settle.send(answer);
        }
    }

    fn finish(&self, ended: Ended) {
        self.end.set(ended.clone());
        let all: Vec<_> = self.pending().drain().collect();
        for (_, open) in all {
            let _ = open.settle.send(Err(Trouble::Gone(ended.failure.clone())));
        }
    }

    /// Whom a log message is about: nobody while no call runs, the one call that runs, or nobody can tell.
    fn about(&self) -> About {
        let pending = self.pending();
        let mut calls = pending.values().filter_map(|open| open.call.as_ref());
        match (calls.next(), calls.next()) {
            (None, _) => About::Nobody,
            (Some((events, Some(_))), None) => About::Call(events.clone()),
            // One caller's messages are not another's to read.
            _ => About::SomebodyElse,
        }
    }

    async fn read(self: Arc<Self>, mut inbound: impl Inbound, stop: CancellationToken) {
        let mut garbage = 0;
        let ended = loop {
            let bytes = tokio::select! {
                bytes = inbound.next() => bytes,
                () = stop.cancelled() => break Failure::new(Kind::Unavailable, "the connection was closed").into(),
            };
            match bytes {
                Ok(bytes) if bytes.trim_ascii().is_empty() => {}
                Ok(bytes) if self.take_in(&bytes) => garbage = 0,
                Ok(_) => {
                    garbage += 1;
                    if garbage >= MOST_GARBAGE {
                        let told = format!(
                            "the source sends garbage: {garbage} messages in a row were not JSON-RPC"
                        );
                        break Failure::new(Kind::BadSource, told).into();
                    }
                }
                Err(ended) => break ended,
            }
        };
        self.finish(ended);
    }

    /// Whether the bytes were something. Some older sources answer several messages in one array.
    fn take_in(&self, bytes: &[u8]) -> bool {
        if bytes.trim_ascii_start().first() == Some(&b'[') {
            let batch: Vec<&RawValue> = serde_json::from_slice(bytes).unwrap_or_default();
            // Every one is taken in, whatever the others are.
            let bad = batch.iter().filter(|message| !self.take_one(message.get().as_bytes())).count();
            return !batch.is_empty() && bad == 0;
        }
        self.take_one(bytes)
    }

    fn take_one(&self, bytes: &[u8]) -> bool {
        match Message::parse(bytes) {
            Ok(Message::Response { id: Some(id), answer }) => {
                if let Ok(id) = id.text().trim_matches('"').parse() {
                    self.settle(id, answer.map_err(Trouble::Refused).and_then(object));
                }
            }
            Ok(Message::Response { id: None, answer }) => {
                tracing::debug!(?answer, "an answer to no request was dropped")
            }
            Ok(Message::Notification { method, params }) => {
                if method == "notifications/cancelled" {
                    self.called_off(params.as_deref());
                }
                match if method == "notifications/message" { self.about() } else { About::Nobody } {
                    About::Nobody => self.ear.hear(&method, params, None),
                    About::Call(events) => self.ear.hear(&method, params, Some(&events)),
                    About::SomebodyElse => {
                        tracing::debug!("a log message that may be another caller's was dropped")
                    }
                }
            }
            Ok(Message::Request { id, method, .. }) => {
                let text = retort(&id, &method);
                if self.out.try_send(Parcel { id: None, text }).is_err() {
                    tracing::debug!(method, "a question of the source was not answered: it does not read");
                }
            }
            Err(error) => {
                // Its words may be what a caller sent.
                tracing::warn!(%error, "a source sent what is not a message");
                let start: String = String::from_utf8_lossy(bytes).chars().take(200).collect();
                tracing::debug!(start, "not a message");
                return false;
            }
        }
        true
    }

    /// The source gave up one of our requests, as it does with those that listen.
    fn called_off(&self, params: Option<&RawValue>) {
        let id = params
            .map(Members::parse_lenient)
            .and_then(|members| members.find("requestId"))
            .and_then(|id| id.get().trim_matches('"').parse().ok());
        if let Some(id) = id {
            self.settle(id, Err(Trouble::failed(Kind::Cancelled, "the source called the request off")));
        }
    }

    async fn write(
        self: Arc<Self>,
        mut outbound: impl Outbound,
        mut queue: mpsc::Receiver<Parcel>,
        stop: CancellationToken,
    ) {
        loop {
            let parcel = tokio::select! {
                biased;
                parcel = queue.recv() => parcel,
                () = stop.cancelled() => return,
            };
            let Some(Parcel { id, text }) = parcel else { return };
            let sent = tokio::select! {
                biased;
                sent = outbound.send(text) => sent,
                () = overdue(&stop) => return,
            };
            match (sent, id) {
                (Ok(()), _) => {}
                (Err(Unsent::This(trouble)), Some(id)) => self.settle(id, Err(trouble)),
                (Err(Unsent::This(trouble)), None) => {
                    tracing::debug!(?trouble, "a message was not sent")
                }
                // The reading side knows better why: it says so when it ends, which is now or soon.
                (Err(Unsent::All(failure)), _) => {
                    tokio::select! {
                        _ = self.end.wait() => {}
                        () = tokio::time::sleep(Duration::from_secs(2)) => self.finish(failure.into()),
                        () = stop.cancelled() => {}
                    }
                    return;
                }
            }
        }
    }
}

/// What was queued before the end may still go out, if the source takes it at once.
async fn overdue(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(LAST_MOMENT).await;
}

/// A request that waits; when dropped before its answer, it is called off.
struct Waiting<'a> {
    shared: &'a Shared,
    id: u64,
    abandon: Abandon,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let open = self.shared.pending().remove(&self.id).is_some();
        if !open || self.abandon == Abandon::Quietly {
            return;
        }
        let parcel = Parcel { id: None, text: cancelled(&Id::number(self.id)) };
        if let Err(mpsc::error::TrySendError::Full(parcel)) = self.shared.out.try_send(parcel)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let out = self.shared.out.clone();
            runtime.spawn(async move { out.send(parcel).await });
        }
    }
}

#[async_trait]
impl Link for Pipe {
    async fn request(&self, ask: Ask, call: Option<&Events>) -> Result<Raw, Trouble> {
        let shared = &*self.shared;
        let id = shared.next.fetch_add(1, Ordering::Relaxed);
        let (settle, answer) = oneshot::channel();
        {
            let mut pending = shared.pending();
            if let Some(failure) = shared.end.now() {
                return Err(Trouble::Gone(failure));
            }
            pending.insert(id, Open { settle, call: call.map(|events| (events.clone(), ask.log)) });
        }
        // What was never sent need not be called off.
        let mut waiting = Waiting { shared, id, abandon: Abandon::Quietly };
        let text = wire::request(&Id::number(id), &ask.method, ask.params.as_deref());
        // Where the writer is gone the answer is the failure that ended the pipe.
        let _ = shared.out.send(Parcel { id: Some(id), text }).await;
        waiting.abandon = ask.abandon;
        answer.await.unwrap_or_else(|_| Err(Trouble::failed(Kind::Unavailable, "the connection was closed")))
    }

    async fn notify(&self, method: &str, params: Option<Raw>) -> Result<(), Trouble> {
        let text = wire::notification(method, params.as_deref());
        match self.shared.out.send(Parcel { id: None, text }).await {
            Ok(()) => Ok(()),
            Err(_) => Err(Trouble::Gone(
                self.shared
                    .end
                    .now()
                    .unwrap_or_else(|| Failure::new(Kind::Unavailable, "the connection ended")),
            )),
        }
    }

    fn pid(&self) -> Option<u32> {
        self.aftermath.pid()
    }

    async fn lost(&self) -> String {
        self.shared.end.wait().await
    }

    async fn close(&self) {
        self.stop.cancel();
        self.aftermath.finish().await;
    }
}

//! The order of things: which message waits for which, how many are in flight, what happens at the end.
//!
//! Requests each run on their own; notifications and answers go one after the other; nothing overtakes
//! `initialize` or the client's readiness. How one message travels is in `courier.rs`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::answer::{self, Asker, Failure};
use crate::courier::{self, Era, Errand};
use crate::dial::Way;
use crate::line::Input;
use crate::link::Link;
use crate::listener;
use crate::peek::{self, Fault, Message, Params};
use crate::subscription;
use crate::waiting::{Called, Waiting};

const FIRST_MODERN: &str = "2026-07-28";
/// How long a notification may wait for the request it is about to leave.
const FOLLOW_LIMIT: Duration = Duration::from_secs(5);
/// How long after that it may wait for a sign that the crib has it.
const HEARD_LIMIT: Duration = Duration::from_millis(200);
/// How long one message may hold up those that must not overtake it, once the crib can be reached.
const TURN_LIMIT: Duration = Duration::from_secs(60);

/// Takes lines until they end, then waits for what is in flight.
pub struct Relay {
    link: Arc<Link>,
    waiting: Arc<Waiting>,
    timeout: Option<Duration>,
    permits: Arc<Semaphore>,
    tasks: JoinSet<()>,
    lane: mpsc::Sender<Queued>,
    listener: Option<Listener>,
}

/// A message that must not overtake the ones before it.
struct Queued {
    errand: Errand,
    after: Option<watch::Receiver<Way>>,
    done: Option<oneshot::Sender<()>>,
}

/// The task on the GET stream; ends with its owner.
struct Listener(JoinHandle<()>);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Relay {
    pub fn new(link: Arc<Link>, waiting: Arc<Waiting>, in_flight: usize, timeout: Option<Duration>) -> Self {
        let (lane, queue) = mpsc::channel(64);
        let mut tasks = JoinSet::new();
        tasks.spawn(in_turn(Arc::clone(&link), queue));
        let permits = Arc::new(Semaphore::new(in_flight.max(1)));
        Self { link, waiting, timeout, permits, tasks, lane, listener: None }
    }

    /// Relays until the input has ended and everything in flight is answered.
    pub async fn run(mut self, mut input: mpsc::Receiver<Input>) -> Result<(), Failure> {
        while let Some(next) = input.recv().await {
            while self.tasks.try_join_next().is_some() {}
            match next {
                Input::Line(line) => self.route(line).await?,
                Input::TooLong => {
                    let words =
                        format!("a line is longer than {} bytes, the limit of the bridge", self.link.limit);
                    self.link.say(answer::to_nobody(answer::NOT_MESSAGE, &words)).await?;
                }
            }
        }
        self.waiting.call_off_endless();
        drop(self.lane);
        while self.tasks.join_next().await.is_some() {}
        Ok(())
    }

    async fn route(&mut self, line: Bytes) -> Result<(), Failure> {
        let text = match std::str::from_utf8(&line) {
            Ok(text) => text,
            Err(_) => return self.complain(&Fault::NotJson("it is not UTF-8".to_owned())).await,
        };
        match peek::message(text) {
            Err(fault) => return self.complain(&fault).await,
            Ok(Message::Request { id, method, params }) => {
                let era = self.era(&method, &params);
                let errand = self.errand(&line, Asker::One(id.to_owned()), method, era);
                self.start(errand).await;
            }
            Ok(Message::Batch { ids }) if !ids.is_empty() => {
                let ids = ids.into_iter().map(ToOwned::to_owned).collect();
                let errand = self.errand(&line, Asker::Batch(ids), String::new(), Era::Legacy);
                self.start(errand).await;
            }
            Ok(Message::Batch { .. } | Message::Answer) => {
                let errand = self.errand(&line, Asker::Nobody, String::new(), self.unnamed_era());
                self.queue(errand, None, None).await;
            }
            Ok(Message::Notification { method, params }) => {
                let era = match self.era(&method, &params) {
                    Era::Legacy => self.unnamed_era(),
                    modern => modern,
                };
                let about = params.request_id.map(ToOwned::to_owned);
                let errand = self.errand(&line, Asker::Nobody, method, era);
                self.notify(errand, about.as_deref()).await;
            }
        }
        Ok(())
    }

    async fn complain(&self, fault: &Fault) -> Result<(), Failure> {
        let code = match fault {
            Fault::NotJson(_) => answer::NOT_JSON,
            Fault::NotMessage(_) => answer::NOT_MESSAGE,
        };
        self.link.say(answer::to_nobody(code, &fault.to_string())).await
    }

    fn errand(&self, line: &Bytes, asker: Asker, method: String, era: Era) -> Errand {
        let progress = Arc::new(watch::Sender::new(Way::Waiting));
        Errand { line: line.clone(), asker, method, era, progress }
    }

    /// A message that names its version is modern, unless a session is open and the version older than that era.
    fn era(&self, method: &str, params: &Params<'_>) -> Era {
        match params.version() {
            Some(version)
                if method != "initialize"
                    && (version.as_str() >= FIRST_MODERN || !self.link.session.seen().open) =>
            {
                self.link.speak_modern(&version);
                Era::Modern { version }
            }
            _ => Era::Legacy,
        }
    }

    /// The era of what does not name a version: the session's if there is one.
    fn unnamed_era(&self) -> Era {
        match self.link.modern_version().filter(|_| !self.link.session.seen().open) {
            Some(version) => Era::Modern { version },
            None => Era::Legacy,
        }
    }

    async fn start(&mut self, errand: Errand) {
        // The semaphore is never closed, so a permit always comes.
        let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else { return };
        let opens = errand.method == "initialize";
        let (link, timeout) = (Arc::clone(&self.link), self.timeout);
        let ticket = self.waiting.enter(&errand);
        let (done, finished) = oneshot::channel::<()>();
        self.tasks.spawn(async move {
            let _held = (permit, done);
            let outcome = tokio::select! {
                () = ticket.called_off() => return,
                outcome = in_time(&link, &errand, timeout) => outcome,
            };
            drop(ticket);
            tell(&link, &errand, outcome).await;
        });
        if opens {
            let _ = finished.await;
        }
    }

    async fn notify(&mut self, errand: Errand, about: Option<&serde_json::value::RawValue>) {
        match errand.method.as_str() {
            "notifications/cancelled" => {
                let called = about.map_or(Called::Unknown, |id| self.waiting.call_off(id));
                match (called, &errand.era) {
                    (Called::Off, _) | (Called::Unknown, Era::Modern { .. }) => {}
                    (Called::Follow(way), _) => self.queue(errand, Some(way), None).await,
                    (Called::Unknown, Era::Legacy) => self.queue(errand, None, None).await,
                }
            }
            "notifications/initialized" if errand.era == Era::Legacy => {
                let (done, finished) = oneshot::channel();
                self.link.session.confirm(errand.line.clone());
                self.queue(errand, None, Some(done)).await;
                let _ = finished.await;
                if self.link.session.seen().open {
                    let task = tokio::spawn(listener::listen(Arc::clone(&self.link)));
                    self.listener = Some(Listener(task));
                }
            }
            _ => self.queue(errand, None, None).await,
        }
    }

    async fn queue(
        &self,
        errand: Errand,
        after: Option<watch::Receiver<Way>>,
        done: Option<oneshot::Sender<()>>,
    ) {
        // The lane lives as long as the relay: it ends only when this sender is dropped.
        let _ = self.lane.send(Queued { errand, after, done }).await;
    }
}

/// Carries what must stay in order, one at a time.
async fn in_turn(link: Arc<Link>, mut queue: mpsc::Receiver<Queued>) {
    while let Some(Queued { errand, after, done }) = queue.recv().await {
        if let Some(mut way) = after {
            // A request answered as JSON is not heard of before it is done, so hearing is waited for only briefly.
            let _ = tokio::time::timeout(FOLLOW_LIMIT, way.wait_for(|way| *way >= Way::Sent)).await;
            let _ = tokio::time::timeout(HEARD_LIMIT, way.wait_for(|way| *way >= Way::Heard)).await;
        }
        let limit = TURN_LIMIT + link.dial.wait();
        let outcome = tokio::time::timeout(limit, courier::carry(&link, &errand)).await;
        let outcome = outcome.unwrap_or_else(|_| Err(Failure::TimedOut(limit.as_secs())));
        tell(&link, &errand, outcome).await;
        drop(done);
    }
}

async fn in_time(link: &Link, errand: &Errand, timeout: Option<Duration>) -> Result<(), Failure> {
    let Some(limit) = timeout.filter(|_| errand.method != subscription::LISTEN) else {
        return courier::carry(link, errand).await;
    };
    match tokio::time::timeout(limit, courier::carry(link, errand)).await {
        Ok(outcome) => outcome,
        Err(_) => {
            // Closing the stream cancels a modern request; a legacy one goes on until it is told.
            if let (Era::Legacy, Asker::One(id)) = (&errand.era, &errand.asker) {
                let line = format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"timed out"}}}}"#
                );
                let headers = link.session.seen().headers();
                let post = async { link.dial.post(&headers, &line.into(), None).await.map(|_| ()) };
                let _ = tokio::time::timeout(FOLLOW_LIMIT, post).await;
            }
            Err(Failure::TimedOut(limit.as_secs()))
        }
    }
}

/// Says on the output, or for want of an asker on stderr, what went wrong.
async fn tell(link: &Link, errand: &Errand, outcome: Result<(), Failure>) {
    let failure = match outcome {
        Ok(()) | Err(Failure::OutputClosed) => return,
        Err(failure) => failure,
    };
    match errand.asker.told(&failure) {
        Some(line) => {
            let _ = link.say(line).await;
        }
        None => {
            let words = match &failure {
                Failure::Refused(refusal) => refusal.words(),
                other => other.to_string(),
            };
            eprintln!("toolcrib-bridge: `{}` was not delivered: {words}", errand.method);
        }
    }
}

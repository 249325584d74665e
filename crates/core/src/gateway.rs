//! The one path of a call. Every wire comes through [`Gateway::call`]; there is no second way.
//!
//! Ledger opened → name resolved to what this caller may see → arguments checked → policy asked → source invoked
//! with the permit → ledger closed, always → reply. It runs on a task of its own: a caller that goes away may cancel
//! the tool, never the record.

pub mod meter;
pub mod roster;

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    call::{Call, Event, Events, Reply, Target},
    caller::Caller,
    catalog::{Item, LiveCatalog},
    error::{Failure, Kind},
    gateway::{
        meter::Meter,
        roster::{LiveCall, Roster},
    },
    ledger::{self, Closing, Ending, Ledger, Opening},
    news::{CallNews, Newsroom},
    policy::{Decision, Permit, Policy},
    source::supervisor::Supervisor,
    trace::{self, Tracer},
};

/// What the gateway stands on.
pub struct Parts {
    pub catalog: Arc<LiveCatalog>,
    pub policy: Policy,
    pub ledger: Arc<dyn Ledger>,
    pub supervisor: Arc<Supervisor>,
    pub newsroom: Newsroom,
    pub tracer: Option<Arc<dyn Tracer>>,
    /// Calls that may run at once; one more is refused.
    pub most_calls: usize,
}

pub struct Gateway {
    parts: Parts,
    places: Arc<Semaphore>,
    roster: Roster,
    meter: Meter,
}

/// A call under way. Dropping this does not end the call; cancelling the token does.
pub struct Running {
    pub events: mpsc::Receiver<Event>,
    pub reply: oneshot::Receiver<Result<Reply, Failure>>,
    pub cancel: CancellationToken,
}

impl Running {
    /// Waits for the end, not caring for events.
    pub async fn finish(self) -> Result<Reply, Failure> {
        drop(self.events);
        self.reply.await.unwrap_or_else(|_| Err(abandoned()))
    }
}

/// The task of a call ended without an answer: a defect.
pub fn abandoned() -> Failure {
    Failure::new(Kind::Internal, "the call ended without an answer; the crib's log says why")
}

impl Gateway {
    pub fn new(parts: Parts) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(parts.most_calls));
        Arc::new(Self { parts, places, roster: Roster::default(), meter: Meter::default() })
    }

    pub fn catalog(&self) -> &LiveCatalog {
        &self.parts.catalog
    }
    pub fn policy(&self) -> &Policy {
        &self.parts.policy
    }
    pub fn ledger(&self) -> &Arc<dyn Ledger> {
        &self.parts.ledger
    }
    pub fn supervisor(&self) -> &Arc<Supervisor> {
        &self.parts.supervisor
    }
    pub fn newsroom(&self) -> &Newsroom {
        &self.parts.newsroom
    }
    pub fn roster(&self) -> &Roster {
        &self.roster
    }
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Starts the call on a task of its own.
    pub fn call(self: &Arc<Self>, call: Call) -> Running {
        let (events, heard) = Events::channel();
        let (answer, reply) = oneshot::channel();
        let cancel = CancellationToken::new();
        let (this, token) = (self.clone(), cancel.clone());
        tokio::spawn(async move {
            let result = this.run(call, events, token).await;
            // A caller that left does not hear the answer; the ledger has it.
            let _ = answer.send(result);
        });
        Running { events: heard, reply, cancel }
    }

    async fn run(&self, mut call: Call, events: Events, cancel: CancellationToken) -> Result<Reply, Failure> {
        let began = Instant::now();
        let opening = Opening::new(&call);
        let entry = self.parts.ledger.open(opening.clone()).await.map_err(|down| {
            let told = "the call was refused because it cannot be written down";
            tracing::error!(error = %down, "{told}");
            Failure::new(Kind::LedgerDown, told).detail(down.to_string())
        })?;
        let listed = self.roster.add(LiveCall::new(&opening, cancel.clone()));
        self.parts.newsroom.tell_call(|| CallNews::CallOpened {
            call: opening.call,
            caller: opening.caller.to_string(),
            kind: opening.kind,
            target: opening.target.clone(),
        });

        let tracer = self.parts.tracer.as_ref();
        let span = tracer.map(|tracer| tracer.begin(&opening, trace::parent(&call.carry).as_deref()));
        if let Some(span) = &span {
            trace::hand_on(&mut call.carry, &span.traceparent());
        }

        let mut found = None;
        let result = self.attempt(call, events, &cancel, &mut found).await;

        let closing = closing(&result, found.as_ref(), began.elapsed());
        self.note(&opening, &closing);
        if let Some(span) = span {
            span.end(&closing);
        }
        let closed = self.parts.ledger.close(entry, closing).await;
        drop(listed);
        match closed {
            Ok(()) => result,
            Err(down) => {
                tracing::error!(error = %down, call = %opening.call, "a call ran but its end cannot be written down");
                let told = "the call ran but its end cannot be written down, so its result is withheld";
                Err(Failure::new(Kind::LedgerDown, told).detail(down.to_string()))
            }
        }
    }

    /// Steps 4 to 7. `found` is what the target turned out to be, for the ledger.
    async fn attempt(
        &self,
        call: Call,
        events: Events,
        cancel: &CancellationToken,
        found: &mut Option<Item>,
    ) -> Result<Reply, Failure> {
        let Ok(_place) = self.places.try_acquire() else {
            let told = format!("{} calls are running already, try again in a moment", self.parts.most_calls);
            return Err(Failure::new(Kind::Overloaded, told));
        };
        let item = self.find(&call.target, &call.caller).await?;
        *found = Some(item.clone());
        let invocation = self.parts.catalog.snapshot().check(call, item)?;
        let permit = match self.parts.policy.decide(invocation) {
            Decision::Allow(permit) => permit,
            Decision::Ask { reason, layer, .. } => {
                let told = format!("a person has to approve this call first: {reason}");
                return Err(Failure::new(Kind::ApprovalRequired, told).layer(layer));
            }
            Decision::Deny { reason, layer } => return Err(Failure::new(Kind::Denied, reason).layer(layer)),
        };
        self.invoke(permit, events, cancel).await
    }

    /// What a target means to a caller; where it is not known yet, sources that were never asked are asked first.
    pub async fn find(&self, target: &Target, caller: &Caller) -> Result<Item, Failure> {
        let look = || self.parts.catalog.snapshot().find(target, caller, &self.parts.policy);
        match look() {
            Err(failure) if failure.kind == Kind::Unknown && failure.layer.is_none() => {
                self.parts.supervisor.ensure_known().await;
                look()
            }
            found => found,
        }
    }

    async fn invoke(
        &self,
        permit: Permit,
        events: Events,
        cancel: &CancellationToken,
    ) -> Result<Reply, Failure> {
        let invocation = permit.invocation();
        let source = self.parts.supervisor.source(&invocation.item.source)?;
        let (patience, id) = (invocation.patience, invocation.item.id.clone());
        let heard = events.clone();
        let at_source = cancel.child_token();
        let _called_off = at_source.clone().drop_guard();
        tokio::select! {
            biased;
            result = source.invoke(permit, events, at_source) => result,
            () = cancel.cancelled() => Err(Failure::new(Kind::Cancelled, "the call was cancelled")),
            () = silence(&heard, patience) => {
                let told = format!("`{id}` said nothing for {} s and was called off", patience.as_secs_f32());
                Err(Failure::new(Kind::Timeout, told))
            }
        }
    }

    fn note(&self, opening: &Opening, closing: &Closing) {
        let outcome = closing.ending.word();
        self.meter.note(closing.source.as_ref(), outcome, closing.duration_us);
        self.parts.newsroom.tell_call(|| CallNews::CallClosed {
            call: opening.call,
            item: closing.item.clone(),
            outcome,
            duration_us: closing.duration_us,
        });
        tracing::debug!(
            call = %opening.call, caller = %opening.caller, target = opening.target, outcome,
            duration_us = closing.duration_us, "call ended"
        );
    }
}

/// Ends when the source has said nothing for `patience`.
async fn silence(events: &Events, patience: Duration) {
    loop {
        let until = events.last_heard() + patience;
        if Instant::now() >= until {
            return;
        }
        tokio::time::sleep_until(until).await;
    }
}

fn closing(result: &Result<Reply, Failure>, found: Option<&Item>, took: Duration) -> Closing {
    let (ending, bytes_out, layer, detail) = match result {
        Ok(reply) => (Ending::Ran(reply.outcome), reply.result.get().len() as u64, None, None),
        Err(failure) => {
            let detail = failure.detail.clone().unwrap_or_else(|| failure.told.clone());
            (Ending::of(failure), 0, failure.layer, Some(detail))
        }
    };
    Closing {
        at: ledger::now(),
        ending,
        item: found.map(|item| item.id.to_string()),
        source: found.map(|item| item.source.clone()),
        duration_us: took.as_micros() as u64,
        bytes_out,
        layer,
        detail,
    }
}

#[cfg(test)]
mod tests;

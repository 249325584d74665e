//! A live connection to an MCP source, whatever it runs over: what core asks of a source, said in MCP.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use futures_util::FutureExt;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use toolcrib_core::{
    call::{Events, Level, Outcome, Progress, Reply},
    catalog::Offer,
    error::{Failure, Kind},
    policy::Permit,
    source::{Connection, Facts, Lists, Source, Tidings},
};

use crate::{
    codes,
    dial::{
        ear::Ear,
        link::{Link, Trouble},
        listen, offer, params,
        peer::Peer,
        standing::Standing,
    },
    version::Era,
};

pub(crate) struct Upstream {
    link: Arc<dyn Link>,
    ear: Arc<Ear>,
    peer: Peer,
    watched: watch::Sender<BTreeSet<String>>,
    /// What a legacy source is asked to report.
    standing: Arc<Standing>,
    /// Something was called: from now on the source's words may be those of a caller.
    called: AtomicBool,
    /// The task that listens, or asks a legacy source to report.
    beside: TaskTracker,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
}

impl Upstream {
    pub fn new(link: Arc<dyn Link>, ear: Arc<Ear>, peer: Peer) -> Arc<Self> {
        let stop = CancellationToken::new();
        let watched = watch::Sender::new(BTreeSet::new());
        let standing = Standing::new(stop.clone());
        let (own, ended, beside) = (link.clone(), stop.clone(), TaskTracker::new());
        match peer.era() {
            Era::Modern => {
                let listening = listen::keep(own, peer.can, watched.subscribe());
                beside.spawn(async move { ended.run_until_cancelled(listening).await });
            }
            Era::Legacy => {
                let asking = standing.clone().keep(own);
                beside.spawn(async move { ended.run_until_cancelled(asking).await });
            }
        }
        beside.close();
        let _stop_on_drop = stop.clone().drop_guard();
        let called = AtomicBool::new(false);
        Arc::new(Self { link, ear, peer, watched, standing, called, beside, stop, _stop_on_drop })
    }

    pub fn era(&self) -> Era {
        self.peer.era()
    }

    /// A modern source that finds headers and body apart defines the tool otherwise than when it was listed.
    fn look_again(&self, trouble: &Trouble) {
        if self.peer.era() == Era::Modern && trouble.code() == Some(codes::HEADER_MISMATCH) {
            self.ear.tell(Tidings::ListChanged(Lists { tools: true, ..Lists::default() }));
        }
    }
}

/// The two members that tell how a call ended.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ending<'a> {
    #[serde(borrow)]
    is_error: Option<&'a RawValue>,
    #[serde(borrow)]
    result_type: Option<&'a RawValue>,
}

fn outcome(result: &RawValue) -> Outcome {
    let ending: Ending<'_> = serde_json::from_str(result.get()).unwrap_or_default();
    let says = |member: Option<&RawValue>, word: &str| member.is_some_and(|value| value.get() == word);
    if says(ending.result_type, "\"input_required\"") {
        Outcome::InputRequired
    } else if says(ending.is_error, "true") {
        Outcome::ToolError
    } else {
        Outcome::Done
    }
}

#[async_trait]
impl Source for Upstream {
    async fn invoke(
        &self,
        permit: Permit,
        events: Events,
        cancel: CancellationToken,
    ) -> Result<Reply, Failure> {
        self.called.store(true, Ordering::Relaxed);
        let invocation = permit.spend();
        let following = (invocation.carry.progress == Progress::Wanted).then(|| self.ear.follow(&events));
        let token = following.as_ref().map(|following| following.token);
        let ask = params::ask(&invocation, self.peer.era(), token);
        let answered = tokio::select! {
            answered = self.link.request(ask, Some(&events)) => answered,
            () = cancel.cancelled() => return Err(Failure::new(Kind::Cancelled, "the call was called off")),
        };
        let result = answered.inspect_err(|trouble| self.look_again(trouble))?;
        Ok(Reply { outcome: outcome(&result), result })
    }
}

#[async_trait]
impl Connection for Upstream {
    fn facts(&self) -> Facts {
        Facts {
            protocol: Some(self.peer.version.text().to_owned()),
            server: self.peer.server.clone(),
            pid: self.link.pid(),
        }
    }

    async fn offer(&self) -> Result<Offer, Failure> {
        let mut offered = offer::read(&*self.link, &self.peer).await;
        // A source that ended before anything was called can only have spoken of itself.
        if let Err(failure) = &mut offered
            && !self.called.load(Ordering::Relaxed)
            && let Some(why) = self.link.lost().now_or_never()
        {
            failure.told = why;
        }
        offered
    }

    async fn watch(&self, uris: BTreeSet<String>) -> Result<(), Failure> {
        match self.peer.era() {
            Era::Modern => {
                self.watched.send_if_modified(|watched| {
                    let differs = *watched != uris;
                    *watched = uris;
                    differs
                });
                Ok(())
            }
            Era::Legacy => self.standing.watch(uris).await,
        }
    }

    async fn hear(&self, level: Level) -> Result<(), Failure> {
        if self.peer.era() == Era::Modern || !self.peer.can.logging {
            return Ok(());
        }
        self.standing.hear(level).await
    }

    async fn lost(&self) -> String {
        self.link.lost().await
    }

    async fn close(&self) {
        self.stop.cancel();
        // Whoever listens calls that off before the line goes dead.
        self.beside.wait().await;
        self.link.close().await;
    }
}

//! A live connection to an MCP source, whatever it runs over: what core asks of a source, said in MCP.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use tokio::sync::{Mutex, watch};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use toolcrib_core::{
    call::{Events, Level, Outcome, Progress, Reply},
    catalog::Offer,
    error::{Failure, Kind},
    policy::Permit,
    raw,
    source::{Connection, Facts, Source},
};

use crate::{
    dial::{
        ear::Ear,
        link::{Ask, Link, Trouble},
        listen, offer, params,
        peer::Peer,
    },
    version::Era,
};

pub(crate) struct Upstream {
    link: Arc<dyn Link>,
    ear: Arc<Ear>,
    peer: Peer,
    watched: watch::Sender<BTreeSet<String>>,
    /// What a legacy source was asked to report, so that only the difference is asked for.
    standing: Arc<Mutex<Standing>>,
    /// The task that listens, or restores.
    beside: TaskTracker,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
}

/// What a legacy source remembers for us in its session.
#[derive(Default)]
struct Standing {
    subscribed: BTreeSet<String>,
    level: Option<Level>,
}

impl Upstream {
    pub fn new(link: Arc<dyn Link>, ear: Arc<Ear>, peer: Peer) -> Arc<Self> {
        let stop = CancellationToken::new();
        let watched = watch::Sender::new(BTreeSet::new());
        let standing = Arc::new(Mutex::new(Standing::default()));
        let (own, ended, beside) = (link.clone(), stop.clone(), TaskTracker::new());
        match peer.era() {
            Era::Modern => {
                let listening = listen::keep(own, peer.can, watched.subscribe());
                beside.spawn(async move { ended.run_until_cancelled(listening).await });
            }
            Era::Legacy => {
                let restoring = restore(own, standing.clone());
                beside.spawn(async move { ended.run_until_cancelled(restoring).await });
            }
        }
        beside.close();
        let _stop_on_drop = stop.clone().drop_guard();
        Arc::new(Self { link, ear, peer, watched, standing, beside, stop, _stop_on_drop })
    }

    pub fn era(&self) -> Era {
        self.peer.era()
    }

    async fn subscribe(&self, uris: BTreeSet<String>) -> Result<(), Trouble> {
        let mut standing = self.standing.lock().await;
        let gone: Vec<String> = standing.subscribed.difference(&uris).cloned().collect();
        let new: Vec<String> = uris.difference(&standing.subscribed).cloned().collect();
        for uri in gone {
            // Whether or not the source agrees, nobody asks for it any more.
            standing.subscribed.remove(&uri);
            if let Err(trouble) = self.link.request(about("resources/unsubscribe", &uri), None).await {
                tracing::debug!(?trouble, "a source did not end its reports of a resource");
            }
        }
        for uri in new {
            self.link.request(about("resources/subscribe", &uri), None).await?;
            standing.subscribed.insert(uri);
        }
        Ok(())
    }
}

fn about(method: &str, uri: &str) -> Ask {
    Ask::new(method, Some(raw::from(&json!({ "uri": uri }))))
}

fn loudness(level: Level) -> Ask {
    Ask::new("logging/setLevel", Some(raw::from(&json!({ "level": level.word() }))))
}

/// Asks a new session for what the forgotten one was asked for.
async fn restore(link: Arc<dyn Link>, standing: Arc<Mutex<Standing>>) {
    loop {
        link.renewed().await;
        let (subscribed, level) = {
            let standing = standing.lock().await;
            (standing.subscribed.clone(), standing.level)
        };
        let asks = subscribed.iter().map(|uri| about("resources/subscribe", uri)).chain(level.map(loudness));
        for ask in asks {
            if let Err(trouble) = link.request(ask, None).await {
                tracing::debug!(?trouble, "a new session did not take what the old one had");
            }
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
        let invocation = permit.spend();
        let following = (invocation.carry.progress == Progress::Wanted).then(|| self.ear.follow(&events));
        let token = following.as_ref().map(|following| following.token);
        let ask = params::ask(&invocation, self.peer.era(), token);
        let answered = tokio::select! {
            answered = self.link.request(ask, Some(&events)) => answered,
            () = cancel.cancelled() => return Err(Failure::new(Kind::Cancelled, "the call was called off")),
        };
        let result = answered?;
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
        offer::read(&*self.link, &self.peer).await
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
            Era::Legacy => Ok(self.subscribe(uris).await?),
        }
    }

    async fn hear(&self, level: Level) -> Result<(), Failure> {
        if self.peer.era() == Era::Modern || !self.peer.can.logging {
            return Ok(());
        }
        self.standing.lock().await.level = Some(level);
        self.link.request(loudness(level), None).await?;
        Ok(())
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

//! What a legacy source remembers for us in its session: the resources it reports, and how loud it logs.
//!
//! One task asks the source, in the order in which sets are made: the last one wins, and a new session is asked for
//! everything again. A source that does not answer is not waited for longer than [`LIMIT`].

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt, stream};
use serde_json::json;
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;
use toolcrib_core::{
    call::Level,
    error::{Failure, Kind},
    raw,
};

use crate::dial::link::{Ask, Link};

/// How long a source may take to answer one request.
const LIMIT: Duration = Duration::from_secs(10);
/// Requests of one set that are open at once.
const AT_ONCE: usize = 16;

type Answer = Result<(), Failure>;

pub(crate) struct Standing {
    wanted: watch::Sender<Wanted>,
    granted: watch::Sender<Granted>,
    stop: CancellationToken,
}

#[derive(Clone, Default)]
struct Wanted {
    /// Counts the changes.
    number: u64,
    uris: BTreeSet<String>,
    level: Option<Level>,
}

/// What the source was asked for and not told to forget, with its answers.
#[derive(Default)]
struct Granted {
    /// The change that was worked off last.
    number: u64,
    uris: BTreeMap<String, Answer>,
    level: Option<(Level, Answer)>,
}

enum Step {
    Subscribe(String),
    Unsubscribe(String),
    Hear(Level),
}

impl Standing {
    pub fn new(stop: CancellationToken) -> Arc<Self> {
        let (wanted, granted) = (watch::Sender::default(), watch::Sender::default());
        Arc::new(Self { wanted, granted, stop })
    }

    /// Makes `uris` the set, and tells what the source said to those that are new in it; where none is new, to all, and
    /// those it refused are asked for again.
    pub async fn watch(&self, uris: BTreeSet<String>) -> Answer {
        let mut asked = BTreeSet::new();
        let number = self.change(|wanted| {
            asked = uris.difference(&wanted.uris).cloned().collect();
            if asked.is_empty() {
                asked.clone_from(&uris);
                self.granted.send_modify(|granted| granted.uris.retain(|_, answer| answer.is_ok()));
            }
            wanted.uris = uris;
        });
        self.answer(number, |granted| {
            let mut answers = asked.iter().filter_map(|uri| granted.uris.get(uri));
            answers.find(|answer| answer.is_err()).cloned().unwrap_or(Ok(()))
        })
        .await
    }

    pub async fn hear(&self, level: Level) -> Answer {
        let number = self.change(|wanted| wanted.level = Some(level));
        self.answer(number, |granted| match &granted.level {
            Some((heard, answer)) if *heard == level => answer.clone(),
            _ => Ok(()),
        })
        .await
    }

    fn change(&self, change: impl FnOnce(&mut Wanted)) -> u64 {
        let mut number = 0;
        self.wanted.send_modify(|wanted| {
            change(wanted);
            wanted.number += 1;
            number = wanted.number;
        });
        number
    }

    /// Waits until change `number`, or a later one, was worked off.
    async fn answer(&self, number: u64, read: impl FnOnce(&Granted) -> Answer) -> Answer {
        let mut granted = self.granted.subscribe();
        let settled = granted.wait_for(|granted| granted.number >= number);
        match self.stop.run_until_cancelled(settled).await {
            Some(Ok(granted)) => read(&granted),
            _ => Err(Failure::new(Kind::Unavailable, "the connection was closed")),
        }
    }

    /// Works off changes for as long as the connection lasts.
    pub async fn keep(self: Arc<Self>, link: Arc<dyn Link>) {
        let mut wanted = self.wanted.subscribe();
        // What was wanted before this task first ran.
        wanted.mark_changed();
        loop {
            tokio::select! {
                changed = wanted.changed() => if changed.is_err() { return },
                () = link.renewed() => self.granted.send_modify(|granted| {
                    granted.uris.clear();
                    granted.level = None;
                }),
            }
            let wanted = wanted.borrow_and_update().clone();
            let steps = self.steps(&wanted);
            let answers: Vec<(Step, Answer)> =
                stream::iter(steps).map(|step| take(&*link, step)).buffer_unordered(AT_ONCE).collect().await;
            self.granted.send_modify(|granted| granted.take_in(&wanted, answers));
        }
    }

    fn steps(&self, wanted: &Wanted) -> Vec<Step> {
        let granted = self.granted.borrow();
        let held = granted.uris.iter().filter(|(_, answer)| answer.is_ok()).map(|(uri, _)| uri);
        let gone = held.filter(|uri| !wanted.uris.contains(*uri));
        let new = wanted.uris.iter().filter(|uri| !granted.uris.contains_key(*uri));
        let level =
            wanted.level.filter(|level| granted.level.as_ref().map(|(level, _)| level) != Some(level));
        let resources = gone.cloned().map(Step::Unsubscribe).chain(new.cloned().map(Step::Subscribe));
        resources.chain(level.map(Step::Hear)).collect()
    }
}

impl Granted {
    fn take_in(&mut self, wanted: &Wanted, answers: Vec<(Step, Answer)>) {
        for (step, answer) in answers {
            match step {
                Step::Subscribe(uri) => drop(self.uris.insert(uri, answer)),
                // Whether or not the source agrees, nobody asks for it any more.
                Step::Unsubscribe(_) => {}
                Step::Hear(level) => self.level = Some((level, answer)),
            }
        }
        self.uris.retain(|uri, _| wanted.uris.contains(uri));
        self.number = wanted.number;
    }
}

async fn take(link: &dyn Link, step: Step) -> (Step, Answer) {
    let about = |method: &str, uri: &str| Ask::new(method, Some(raw::from(&json!({ "uri": uri }))));
    let ask = match &step {
        Step::Subscribe(uri) => about("resources/subscribe", uri),
        Step::Unsubscribe(uri) => about("resources/unsubscribe", uri),
        Step::Hear(level) => Ask::new("logging/setLevel", Some(raw::from(&json!({ "level": level.word() })))),
    };
    let method = ask.method.clone();
    let answer = match timeout(LIMIT, link.request(ask, None)).await {
        Ok(answer) => answer.map(drop).map_err(Failure::from),
        Err(_) => {
            let told = format!("the source did not answer `{method}` within {} s", LIMIT.as_secs());
            Err(Failure::new(Kind::Timeout, told))
        }
    };
    if let Err(failure) = &answer {
        tracing::debug!(method, error = %failure.told, "a source did not take what it was asked to remember");
    }
    (step, answer)
}

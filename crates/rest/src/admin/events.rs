//! `/events`: what happens in the crib, as server-sent events. For administrators; the role is looked at again while
//! the stream lasts, so that a token taken away closes it.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::HeaderMap,
    response::{
        Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::Stream;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::{Instant, Interval, interval_at},
};
use toolcrib_core::{
    call::Level,
    caller::Role,
    id::{CallId, SourceId},
    news::{CallNews, News},
    raw::Raw,
    source::State as SourceState,
};
use utoipa::IntoParams;

use crate::{
    Desk,
    ask::Asked,
    door,
    refusal::{Refusal, Refused},
};

const KEEP_ALIVE: Duration = Duration::from_secs(15);
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// What one can listen to.
const TOPICS: [&str; 6] = ["source", "catalog", "resource", "log", "notice", "call"];

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Wanted {
    /// Topics, with commas between: `source`, `catalog`, `resource`, `log`, `notice`, `call`. Without it, all.
    only: Option<String>,
}

/// One thing that happened, as this wire spells it.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum Told<'a> {
    Source {
        source: &'a SourceId,
        state: SourceState,
        error: Option<&'a str>,
    },
    Catalog {
        revision: &'a str,
        tools: bool,
        prompts: bool,
        resources: bool,
    },
    Resource {
        source: &'a SourceId,
        uri: &'a str,
        message: &'a Raw,
    },
    Log {
        source: &'a SourceId,
        level: Level,
        message: &'a Raw,
    },
    Notice {
        source: &'a SourceId,
        method: &'a str,
        params: Option<&'a Raw>,
    },
    CallOpened {
        call: CallId,
        caller: &'a str,
        kind: &'a str,
        target: &'a str,
    },
    CallClosed {
        call: CallId,
        item: Option<&'a str>,
        outcome: &'a str,
        duration_us: u64,
    },
    /// The listener did not keep up: so many were dropped.
    Lagged {
        missed: u64,
    },
}

impl<'a> Told<'a> {
    fn news(news: &'a News) -> (&'static str, Self) {
        match news {
            News::Source { source, state, error } => {
                ("source", Told::Source { source, state: *state, error: error.as_deref() })
            }
            News::Catalog { revision, tools, prompts, resources } => {
                let (tools, prompts, resources) = (*tools, *prompts, *resources);
                ("catalog", Told::Catalog { revision, tools, prompts, resources })
            }
            News::Resource { source, uri, message } => ("resource", Told::Resource { source, uri, message }),
            News::Log { source, level, message } => ("log", Told::Log { source, level: *level, message }),
            News::Notice { source, method, params } => {
                ("notice", Told::Notice { source, method, params: params.as_ref() })
            }
        }
    }

    fn call(news: &'a CallNews) -> (&'static str, Self) {
        match news {
            CallNews::CallOpened { call, caller, kind, target } => {
                ("call_opened", Told::CallOpened { call: *call, caller, kind, target })
            }
            CallNews::CallClosed { call, item, outcome, duration_us } => {
                let (call, duration_us) = (*call, *duration_us);
                ("call_closed", Told::CallClosed { call, item: item.as_deref(), outcome, duration_us })
            }
        }
    }

    fn event(&self, name: &str) -> Option<Event> {
        let text = serde_json::to_string(self).ok()?;
        Some(Event::default().event(name).data(text))
    }
}

/// What happens in the crib, as it happens.
#[utoipa::path(get, path = "/events", tag = "about", operation_id = "events", params(Wanted),
    responses((status = 200, description = "`event` is a topic, `call_opened`, `call_closed` or `lagged`; `data` is JSON",
               content_type = "text/event-stream", body = String),
              (status = "4XX", body = Refused)))]
pub async fn events(
    State(desk): State<Desk>,
    headers: HeaderMap,
    Asked(wanted): Asked<Wanted>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let topics = topics(wanted.only.as_deref())?;
    let newsroom = desk.gateway.newsroom();
    let listener = Listener {
        news: topics.iter().any(|topic| *topic != "call").then(|| newsroom.listen()),
        calls: topics.contains(&"call").then(|| newsroom.listen_calls()),
        topics,
        token: door::bearer(&headers)?.map(str::to_owned),
        look_again: interval_at(Instant::now() + LOOK_AGAIN, LOOK_AGAIN),
        desk,
    };
    let stream = futures_util::stream::unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok(event), listener))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

fn topics(only: Option<&str>) -> Result<Vec<&'static str>, Refusal> {
    let Some(only) = only else { return Ok(TOPICS.to_vec()) };
    let known = |word: &str| TOPICS.iter().copied().find(|topic| *topic == word);
    let named = only.split(',').map(str::trim).filter(|word| !word.is_empty());
    named
        .map(|word| {
            let told = || format!("`only`: there is no topic `{word}`, choose from {}", TOPICS.join(", "));
            known(word).ok_or_else(|| Refusal::bad_request(told()))
        })
        .collect()
}

struct Listener {
    news: Option<Receiver<Arc<News>>>,
    calls: Option<Receiver<Arc<CallNews>>>,
    topics: Vec<&'static str>,
    token: Option<String>,
    look_again: Interval,
    desk: Desk,
}

impl Listener {
    /// The next event that was asked for; none when the stream ends.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let event = tokio::select! {
                () = self.desk.closing.cancelled() => return None,
                _ = self.look_again.tick() => {
                    if self.still_admin() { None } else { return None }
                }
                news = heard(&mut self.news) => match news {
                    Ok(news) => {
                        let (topic, told) = Told::news(&news);
                        if self.topics.contains(&topic) { told.event(topic) } else { None }
                    }
                    Err(error) => lagged(error)?,
                },
                call = heard(&mut self.calls) => match call {
                    Ok(call) => {
                        let (name, told) = Told::call(&call);
                        told.event(name)
                    }
                    Err(error) => lagged(error)?,
                },
            };
            if event.is_some() {
                return event;
            }
        }
    }

    fn still_admin(&self) -> bool {
        let caller = self.desk.callers.recognise(self.token.as_deref());
        caller.is_ok_and(|caller| caller.role == Role::Admin)
    }
}

async fn heard<T: Clone>(receiver: &mut Option<Receiver<T>>) -> Result<T, RecvError> {
    match receiver {
        Some(receiver) => receiver.recv().await,
        None => std::future::pending().await,
    }
}

/// None: nobody will tell anything any more.
fn lagged(error: RecvError) -> Option<Option<Event>> {
    match error {
        RecvError::Lagged(missed) => Some(Told::Lagged { missed }.event("lagged")),
        RecvError::Closed => None,
    }
}

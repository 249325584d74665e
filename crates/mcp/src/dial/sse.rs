//! HTTP+SSE (2024-11-05): one event stream brings everything, and names where to POST.
//!
//! Matching answers to requests is `pipe`; the connection is lost when the stream ends.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use http::{HeaderValue, Method};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolcrib_core::error::{Failure, Kind};

use crate::dial::{
    ear::Ear,
    link::{Ended, Trouble},
    pipe::{Aftermath, Inbound, Outbound, Pipe, Unsent},
    stream::{EventStream, message},
    web::{Place, media_type},
};

/// How long the stream may take to say where to POST, and a POST to be taken.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) async fn open(place: &Place, ear: Arc<Ear>) -> Result<Pipe, Trouble> {
    let request =
        place.ask(Method::GET).header(http::header::ACCEPT, HeaderValue::from_static("text/event-stream"));
    let response = place.send(request).await?;
    if !response.status().is_success() {
        return Err(place.refused(response.status()));
    }
    let no = |told: &str| Trouble::failed(Kind::BadSource, format!("`{}` {told}", place.shown()));
    if media_type(&response) != "text/event-stream" {
        return Err(no("answered GET with something else than events"));
    }
    let mut events = EventStream::new(response);
    let endpoint = match timeout(PATIENCE, endpoint(&mut events)).await {
        Ok(endpoint) => endpoint?.ok_or_else(|| no("ended its stream before saying where to POST"))?,
        Err(_) => return Err(no("did not say where to POST")),
    };
    let url = place.url.join(endpoint.trim()).map_err(|_| no("named an endpoint that is not a URL"))?;
    let there = place.at(url).ok_or_else(|| no("named an endpoint of another origin, which is refused"))?;
    Ok(Pipe::over(FromStream { events }, ToEndpoint { place: there }, ear, CancellationToken::new(), Nothing))
}

async fn endpoint(events: &mut EventStream) -> Result<Option<String>, Trouble> {
    while let Some(event) = events.next().await.map_err(Trouble::Failed)? {
        if event.event.as_deref() == Some("endpoint") {
            return Ok(event.data);
        }
    }
    Ok(None)
}

struct FromStream {
    events: EventStream,
}

#[async_trait]
impl Inbound for FromStream {
    async fn next(&mut self) -> Result<Vec<u8>, Ended> {
        loop {
            match self.events.next().await? {
                Some(event) => {
                    if let Some(text) = message(event) {
                        return Ok(text.into_bytes());
                    }
                }
                None => {
                    return Err(Failure::new(Kind::Unavailable, "the source ended the event stream").into());
                }
            }
        }
    }
}

struct ToEndpoint {
    place: Place,
}

#[async_trait]
impl Outbound for ToEndpoint {
    async fn send(&mut self, text: String) -> Result<(), Unsent> {
        let json = HeaderValue::from_static("application/json");
        let request = self.place.ask(Method::POST).header(http::header::CONTENT_TYPE, json).body(text);
        match timeout(PATIENCE, self.place.send(request)).await {
            Ok(Ok(response)) if response.status().is_success() => Ok(()),
            Ok(Ok(response)) => Err(Unsent::This(self.place.refused(response.status()))),
            Ok(Err(trouble)) => Err(Unsent::This(trouble)),
            Err(_) => {
                Err(Unsent::This(Trouble::failed(Kind::Timeout, "the source did not take the message")))
            }
        }
    }
}

struct Nothing;

#[async_trait]
impl Aftermath for Nothing {}

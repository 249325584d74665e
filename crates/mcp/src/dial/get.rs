//! The stream on which a legacy source says things unasked: opened with GET, taken up again whenever it ends.
//!
//! Many sources have none and answer 405; that is fine.

use std::{sync::Arc, time::Duration};

use http::{HeaderValue, Method};
use toolcrib_core::error::Kind;

use crate::{
    dial::{
        http::{Terms, Wire},
        link::Trouble,
        stream::{EventStream, message},
        web::media_type,
    },
    version::{Era, Version},
};

const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Opens the stream, from after the event `last` on.
pub(crate) async fn open(wire: &Wire, last: Option<&str>, terms: &Terms) -> Result<EventStream, Trouble> {
    let mut request = wire
        .dressed(Method::GET, terms)
        .header(http::header::ACCEPT, HeaderValue::from_static("text/event-stream"));
    if let Some(last) = last.and_then(|last| HeaderValue::try_from(last).ok()) {
        request = request.header("last-event-id", last);
    }
    let response = wire.place.send(request).await?;
    if !response.status().is_success() {
        return Err(wire.place.refused(response.status()));
    }
    if media_type(&response) != "text/event-stream" {
        return Err(Trouble::failed(
            Kind::BadSource,
            "the source answered GET with something else than events",
        ));
    }
    Ok(EventStream::new(response))
}

/// Listens for as long as the present session and the connection last. Does nothing on the modern wire.
pub(crate) fn listen(wire: &Arc<Wire>) {
    if wire.terms().version.map(Version::era) != Some(Era::Legacy) {
        return;
    }
    let epoch = wire.epoch.borrow().wrapping_add(1);
    wire.epoch.send_replace(epoch);
    let mut current = wire.epoch.subscribe();
    let (wire, stop) = (wire.clone(), wire.stop.clone());
    tokio::spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            _ = current.wait_for(|now| *now != epoch) => {}
            () = attend(&wire) => {}
        }
    });
}

async fn attend(wire: &Arc<Wire>) {
    let mut last: Option<String> = None;
    let mut wait = Duration::from_secs(1);
    loop {
        let mut asked = None;
        match open(wire, last.as_deref(), &wire.terms()).await {
            Ok(mut stream) => {
                while let Ok(Some(event)) = stream.next().await {
                    wait = Duration::from_secs(1);
                    if let Some(text) = message(event) {
                        wire.overhear(&text);
                    }
                }
                asked = stream.retry_ms.map(Duration::from_millis);
                last = stream.last_id.or(last);
            }
            Err(Trouble::Status(status, _)) if status.is_client_error() && status.as_u16() != 429 => {
                tracing::debug!(%status, place = wire.place.shown(), "the source has no stream of its own");
                return;
            }
            Err(Trouble::Gone(failure)) => return wire.end.set(failure.into()),
            Err(trouble) => tracing::debug!(?trouble, "the stream of a source could not be opened"),
        }
        tokio::time::sleep(asked.unwrap_or(wait).min(LONGEST_WAIT)).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

//! The legacy GET stream: what the crib says unasked (`list_changed`, its own requests) reaches the output.
//!
//! Lives as long as the session, takes up a broken stream where it was, and notices a restarted crib first.
//! It never answers anything: answers come from the client, through `relay.rs`.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, StatusCode};

use crate::answer::Failure;
use crate::header;
use crate::link::Link;
use crate::session::Seen;
use crate::stream::{Feed, Place};

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How one stream ended.
enum End {
    /// It was open; take it up again soon.
    Closed,
    /// It could not be opened; take it up again later.
    Failed,
    /// The crib does not know the session.
    Gone,
    /// The crib offers no such stream to this session.
    NotOffered,
    /// Nobody reads the output.
    OutputClosed,
}

/// Listens until the output closes. Cancelled from outside when the bridge ends.
pub async fn listen(link: Arc<Link>) {
    let mut epochs = link.session.epochs();
    let mut place = Place::default();
    let mut pause = FIRST_PAUSE;
    let mut epoch = 0;
    loop {
        epochs.borrow_and_update();
        let seen = link.session.seen();
        // Opened anew during a pause: a place in the forgotten session means nothing in this one.
        if seen.epoch != epoch {
            (place, epoch) = (Place::default(), seen.epoch);
        }
        let end = tokio::select! {
            _ = epochs.changed() => {
                (place, pause) = (Place::default(), FIRST_PAUSE);
                continue;
            }
            end = hear(&link, &seen, &mut place) => end,
        };
        match end {
            End::OutputClosed => return,
            End::NotOffered => {
                if epochs.changed().await.is_err() {
                    return;
                }
                place = Place::default();
                continue;
            }
            // Outside the `select!` above: opening the session anew is itself a new epoch.
            End::Gone => match link.revive(&seen).await {
                Ok(()) => place = Place::default(),
                Err(Failure::OutputClosed) => return,
                Err(failure) => eprintln!("toolcrib-bridge: {failure}"),
            },
            End::Closed => pause = FIRST_PAUSE,
            End::Failed => {}
        }
        let rest = place.retry.unwrap_or(pause).min(LONGEST_PAUSE);
        tokio::time::sleep(rest).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn hear(link: &Link, seen: &Seen, place: &mut Place) -> End {
    let mut headers = seen.headers();
    if let Some(value) = place.last_id.as_deref().and_then(|id| HeaderValue::from_str(id).ok()) {
        headers.insert(header::LAST_EVENT, value);
    }
    let Ok(response) = link.dial.listen(&headers).await else { return End::Failed };
    match response.status() {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND if seen.id.is_some() => return End::Gone,
        StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS => {
            return End::Failed;
        }
        status if status.is_client_error() => {
            if status != StatusCode::METHOD_NOT_ALLOWED {
                eprintln!("toolcrib-bridge: no stream of notifications, the crib answered {status}");
            }
            return End::NotOffered;
        }
        _ => return End::Failed,
    }
    let mut feed = Feed::new(response.into_body(), link.limit);
    loop {
        match feed.next(place).await {
            Ok(Some(line)) => {
                if link.say(line).await.is_err() {
                    return End::OutputClosed;
                }
            }
            Ok(None) => return End::Closed,
            Err(failure) => {
                if !failure.is_cut() {
                    eprintln!("toolcrib-bridge: the stream of notifications broke: {failure}");
                }
                return End::Closed;
            }
        }
    }
}

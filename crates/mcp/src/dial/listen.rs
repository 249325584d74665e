//! What a modern source says unasked: one `subscriptions/listen`, kept open and asked anew when it ends or when
//! other resources are watched.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use serde_json::{Map, Value, json};
use tokio::{sync::watch, time::Instant};
use toolcrib_core::raw;

use crate::{
    codes,
    dial::{
        link::{Ask, Link},
        params,
        peer::{Capabilities, Listed},
    },
};

const SHORTEST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// A listening that lasted so long was fine; it is asked for again without delay growing.
const FINE: Duration = Duration::from_secs(10);

/// Runs until the connection is dropped.
pub(crate) async fn keep(
    link: Arc<dyn Link>,
    can: Capabilities,
    mut watched: watch::Receiver<BTreeSet<String>>,
) {
    let mut wait = SHORTEST_WAIT;
    loop {
        let uris = watched.borrow_and_update().clone();
        let filter = filter(can, &uris);
        if filter.is_empty() {
            if watched.changed().await.is_err() {
                return;
            }
            continue;
        }
        let params = params::modern(raw::from(&json!({ "notifications": filter })));
        let began = Instant::now();
        let ended = tokio::select! {
            changed = watched.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
            ended = link.request(Ask::new("subscriptions/listen", Some(params)), None) => ended,
        };
        let useless = match &ended {
            Err(trouble) => matches!(
                trouble.code(),
                Some(codes::METHOD_NOT_FOUND | codes::INVALID_PARAMS | codes::INVALID_REQUEST)
            ),
            Ok(_) => false,
        };
        wait = if began.elapsed() > FINE { SHORTEST_WAIT } else { (wait * 2).min(LONGEST_WAIT) };
        tracing::debug!(?ended, useless, "listening to a source ended");
        tokio::select! {
            changed = watched.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(wait), if !useless => {}
        }
    }
}

fn filter(can: Capabilities, uris: &BTreeSet<String>) -> Map<String, Value> {
    let mut filter = Map::new();
    let lists = [
        ("toolsListChanged", can.tools),
        ("promptsListChanged", can.prompts),
        ("resourcesListChanged", can.resources),
    ];
    for (key, listed) in lists {
        if listed == Some(Listed::WithNews) {
            filter.insert(key.to_owned(), json!(true));
        }
    }
    if !uris.is_empty() {
        filter.insert("resourceSubscriptions".to_owned(), json!(uris));
    }
    filter
}

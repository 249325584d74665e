//! Which era a source speaks, and the greeting of that era.
//!
//! A source is asked `server/discover` first. Only an answer that names our modern revision, or an error only modern
//! sources send, makes it modern; anything else, and silence, makes it legacy. Nothing is called before this is known.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use serde_json::{json, value::RawValue};
use tokio::time::timeout;
use toolcrib_core::{
    error::{Failure, Kind},
    raw::{self, Members, Raw},
};

use crate::{
    codes,
    dial::{
        link::{Ask, Link, Trouble},
        params,
        peer::Peer,
    },
    version::{Era, Version},
};

/// What a dialer learnt when it last connected; forgotten when connecting fails.
pub(crate) struct Memory<T>(Mutex<Option<T>>);

impl<T> Default for Memory<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Copy> Memory<T> {
    pub fn recall(&self) -> Option<T> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn keep(&self, learnt: Option<T>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = learnt;
    }
}

/// Greets a source of a known or unknown era. `wait`: how long the question for the era may stay unanswered.
pub(crate) async fn greet(link: &dyn Link, known: Option<Era>, wait: Duration) -> Result<Peer, Trouble> {
    let peer = match known {
        Some(Era::Legacy) => initialize(link).await?,
        Some(Era::Modern) => match judge(discover(link).await)? {
            Some(peer) => peer,
            None => initialize(link).await?,
        },
        None => probe(link, wait).await?,
    };
    link.settle(Some(peer.version));
    link.attend();
    Ok(peer)
}

async fn probe(link: &dyn Link, wait: Duration) -> Result<Peer, Trouble> {
    let mut discovery = Box::pin(discover(link));
    let answer = timeout(wait, &mut discovery).await;
    if let Ok(answer) = answer {
        return match judge(answer)? {
            Some(peer) => Ok(peer),
            None => initialize(link).await,
        };
    }
    match initialize(link).await {
        // A slow modern source: it refuses the old greeting, and its answer to the new one is on its way.
        Err(Trouble::Refused(error)) => match timeout(wait, discovery).await.map(judge) {
            Ok(Ok(Some(peer))) => Ok(peer),
            _ => Err(Trouble::Refused(error)),
        },
        greeted => greeted,
    }
}

async fn discover(link: &dyn Link) -> Result<Raw, Trouble> {
    link.settle(Some(Version::LATEST));
    let params = params::modern(raw::empty_object());
    link.request(Ask::new("server/discover", Some(params)).quietly(), None).await
}

/// Modern, or not; troubles that say nothing about the era are passed on.
fn judge(answer: Result<Raw, Trouble>) -> Result<Option<Peer>, Trouble> {
    match answer {
        Ok(result) => {
            let supported = Members::parse_lenient(&result).find("supportedVersions").map(names_ours);
            Ok((supported == Some(true)).then(|| Peer::read(Version::LATEST, &result)))
        }
        Err(Trouble::Refused(error)) => Ok(is_modern(&error).then(Peer::undescribed)),
        Err(Trouble::Status(status, failure)) => match status.as_u16() {
            401 | 403 => Err(Trouble::Status(status, failure)),
            _ => Ok(None),
        },
        Err(trouble @ (Trouble::Gone(_) | Trouble::SessionGone(_))) => Err(trouble),
        Err(Trouble::Failed(failure)) => match failure.kind {
            Kind::BadSource | Kind::Timeout => Ok(None),
            _ => Err(Trouble::Failed(failure)),
        },
    }
}

fn names_ours(list: &RawValue) -> bool {
    let versions: Vec<&RawValue> = serde_json::from_str(list.get()).unwrap_or_default();
    versions.into_iter().filter_map(raw::text).any(|version| version == Version::LATEST.text())
}

fn is_modern(error: &RawValue) -> bool {
    let members = Members::parse_lenient(error);
    match members.find("code").and_then(|code| code.get().parse().ok()) {
        Some(codes::HEADER_MISMATCH | codes::MISSING_CAPABILITY) => true,
        Some(codes::UNSUPPORTED_VERSION) => members
            .find("data")
            .map(Members::parse_lenient)
            .and_then(|data| data.find("supported"))
            .is_some_and(names_ours),
        _ => false,
    }
}

/// The old greeting. The crib declares no capabilities of a client here: it cannot answer for its callers.
pub(crate) async fn initialize(link: &dyn Link) -> Result<Peer, Trouble> {
    link.settle(None);
    let result = link.request(greeting(), None).await?;
    let version = agreed(&result)?;
    link.settle(Some(version));
    link.notify("notifications/initialized", None).await?;
    Ok(Peer::read(version, &result))
}

pub(crate) fn greeting() -> Ask {
    let params = raw::from(&json!({
        "protocolVersion": Version::LATEST_LEGACY.text(),
        "capabilities": {},
        "clientInfo": params::client(),
    }));
    Ask::new("initialize", Some(params)).quietly()
}

/// The revision a source answered `initialize` with.
pub(crate) fn agreed(result: &RawValue) -> Result<Version, Trouble> {
    let named = Members::parse_lenient(result).text("protocolVersion");
    named.as_deref().and_then(Version::parse).filter(|version| version.era() == Era::Legacy).ok_or_else(
        || {
            let named: String = named.unwrap_or_else(|| "none".into()).chars().take(40).collect();
            let told =
                format!("the source answered `initialize` with revision `{named}`, which is not known");
            Trouble::Failed(Failure::new(Kind::BadSource, told))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolcrib_core::testing::json;

    #[test]
    fn only_our_revision_or_a_modern_error_makes_a_source_modern() {
        let modern = |answer| judge(answer).unwrap().is_some();
        assert!(modern(Ok(json(r#"{"supportedVersions":["2026-07-28"],"capabilities":{}}"#))));
        assert!(!modern(Ok(json(r#"{"supportedVersions":["2025-11-25"]}"#))));
        assert!(!modern(Ok(json("{}"))));
        let refused = |text: &str| Err(Trouble::Refused(json(text)));
        assert!(modern(refused(r#"{"code":-32021,"message":"m"}"#)));
        assert!(modern(refused(r#"{"code":-32022,"message":"m","data":{"supported":["2026-07-28"]}}"#)));
        assert!(!modern(refused(r#"{"code":-32022,"message":"m","data":{"supported":["2027-01-01"]}}"#)));
        for legacy in [-32601, -32602, -32600, -32000, -32603] {
            assert!(!modern(refused(&format!(r#"{{"code":{legacy},"message":"m"}}"#))));
        }
    }
}

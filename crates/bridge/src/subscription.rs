//! A modern subscription that outlives the crib's process: what the client is told when it was taken up again.
//!
//! A `subscriptions/listen` stream that breaks has lost an unknown number of changes, so everything it asked
//! to hear of is said to have changed. `courier.rs` does the asking again.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::peek;

/// The method that opens a subscription.
pub const LISTEN: &str = "subscriptions/listen";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// Whether a subscription is being opened for the client or, unseen by it, again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    First,
    Again,
}

#[derive(Deserialize)]
struct Listening<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    params: Wanted<'a>,
}

#[derive(Deserialize)]
struct Wanted<'a> {
    #[serde(borrow, default)]
    notifications: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Filter<'a> {
    tools_list_changed: Option<bool>,
    prompts_list_changed: Option<bool>,
    resources_list_changed: Option<bool>,
    #[serde(borrow)]
    resource_subscriptions: Option<Vec<&'a RawValue>>,
}

/// Whether a message of the crib only confirms a subscription.
pub fn is_acknowledgement(line: &str) -> bool {
    let method = peek::reply(line).and_then(|reply| reply.method).and_then(peek::string);
    method.as_deref() == Some(ACKNOWLEDGED)
}

/// The changes to tell of, for the listen request in `line`.
pub fn refresh(line: &[u8]) -> Vec<String> {
    let Ok(listening) = serde_json::from_slice::<Listening<'_>>(line) else { return Vec::new() };
    let filter: Filter<'_> = listening
        .params
        .notifications
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default();
    let meta = format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}"#, listening.id);
    let lists = [
        ("tools", filter.tools_list_changed),
        ("prompts", filter.prompts_list_changed),
        ("resources", filter.resources_list_changed),
    ];
    let lists = lists.into_iter().filter(|(_, wanted)| *wanted == Some(true)).map(|(name, _)| {
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/{name}/list_changed","params":{{{meta}}}}}"#)
    });
    let resources = filter.resource_subscriptions.unwrap_or_default().into_iter().map(|uri| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":{uri},{meta}}}}}"#
        )
    });
    lists.chain(resources).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn only_what_was_asked_for_is_said_to_have_changed() {
        let line = br#"{"id":"s","method":"subscriptions/listen","params":{"notifications":
            {"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["a:\/b"]}}}"#;
        let lines: Vec<Value> = refresh(line).iter().map(|l| serde_json::from_str(l).unwrap()).collect();
        let meta = json!({"io.modelcontextprotocol/subscriptionId":"s"});
        assert_eq!(
            lines,
            [
                json!({"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":meta}}),
                json!({"jsonrpc":"2.0","method":"notifications/resources/updated",
                    "params":{"uri":"a:/b","_meta":meta}}),
            ]
        );
    }

    #[test]
    fn a_request_without_a_filter_has_nothing_to_refresh() {
        assert!(refresh(br#"{"id":1,"method":"subscriptions/listen","params":{}}"#).is_empty());
        assert!(refresh(b"[]").is_empty());
    }
}

//! Several messages at once, which revision 2025-03-26 has and the others have not.

use std::sync::Arc;

use serde_json::value::RawValue;
use toolcrib_core::raw::Raw;

use crate::{
    codes::{Fault, INVALID_REQUEST, PARSE_ERROR},
    meta::RequestMeta,
    serve::{
        Desk,
        conversation::{Conversation, Step},
        dispatch::{self, Answer},
        http::malformed_fault,
        underway::{Ticket, UnderWay},
        visit::Visit,
    },
    version::Version,
    wire::{self, Message},
};

/// Most messages in one batch.
const LONGEST: usize = 100;

/// A batch taken apart: its requests entered, its notifications heeded.
pub struct Batch(Vec<Part>);

enum Part {
    Request { ticket: Ticket, method: String, params: Option<Raw> },
    Malformed(String),
}

impl Batch {
    pub fn take(body: &[u8], visit: &Visit, under_way: &Arc<UnderWay>) -> Result<Self, Fault> {
        if visit.version != Version::V2025_03_26 {
            let told = "only revision 2025-03-26 has batches; send one message at a time";
            return Err(Fault::new(INVALID_REQUEST, told));
        }
        let messages: Vec<&RawValue> = serde_json::from_slice(body)
            .map_err(|error| Fault::new(PARSE_ERROR, &format!("not a batch: {error}")))?;
        if messages.is_empty() || messages.len() > LONGEST {
            return Err(Fault::new(INVALID_REQUEST, &format!("a batch has 1 to {LONGEST} messages")));
        }
        let parts = messages.into_iter().filter_map(|message| Part::read(message, under_way));
        Ok(Self(parts.collect()))
    }

    /// How many answers it will have.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// The answers as one message; none where nothing was asked.
    pub async fn answer(self, desk: &Desk, visit: &Arc<Visit>) -> Option<String> {
        let answers: Vec<_> = self.0.into_iter().map(|part| part.answer(desk, visit)).collect();
        let answers = futures_util::future::join_all(answers).await;
        (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")))
    }
}

impl Part {
    fn read(message: &RawValue, under_way: &Arc<UnderWay>) -> Option<Self> {
        match Message::parse(message.get().as_bytes()) {
            Err(malformed) => Some(Self::Malformed(wire::failure(None, &malformed_fault(&malformed).object))),
            Ok(Message::Response { .. }) => None,
            Ok(Message::Notification { method, params }) => {
                under_way.noted(&method, params.as_deref());
                None
            }
            Ok(Message::Request { id, method, params }) => {
                Some(Self::Request { ticket: under_way.enter(&id), method, params })
            }
        }
    }

    async fn answer(self, desk: &Desk, visit: &Arc<Visit>) -> String {
        let (ticket, method, params) = match self {
            Part::Malformed(answer) => return answer,
            Part::Request { ticket, method, params } => (ticket, method, params),
        };
        let (id, params) = (&ticket.id, params.as_deref());
        match dispatch::legacy(desk, visit, id.clone(), &method, params, RequestMeta::of(params)).await {
            Answer::Now(Ok(result)) => wire::success(Some(id), &result),
            Answer::Now(Err(told)) => wire::failure(Some(id), &told.object),
            Answer::Later(conversation) => finished(conversation.heeding(&ticket)).await,
        }
    }
}

async fn finished(mut conversation: Conversation) -> String {
    loop {
        if let Step::Done { message, .. } = conversation.next().await {
            return message;
        }
    }
}

//! The closed list of ways a call can fail, whose fault each is, and whether trying again can help.
//!
//! Each tongue maps [`Kind`] to its own codes in one file, without a wildcard arm. What the caller is
//! told (`told`) and what happened (`detail`, for ledger and log) are two things.

use serde::Serialize;

use crate::raw::Raw;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// No valid credentials.
    Unauthenticated,
    /// There is no such tool, or none this caller may see. The caller is never told which.
    Unknown,
    /// A bare name that several visible tools share.
    Ambiguous,
    /// The arguments do not fit the tool's schema.
    InvalidArguments,
    /// Policy said no to something the caller may see.
    Denied,
    /// Policy wants a person's yes and there is none.
    ApprovalRequired,
    /// A limit of the crib is reached.
    Overloaded,
    /// The source cannot be reached, or went away.
    Unavailable,
    /// The source wants credentials the crib does not have.
    SourceUnauthorized,
    /// The source did not answer in time.
    Timeout,
    /// The caller, or an operator, called it off.
    Cancelled,
    /// The source answered with an error of its protocol; it is passed on as it came.
    Refused,
    /// The source sent what its protocol does not allow.
    BadSource,
    /// The answer is larger than the limit.
    TooLarge,
    /// The ledger cannot be written, so nothing may happen.
    LedgerDown,
    /// A defect of the crib.
    Internal,
}

/// Who has to act for the next try to go better.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    Caller,
    Source,
    Crib,
}

/// Whether the same request can succeed later without anyone acting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    Useless,
    MayHelp,
}

impl Kind {
    pub fn fault(self) -> Fault {
        match self {
            Kind::Unauthenticated
            | Kind::Unknown
            | Kind::Ambiguous
            | Kind::InvalidArguments
            | Kind::Denied
            | Kind::ApprovalRequired
            | Kind::Cancelled => Fault::Caller,
            Kind::Unavailable
            | Kind::SourceUnauthorized
            | Kind::Timeout
            | Kind::Refused
            | Kind::BadSource
            | Kind::TooLarge => Fault::Source,
            Kind::Overloaded | Kind::LedgerDown | Kind::Internal => Fault::Crib,
        }
    }

    pub fn retry(self) -> Retry {
        match self {
            Kind::Overloaded | Kind::Unavailable | Kind::Timeout | Kind::LedgerDown => Retry::MayHelp,
            Kind::Unauthenticated
            | Kind::Unknown
            | Kind::Ambiguous
            | Kind::InvalidArguments
            | Kind::Denied
            | Kind::ApprovalRequired
            | Kind::SourceUnauthorized
            | Kind::Cancelled
            | Kind::Refused
            | Kind::BadSource
            | Kind::TooLarge
            | Kind::Internal => Retry::Useless,
        }
    }

    /// The word used in the ledger, in JSON and in metrics.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Unauthenticated => "unauthenticated",
            Kind::Unknown => "unknown",
            Kind::Ambiguous => "ambiguous",
            Kind::InvalidArguments => "invalid_arguments",
            Kind::Denied => "denied",
            Kind::ApprovalRequired => "approval_required",
            Kind::Overloaded => "overloaded",
            Kind::Unavailable => "unavailable",
            Kind::SourceUnauthorized => "source_unauthorized",
            Kind::Timeout => "timeout",
            Kind::Cancelled => "cancelled",
            Kind::Refused => "refused",
            Kind::BadSource => "bad_source",
            Kind::TooLarge => "too_large",
            Kind::LedgerDown => "ledger_down",
            Kind::Internal => "internal",
        }
    }
}

/// The error object of a source's own protocol, kept whole.
#[derive(Clone, Debug)]
pub struct PeerError {
    pub code: i64,
    pub message: String,
    /// The whole error object as it came, unknown members included.
    pub object: Raw,
}

/// How a call failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{told}")]
pub struct Failure {
    pub kind: Kind,
    /// What the caller is told. Lower case, no full stop, says what to do next where we know.
    pub told: String,
    /// What happened, for the ledger and the log. Never shown to a caller.
    pub detail: Option<String>,
    /// The layer of policy that refused, if one did.
    pub layer: Option<&'static str>,
    /// The source's own error, passed on as it came.
    pub peer: Option<PeerError>,
}

impl Failure {
    pub fn new(kind: Kind, told: impl Into<String>) -> Self {
        Self { kind, told: told.into(), detail: None, layer: None, peer: None }
    }

    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    pub fn layer(mut self, layer: &'static str) -> Self {
        self.layer = Some(layer);
        self
    }

    /// A source answered with an error object of its own. Its words may quote arguments, so only its code is kept.
    pub fn peer(peer: PeerError) -> Self {
        let detail = format!("the source answered with error {}", peer.code);
        let mut failure = Self::new(Kind::Refused, peer.message.clone()).detail(detail);
        failure.peer = Some(peer);
        failure
    }

    /// The one text for "there is none, or you may not see it".
    pub fn unknown(what: &str, name: &str) -> Self {
        let shown: String = name.chars().take(200).collect();
        Self::new(Kind::Unknown, format!("unknown {what}: `{shown}`"))
    }
}

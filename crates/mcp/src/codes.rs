//! The one place where the crib's failures become JSON-RPC errors and HTTP statuses, and the reverse.

use http::StatusCode;
use serde_json::{json, value::RawValue};
use toolcrib_core::{
    error::{Failure, Kind, PeerError},
    raw::{self, Members, ObjectWriter, Raw},
};

use crate::version::Era;

pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;
/// Legacy only: a resource that is not there.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
pub const HEADER_MISMATCH: i64 = -32020;
pub const MISSING_CAPABILITY: i64 = -32021;
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// An error object on its way out, and the status that goes with it.
#[derive(Debug)]
pub struct Fault {
    pub status: StatusCode,
    pub object: Raw,
}

impl Fault {
    pub fn new(code: i64, message: &str) -> Self {
        Self::with(code, message, None)
    }

    pub fn with(code: i64, message: &str, data: Option<&RawValue>) -> Self {
        let mut object = ObjectWriter::default();
        object.raw("code", &code.to_string()).text("message", message);
        if let Some(data) = data {
            object.member("data", data);
        }
        Self { status: status(code), object: object.finish() }
    }

    pub fn at(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// The error for a failure, as the asker's era spells it.
    pub fn of(failure: &Failure, era: Era) -> Self {
        Self::coded(failure, era, code(failure.kind))
    }

    /// The same where a resource was asked for: one that is not there has a code of its own in the legacy era.
    pub fn of_resource(failure: &Failure, era: Era) -> Self {
        match (failure.kind, era) {
            (Kind::Unknown, Era::Legacy) => Self::coded(failure, era, RESOURCE_NOT_FOUND),
            _ => Self::of(failure, era),
        }
    }

    /// The same where a method was asked for that only a source can know.
    pub fn of_method(failure: &Failure, era: Era) -> Self {
        match failure.kind {
            Kind::Unknown => Self::coded(failure, era, METHOD_NOT_FOUND),
            _ => Self::of(failure, era),
        }
    }

    fn coded(failure: &Failure, era: Era, code: i64) -> Self {
        if let Some(peer) = &failure.peer {
            return Self::passed_on(peer, era);
        }
        let data = raw::from(&json!({
            "kind": failure.kind.word(),
            "fault": failure.kind.fault(),
            "retry": failure.kind.retry(),
        }));
        Self::with(code, &failure.told, Some(&data))
    }

    /// A source's own error, whole; only codes that mean something else to this era are replaced.
    fn passed_on(peer: &PeerError, era: Era) -> Self {
        let code = match (peer.code, era) {
            (RESOURCE_NOT_FOUND, Era::Modern) => INVALID_PARAMS,
            (code, _) => code,
        };
        if code == peer.code {
            return Self { status: status(code), object: peer.object.clone() };
        }
        let mut object = ObjectWriter::default();
        for (key, value) in Members::parse_lenient(&peer.object).iter() {
            match key {
                "code" => object.raw("code", &code.to_string()),
                key => object.member(key, value),
            };
        }
        Self { status: status(code), object: object.finish() }
    }
}

/// The code of each kind. The crib's own stand outside the range JSON-RPC and MCP reserve.
fn code(kind: Kind) -> i64 {
    match kind {
        Kind::Unknown | Kind::Ambiguous | Kind::InvalidArguments => INVALID_PARAMS,
        Kind::Internal | Kind::Refused => INTERNAL_ERROR,
        Kind::Unauthenticated => -31401,
        Kind::Denied => -31403,
        Kind::ApprovalRequired => -31402,
        Kind::Overloaded => -31429,
        Kind::Unavailable => -31503,
        Kind::SourceUnauthorized => -31511,
        Kind::Timeout => -31504,
        Kind::Cancelled => -31499,
        Kind::BadSource => -31502,
        Kind::TooLarge => -31413,
        Kind::LedgerDown => -31507,
    }
}

/// The HTTP status the modern wire wants beside a code. Everything else is answered with 200.
fn status(code: i64) -> StatusCode {
    match code {
        METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION | PARSE_ERROR | INVALID_REQUEST => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}

/// A source's error object as a failure. What is not an error object is the source's mistake.
pub fn failure(object: &RawValue) -> Failure {
    let members = Members::parse_lenient(object);
    let code = members.find("code").and_then(|raw| raw.get().parse::<i64>().ok());
    match code {
        Some(code) => Failure::peer(PeerError {
            code,
            message: members.text("message").unwrap_or_default(),
            object: object.to_owned(),
        }),
        None => {
            Failure::new(Kind::BadSource, "the source answered with something that is not an error object")
        }
    }
}

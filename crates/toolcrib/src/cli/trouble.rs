//! Why a command ended badly, and with which exit code. The codes are documented in `docs/reference/cli.md` and in
//! `--help`; programs depend on them, so they only ever grow.

use std::io;
use std::process::ExitCode;

use serde_json::{Value, json};
use toolcrib_core::error::{Failure, Kind};
use toolcrib_core::ledger::LedgerDown;
use toolcrib_store::StoreError;

use crate::clients::ClientError;
use crate::config::Mistakes;
use crate::output::{Output, Tint};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    Done = 0,
    Failed = 1,
    Usage = 2,
    Config = 3,
    Unknown = 4,
    Refused = 5,
    Unavailable = 6,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        ExitCode::from(code as u8)
    }
}

/// What is said when a command could not do its work.
#[derive(Debug)]
pub struct Trouble {
    pub code: Code,
    /// A word for programs.
    pub kind: String,
    pub message: String,
    pub hint: Option<String>,
    /// More for programs, beside kind and message.
    pub more: Option<(&'static str, Value)>,
}

/// The reader of our output went away, as `head` does. Nothing is wrong and nothing is said.
const READER_GONE: &str = "reader_gone";

impl Trouble {
    pub fn new(code: Code, kind: &str, message: impl Into<String>) -> Self {
        Self { code, kind: kind.to_owned(), message: message.into(), hint: None, more: None }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, "usage", message)
    }

    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Code::Failed, "failed", message)
    }

    pub fn unknown(message: impl Into<String>) -> Self {
        Self::new(Code::Unknown, Kind::Unknown.word(), message)
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Code::Unavailable, Kind::Unavailable.word(), message)
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says it, and gives the code to end with.
    pub fn tell(&self, output: &Output) -> ExitCode {
        if self.kind == READER_GONE {
            return ExitCode::SUCCESS;
        }
        if output.is_json() {
            eprintln!("{}", json!({ "error": self.object() }));
        } else {
            output.told("error", Tint::Bad, &self.message);
            if let Some(hint) = &self.hint {
                output.told("hint", Tint::Head, hint);
            }
        }
        self.code.into()
    }

    fn object(&self) -> Value {
        let mut object = json!({ "kind": self.kind, "message": self.message });
        if let Value::Object(members) = &mut object {
            if let Some(hint) = &self.hint {
                members.insert("hint".into(), json!(hint));
            }
            if let Some((name, value)) = &self.more {
                members.insert((*name).into(), value.clone());
            }
        }
        object
    }
}

/// The exit code of each way a call can fail.
pub fn code(kind: Kind) -> Code {
    match kind {
        Kind::Unauthenticated | Kind::Denied | Kind::ApprovalRequired => Code::Refused,
        Kind::Unknown => Code::Unknown,
        Kind::Ambiguous | Kind::InvalidArguments => Code::Usage,
        Kind::Overloaded
        | Kind::Unavailable
        | Kind::SourceUnauthorized
        | Kind::Timeout
        | Kind::LedgerDown => Code::Unavailable,
        Kind::Cancelled | Kind::Refused | Kind::BadSource | Kind::TooLarge | Kind::Internal => Code::Failed,
    }
}

/// What a person can do about it, where that is known.
pub fn remedy(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "unknown" => "`toolcrib tools list` and `toolcrib servers list` show what there is",
        "invalid_arguments" => "`toolcrib tools show TOOL` shows what it takes",
        "unauthenticated" => "give a token with `--token`, or set TOOLCRIB_TOKEN",
        "unavailable" | "timeout" | "source_unauthorized" => "`toolcrib doctor` looks for the reason",
        _ => return None,
    })
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        let kind = failure.kind.word();
        let mut trouble = Self::new(code(failure.kind), kind, failure.told);
        trouble.hint = remedy(kind).map(str::to_owned);
        trouble
    }
}

impl From<Mistakes> for Trouble {
    fn from(mistakes: Mistakes) -> Self {
        let mut trouble = Self::new(Code::Config, "config", format!("the config has mistakes\n\n{mistakes}"));
        trouble.more = Some(("mistakes", json!(mistakes.mistakes)));
        trouble
    }
}

impl From<ClientError> for Trouble {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Config(mistakes) => mistakes.into(),
            ClientError::NoScope { .. } => Self::usage(error.to_string()),
            other => Self::failed(whole(&other)),
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Missing(_) => Self::unknown(error.to_string()),
            other => Self::failed(whole(&other)),
        }
    }
}

impl From<LedgerDown> for Trouble {
    fn from(down: LedgerDown) -> Self {
        Self::new(Code::Unavailable, Kind::LedgerDown.word(), down.to_string())
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::new(Code::Done, READER_GONE, ""),
            _ => Self::failed(error.to_string()),
        }
    }
}

impl From<anyhow::Error> for Trouble {
    fn from(error: anyhow::Error) -> Self {
        let error = match error.downcast::<Failure>() {
            Ok(failure) => return failure.into(),
            Err(other) => other,
        };
        match error.downcast::<Mistakes>() {
            Ok(mistakes) => mistakes.into(),
            Err(other) => Self::failed(format!("{other:#}")),
        }
    }
}

/// An error and its causes on one line.
pub fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text += &format!(": {next}");
        cause = next.source();
    }
    text
}

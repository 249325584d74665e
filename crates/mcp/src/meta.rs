//! The `_meta` of requests and results: the wire's own keys are read here and written anew on every hop, all other
//! keys pass.

use serde_json::value::RawValue;
use toolcrib_core::{
    raw::{self, Members, ObjectWriter, Raw},
    trace::{TRACEPARENT, TRACESTATE},
};

/// Keys under this prefix belong to the hop, not to the message.
pub const RESERVED: &str = "io.modelcontextprotocol/";
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
pub const PROGRESS_TOKEN: &str = "progressToken";

/// What a request says about itself.
#[derive(Debug, Default)]
pub struct RequestMeta {
    pub protocol_version: Option<String>,
    pub client_capabilities: Option<Raw>,
    pub client_info: Option<Raw>,
    pub log_level: Option<String>,
    pub progress_token: Option<Raw>,
    /// Everything that is not the wire's: vendor keys, trace keys.
    pub rest: Vec<(String, Raw)>,
}

impl RequestMeta {
    /// Reads `params._meta`; anything malformed counts as absent.
    pub fn of(params: Option<&RawValue>) -> Self {
        let Some(meta) = params.map(Members::parse_lenient).and_then(|members| members.find("_meta")) else {
            return Self::default();
        };
        Self::read(meta)
    }

    pub fn read(meta: &RawValue) -> Self {
        let mut this = Self::default();
        for (key, value) in Members::parse_lenient(meta).iter() {
            match key {
                PROTOCOL_VERSION => this.protocol_version = raw::text(value),
                CLIENT_CAPABILITIES if value.get().starts_with('{') => {
                    this.client_capabilities = Some(value.to_owned());
                }
                CLIENT_INFO => this.client_info = Some(value.to_owned()),
                LOG_LEVEL => this.log_level = raw::text(value),
                PROGRESS_TOKEN => this.progress_token = Some(value.to_owned()),
                key if key.starts_with(RESERVED) => {}
                key => this.rest.push((key.to_owned(), value.to_owned())),
            }
        }
        this
    }

    /// Takes the trace context from the request's headers where its body has none.
    pub fn trace_from<'a>(&mut self, header: impl Fn(&str) -> Option<&'a str>) {
        if self.rest.iter().any(|(key, _)| key == TRACEPARENT) {
            return;
        }
        if let Some(parent) = header(TRACEPARENT) {
            self.rest.push((TRACEPARENT.to_owned(), raw::from(parent)));
            if let Some(state) = header(TRACESTATE) {
                self.rest.push((TRACESTATE.to_owned(), raw::from(state)));
            }
        }
    }
}

/// The members of a `_meta` object without the wire's own keys.
pub fn without_reserved(meta: &RawValue) -> Vec<(String, Raw)> {
    Members::parse_lenient(meta)
        .iter()
        .filter(|(key, _)| !key.starts_with(RESERVED))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// One object from `parts`.
pub fn object(parts: &[(String, Raw)]) -> Raw {
    let mut object = ObjectWriter::default();
    for (key, value) in parts {
        object.member(key, value);
    }
    object.finish()
}

//! What a source told about itself in the greeting: revision, capabilities, name, instructions.

use serde_json::value::RawValue;
use toolcrib_core::raw::{Members, Raw};

use crate::{
    meta,
    version::{Era, Version},
};

#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub version: Version,
    pub can: Capabilities,
    /// `serverInfo` as it came.
    pub server: Option<Raw>,
    pub instructions: Option<String>,
}

/// The declared capabilities the crib acts on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Capabilities {
    pub tools: Option<Listed>,
    pub prompts: Option<Listed>,
    pub resources: Option<Listed>,
    pub logging: bool,
}

/// A declared list, and whether its changes are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    Silently,
    WithNews,
}

impl Peer {
    pub fn era(&self) -> Era {
        self.version.era()
    }

    /// From a result of `initialize` or `server/discover`.
    pub fn read(version: Version, result: &RawValue) -> Self {
        let members = Members::parse_lenient(result);
        let stamped =
            members.find("_meta").map(Members::parse_lenient).and_then(|meta| meta.find(meta::SERVER_INFO));
        Self {
            version,
            can: members.find("capabilities").map(Capabilities::read).unwrap_or_default(),
            server: members.find("serverInfo").or(stamped).map(RawValue::to_owned),
            instructions: members.text("instructions").filter(|text| !text.trim().is_empty()),
        }
    }

    /// A modern source that would not describe itself: everything is asked for.
    pub fn undescribed() -> Self {
        let listed = Some(Listed::Silently);
        Self {
            version: Version::LATEST,
            can: Capabilities { tools: listed, prompts: listed, resources: listed, logging: false },
            server: None,
            instructions: None,
        }
    }
}

impl Capabilities {
    fn read(raw: &RawValue) -> Self {
        let members = Members::parse_lenient(raw);
        let listed = |key: &str| {
            let declared = members.find(key).filter(|value| value.get().starts_with('{'))?;
            let news = Members::parse_lenient(declared).find("listChanged");
            Some(if news.is_some_and(|news| news.get() == "true") {
                Listed::WithNews
            } else {
                Listed::Silently
            })
        };
        Self {
            tools: listed("tools"),
            prompts: listed("prompts"),
            resources: listed("resources"),
            logging: listed("logging").is_some(),
        }
    }
}

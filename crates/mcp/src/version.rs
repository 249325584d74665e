//! The revisions of MCP and the two eras they fall into.

/// A revision the crib speaks. Ordered by date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

/// Two wires: sessions opened by `initialize`, or self-contained requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// Up to 2025-11-25.
    Legacy,
    /// 2026-07-28.
    Modern,
}

impl Version {
    pub const LATEST_LEGACY: Version = Version::V2025_11_25;
    pub const LATEST: Version = Version::V2026_07_28;
    const ALL: [Version; 5] = [
        Version::V2024_11_05,
        Version::V2025_03_26,
        Version::V2025_06_18,
        Version::V2025_11_25,
        Version::V2026_07_28,
    ];

    pub fn text(self) -> &'static str {
        match self {
            Version::V2024_11_05 => "2024-11-05",
            Version::V2025_03_26 => "2025-03-26",
            Version::V2025_06_18 => "2025-06-18",
            Version::V2025_11_25 => "2025-11-25",
            Version::V2026_07_28 => "2026-07-28",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.text() == text)
    }

    pub fn era(self) -> Era {
        if self >= Version::V2026_07_28 { Era::Modern } else { Era::Legacy }
    }

    /// What `initialize` is answered with: the asked revision where it has one, else the latest that does.
    pub fn negotiate(asked: &str) -> Self {
        Self::parse(asked).filter(|version| version.era() == Era::Legacy).unwrap_or(Self::LATEST_LEGACY)
    }
}

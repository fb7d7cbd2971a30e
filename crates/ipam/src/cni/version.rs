//! The versions of the CNI specification.

use std::fmt;

use serde_json::Value;

/// One that is spoken here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CniVersion {
    /// 0.3.1
    V0_3_1,
    /// 0.4.0: CHECK.
    V0_4_0,
    /// 1.0.0: addresses without their version.
    V1_0_0,
    /// 1.1.0: STATUS and GC.
    V1_1_0,
}

impl CniVersion {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::V0_3_1, Self::V0_4_0, Self::V1_0_0, Self::V1_1_0];
    /// The last.
    pub const LATEST: Self = Self::V1_1_0;

    /// By its number.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == text)
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::V0_3_1 => "0.3.1",
            Self::V0_4_0 => "0.4.0",
            Self::V1_0_0 => "1.0.0",
            Self::V1_1_0 => "1.1.0",
        }
    }
}

impl fmt::Display for CniVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The version that a configuration names, known or not: the answer is in it.
pub(super) fn of(stdin: &[u8]) -> Option<String> {
    let configuration: Value = serde_json::from_slice(stdin).ok()?;
    Some(configuration.get("cniVersion")?.as_str()?.to_owned())
}

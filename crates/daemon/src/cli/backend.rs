//! Which backend speaks BGP, for commands that check files without a daemon.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use fairway_resources::BackendKind;

#[derive(Debug, Clone, Copy, Args)]
pub(super) struct BackendArguments {
    /// Which backend speaks BGP: what it does not support is a fault
    #[arg(long, value_enum, default_value = "native", env = "FAIRWAY_BGP")]
    bgp: Bgp,

    /// The version of FRR, with `--bgp frr` [default: any; what only newer versions support is a warning]
    #[arg(long, value_name = "X.Y", env = "FAIRWAY_FRR_VERSION")]
    frr_version: Option<FrrVersion>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Bgp {
    /// Fairway's own sessions
    Native,
    /// FRR
    Frr,
}

/// The first two numbers of a version; the patch number does not change what FRR supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrrVersion(u8, u8);

impl FrrVersion {
    /// The two numbers.
    pub(super) fn numbers(self) -> (u8, u8) {
        (self.0, self.1)
    }
}

impl FromStr for FrrVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = || format!("{text:?} is not a version of FRR; expected X.Y, for example 10.4");
        let mut numbers = text.splitn(3, '.');
        let mut next = || numbers.next().and_then(|it| it.parse().ok()).ok_or_else(error);
        Ok(Self(next()?, next()?))
    }
}

impl BackendArguments {
    pub(super) fn kind(self) -> BackendKind {
        match self.bgp {
            Bgp::Native => BackendKind::Native,
            Bgp::Frr => {
                let version = self.frr_version.map(FrrVersion::numbers);
                BackendKind::Frr { version }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_frr_read_with_and_without_a_patch_level() {
        for text in ["10.4", "10.4.1", "10.4.1-rc1"] {
            assert_eq!(text.parse(), Ok(FrrVersion(10, 4)), "{text}");
        }
        for text in ["", "10", "ten.four", "10.", "v10.4"] {
            assert!(text.parse::<FrrVersion>().is_err(), "{text}");
        }
    }
}

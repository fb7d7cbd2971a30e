//! Why a call fails, with the codes of the CNI specification.

use crate::error::IpamError;
use crate::store::StoreError;

/// A code. Those below 100 are the specification's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// 1: a version that is not spoken here, or that lacks the command.
    IncompatibleVersion,
    /// 3: a container that has no address here.
    UnknownContainer,
    /// 4: the environment.
    Environment,
    /// 6: what cannot be decoded.
    Decoding,
    /// 7: the configuration.
    Configuration,
    /// 11: to be tried again.
    TryAgain,
    /// 11: the same, once the store answers.
    Unavailable,
    /// 50: no address can be given now.
    NotAvailable,
    /// 100: an address is not the container's.
    Mismatch,
}

impl Code {
    /// As it is printed.
    pub fn number(self) -> u8 {
        match self {
            Self::IncompatibleVersion => 1,
            Self::UnknownContainer => 3,
            Self::Environment => 4,
            Self::Decoding => 6,
            Self::Configuration => 7,
            Self::TryAgain | Self::Unavailable => 11,
            Self::NotAvailable => 50,
            Self::Mismatch => 100,
        }
    }
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}: {details}")]
pub struct CniError {
    /// Which kind.
    pub code: Code,
    /// In a few words.
    pub message: String,
    /// What was found, and what is allowed.
    pub details: String,
}

impl CniError {
    pub(super) fn new(code: Code, message: &str, details: impl ToString) -> Self {
        Self { code, message: message.to_owned(), details: details.to_string() }
    }

    /// A call that is to be repeated.
    pub fn try_again(details: impl ToString) -> Self {
        Self::new(Code::TryAgain, "no answer can be given now", details)
    }

    /// STATUS: no Pod is to be sent here.
    pub fn not_available(details: impl ToString) -> Self {
        Self::new(Code::NotAvailable, "no address can be given", details)
    }

    pub(super) fn environment(details: impl ToString) -> Self {
        Self::new(Code::Environment, "the environment is not as it should be", details)
    }

    /// What the configuration says does not do.
    pub fn configuration(details: impl ToString) -> Self {
        Self::new(Code::Configuration, "the network configuration is not valid", details)
    }

    /// Addresses are not given. What an administrator has to change is told from what passes.
    pub(super) fn refused(error: &IpamError) -> Self {
        let code = match error {
            IpamError::Choice(_)
            | IpamError::NotInPool(_)
            | IpamError::UseNotAllowed { .. }
            | IpamError::StrictRequired
            | IpamError::BlockSize(_)
            | IpamError::Overlap { .. }
            | IpamError::Config(_) => Code::Configuration,
            IpamError::AffinityMismatch { .. } => Code::Mismatch,
            IpamError::Store(StoreError::Unavailable(_)) => Code::Unavailable,
            _ => Code::TryAgain,
        };
        Self::new(code, "no address is assigned", error)
    }
}

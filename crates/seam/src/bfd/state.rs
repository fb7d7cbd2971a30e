//! The state of a BFD session and the reason for it, as RFC 5880 §4.1 numbers them.

use std::fmt;

/// Where a session is (RFC 5880 §4.1). The numbers are those of the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum State {
    /// Switched off by an operator.
    AdminDown = 0,
    /// Nothing is heard, or the other end hears nothing.
    #[default]
    Down = 1,
    /// The other end is heard, and may not yet hear us.
    Init = 2,
    /// Both hear each other.
    Up = 3,
}

impl State {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::AdminDown, Self::Down, Self::Init, Self::Up];

    /// The two bits of the packet; the others are not part of it.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::AdminDown,
            1 => Self::Down,
            2 => Self::Init,
            _ => Self::Up,
        }
    }
}

impl fmt::Display for State {
    /// FRR's words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AdminDown => "shutdown",
            Self::Down => "down",
            Self::Init => "init",
            Self::Up => "up",
        })
    }
}

/// Why a session last changed its state (RFC 5880 §4.1), 0 to 31. Numbers without a meaning are
/// kept as they came.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Diagnostic(u8);

impl Diagnostic {
    /// Nothing happened yet.
    pub const NONE: Self = Self(0);
    /// No control packet came in time.
    pub const CONTROL_DETECTION_TIME_EXPIRED: Self = Self(1);
    /// Echo packets did not come back.
    pub const ECHO_FUNCTION_FAILED: Self = Self(2);
    /// The other end said that it is down.
    pub const NEIGHBOR_SIGNALED_SESSION_DOWN: Self = Self(3);
    /// The forwarding plane forgot everything.
    pub const FORWARDING_PLANE_RESET: Self = Self(4);
    /// Something else said that the way is broken.
    pub const PATH_DOWN: Self = Self(5);
    /// A way that follows this one is broken.
    pub const CONCATENATED_PATH_DOWN: Self = Self(6);
    /// An operator wished it.
    pub const ADMINISTRATIVELY_DOWN: Self = Self(7);
    /// A way that leads to this one is broken.
    pub const REVERSE_CONCATENATED_PATH_DOWN: Self = Self(8);

    /// The number in the packet; the upper three bits are not part of it.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0x1F)
    }

    /// Its number, 0 to 31.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// In FRR's words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NONE => "ok",
            Self::CONTROL_DETECTION_TIME_EXPIRED => "control detection time expired",
            Self::ECHO_FUNCTION_FAILED => "echo function failed",
            Self::NEIGHBOR_SIGNALED_SESSION_DOWN => "neighbor signaled session down",
            Self::FORWARDING_PLANE_RESET => "forwarding plane reset",
            Self::PATH_DOWN => "path down",
            Self::CONCATENATED_PATH_DOWN => "concatenated path down",
            Self::ADMINISTRATIVELY_DOWN => "administratively down",
            Self::REVERSE_CONCATENATED_PATH_DOWN => "reverse concatenated path down",
            Self(_) => "unknown",
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Diagnostic({} {self})", self.0)
    }
}

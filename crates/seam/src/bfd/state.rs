//! The state of a BFD session and the reason for it, as RFC 5880 §4.1 numbers them.

use std::fmt;

/// The state of a session (RFC 5880 §4.1). The numbers are those of the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum State {
    /// Administratively down.
    AdminDown = 0,
    /// No packets are received, or the remote system receives none.
    #[default]
    Down = 1,
    /// Packets are received, but the remote system may not receive ours yet.
    Init = 2,
    /// Both systems receive packets.
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

/// The reason of the last state change (RFC 5880 §4.1), 0 to 31. Undefined numbers are kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Diagnostic(u8);

impl Diagnostic {
    /// No state change yet.
    pub const NONE: Self = Self(0);
    /// No control packet was received in time.
    pub const CONTROL_DETECTION_TIME_EXPIRED: Self = Self(1);
    /// Echo packets did not come back.
    pub const ECHO_FUNCTION_FAILED: Self = Self(2);
    /// The remote system reported that it is down.
    pub const NEIGHBOR_SIGNALED_SESSION_DOWN: Self = Self(3);
    /// The forwarding plane was reset.
    pub const FORWARDING_PLANE_RESET: Self = Self(4);
    /// The path is down for an external reason.
    pub const PATH_DOWN: Self = Self(5);
    /// A path that follows this one is down.
    pub const CONCATENATED_PATH_DOWN: Self = Self(6);
    /// Shut down by an operator.
    pub const ADMINISTRATIVELY_DOWN: Self = Self(7);
    /// A path that leads to this one is down.
    pub const REVERSE_CONCATENATED_PATH_DOWN: Self = Self(8);

    /// The number in the packet; the upper three bits are not part of it.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0x1F)
    }

    /// Its number, 0 to 31.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// FRR's words.
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

//! The error codes of NOTIFICATIONs (RFC 4271 §4.5) and their names.

/// Cease subcodes (RFC 4486 §3, RFC 8538, RFC 9384).
pub mod cease {
    /// None of the other subcodes.
    pub const UNSPECIFIC: u8 = 0;
    /// Maximum Number of Prefixes Reached.
    pub const MAXIMUM_PREFIXES: u8 = 1;
    /// Administrative Shutdown.
    pub const ADMINISTRATIVE_SHUTDOWN: u8 = 2;
    /// Peer De-configured.
    pub const PEER_DECONFIGURED: u8 = 3;
    /// Administrative Reset.
    pub const ADMINISTRATIVE_RESET: u8 = 4;
    /// Connection Rejected.
    pub const CONNECTION_REJECTED: u8 = 5;
    /// Other Configuration Change.
    pub const CONFIGURATION_CHANGE: u8 = 6;
    /// Connection Collision Resolution.
    pub const COLLISION: u8 = 7;
    /// Out of Resources.
    pub const OUT_OF_RESOURCES: u8 = 8;
    /// Hard Reset: its data is the NOTIFICATION that ends the session, without graceful restart.
    pub const HARD_RESET: u8 = 9;
    /// BFD Down.
    pub const BFD_DOWN: u8 = 10;
}

/// The name of an error code, and of the subcode if it has one, in FRR's words.
pub fn reason(error: u8, subcode: u8) -> String {
    let (code, subcodes): (&str, &[&str]) = match error {
        1 => (
            "Message Header Error",
            &["Connection Not Synchronized", "Bad Message Length", "Bad Message Type"],
        ),
        2 => (
            "OPEN Message Error",
            &[
                "Unsupported Version Number",
                "Bad Peer AS",
                "Bad BGP Identifier",
                "Unsupported Optional Parameter",
                "Authentication Failure",
                "Unacceptable Hold Time",
                "Unsupported Capability",
                "",
                "",
                "",
                "Role Mismatch",
            ],
        ),
        3 => (
            "UPDATE Message Error",
            &[
                "Malformed Attribute List",
                "Unrecognized Well-known Attribute",
                "Missing Well-known Attribute",
                "Attribute Flags Error",
                "Attribute Length Error",
                "Invalid ORIGIN Attribute",
                "AS Routing Loop",
                "Invalid NEXT_HOP Attribute",
                "Optional Attribute Error",
                "Invalid Network Field",
                "Malformed AS_PATH",
            ],
        ),
        4 => ("Hold Timer Expired", &[]),
        5 => (
            "Neighbor Events Error",
            &[
                "Receive Unexpected Message in OpenSent State",
                "Receive Unexpected Message in OpenConfirm State",
                "Receive Unexpected Message in Established State",
            ],
        ),
        6 => (
            "Cease",
            &[
                "Maximum Number of Prefixes Reached",
                "Administrative Shutdown",
                "Peer Unconfigured",
                "Administrative Reset",
                "Connection Rejected",
                "Other Configuration Change",
                "Connection Collision Resolution",
                "Out of Resources",
                "Hard Reset",
                "BFD Down",
            ],
        ),
        7 => ("ROUTE-REFRESH Message Error", &["Invalid Message Length"]),
        8 => ("Send Hold Timer Expired", &[]),
        _ => ("Unknown Error", &[]),
    };
    let position = usize::from(subcode).checked_sub(1);
    match position.and_then(|position| subcodes.get(position)) {
        Some(name) if !name.is_empty() => format!("{code}/{name}"),
        _ => code.to_owned(),
    }
}

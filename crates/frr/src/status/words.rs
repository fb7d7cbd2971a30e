//! FRR's words for families, VRFs, states and times.

use std::time::Duration;

use fairway_ground::AddressFamily;
use fairway_seam::SessionState;

/// FRR's name for the main table.
pub(super) const VRF_DEFAULT: &str = "default";

/// The key of a family.
pub(super) fn family_word(family: AddressFamily) -> &'static str {
    match family {
        AddressFamily::Ipv4Unicast => "ipv4Unicast",
        AddressFamily::Ipv6Unicast => "ipv6Unicast",
    }
}

/// A state. FRR's states beyond those of the RFC are transitions to Idle.
pub(super) fn state(word: &str) -> SessionState {
    match word {
        "Connect" => SessionState::Connect,
        "Active" => SessionState::Active,
        "OpenSent" => SessionState::OpenSent,
        "OpenConfirm" => SessionState::OpenConfirm,
        "Established" => SessionState::Established,
        _ => SessionState::Idle,
    }
}

/// Days, hours, minutes and seconds, as in `0:00:00:21`.
pub(super) fn days_and_clock(text: &str) -> Option<Duration> {
    let mut parts = text.split(':').map(str::parse::<u64>);
    let (Some(Ok(days)), Some(Ok(hours)), Some(Ok(minutes)), Some(Ok(seconds)), None) =
        (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let hours = days.checked_mul(24)?.checked_add(hours)?;
    let minutes = hours.checked_mul(60)?.checked_add(minutes)?;
    Some(Duration::from_secs(minutes.checked_mul(60)?.checked_add(seconds)?))
}

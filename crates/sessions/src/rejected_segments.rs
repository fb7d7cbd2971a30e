//! How many TCP segments has the kernel dropped because a signature or a TTL was wrong? Such a segment reaches no socket:
//! for a neighbour with another password the counters of the network namespace are the only trace.
//!
//! Reads `/proc/thread-self/net/netstat` (`TcpExt`). The counters are those of the machine; what counts is how much they
//! have grown since the backend started. Where they cannot be read there is no evidence, and no error.

use fairway_seam::RejectedSegments;

/// The counters of the network namespace that this thread is in.
const FILE: &str = "/proc/thread-self/net/netstat";

/// The counters at the start of the backend.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Baseline(RejectedSegments);

impl Baseline {
    pub(super) fn now() -> Self {
        Self(read())
    }

    /// How much they have grown.
    pub(super) fn since(self) -> RejectedSegments {
        read().since(self.0)
    }
}

fn read() -> RejectedSegments {
    std::fs::read_to_string(FILE).map(|text| parse(&text)).unwrap_or_default()
}

/// A line with names, then one with values, for each group.
fn parse(text: &str) -> RejectedSegments {
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else {
        return RejectedSegments::default();
    };
    let pairs = || names.split_ascii_whitespace().zip(values.split_ascii_whitespace());
    let value = |wanted: &str| {
        let found = pairs().find(|(name, _)| *name == wanted);
        found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
    };
    RejectedSegments {
        unsigned: value("TCPMD5NotFound"),
        unexpectedly_signed: value("TCPMD5Unexpected"),
        badly_signed: value("TCPMD5Failure"),
        ttl_too_low: value("TCPMinTTLDrop"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_name() {
        let text = "TcpExt: SyncookiesSent TCPMD5NotFound TCPMD5Unexpected TCPMD5Failure TCPMinTTLDrop\n\
                    TcpExt: 9 1 2 3 4\nIpExt: TCPMD5Failure\nIpExt: 77\n";
        let expected = RejectedSegments {
            unsigned: 1,
            unexpectedly_signed: 2,
            badly_signed: 3,
            ttl_too_low: 4,
        };
        assert_eq!(parse(text), expected);
        assert_eq!(parse("TcpExt: a b"), RejectedSegments::default());
        assert_eq!(parse(""), RejectedSegments::default());
        let later = RejectedSegments { unsigned: 5, ..expected };
        assert_eq!(later.since(expected), RejectedSegments { unsigned: 4, ..Default::default() });
    }

    #[test]
    fn this_machine_has_them() {
        let text = std::fs::read_to_string(FILE).unwrap();
        assert!(text.contains(" TCPMD5Failure "), "{text}");
    }
}

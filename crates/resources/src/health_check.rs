//! `fairway.dev/health-check`: how a machine finds out whether it serves a Service itself.
//!
//! Answers what the annotation says: a URL, then options. Knows no socket. Called by the parser of Services.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use fairway_model::{HealthCheck, Probe};
use http::Uri;

/// `Ours:` MetalLB knows endpoints alone, which a machine without Kubernetes does not have.
pub(super) const HEALTH_CHECK: &str = "fairway.dev/health-check";

const FORM: &str = "tcp://ADDRESS:PORT, http://ADDRESS[:PORT]/PATH or https://ADDRESS[:PORT]/PATH, then any of \
                    interval=1s timeout=1s failures=3 successes=2";
const LENGTH_BYTES_MAX: usize = 1_024;
const INTERVAL_MIN: Duration = Duration::from_millis(100);
const INTERVAL_MAX: Duration = Duration::from_secs(3_600);
/// Checks that hang hold up others.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// Parses the value of the annotation.
///
/// # Errors
/// What is wrong with it, and what is allowed.
pub(super) fn parse(text: &str) -> Result<HealthCheck, String> {
    if text.len() > LENGTH_BYTES_MAX {
        return Err(format!("has {} bytes; expected at most {LENGTH_BYTES_MAX}", text.len()));
    }
    let mut words = text.split_ascii_whitespace();
    let url = words.next().ok_or_else(|| format!("is empty; expected {FORM}"))?;
    let mut check = HealthCheck {
        probe: probe(url)?,
        interval: HealthCheck::INTERVAL,
        timeout: HealthCheck::TIMEOUT,
        failures: HealthCheck::FAILURES,
        successes: HealthCheck::SUCCESSES,
    };
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(|| {
            format!("has {word:?}, which is not an option; expected NAME=VALUE, as in {FORM}")
        })?;
        let wrong = |expected: &str| format!("{word:?} is not allowed; expected {expected}");
        match name {
            "interval" => check.interval = time(value, INTERVAL_MAX).map_err(|it| wrong(&it))?,
            "timeout" => check.timeout = time(value, TIMEOUT_MAX).map_err(|it| wrong(&it))?,
            "failures" => check.failures = count(value).map_err(|it| wrong(&it))?,
            "successes" => check.successes = count(value).map_err(|it| wrong(&it))?,
            _ => return Err(wrong("interval, timeout, failures or successes")),
        }
    }
    Ok(check)
}

fn probe(url: &str) -> Result<Probe, String> {
    let wrong = |what: &str| format!("{url:?} {what}; expected {FORM}");
    let uri: Uri = url.parse().map_err(|error| wrong(&format!("is not a URL ({error})")))?;
    let host = uri.host().ok_or_else(|| wrong("has no address"))?;
    if uri.authority().is_some_and(|it| it.as_str().contains('@')) {
        return Err(wrong("has a user name"));
    }
    // A check that waits for a name server says nothing about the Service.
    let address: IpAddr = match host {
        "localhost" => Ipv4Addr::LOCALHOST.into(),
        _ => host
            .trim_matches(['[', ']'])
            .parse()
            .map_err(|_| wrong("has a host name; an IP address or localhost is needed"))?,
    };
    let port = uri.port_u16().filter(|port| *port != 0);
    if uri.port().is_some() && port.is_none() {
        return Err(wrong("has no port from 1 to 65535"));
    }
    let path = || uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
    let http = |is_tls, port| Probe::Http { address: (address, port).into(), is_tls, path: path() };
    match uri.scheme_str() {
        Some("http") => Ok(http(false, port.unwrap_or(80))),
        Some("https") => Ok(http(true, port.unwrap_or(443))),
        Some("tcp") if uri.path().len() > 1 => Err(wrong("has a path")),
        Some("tcp") => {
            let port = port.ok_or_else(|| wrong("has no port"))?;
            Ok(Probe::Tcp(SocketAddr::new(address, port)))
        }
        _ => Err(wrong("has another scheme")),
    }
}

fn time(text: &str, most: Duration) -> Result<Duration, String> {
    let most_text = if most == TIMEOUT_MAX { "1m" } else { "1h" };
    let expected = || format!("a time from 100ms to {most_text}, as 500ms, 2s or 1m");
    let digits = text.len() - text.trim_start_matches(|it: char| it.is_ascii_digit()).len();
    let (number, unit) = text.split_at_checked(digits).ok_or_else(expected)?;
    let milliseconds: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(expected()),
    };
    let number: u64 = number.parse().map_err(|_| expected())?;
    let time = Duration::from_millis(number.saturating_mul(milliseconds));
    Some(time).filter(|it| (INTERVAL_MIN..=most).contains(it)).ok_or_else(expected)
}

fn count(text: &str) -> Result<u8, String> {
    let count: Option<u8> = text.parse().ok().filter(|it| (1..=100).contains(it));
    count.ok_or_else(|| "a number from 1 to 100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_enough_and_the_rest_has_defaults() {
        let probe = |text: &str| parse(text).map(|it| it.probe);
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(probe("tcp://127.0.0.1:6443"), Ok(Probe::Tcp(at("127.0.0.1:6443"))));
        assert_eq!(probe("tcp://[::1]:53"), Ok(Probe::Tcp(at("[::1]:53"))));
        let http = |address: &str, is_tls, path: &str| {
            Ok(Probe::Http { address: at(address), is_tls, path: path.to_owned() })
        };
        let livez = http("127.0.0.1:6443", true, "/livez?verbose=1");
        assert_eq!(probe("https://localhost:6443/livez?verbose=1"), livez);
        assert_eq!(probe("http://[2001:db8::1]"), http("[2001:db8::1]:80", false, "/"));
        assert_eq!(probe("https://192.0.2.7/"), http("192.0.2.7:443", true, "/"));
        let said =
            parse("tcp://127.0.0.1:1  interval=500ms timeout=2s failures=1 successes=5").unwrap();
        assert_eq!((said.interval.as_millis(), said.timeout.as_secs()), (500, 2));
        assert_eq!((said.failures, said.successes), (1, 5));
    }

    #[test]
    fn anything_else_says_what_is_allowed() {
        for (text, part) in [
            ("", "is empty"),
            ("tcp://127.0.0.1", "has no port"),
            ("tcp://127.0.0.1:0", "from 1 to 65535"),
            ("tcp://127.0.0.1:80/x", "has a path"),
            ("udp://127.0.0.1:80", "has another scheme"),
            ("127.0.0.1:80", "has another scheme"),
            ("http://[::1", "not a URL"),
            ("http://web.example/", "has a host name"),
            ("http://root:secret@127.0.0.1/", "has a user name"),
            ("http://127.0.0.1/ fast", "not an option"),
            ("http://127.0.0.1/ rise=2", "expected interval, timeout"),
            ("http://127.0.0.1/ interval=10ms", "from 100ms to 1h"),
            ("http://127.0.0.1/ interval=99999999999999999999h", "from 100ms to 1h"),
            ("http://127.0.0.1/ timeout=é", "from 100ms to 1m"),
            ("http://127.0.0.1/ timeout=61s", "from 100ms to 1m"),
            ("http://127.0.0.1/ failures=0", "from 1 to 100"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(parse(&"x".repeat(2_000)).is_err());
    }
}

//! How does a router monitor its neighbour by BFD, and what does it report about it? In one form for FRR
//! and BIRD, which alone have it. Used by the cases about BFD.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// How a router is to monitor its neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BfdSpec {
    pub transmit_milliseconds: u32,
    pub receive_milliseconds: u32,
    pub multiplier: u8,
    /// Sends echo packets, and sends back those of its neighbour. Only FRR has it.
    pub echo: bool,
    /// Sends nothing before its neighbour has.
    pub passive: bool,
    /// Signs packets. Only BIRD has it.
    pub key: Option<BfdKey>,
    /// A neighbour without a control plane may still forward: `check-control-plane-failure` of FRR,
    /// `bfd graceful` of BIRD.
    pub graceful: bool,
    /// Administratively down.
    pub shut_down: bool,
}

/// What a router signs with, RFC 5880 §6.7.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BfdKey {
    pub meticulous: bool,
    pub id: u8,
    pub key: &'static str,
}

/// A session as a router sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BfdSession {
    /// `up`, `init`, `down`, or the router's word for administratively down.
    pub state: String,
    /// Between two packets that it sends.
    pub interval: Duration,
    /// The silence after which it declares the neighbour down.
    pub detection: Duration,
    /// How often it went from up to down since the router was started.
    pub downs: u64,
}

impl BfdSpec {
    /// Both directions with the same interval.
    pub fn every(milliseconds: u32, multiplier: u8) -> Self {
        Self {
            transmit_milliseconds: milliseconds,
            receive_milliseconds: milliseconds,
            multiplier,
            echo: false,
            passive: false,
            key: None,
            graceful: false,
            shut_down: false,
        }
    }

    /// The lines of a profile of FRR. Each line is there or its opposite, so that they change one, too.
    pub(super) fn frr_profile(&self, name: &str) -> String {
        let no = |is_set: bool| if is_set { "" } else { "no " };
        format!(
            "bfd\n profile {name}\n  \
             detect-multiplier {}\n  \
             transmit-interval {}\n  \
             receive-interval {}\n  \
             {}passive-mode\n  \
             {}echo-mode\n  \
             {}shutdown\n \
             exit\nexit\n",
            self.multiplier,
            self.transmit_milliseconds,
            self.receive_milliseconds,
            no(self.passive),
            no(self.echo),
            no(self.shut_down),
        )
    }

    /// The protocol of BIRD, with this name.
    pub(super) fn bird_protocol(&self, name: &str) -> String {
        let mut options = format!(
            "min tx interval {} ms; min rx interval {} ms; multiplier {};",
            self.transmit_milliseconds, self.receive_milliseconds, self.multiplier
        );
        if self.passive {
            options += " passive on;";
        }
        if let Some(key) = self.key {
            let meticulous = if key.meticulous { "meticulous " } else { "" };
            let BfdKey { id, key, .. } = key;
            options += &format!(
                " authentication {meticulous}keyed sha1; password \"{key}\" {{ id {id}; }};"
            );
        }
        let disabled = if self.shut_down { "  disabled;\n" } else { "" };
        format!(
            "protocol bfd {name} {{\n{disabled}  debug {{ states, events }};\n  \
             interface \"*\" {{ {options} }};\n  \
             multihop {{ {options} }};\n}}\n"
        )
    }
}

/// The one session of `show bfd peers json`, and how often it went down by `show bfd peers counters
/// json`. FRR prints neither interval as it was negotiated, but what it follows from.
pub(super) fn frr_session(peers: &Value, counters: &Value) -> Result<BfdSession> {
    let session = the_only(peers)?;
    let number = |key: &str| {
        let number = session.get(key).and_then(Value::as_u64);
        number.with_context(|| format!("expected the number {key} in {session}"))
    };
    let milliseconds =
        |one: &str, other: &str| Ok::<_, anyhow::Error>(number(one)?.max(number(other)?));
    let interval = milliseconds("transmit-interval", "remote-receive-interval")?;
    let silence = milliseconds("receive-interval", "remote-transmit-interval")?;
    let state =
        session.get("status").and_then(Value::as_str).context("a session without status")?;
    let downs = the_only(counters)?.get("session-down").and_then(Value::as_u64);
    Ok(BfdSession {
        state: state.to_owned(),
        interval: Duration::from_millis(interval),
        detection: Duration::from_millis(silence * number("remote-detect-multiplier")?),
        downs: downs.context("counters without session-down")?,
    })
}

/// The only entry of a list in FRR's form, which is also ours.
pub fn the_only(list: &Value) -> Result<&Value> {
    let entries = list.as_array().with_context(|| format!("expected a list, got {list}"))?;
    ensure!(entries.len() == 1, "expected one BFD session, got {list}");
    entries.first().context("an empty list")
}

/// The one session of `show bfd sessions`, and how often its log has one that is no longer up.
pub(super) fn bird_session(lines: &[String], log: &str) -> Result<BfdSession> {
    // Address, interface, state, since, interval, timeout; the last two in seconds.
    let columns = lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let is_session = |columns: &Vec<&str>| {
        columns.first().is_some_and(|first| first.parse::<std::net::IpAddr>().is_ok())
    };
    let sessions: Vec<Vec<&str>> = columns.filter(is_session).collect();
    let [columns] = sessions.as_slice() else {
        anyhow::bail!("expected one BFD session, BIRD says {lines:?}");
    };
    let column = |number: usize| columns.get(number).copied().unwrap_or_default();
    let seconds = |number: usize| {
        let text = column(number);
        let seconds: f64 =
            text.parse().with_context(|| format!("seconds {text:?} in {columns:?}"))?;
        Ok::<_, anyhow::Error>(Duration::from_secs_f64(seconds))
    };
    Ok(BfdSession {
        state: column(2).to_lowercase(),
        interval: seconds(4)?,
        detection: seconds(5)?,
        downs: log.matches(" changed state from Up to ").count() as u64,
    })
}

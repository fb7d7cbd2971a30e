//! `explain node`: whether this node announces, which sessions it has, and what is wrong with the others.

use fairway_node::drain::DrainStatus;
use serde_json::Value;

use super::absence::causes;
use super::outdated;
use super::peer::shortened;
use super::section::sections;
use crate::neighbor::is_established;
use crate::object::Object;
use crate::{ShowError, Snapshot};

/// Everything that is reported of it.
struct Explanation<'a> {
    snapshot: &'a Snapshot<'a>,
    up: usize,
    /// Neighbours without a session, and BGPPeers without a neighbour here, each with the reason.
    down: Vec<String>,
    elsewhere: Vec<String>,
    /// Why it announces a Service to nobody, each with how many there are.
    silent: Vec<String>,
    /// Parts of the configuration that are not in force.
    faults: Vec<String>,
}

/// As text.
pub(super) fn text(snapshot: &Snapshot<'_>, wanted: &str) -> Result<String, ShowError> {
    let explanation = Explanation::new(snapshot, wanted)?;
    let mut text = format!("{}\n", explanation.verdict());
    text.push_str(&sections([
        ("Router ID", vec![snapshot.router_id.to_string()]),
        ("Sessions", vec![explanation.sessions()]),
        ("Down", shortened(explanation.down.clone(), "neighbors")),
        ("No session", shortened(explanation.elsewhere.clone(), "BGPPeers")),
        ("Not announced", shortened(explanation.silent.clone(), "reasons")),
        ("Faults", shortened(explanation.faults.clone(), "faults")),
    ]));
    Ok(text)
}

/// As JSON.
pub(super) fn json(snapshot: &Snapshot<'_>, wanted: &str) -> Result<Object, ShowError> {
    let explanation = Explanation::new(snapshot, wanted)?;
    let list = |lines: &[String]| lines.iter().map(|it| it.as_str().into()).collect::<Vec<Value>>();
    Ok(Object::new()
        .field("name", snapshot.node.name.as_str())
        .field("verdict", explanation.verdict())
        .field("routerId", snapshot.router_id.to_string())
        .field("sessionsUp", explanation.up)
        .field("down", list(&explanation.down))
        .field("peersLeftOut", list(&explanation.elsewhere))
        .field("notAnnounced", list(&explanation.silent))
        .field("faults", list(&explanation.faults)))
}

impl<'a> Explanation<'a> {
    fn new(snapshot: &'a Snapshot<'a>, wanted: &str) -> Result<Self, ShowError> {
        let name = &snapshot.node.name;
        if wanted != name {
            let (wanted, own) = (wanted.to_owned(), name.clone());
            return Err(ShowError::OtherNode { wanted, own });
        }
        let peers = &snapshot.bgp.peers;
        let down = peers.iter().filter(|peer| !is_established(peer)).map(|peer| {
            let causes = causes(peer, snapshot.bgp.rejected_segments);
            let what = causes.first().map(|cause| cause.what.as_str()).unwrap_or_default();
            format!("{} ({}) {what}", peer.config.name, peer.config.key)
        });
        let elsewhere = super::service::peers_elsewhere(snapshot).into_iter();
        let mut silent: std::collections::BTreeMap<String, usize> = Default::default();
        for announcement in snapshot.plan.services.values() {
            if let Some(reason) = &announcement.reason {
                let count = silent.entry(reason.to_string()).or_default();
                *count = count.saturating_add(1);
            }
        }
        let silent = silent.into_iter().map(|(reason, count)| match count {
            1 => format!("1 Service: {reason}"),
            many => format!("{many} Services: {reason}"),
        });
        Ok(Self {
            snapshot,
            up: peers.iter().filter(|peer| is_established(peer)).count(),
            down: down.collect(),
            elsewhere: elsewhere.map(|(peer, why)| format!("{peer}: {why}")).collect(),
            silent: silent.collect(),
            faults: snapshot.bgp.faults.clone(),
        })
    }

    /// The summary as one sentence.
    fn verdict(&self) -> String {
        self.state() + &outdated(self.snapshot)
    }

    fn state(&self) -> String {
        let name = &self.snapshot.node.name;
        if self.snapshot.drain != DrainStatus::InService {
            return format!("Node {name} is out of service: {}", self.snapshot.drain);
        }
        if let Some(fault) = self.faults.first() {
            return format!("Node {name} has settings that are not in force: {fault}");
        }
        match (self.up, self.down.as_slice()) {
            (0, []) => format!("Node {name} has no BGP neighbor"),
            (_, []) => format!("Node {name} has all its sessions"),
            (_, [only]) => format!("Node {name} lacks a session: {only}"),
            (_, [first, ..]) => format!("Node {name} lacks {} sessions: {first}", self.down.len()),
        }
    }

    fn sessions(&self) -> String {
        format!("{} of {} are up", self.up, self.up.saturating_add(self.down.len()))
    }
}

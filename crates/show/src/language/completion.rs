//! Which values does this daemon know: neighbours, VRFs, Services, prefixes? For Tab and `?`, in shells and in vtysh.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fairway_seam::BgpView;
use serde::{Deserialize, Serialize};

use super::ValueName;
use crate::{Snapshot, VRF_DEFAULT};

/// The most values that are offered: nobody reads a longer list, and another letter makes it shorter.
const VALUES_MAX: usize = 1000;

/// What a word stands for that is to be completed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completed {
    /// The value; `None` if it is one of which the daemon knows none.
    pub value: Option<ValueName>,
    /// Which forms of it.
    pub form: Form,
    /// How it begins; vtysh does not say.
    pub start: String,
}

/// The form of a value that has several. vtysh asks for each by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Form {
    /// All of them.
    Any,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// A name.
    Name,
}

impl Completed {
    /// As vtysh asks: the number of the token's type, its text, and the name of the variable or `-`.
    pub(super) fn of_frr(form: &str, text: &str, variable: &str) -> Self {
        // The numbers of `enum cmd_token_type`, the same since FRR 4.
        let form = match form {
            "1" => Form::Name,
            "3" => Form::Ipv4,
            "5" => Form::Ipv6,
            _ => Form::Any,
        };
        let value = match (variable, text) {
            ("neighbor" | "neighbors" | "peer", _) => Some(ValueName::Peer),
            (_, "VIEWVRFNAME" | "VRFNAME") => Some(ValueName::Vrf),
            _ => None,
        };
        Self { value, form, start: String::new() }
    }
}

/// The values that it may be completed to, in order.
pub fn complete(completed: &Completed, snapshot: &Snapshot<'_>) -> Vec<String> {
    let values: BTreeSet<String> = match completed.value {
        Some(ValueName::Peer) => peers(completed.form, snapshot.bgp),
        Some(ValueName::Vrf) => vrfs(snapshot.bgp),
        Some(ValueName::Service) => snapshot.outcomes.keys().map(ToString::to_string).collect(),
        Some(ValueName::Pool) => {
            snapshot.index.pools.values().map(|pool| pool.name.name.clone()).collect()
        }
        Some(ValueName::Node) => BTreeSet::from([snapshot.node.name.clone()]),
        Some(ValueName::Address) => {
            let addresses = snapshot.outcomes.values().flat_map(|it| &it.addresses);
            addresses.map(ToString::to_string).collect()
        }
        Some(ValueName::Prefix) => {
            snapshot.plan.routes.iter().map(|route| route.prefix.to_string()).collect()
        }
        _ => BTreeSet::new(),
    };
    let values = values.into_iter().filter(|value| value.starts_with(&completed.start));
    values.take(VALUES_MAX).collect()
}

fn peers(form: Form, view: &BgpView) -> BTreeSet<String> {
    let mut values = BTreeSet::new();
    for peer in &view.peers {
        let remote = peer.config.key.remote.to_string();
        let is_wanted = matches!(
            (form, peer.config.key.address()),
            (Form::Any, _)
                | (Form::Ipv4, Some(IpAddr::V4(_)))
                | (Form::Ipv6, Some(IpAddr::V6(_)))
                | (Form::Name, None)
        );
        if is_wanted {
            values.insert(remote);
        }
        if matches!(form, Form::Any | Form::Name) {
            values.insert(peer.config.name.clone());
        }
    }
    values
}

fn vrfs(view: &BgpView) -> BTreeSet<String> {
    let named = view.peers.iter().filter_map(|peer| peer.config.key.vrf);
    let named = named.map(|vrf| vrf.as_str().to_owned());
    named.chain([VRF_DEFAULT.to_owned(), "all".to_owned()]).collect()
}

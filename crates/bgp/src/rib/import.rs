//! Which routes of a peer are eligible, before any are compared (RFC 4271 §9.1.2)?

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use super::decision::LOCAL_PREF_LAST;
use super::only_to_customer;
use super::rules::{RejectedBy, apply_rules, are_about_origins, rules_in_reach};
use fairway_ground::{
    AddressFamily, Asn, ClusterId, Community, ImportPolicy, NextHop, PeerKind, Prefix,
    PrefixFilter, Role, RouterId,
};
use fairway_rpki::{OriginTable, origin};
use fairway_seam::{PathAttributes, PeerConfig, Refusal};

/// What rules make of routes with the same attributes, by the rules that are about them: thousands of routes share what
/// comes out.
#[derive(Debug, Default)]
pub struct Rulings(Vec<(u64, Result<Arc<PathAttributes>, Refusal>)>);

/// Routes with the same attributes are in few sets of rules, unless somebody wants them in many.
const RULINGS_MAX: usize = 16;

impl Rulings {
    /// Those that follow have other attributes.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn get_or_make(
        &mut self,
        reach: u64,
        make: impl FnOnce() -> Result<Arc<PathAttributes>, Refusal>,
    ) -> Result<Arc<PathAttributes>, Refusal> {
        if let Some((_, known)) = self.0.iter().find(|(known, _)| *known == reach) {
            return known.clone();
        }
        if self.0.len() >= RULINGS_MAX {
            self.clear();
        }
        let made = make();
        self.0.push((reach, made.clone()));
        made
    }
}

/// The import policy of one session.
#[derive(Debug)]
pub struct Importer {
    policy: ImportPolicy,
    /// Whether a rule is about the state of origins.
    validates_origins: bool,
    kind: PeerKind,
    /// Our ASes: for this neighbour, and otherwise.
    own_asns: [u32; 2],
    remote_asn: u32,
    /// Our role towards the peer.
    role: Option<Role>,
    router_id: RouterId,
    /// Our cluster, towards an internal neighbour.
    cluster_id: Option<ClusterId>,
    /// An external neighbour that must be directly connected.
    adjacent: bool,
    remote: IpAddr,
    own_addresses: Vec<IpAddr>,
    networks: BTreeSet<Prefix>,
}

impl Importer {
    /// The policy for `config`'s neighbour at `remote`, in `remote_asn`, on a session with `own_addresses` at
    /// our end, on a machine with `networks`.
    pub fn new(
        config: &PeerConfig,
        remote_asn: Asn,
        remote: IpAddr,
        own_addresses: Vec<IpAddr>,
        networks: &[Prefix],
    ) -> Self {
        Self {
            policy: config.import.clone(),
            validates_origins: are_about_origins(&config.import.rules),
            kind: config.kind(),
            own_asns: [config.local_asn.get(), config.router_asn.get()],
            role: config.external_role(),
            remote_asn: remote_asn.get(),
            router_id: config.router_id,
            cluster_id: config.internal_cluster_id(),
            adjacent: config.kind() == PeerKind::External && config.is_next_door(),
            remote,
            own_addresses,
            networks: shared(networks),
        }
    }

    /// Changes the addresses of this end and the networks of the machine. Returns whether the result for
    /// routes may change: networks matter only for a directly connected neighbour.
    pub fn set_end(&mut self, own_addresses: Vec<IpAddr>, networks: &[Prefix]) -> bool {
        let networks = shared(networks);
        let differs =
            self.own_addresses != own_addresses || self.adjacent && self.networks != networks;
        (self.own_addresses, self.networks) = (own_addresses, networks);
        differs
    }

    /// Our role towards the peer.
    pub fn role(&self) -> Option<Role> {
        self.role
    }

    /// Changes the operator's settings. Returns whether routes that were refused may be accepted now, or are wanted all
    /// the same, or accepted ones have other attributes.
    pub fn set_policy(&mut self, config: &PeerConfig) -> bool {
        let (policy, cluster_id) = (config.import.clone(), config.internal_cluster_id());
        let accepts_others = self.policy.allowed != policy.allowed
            || self.policy.own_as_max < policy.own_as_max
            || self.policy.rules != policy.rules
            || (policy.keeps_filtered && !self.policy.keeps_filtered)
            || self.cluster_id != cluster_id;
        self.validates_origins = are_about_origins(&policy.rules);
        (self.policy, self.cluster_id) = (policy, cluster_id);
        accepts_others
    }

    /// The policy in force.
    pub fn policy(&self) -> &ImportPolicy {
        &self.policy
    }

    /// Whether routes with these attributes are accepted.
    ///
    /// `Ours:` the next hop need not be reachable: routes are not used for forwarding before they are
    /// installed, and other peers are sent our next hop.
    pub fn judge(&self, attributes: &PathAttributes) -> Result<(), Refusal> {
        let as_path = &attributes.as_path;
        let is_loop = |own: &u32| {
            let count = as_path.asns().filter(|asn| asn == own).count();
            count > usize::from(self.policy.own_as_max)
        };
        if self.own_asns.iter().any(is_loop) {
            return Err(Refusal::AsLoop);
        }
        // A route server does not add its own AS to the paths (RFC 7947 §2.2.2.1).
        let is_server = self.role == Some(Role::RouteServerClient);
        let begins_with_peer = self.kind == PeerKind::External && !is_server;
        if begins_with_peer && as_path.first() != Some(self.remote_asn) {
            return Err(Refusal::FirstAs);
        }
        self.mark(attributes)?;
        if attributes.originator().map(u32::from) == Some(self.router_id.get()) {
            return Err(Refusal::Reflected);
        }
        if self.cluster_id.is_some_and(|own| attributes.clusters().any(|it| it == own.address())) {
            return Err(Refusal::ClusterLoop);
        }
        let next_hop = attributes.next_hop;
        let link_local = match next_hop {
            NextHop::Ipv6 { link_local, .. } => link_local.map(IpAddr::V6),
            NextHop::Ipv4(_) => None,
        };
        let mut named = [Some(meant(next_hop)), link_local].into_iter().flatten();
        if named.any(|address| self.own_addresses.contains(&address)) {
            return Err(Refusal::OwnNextHop);
        }
        // A loopback address is shared only with neighbours on this machine, a link-local one only with those
        // on the link of the session.
        let elsewhere = meant(next_hop).is_loopback() && !self.remote.is_loopback()
            || is_link_local_ipv6(meant(next_hop)) && !self.is_on_link();
        if elsewhere || self.adjacent && !self.is_shared(next_hop) {
            return Err(Refusal::ForeignNextHop);
        }
        Ok(())
    }

    /// The attributes as used here: with ONLY_TO_CUSTOMER as RFC 9234 requires, and as the last choice if
    /// their announcer is about to go down (RFC 8326 §4). Inside the AS the border router has done that.
    pub fn marked(&self, attributes: Arc<PathAttributes>) -> Arc<PathAttributes> {
        let only_to_customer = self.mark(&attributes).unwrap_or(attributes.only_to_customer);
        let leaves = self.kind == PeerKind::External
            && attributes.communities.contains(&Community::GRACEFUL_SHUTDOWN);
        let local_pref = if leaves { Some(LOCAL_PREF_LAST) } else { attributes.local_pref };
        if (only_to_customer, local_pref) == (attributes.only_to_customer, attributes.local_pref) {
            return attributes;
        }
        let attributes = Arc::unwrap_or_clone(attributes);
        Arc::new(PathAttributes { only_to_customer, local_pref, ..attributes })
    }

    fn mark(&self, attributes: &PathAttributes) -> Result<Option<u32>, Refusal> {
        only_to_customer::received(self.role, self.remote_asn, attributes.only_to_customer)
            .map_err(|_| Refusal::Leak)
    }

    /// Whether routes that are rejected now could be accepted after a refresh: whether any prefix is allowed.
    pub fn wants_routes(&self) -> bool {
        self.policy.allowed != PrefixFilter::Nothing
    }

    /// Whether the operator allows `prefix`.
    pub fn allows(&self, prefix: Prefix) -> Result<(), Refusal> {
        if self.policy.allowed.allows(prefix) { Ok(()) } else { Err(Refusal::Policy) }
    }

    /// Whether routes are refused or changed by the state of their origin, so that another state is another result.
    pub fn validates_origins(&self) -> bool {
        self.validates_origins
    }

    /// What the operator's rules make of a route that is allowed. `known` has the results for other prefixes with the same
    /// attributes.
    pub fn ruled(
        &self,
        prefix: Prefix,
        attributes: &Arc<PathAttributes>,
        origins: &OriginTable,
        known: &mut Rulings,
    ) -> Result<Arc<PathAttributes>, Refusal> {
        let rules = &self.policy.rules;
        if rules.is_empty() {
            return Ok(Arc::clone(attributes));
        }
        let [own_asn, _] = self.own_asns;
        let state = || origins.state(prefix, origin(&attributes.as_path, own_asn));
        let reach = rules_in_reach(rules, prefix, self.validates_origins.then(state));
        let asn = attributes.as_path.first();
        let apply = || {
            let ruled = apply_rules(rules, reach, prefix.family(), asn, attributes);
            let refusal = |place: RejectedBy| Refusal::Rule {
                place,
                name: rules.get(usize::from(place)).and_then(|rule| rule.name.clone()),
            };
            ruled.map(|it| it.attributes).map_err(refusal)
        };
        known.get_or_make(reach, apply)
    }

    /// Whether the neighbour is on a network of ours.
    fn is_on_link(&self) -> bool {
        is_link_local_ipv6(self.remote) || self.is_of_a_network(self.remote)
    }

    fn is_shared(&self, next_hop: NextHop) -> bool {
        let address = meant(next_hop);
        address == self.remote || next_hop.is_link_local() || self.is_of_a_network(address)
    }

    /// If no network of the family is known, any address passes.
    fn is_of_a_network(&self, address: IpAddr) -> bool {
        let family = AddressFamily::of(address);
        let mut networks = self.networks.iter().filter(|it| it.family() == family).peekable();
        networks.peek().is_none() || networks.any(|network| network.contains(address))
    }
}

/// The `networks` that determine which neighbours are directly connected. A host prefix means that the
/// address was assigned without its network (by DHCPv6, or by a cloud); link-local networks contain no global
/// address.
fn shared(networks: &[Prefix]) -> BTreeSet<Prefix> {
    let tells = |network: &&Prefix| {
        network.length() < network.family().address_bits() && !is_link_local_ipv6(network.address())
    };
    networks.iter().filter(tells).copied().collect()
}

fn is_link_local_ipv6(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

/// The effective address of the next hop. A router without an IPv6 address on an IPv4 session sends its IPv4
/// address as IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2).
fn meant(next_hop: NextHop) -> IpAddr {
    next_hop.address().to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Example as _;
    use fairway_ground::{
        AsPath, AsPathSegment, PrefixRange, RemoteAs, RouteMatch, RouteRule, RuleAction,
    };
    use fairway_seam::UnknownAttribute;

    fn importer(config: &PeerConfig) -> Importer {
        let own = vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        let networks = ["192.0.2.0/24".parse().unwrap()];
        Importer::new(config, Asn::new(65_002).unwrap(), [192, 0, 2, 2].into(), own, &networks)
    }

    fn heard(as_path: Vec<u32>, next_hop: &str) -> PathAttributes {
        let next_hop = match next_hop.parse().unwrap() {
            IpAddr::V4(address) => NextHop::Ipv4(address),
            IpAddr::V6(global) => NextHop::Ipv6 { global, link_local: None },
        };
        PathAttributes::originated(AsPath::sequence(as_path), next_hop)
    }

    #[test]
    fn who_may_be_some_hops_away_may_name_next_hops_there() {
        let hops = |hops| PeerConfig {
            ttl_security_hops: std::num::NonZeroU8::new(hops),
            ..PeerConfig::example(1)
        };
        let far = heard(vec![65002], "198.51.100.1");
        assert_eq!(importer(&hops(1)).judge(&far), Err(Refusal::ForeignNextHop));
        assert_eq!(importer(&hops(2)).judge(&far), Ok(()));
    }

    //= RFC 4271 §9.1.2 SHOULD: a route with our own AS in its path is not chosen.
    #[test]
    fn a_path_with_our_own_as_is_a_loop() {
        let importer = importer(&PeerConfig::example(1));
        assert_eq!(importer.judge(&heard(vec![65002, 7], "192.0.2.2")), Ok(()));
        let looped = heard(vec![65002, 65001], "192.0.2.2");
        assert_eq!(importer.judge(&looped), Err(Refusal::AsLoop));
        let mut in_a_set = heard(vec![65002], "192.0.2.2");
        in_a_set.as_path.0.push(AsPathSegment::Set(vec![7, 65001]));
        assert_eq!(importer.judge(&in_a_set), Err(Refusal::AsLoop));
    }

    #[test]
    fn a_path_with_what_we_are_called_elsewhere_is_a_loop_too() {
        let router_asn = Asn::new(64_999).unwrap();
        let importer = importer(&PeerConfig { router_asn, ..PeerConfig::example(1) });
        for own in [65_001, 64_999] {
            let looped = heard(vec![65_002, own, 7], "192.0.2.2");
            assert_eq!(importer.judge(&looped), Err(Refusal::AsLoop), "{own}");
        }
        assert_eq!(importer.judge(&heard(vec![65_002, 7], "192.0.2.2")), Ok(()));
    }

    #[test]
    fn the_path_of_a_route_server_begins_with_another_client() {
        let judge = |role| {
            let config = PeerConfig { role: Some(role), ..PeerConfig::example(1) };
            importer(&config).judge(&heard(vec![7, 8], "192.0.2.77"))
        };
        assert_eq!(judge(Role::RouteServerClient), Ok(()));
        assert_eq!(judge(Role::RouteServer), Err(Refusal::FirstAs));
        assert_eq!(judge(Role::Customer), Err(Refusal::FirstAs));
    }

    #[test]
    fn our_own_as_is_in_a_path_as_often_as_the_operator_allows() {
        let mut config = PeerConfig::example(1);
        config.import.own_as_max = 2;
        let importer = importer(&config);
        assert_eq!(importer.judge(&heard(vec![65002, 65001, 65001], "192.0.2.2")), Ok(()));
        let thrice = heard(vec![65002, 65001, 65001, 65001], "192.0.2.2");
        assert_eq!(importer.judge(&thrice), Err(Refusal::AsLoop));
    }

    //= RFC 4456 §8 SHOULD: a route whose CLUSTER_LIST contains our CLUSTER_ID is ignored.
    #[test]
    fn a_route_that_has_passed_our_cluster_is_a_loop() {
        let inside = |cluster_id: Option<&str>| PeerConfig {
            remote_as: RemoteAs::Internal,
            cluster_id: cluster_id.and_then(|it| it.parse().ok()),
            ..PeerConfig::example(1)
        };
        let mut reflected = heard(vec![7], "192.0.2.2");
        let value = vec![192, 0, 2, 7, 192, 0, 2, 8];
        let code = UnknownAttribute::CLUSTER_LIST;
        reflected.unknown.push(UnknownAttribute { flags: 0x80, code, value });
        let judge = |config: &PeerConfig| importer(config).judge(&reflected);
        assert_eq!(judge(&inside(Some("192.0.2.8"))), Err(Refusal::ClusterLoop));
        assert_eq!(judge(&inside(Some("192.0.2.9"))), Ok(()));
        assert_eq!(judge(&inside(None)), Ok(()));
        let router_id = "192.0.2.7".parse().unwrap();
        let by_default = PeerConfig { router_id, ..inside(None) };
        assert_eq!(judge(&by_default), Err(Refusal::ClusterLoop));
    }

    //= RFC 4271 §6.3 MAY: the first AS of the path is that of the external peer.
    #[test]
    fn an_external_path_begins_with_the_as_of_the_peer() {
        let external = importer(&PeerConfig::example(1));
        for path in [vec![], vec![7, 65002]] {
            let heard = heard(path, "192.0.2.2");
            assert_eq!(external.judge(&heard), Err(Refusal::FirstAs));
        }
        let internal = PeerConfig {
            remote_as: RemoteAs::Asn(Asn::new(65_001).unwrap()),
            ..PeerConfig::example(1)
        };
        let internal = importer(&internal);
        assert_eq!(internal.judge(&heard(vec![], "192.0.2.2")), Ok(()));
        assert_eq!(internal.judge(&heard(vec![7], "192.0.2.2")), Ok(()));
    }

    //= RFC 4271 §6.3 MUST NOT: a next hop that is our own address is taken.
    //= RFC 4271 §6.3 MUST: the next hop of an external peer next door is in a subnet that we share.
    #[test]
    fn a_next_hop_that_is_us_or_on_no_shared_network_is_of_no_use() {
        let config = PeerConfig::example(1);
        let judge = |config: &PeerConfig, next_hop: &str| {
            importer(config).judge(&heard(vec![65002], next_hop))
        };
        assert_eq!(judge(&config, "192.0.2.1"), Err(Refusal::OwnNextHop));
        assert_eq!(judge(&config, "2001:db8::1"), Err(Refusal::OwnNextHop));
        assert_eq!(judge(&config, "192.0.2.77"), Ok(()), "a third party on the same network");
        assert_eq!(judge(&config, "198.51.100.1"), Err(Refusal::ForeignNextHop));
        assert_eq!(judge(&config, "2001:db8:5::1"), Ok(()), "no network of that family is known");
        assert_eq!(judge(&config, "::ffff:192.0.2.2"), Ok(()), "the peer, in IPv6 form");
        assert_eq!(judge(&config, "::ffff:192.0.2.1"), Err(Refusal::OwnNextHop));
        assert_eq!(judge(&config, "::ffff:198.51.100.1"), Err(Refusal::ForeignNextHop));
        let far = PeerConfig { multihop: true, ..config };
        assert_eq!(judge(&far, "198.51.100.1"), Ok(()));
        for config in [&PeerConfig::example(1), &far] {
            for loopback in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
                assert_eq!(judge(config, loopback), Err(Refusal::ForeignNextHop), "{loopback}");
            }
        }
    }

    #[test]
    fn networks_of_a_single_host_and_of_the_link_say_nothing_about_others() {
        let mut importer = importer(&PeerConfig::example(1));
        let judge = |importer: &Importer| importer.judge(&heard(vec![65002], "2001:db8:5::9"));
        let networks = |texts: &[&str]| -> Vec<Prefix> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        assert!(importer.set_end(Vec::new(), &networks(&["192.0.2.0/24", "2001:db8::/64"])));
        assert_eq!(judge(&importer), Err(Refusal::ForeignNextHop));
        // An address from DHCPv6 has no network of its own; nor is there one before the first global address
        // is assigned.
        for known in [&["2001:db8:5::7/128", "fe80::/64"][..], &["fe80::/64"], &[]] {
            importer.set_end(Vec::new(), &networks(known));
            assert_eq!(judge(&importer), Ok(()), "{known:?}");
        }
        importer.set_end(Vec::new(), &networks(&["2001:db8::/64"]));
        assert_eq!(importer.judge(&heard(vec![65002], "fe80::9")), Ok(()));
        assert!(!importer.set_end(Vec::new(), &networks(&["2001:db8::/64", "2001:db8::1/128"])));
    }

    //+ RFC 9234 §5: a route with OTC from a customer or a client of our route server is not used.
    //+ RFC 9234 §5: a route without OTC from a provider, a peer or a route server is marked with its AS.
    #[test]
    fn a_leak_is_refused_and_what_comes_from_above_is_marked() {
        let to = |role| importer(&PeerConfig { role: Some(role), ..PeerConfig::example(1) });
        let mut heard = heard(vec![65_002, 7], "192.0.2.2");
        assert_eq!(to(Role::Provider).judge(&heard), Ok(()));
        assert_eq!(*to(Role::Provider).marked(Arc::new(heard.clone())), heard);
        assert_eq!(
            to(Role::Customer).marked(Arc::new(heard.clone())).only_to_customer,
            Some(65_002)
        );
        heard.only_to_customer = Some(7);
        assert_eq!(to(Role::Provider).judge(&heard), Err(Refusal::Leak));
        assert_eq!(to(Role::Customer).judge(&heard), Ok(()));
        assert_eq!(*to(Role::Customer).marked(Arc::new(heard.clone())), heard, "it is unchanged");
    }

    //+ RFC 8326 §4: the LOCAL_PREF of paths that are about to go is below that of all others: 0.
    #[test]
    fn what_an_external_neighbour_is_about_to_withdraw_is_the_last_choice() {
        let external = PeerConfig::example(1);
        let internal = PeerConfig { remote_as: RemoteAs::Internal, ..external.clone() };
        let leaving = vec![Community(7), Community::GRACEFUL_SHUTDOWN];
        for (config, communities, local_pref) in [
            (&external, leaving.clone(), Some(0)),
            (&external, vec![Community(7)], None),
            // Its LOCAL_PREF was set by the border router of the AS.
            (&internal, leaving, None),
        ] {
            let communities = communities.into();
            let heard = PathAttributes { communities, ..heard(vec![65_002], "192.0.2.2") };
            let marked = importer(config).marked(Arc::new(heard.clone()));
            assert_eq!(*marked, PathAttributes { local_pref, ..heard });
        }
    }

    #[test]
    fn inside_the_as_there_are_no_roles() {
        let remote_as = RemoteAs::Internal;
        let role = Some(Role::Provider);
        let internal = importer(&PeerConfig { remote_as, role, ..PeerConfig::example(1) });
        let mut heard = heard(vec![7], "192.0.2.2");
        heard.only_to_customer = Some(7);
        assert_eq!(internal.judge(&heard), Ok(()));
        assert_eq!(*internal.marked(Arc::new(heard.clone())), heard);
    }

    //= RFC 2545 §3 MUST: a link-local next hop is for the link that is shared with who names it.
    #[test]
    fn a_link_local_next_hop_is_for_the_link_of_the_session() {
        let judge = |config: &PeerConfig, remote: &str, next_hop: &str| {
            let own = vec!["fe80::1".parse().unwrap()];
            let networks = ["192.0.2.0/24", "2001:db8::/64"].map(|it| it.parse().unwrap());
            let (asn, remote) = (Asn::new(65_002).unwrap(), remote.parse().unwrap());
            let importer = Importer::new(config, asn, remote, own, &networks);
            importer.judge(&heard(vec![65002], next_hop))
        };
        let (next_door, far) =
            (PeerConfig::example(1), PeerConfig { multihop: true, ..PeerConfig::example(1) });
        for remote in ["fe80::2", "2001:db8::2", "192.0.2.2"] {
            assert_eq!(judge(&next_door, remote, "fe80::9"), Ok(()), "{remote}");
            assert_eq!(judge(&next_door, remote, "fe80::1"), Err(Refusal::OwnNextHop));
        }
        for remote in ["198.51.100.2", "2001:db8:5::2"] {
            assert_eq!(judge(&far, remote, "fe80::9"), Err(Refusal::ForeignNextHop), "{remote}");
        }
    }

    #[test]
    fn our_own_address_in_either_half_is_our_own_next_hop() {
        let own = vec!["fe80::1".parse().unwrap()];
        let remote = "fe80::2".parse().unwrap();
        let config = PeerConfig::example(1);
        let importer = Importer::new(&config, Asn::new(65_002).unwrap(), remote, own, &[]);
        let global = "2001:db8::9".parse().unwrap();
        let by_way_of = |link_local: &str| {
            let next_hop = NextHop::ipv6(global, link_local.parse().ok());
            PathAttributes { next_hop, ..heard(vec![65002], "::") }
        };
        assert_eq!(importer.judge(&by_way_of("fe80::9")), Ok(()));
        assert_eq!(importer.judge(&by_way_of("fe80::1")), Err(Refusal::OwnNextHop));
    }

    //= RFC 4456 §8 SHOULD: a route with our own identifier as ORIGINATOR_ID is ignored.
    #[test]
    fn a_route_of_ours_that_a_reflector_gives_back_is_refused() {
        let internal = PeerConfig {
            remote_as: RemoteAs::Asn(Asn::new(65_001).unwrap()),
            ..PeerConfig::example(1)
        };
        let mut reflected = heard(vec![7], "192.0.2.2");
        let originator = |id: u32| UnknownAttribute {
            flags: 0x80,
            code: UnknownAttribute::ORIGINATOR_ID,
            value: id.to_be_bytes().to_vec(),
        };
        reflected.unknown = vec![originator(internal.router_id.get())].into();
        assert_eq!(importer(&internal).judge(&reflected), Err(Refusal::Reflected));
        reflected.unknown = vec![originator(99)].into();
        assert_eq!(importer(&internal).judge(&reflected), Ok(()));
    }

    //+ RFC 8212 §3: routes of an external peer are used without an import policy.
    #[test]
    fn nothing_is_accepted_that_nobody_asked_for() {
        let silent = PeerConfig { import: ImportPolicy::default(), ..PeerConfig::example(1) };
        let prefix = "10.0.0.0/8".parse().unwrap();
        assert_eq!(importer(&silent).allows(prefix), Err(Refusal::Policy));
        let mut importer = importer(&silent);
        let allowed = PrefixFilter::Everything;
        let import = ImportPolicy { allowed, ..ImportPolicy::default() };
        assert!(importer.set_policy(&PeerConfig { import, ..silent }));
        assert_eq!(importer.allows(prefix), Ok(()));
    }

    #[test]
    fn of_routes_with_the_same_attributes_a_rule_rejects_those_that_it_is_about() {
        let half = PrefixRange::new("10.0.0.0/8".parse().unwrap(), None, Some(32)).unwrap();
        let rule = RouteRule {
            name: Some("inside".into()),
            matches: RouteMatch { prefixes: vec![half], ..RouteMatch::default() },
            action: RuleAction::Reject,
            ..RouteRule::default()
        };
        let rules =
            [RouteRule { action: RuleAction::Continue, ..RouteRule::default() }, rule].into();
        let config = PeerConfig::example(1);
        let import = ImportPolicy { rules, ..config.import.clone() };
        let importer = importer(&PeerConfig { import, ..config });
        let attributes = Arc::new(heard(vec![65_002], "192.0.2.2"));
        let mut known = Rulings::default();
        let rejected = Err(Refusal::Rule { place: 1, name: Some("inside".into()) });
        for (prefix, wanted) in [
            ("11.0.0.0/8", Ok(Arc::clone(&attributes))),
            ("10.1.0.0/16", rejected.clone()),
            ("10.2.0.0/16", rejected),
            ("11.1.0.0/16", Ok(Arc::clone(&attributes))),
        ] {
            let ruled = importer.ruled(
                prefix.parse().unwrap(),
                &attributes,
                &OriginTable::default(),
                &mut known,
            );
            assert_eq!(ruled, wanted, "{prefix}");
        }
    }

    #[test]
    fn other_rules_are_a_reason_to_ask_for_all_routes_again() {
        let config = PeerConfig::example(1);
        let mut importer = importer(&config);
        let import = ImportPolicy { rules: [RouteRule::default()].into(), ..config.import.clone() };
        let ruled = PeerConfig { import, ..config.clone() };
        assert!(importer.set_policy(&ruled) && !importer.set_policy(&ruled));
        assert!(importer.set_policy(&config));
    }
}

//! What do the resource files of a case look like? The YAML that a user of MetalLB writes: peers,
//! pools, advertisements, communities, secrets, services. Used by the cases.

use std::net::IpAddr;

use super::NODE_INTERFACE;
use crate::routers::{Role, RouterSpec};

/// How a BGPPeer names its password.
#[derive(Clone, Debug)]
pub enum Password {
    None,
    /// In the field `password`.
    Plain(String),
    /// In the Secret of this name.
    Secret(String),
}

/// Which routes `toReceive` or `toAdvertise` lets through.
#[derive(Clone, Debug)]
pub enum Allowed {
    All,
    Filtered(Vec<Range>),
}

/// A prefix of a filter, with the lengths that it allows.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub prefix: &'static str,
    pub ge: Option<u8>,
    pub le: Option<u8>,
}

impl Range {
    /// Only the prefix itself.
    pub fn exact(prefix: &'static str) -> Self {
        Self { prefix, ge: None, le: None }
    }

    /// The prefix and what is inside, down to length `le`.
    pub fn up_to(prefix: &'static str, le: u8) -> Self {
        Self { prefix, ge: None, le: Some(le) }
    }

    fn yaml(&self) -> String {
        let mut text = format!("{{prefix: {}", quoted(self.prefix));
        for (field, length) in [("ge", self.ge), ("le", self.le)] {
            text += &length.map(|length| format!(", {field}: {length}")).unwrap_or_default();
        }
        text + "}"
    }
}

impl Allowed {
    fn yaml(&self) -> String {
        match self {
            Self::All => "    allowed: {mode: all}\n".to_owned(),
            Self::Filtered(ranges) => {
                let ranges = ranges.iter().map(|range| format!("      - {}\n", range.yaml()));
                "    allowed:\n      mode: filtered\n      prefixes:\n".to_owned()
                    + &ranges.collect::<String>()
            }
        }
    }
}

/// A BGPPeer as a case wants it; unset fields are left out of the file.
#[derive(Clone, Debug)]
pub struct Peer {
    pub name: &'static str,
    pub my_as: u32,
    pub peer_as: u32,
    pub address: IpAddr,
    pub port: u16,
    pub source_address: Option<IpAddr>,
    pub password: Password,
    /// holdTime and keepaliveTime in seconds.
    pub timers: Option<(u16, u16)>,
    pub multihop: bool,
    pub both_families: bool,
    pub to_receive: Option<Allowed>,
    pub max_prefixes: Option<u32>,
    /// `toReceive.rules`, as YAML that begins at the margin.
    pub receive_rules: Option<&'static str>,
    pub to_advertise: Option<Allowed>,
    /// `toAdvertise.rules`, likewise.
    pub advertise_rules: Option<String>,
    /// `toAdvertise.nextHop.ipv4`.
    pub next_hop: Option<&'static str>,
    /// In place of the address.
    pub place: Option<PeerPlace>,
    /// In place of its AS: `internal` or `external`.
    pub dynamic_as: Option<&'static str>,
    pub local_as: Option<u32>,
    pub passive: bool,
    pub ttl_security_hops: Option<u8>,
    pub extended_next_hop: bool,
    /// How many paths are sent, and whether several are received.
    pub add_path: Option<(u8, bool)>,
    /// `routeReflectorClient`, or `routeServerClient` for a router in another AS.
    pub is_client: bool,
    /// `clusterID`.
    pub cluster_id: Option<&'static str>,
    /// `installRoutes`.
    pub install_routes: bool,
    /// `allowASIn`.
    pub own_as_max: Option<u8>,
    pub role: Option<Role>,
    pub role_strict: bool,
    /// Administratively down, with this text.
    pub shutdown: Option<&'static str>,
    /// Routes outlive a restart of either side.
    pub graceful_restart: bool,
    /// restartTime and longLivedStaleTime in seconds.
    pub restart_times: Option<(u16, u32)>,
    pub bfd_profile: Option<&'static str>,
    pub bfd_strict: bool,
}

/// How a BGPPeer names neighbours without their address.
#[derive(Clone, Copy, Debug)]
pub enum PeerPlace {
    Interface(&'static str),
    /// The prefix, and how many neighbours of it there may be.
    ListenRange(&'static str, Option<u32>),
    /// The default gateway of this family: `ipv4` or `ipv6`.
    DefaultGateway(&'static str),
}

impl Peer {
    /// The other end of the session that `router` is configured for.
    pub fn towards(router: &RouterSpec) -> Self {
        Self {
            name: "router",
            my_as: router.peer_as,
            peer_as: router.local_as,
            address: router.local_address,
            port: router.port,
            source_address: None,
            password: router.password.clone().map_or(Password::None, Password::Plain),
            timers: None,
            multihop: router.multihop,
            both_families: router.families.len() > 1,
            to_receive: None,
            max_prefixes: None,
            receive_rules: None,
            to_advertise: None,
            advertise_rules: None,
            next_hop: None,
            place: router.interface.map(|_| PeerPlace::Interface(NODE_INTERFACE)),
            dynamic_as: None,
            local_as: None,
            passive: false,
            ttl_security_hops: router.ttl_security_hops,
            extended_next_hop: router.extended_next_hop && router.interface.is_none(),
            add_path: router.add_path.then_some((6, true)),
            is_client: false,
            cluster_id: None,
            install_routes: false,
            own_as_max: None,
            role: None,
            role_strict: false,
            shutdown: None,
            graceful_restart: router.graceful_restart.is_some(),
            restart_times: router
                .graceful_restart
                .and_then(|it| Some((it.restart_seconds, it.long_lived_seconds?))),
            bfd_profile: None,
            bfd_strict: false,
        }
    }

    /// The AS numbers and the addresses of both sides.
    fn names(&self) -> String {
        let mut text = String::new();
        let mut field = |name: &str, value: &dyn std::fmt::Display| {
            text += &format!("  {name}: {value}\n");
        };
        field("myASN", &self.my_as);
        match self.dynamic_as {
            Some(kind) => field("dynamicASN", &kind),
            None => field("peerASN", &self.peer_as),
        }
        if let Some(local) = self.local_as {
            field("localASN", &local);
        }
        match self.place {
            None => field("peerAddress", &quoted(self.address)),
            Some(PeerPlace::Interface(interface)) => field("interface", &interface),
            Some(PeerPlace::DefaultGateway(family)) => {
                let way = format!("{{mode: DefaultGateway, addressFamily: {family}}}");
                field("autoDiscovery", &way);
            }
            Some(PeerPlace::ListenRange(range, limit)) => {
                field("listenRange", &quoted(range));
                if let Some(limit) = limit {
                    field("listenLimit", &limit);
                }
            }
        }
        text
    }

    pub fn yaml(&self) -> String {
        let mut text = header("metallb.io/v1beta2", "BGPPeer", self.name);
        text += "spec:\n";
        text += &self.names();
        let mut field = |name: &str, value: &dyn std::fmt::Display| {
            text += &format!("  {name}: {value}\n");
        };
        if self.port != 179 {
            field("peerPort", &self.port);
        }
        if let Some(address) = self.source_address {
            field("sourceAddress", &quoted(address));
        }
        if let Some((hold, keepalive)) = self.timers {
            field("holdTime", &format!("{hold}s"));
            field("keepaliveTime", &format!("{keepalive}s"));
        }
        match &self.password {
            Password::None => {}
            Password::Plain(password) => field("password", &quoted(password)),
            Password::Secret(secret) => field("passwordSecret", &format!("{{name: {secret}}}")),
        }
        let client = if self.my_as == self.peer_as { "routeReflector" } else { "routeServer" };
        if self.is_client {
            field(&format!("{client}Client"), &true);
        }
        if let Some(cluster) = self.cluster_id {
            field("clusterID", &cluster);
        }
        if let Some(count) = self.own_as_max {
            field("allowASIn", &count);
        }
        if self.multihop {
            field("ebgpMultiHop", &true);
        }
        if self.both_families && !matches!(self.place, Some(PeerPlace::Interface(_))) {
            field("dualStackAddressFamily", &true);
        }
        for (name, is_set) in [
            ("passive", self.passive),
            ("installRoutes", self.install_routes),
            ("extendedNexthop", self.extended_next_hop),
            ("roleStrict", self.role_strict),
            ("enableGracefulRestart", self.graceful_restart),
            ("bfdStrict", self.bfd_strict),
        ] {
            if is_set {
                field(name, &true);
            }
        }
        if let Some((restart, long_lived)) = self.restart_times {
            let times = format!("{{restartTime: {restart}s, longLivedStaleTime: {long_lived}s}}");
            field("gracefulRestart", &times);
        }
        if let Some(profile) = self.bfd_profile {
            field("bfdProfile", &profile);
        }
        if let Some(hops) = self.ttl_security_hops {
            field("ttlSecurityHops", &hops);
        }
        if let Some((send, receive)) = self.add_path {
            field("addPath", &format!("{{send: {send}, receive: {receive}}}"));
        }
        if let Some(role) = self.role {
            field("role", &role.word());
        }
        if let Some(message) = self.shutdown {
            field("shutdown", &format!("{{message: {}}}", quoted(message)));
        }
        text + &self.policy()
    }

    /// The routes that are accepted from it, and those that are advertised to it.
    fn policy(&self) -> String {
        let mut text = String::new();
        if self.to_receive.is_some() || self.max_prefixes.is_some() {
            text += "  toReceive:\n";
            text += &self.to_receive.as_ref().map(Allowed::yaml).unwrap_or_default();
            if let Some(limit) = self.max_prefixes {
                text += &format!("    maxPrefixes: {{limit: {limit}}}\n");
            }
            text += &rules(self.receive_rules);
        }
        if self.to_advertise.is_some() || self.next_hop.is_some() {
            text += "  toAdvertise:\n";
            text += &self.to_advertise.as_ref().map(Allowed::yaml).unwrap_or_default();
            if let Some(address) = self.next_hop {
                text += &format!("    nextHop: {{ipv4: {}}}\n", quoted(address));
            }
            text += &rules(self.advertise_rules.as_deref());
        }
        text
    }
}

/// `rules` of one direction.
fn rules(list: Option<&str>) -> String {
    let lines = list.into_iter().flat_map(str::lines).map(|line| format!("    {line}\n"));
    list.map(|_| "    rules:\n".to_owned()).into_iter().chain(lines).collect()
}

/// A Secret of type basic-auth, for `passwordSecret`.
pub fn secret(name: &str, password: &str) -> String {
    let password = quoted(password);
    header("v1", "Secret", name)
        + &format!("type: kubernetes.io/basic-auth\nstringData:\n  password: {password}\n")
}

/// A Secret with one key of this name.
pub fn opaque_secret(name: &str, key: &str, value: &str) -> String {
    header("v1", "Secret", name)
        + &format!("type: Opaque\nstringData:\n  {key}: {}\n", quoted(value))
}

/// A BFDProfile as a case wants it; unset fields are left out of the file.
#[derive(Clone, Copy, Debug)]
pub struct BfdProfile {
    pub name: &'static str,
    pub transmit_milliseconds: u32,
    pub receive_milliseconds: u32,
    pub multiplier: u8,
    pub echo: bool,
    pub passive: bool,
    pub minimum_ttl: Option<u8>,
    /// The kind of the key, its number, and the Secret that has it under `key`.
    pub authentication: Option<(&'static str, u8, &'static str)>,
}

impl BfdProfile {
    /// Both directions with the same interval.
    pub fn every(milliseconds: u32, multiplier: u8) -> Self {
        Self {
            name: "watch",
            transmit_milliseconds: milliseconds,
            receive_milliseconds: milliseconds,
            multiplier,
            echo: false,
            passive: false,
            minimum_ttl: None,
            authentication: None,
        }
    }

    pub fn yaml(&self) -> String {
        let mut text = header("metallb.io/v1beta1", "BFDProfile", self.name);
        text += &format!(
            "spec:\n  transmitInterval: {}\n  receiveInterval: {}\n  detectMultiplier: {}\n",
            self.transmit_milliseconds, self.receive_milliseconds, self.multiplier
        );
        for (field, is_set) in [("echoMode", self.echo), ("passiveMode", self.passive)] {
            if is_set {
                text += &format!("  {field}: true\n");
            }
        }
        if let Some(ttl) = self.minimum_ttl {
            text += &format!("  minimumTtl: {ttl}\n");
        }
        if let Some((kind, key_id, secret)) = self.authentication {
            text += &format!(
                "  authentication:\n    type: {kind}\n    keyID: {key_id}\n    \
                 secret: {{name: {secret}, key: key}}\n"
            );
        }
        text
    }
}

pub fn pool(name: &str, addresses: &[&str]) -> String {
    let mut text = header("metallb.io/v1beta1", "IPAddressPool", name) + "spec:\n";
    text += &list("addresses", addresses);
    text
}

/// A BGPAdvertisement as a case wants it; empty fields are left out of the file.
#[derive(Clone, Debug, Default)]
pub struct Advertisement<'a> {
    pub name: &'a str,
    pub pools: &'a [&'a str],
    pub communities: &'a [&'a str],
    pub local_preference: Option<u32>,
    pub med: Option<u32>,
    pub prepends: Option<u8>,
    /// As `auto`, or bits per second.
    pub link_bandwidth: Option<&'a str>,
    pub prefixes: &'a [String],
    pub blackhole: bool,
    pub peers: &'a [&'a str],
    /// Only the service with this name.
    pub only_service: Option<&'a str>,
}

impl Advertisement<'_> {
    pub fn yaml(&self) -> String {
        let mut text = header("metallb.io/v1beta1", "BGPAdvertisement", self.name) + "spec:\n";
        text += &list("ipAddressPools", self.pools);
        text += &list("communities", self.communities);
        text += &list("prefixes", self.prefixes);
        text += &list("peers", self.peers);
        let numbers = [
            ("localPref", self.local_preference),
            ("med", self.med),
            ("asPathPrepend", self.prepends.map(u32::from)),
        ];
        for (field, number) in numbers {
            text += &number.map(|number| format!("  {field}: {number}\n")).unwrap_or_default();
        }
        if let Some(bandwidth) = self.link_bandwidth {
            text += &format!("  linkBandwidth: {bandwidth}\n");
        }
        if self.blackhole {
            text += "  blackhole: true\n";
        }
        if let Some(service) = self.only_service {
            text += &format!("  serviceSelectors:\n  - matchLabels:\n      app: {service}\n");
        }
        text
    }
}

/// A Community object with one alias.
pub fn community(alias: &str, value: &str) -> String {
    header("metallb.io/v1beta1", "Community", "aliases")
        + &format!("spec:\n  communities:\n  - name: {alias}\n    value: {}\n", quoted(value))
}

/// A Service of type LoadBalancer, labelled `app: NAME`; `addresses` go into the annotation that
/// requests them, comma separated.
pub fn service(name: &str, addresses: Option<&str>) -> String {
    let mut text = header("v1", "Service", name);
    text += &format!("  labels:\n    app: {name}\n");
    if let Some(addresses) = addresses {
        text += &format!("  annotations:\n    metallb.io/loadBalancerIPs: {}\n", quoted(addresses));
    }
    text += &format!("spec:\n  type: LoadBalancer\n  selector:\n    app: {name}\n");
    text += "  ports:\n  - name: http\n    port: 80\n    protocol: TCP\n    targetPort: 8080\n";
    text
}

/// A BGPConfiguration with one RPKI cache.
pub fn configuration(host: &str, port: u16) -> String {
    let server = format!("{{address: {}, port: {port}}}", quoted(host));
    header("fairway.dev/v1beta1", "BGPConfiguration", "it")
        + &format!("spec:\n  rpki:\n    servers: [{server}]\n")
}

fn header(version: &str, kind: &str, name: &str) -> String {
    format!("apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: {name}\n")
}

fn list(field: &str, items: &[impl AsRef<str>]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let lines = items.iter().map(|item| format!("  - {}\n", quoted(item.as_ref())));
    format!("  {field}:\n") + &lines.collect::<String>()
}

/// Addresses and communities hold colons; quoted they are plain text to every YAML reader.
fn quoted(text: impl std::fmt::Display) -> String {
    format!("\"{text}\"")
}

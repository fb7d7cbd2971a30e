//! Three nodes, each with the service proxy and the speaker in one process; clients near and far; both families, three
//! protocols.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::probes::{Answer, Over, serve, serve_sctp};
use crate::node::LIMIT;
use lab::fairway::Fairway;
use lab::namespace::Namespace;
use lab::routers::{Family, Release, Router, RouterKind, RouterSpec};
use lab::wait::wait_until;
use lab::{Site, make_directory};

/// Of Pods, in both families.
const CLUSTER: &str = "10.1.0.0/16,fd00:1::/48";
const FAR: [&str; 2] = ["203.0.113.2", "2001:db8:f::2"];
const NEAR: [&str; 2] = ["192.0.2.99", "2001:db8::99"];

/// A node, its Pod and its Fairway. Parts are dropped in this order.
struct Machine {
    fairway: Fairway,
    pod: Namespace,
    node: Namespace,
    number: usize,
}

/// All of it; the router goes before its place.
struct Stage {
    router: Box<dyn Router>,
    machines: Vec<Machine>,
    far: Namespace,
    near: Namespace,
    site: Site,
    _segment: Namespace,
}

/// An address of each family, as text.
fn both(ipv4: String, ipv6: String) -> [String; 2] {
    [ipv4, ipv6]
}

fn node_addresses(number: usize) -> [String; 2] {
    both(format!("192.0.2.1{number}"), format!("2001:db8::1{number}"))
}

/// Of the node towards its Pod, which masqueraded packets have as their source there.
fn gateways(number: usize) -> [String; 2] {
    both(format!("10.1.{number}.1"), format!("fd00:1:0:{number}::1"))
}

fn pod_addresses(number: usize) -> [String; 2] {
    both(format!("10.1.{number}.11"), format!("fd00:1:0:{number}::11"))
}

/// `ADDRESS:PORT` as programs write it.
fn at(address: &str, port: u16) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

/// What a Service is like, besides its name, and which nodes have its endpoints.
struct Kind {
    name: &'static str,
    number: u8,
    spec: &'static str,
    annotations: String,
    nodes: &'static [usize],
    /// Those of them whose endpoint terminates, and still answers.
    terminating: &'static [usize],
    /// Of each protocol.
    node_port: Option<u16>,
}

impl Kind {
    fn new(name: &'static str, number: u8, spec: &'static str, nodes: &'static [usize]) -> Self {
        Self {
            name,
            number,
            spec,
            annotations: String::new(),
            nodes,
            terminating: &[],
            node_port: None,
        }
    }

    fn asks_for(self, ipv4: &str, ipv6: &str) -> Self {
        Self { annotations: format!("metallb.io/loadBalancerIPs: '{ipv4},{ipv6}'"), ..self }
    }

    fn at_node_port(self, port: u16) -> Self {
        Self { node_port: Some(port), ..self }
    }

    fn terminates_on(self, terminating: &'static [usize]) -> Self {
        Self { terminating, ..self }
    }
}

/// The Service and its slices: each endpoint answers TCP, UDP and SCTP on port 8080, which is 80 at the Service.
fn service(kind: &Kind) -> String {
    let Kind { name, number, spec, annotations, nodes, terminating, node_port } = kind;
    let node_port = node_port.map(|it| format!(", nodePort: {it}")).unwrap_or_default();
    let ports: String = ["TCP", "UDP", "SCTP"]
        .iter()
        .map(|it| {
            let name = it.to_lowercase();
            format!("  - {{name: {name}, protocol: {it}, port: 80, targetPort: 8080{node_port}}}\n")
        })
        .collect();
    let mut text = format!(
        "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}, annotations: {{{annotations}}}}}\nspec:\n  \
         clusterIP: 10.96.0.{number}\n  clusterIPs: [10.96.0.{number}, 'fd00:96::{number}']\n  \
         ipFamilies: [IPv4, IPv6]\n  ipFamilyPolicy: RequireDualStack\n{spec}  ports:\n{ports}"
    );
    for (family, position) in [("IPv4", 0), ("IPv6", 1)] {
        let endpoints: String = nodes
            .iter()
            .map(|it| {
                let addresses = pod_addresses(*it);
                let address = addresses.get(position).map(String::as_str).unwrap_or_default();
                let ends = terminating.contains(it);
                format!(
                    "- {{addresses: ['{address}'], nodeName: node-{it}, \
                     conditions: {{ready: {}, serving: true, terminating: {ends}}}}}\n",
                    !ends
                )
            })
            .collect();
        let ports = "[{name: tcp, port: 8080}, {name: udp, port: 8080, protocol: UDP}, \
                     {name: sctp, port: 8080, protocol: SCTP}]";
        text += &format!(
            "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: {name}-{}, labels: \
             {{kubernetes.io/service-name: {name}}}}}\naddressType: {family}\nports: {ports}\nendpoints:\n{endpoints}",
            family.to_lowercase()
        );
    }
    text
}

const BALANCER: &str = "  type: LoadBalancer\n";
const LOCAL: &str = "  type: LoadBalancer\n  externalTrafficPolicy: Local\n";
const RANGED: &str =
    "  type: LoadBalancer\n  loadBalancerSourceRanges: [203.0.113.0/24, '2001:db8:f::/64']\n";
const OPEN: &str = "  externalIPs: [198.18.5.5, '2001:db8:18::5']\n";
const STICKY: &str = "  sessionAffinity: ClientIP\n";
const INSIDE: &str = "  internalTrafficPolicy: Local\n";
const PORTS: &str = "  type: NodePort\n";
const PORTS_LOCAL: &str = "  type: NodePort\n  externalTrafficPolicy: Local\n";

/// Who is told of what.
const ANNOUNCING: &str = "\
apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: router}
spec: {myASN: 65001, peerASN: 65002, peerAddress: 192.0.2.1, dualStackAddressFamily: true}
---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: routed}
spec: {addresses: [198.51.100.0/24, '2001:db8:51::/120']}
---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: segment}
spec: {addresses: [192.0.2.200-192.0.2.209, '2001:db8::200-2001:db8::209']}
---
apiVersion: metallb.io/v1beta1
kind: BGPAdvertisement
metadata: {name: routed}
spec: {ipAddressPools: [routed]}
---
apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata: {name: segment}
spec: {ipAddressPools: [segment]}
";

fn resources() -> String {
    let kinds = [
        Kind::new("open", 20, OPEN, &[1, 2, 3]),
        Kind::new("sticky", 21, STICKY, &[1, 2, 3]),
        Kind::new("inside", 22, INSIDE, &[2]),
        Kind::new("closing", 23, "", &[1, 2]).terminates_on(&[2]),
        Kind::new("closed", 24, "", &[1, 2]).terminates_on(&[1, 2]),
        Kind::new("empty", 25, "", &[]),
        Kind::new("ports", 26, PORTS, &[1, 2, 3]).at_node_port(30081),
        Kind::new("ports-local", 27, PORTS_LOCAL, &[1, 2]).terminates_on(&[2]).at_node_port(30082),
        Kind::new("routed", 30, BALANCER, &[1, 2, 3]).asks_for("198.51.100.30", "2001:db8:51::30"),
        Kind::new("routed-local", 31, LOCAL, &[1, 2]).asks_for("198.51.100.31", "2001:db8:51::31"),
        Kind::new("ranged", 32, RANGED, &[1, 2, 3]).asks_for("198.51.100.32", "2001:db8:51::32"),
        Kind::new("near", 40, BALANCER, &[1, 2, 3]).asks_for("192.0.2.200", "2001:db8::200"),
        Kind::new("near-local", 41, LOCAL, &[2]).asks_for("192.0.2.201", "2001:db8::201"),
    ];
    let services: String = kinds.iter().map(service).collect();
    let nodes: String = (1..=3)
        .map(|number| {
            let [ipv4, ipv6] = node_addresses(number);
            format!(
                "---\napiVersion: v1\nkind: Node\nmetadata: {{name: node-{number}}}\nstatus: {{addresses: [{{type: \
                 InternalIP, address: {ipv4}}}, {{type: InternalIP, address: '{ipv6}'}}]}}\n"
            )
        })
        .collect();
    format!("{ANNOUNCING}{nodes}{services}")
}

fn options(more: &str) -> String {
    format!(
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nclusterCIDR: {CLUSTER}\n{more}"
    )
}

impl Stage {
    fn build(number: usize, directory: &Path) -> Result<Self> {
        let segment = Namespace::create(number, "segment")?;
        segment.ip(&["link", "add", "bridge", "type", "bridge"])?;
        segment.ip(&["link", "set", "bridge", "up"])?;
        let join = |namespace: &Namespace, role: &str, addresses: &[&str; 2]| -> Result<()> {
            segment.connect(role, namespace, "eth0")?;
            segment.ip(&["link", "set", role, "master", "bridge"])?;
            namespace.add_address("eth0", &format!("{}/24", addresses[0]))?;
            namespace.add_address("eth0", &format!("{}/64", addresses[1]))
        };
        let router = Namespace::create(number, "router")?;
        join(&router, "router", &["192.0.2.1", "2001:db8::1"])?;
        router.enable_forwarding()?;
        let far = Namespace::create(number, "far")?;
        router.connect("far", &far, "eth0")?;
        router.add_address("far", "203.0.113.1/24")?;
        router.add_address("far", "2001:db8:f::1/64")?;
        far.add_address("eth0", &format!("{}/24", FAR[0]))?;
        far.add_address("eth0", &format!("{}/64", FAR[1]))?;
        leads_to(&far, ["203.0.113.1", "2001:db8:f::1"])?;
        let near = Namespace::create(number, "near")?;
        join(&near, "near", &NEAR)?;
        leads_to(&near, ["192.0.2.1", "2001:db8::1"])?;
        // Nobody announces them.
        for (prefix, way) in [("198.18.5.5/32", 0), ("2001:db8:18::5/128", 1)] {
            let via = node_addresses(1);
            router.add_route(prefix, via.get(way).map(String::as_str).unwrap_or_default())?;
        }
        let mut machines = Vec::new();
        for position in 1..=3 {
            let node = Namespace::create(number, &format!("node{position}"))?;
            let addresses = node_addresses(position);
            join(&node, &format!("node{position}"), &[&addresses[0], &addresses[1]])?;
            leads_to(&node, ["192.0.2.1", "2001:db8::1"])?;
            machines.push(Machine::build(number, position, directory, node)?);
        }
        let of_router = directory.join("router");
        make_directory(&of_router)?;
        let site = Site { namespace: router, directory: of_router };
        let mut spec = RouterSpec::between(
            "192.0.2.1".parse()?,
            "2001:db8::1".parse()?,
            "192.0.2.11".parse()?,
        );
        spec.families = vec![Family::Ipv4, Family::Ipv6];
        spec.twins = vec!["192.0.2.12".parse()?, "192.0.2.13".parse()?];
        let router = RouterKind::Frr(Release::Bookworm).prepare(&site, &spec)?;
        Ok(Self { router, machines, far, near, site, _segment: segment })
    }

    fn start(&mut self) -> Result<()> {
        self.router.start(&self.site)?;
        for machine in &mut self.machines {
            machine.start()?;
        }
        for (address, ways) in [
            ("198.51.100.30", 3),
            ("2001:db8:51::30", 3),
            ("198.51.100.31", 2),
            ("2001:db8:51::31", 2),
        ] {
            wait_until(&format!("the router has {ways} ways to {address}"), LIMIT, || {
                let family = if address.contains(':') { "-6" } else { "-4" };
                let routes = self.site.namespace.ip(&[family, "route", "show", address])?;
                let count = routes.matches("via ").count();
                ensure!(count == ways, "it has {count}:\n{routes}");
                Ok(())
            })?;
        }
        Ok(())
    }

    fn machine(&self, number: usize) -> Result<&Machine> {
        self.machines.iter().find(|it| it.number == number).context("a node")
    }
}

impl Machine {
    fn build(cell: usize, number: usize, directory: &Path, node: Namespace) -> Result<Self> {
        let pod = Namespace::create(cell, &format!("pod{number}"))?;
        node.ip(&["link", "add", "cni0", "type", "bridge"])?;
        node.ip(&["link", "set", "cni0", "up"])?;
        node.connect("veth", &pod, "eth0")?;
        node.ip(&["link", "set", "veth", "master", "cni0"])?;
        let (gateways, addresses) = (gateways(number), pod_addresses(number));
        for ((gateway, address), length) in gateways.iter().zip(&addresses).zip([24, 64]) {
            node.add_address("cni0", &format!("{gateway}/{length}"))?;
            pod.add_address("eth0", &format!("{address}/{length}"))?;
        }
        leads_to(&pod, [&gateways[0], &gateways[1]])?;
        for other in (1..=3).filter(|it| *it != number) {
            let via = node_addresses(other);
            node.add_route(&format!("10.1.{other}.0/24"), &via[0])?;
            node.add_route(&format!("fd00:1:0:{other}::/64"), &via[1])?;
        }
        serve(&pod, number)?;
        serve_sctp(&pod, number)?;
        let directory = directory.join(format!("node-{number}"));
        make_directory(&directory)?;
        let fairway = Fairway::prepare_in(&directory)?;
        fairway.apply("options", &options(""))?;
        fairway.apply("resources", &resources())?;
        Ok(Self { fairway, pod, node, number })
    }

    fn start(&mut self) -> Result<()> {
        let config = self.fairway.directory_of("config");
        let run_dir = self.fairway.directory_of("run");
        let name = format!("node-{}", self.number);
        let words = ["run", "--config", &config, "--node", &name, "--proxy", "--run-dir", &run_dir];
        self.fairway.start_as(&self.node, &words)
    }
}

fn leads_to(namespace: &Namespace, gateways: [&str; 2]) -> Result<()> {
    gateways.iter().try_for_each(|it| {
        let family = if it.contains(':') { "-6" } else { "-4" };
        namespace.ip(&[family, "route", "add", "default", "via", it]).map(drop)
    })
}

/// Asks so many times, and returns the distinct answers.
fn answers(over: Over, from: &Namespace, to: &str, times: usize) -> Result<BTreeSet<String>> {
    (0..times).map(|_| Ok(over.ask(from, to)?.to_string())).collect()
}

fn expect(
    over: Over,
    what: &str,
    (from, to): (&Namespace, &str),
    times: usize,
    expected: &[String],
) -> Result<()> {
    let answers = answers(over, from, to, times).with_context(|| format!("{over:?}, {what}"))?;
    let expected: BTreeSet<String> = expected.iter().cloned().collect();
    ensure!(
        answers == expected,
        "{over:?}, {what}, {to}: expected {expected:?}, it was {answers:?}"
    );
    Ok(())
}

/// Answers of all three Pods, to a client whose packets the node of this number passes on in its own name.
fn by_node(number: usize, family: usize) -> Vec<String> {
    let seen = |pod: usize| {
        let addresses = if pod == number { gateways(number) } else { node_addresses(number) };
        addresses.get(family).cloned().unwrap_or_default()
    };
    (1..=3).map(|pod| format!("pod{pod} saw {}", seen(pod))).collect()
}

/// Topology: far client === router (FRR) === segment with a near client and three nodes, each with a Pod behind a bridge.
/// Each node runs `fairway run --proxy`.
/// Proves: over TCP, UDP and SCTP and in both families each way to a Service meets the Pods that it should, and they see the
/// client or the node, as policy says: by cluster address from a Pod, itself included, and from a node, by node port,
/// external address, and load balancer addresses that BGP or layer 2 announces; affinity, source ranges, both traffic
/// policies, endpoints that terminate and those that are missing, a ping and masquerading of all hold as well.
pub(in crate::cases) fn three_nodes_serve_clients_near_and_far(
    number: usize,
    directory: &Path,
) -> Result<()> {
    // A kernel without it says so with the first socket.
    let _ = lab::process::output_of(lab::process::bounded("modprobe").arg("sctp"));
    let mut stage = Stage::build(number, directory)?;
    stage.start()?;
    for over in Over::ALL {
        for family in 0..2 {
            inside(&stage, over, family)?;
            endpoints(&stage, over, family)?;
            outside(&stage, over, family)?;
            node_ports(&stage, over, family)?;
        }
    }
    pings(&stage)?;
    masquerades_all(&stage)
}

fn pick(addresses: [&str; 2], family: usize) -> Result<String> {
    addresses.get(family).map(|it| at(it, 80)).context("a family")
}

/// From a Pod and from a node.
fn inside(stage: &Stage, over: Over, family: usize) -> Result<()> {
    let first = stage.machine(1)?;
    let own = pod_addresses(1).get(family).cloned().unwrap_or_default();
    let hairpin = gateways(1).get(family).cloned().unwrap_or_default();
    let seen =
        [format!("pod1 saw {hairpin}"), format!("pod2 saw {own}"), format!("pod3 saw {own}")];
    let open = pick(["10.96.0.20", "fd00:96::20"], family)?;
    expect(over, "a Pod, which may meet itself", (&first.pod, &open), 3, &seen)?;
    expect(over, "a node", (&first.node, &open), 3, &by_node(1, family))?;
    let sticky = pick(["10.96.0.21", "fd00:96::21"], family)?;
    let met = answers(over, &first.pod, &sticky, 4)?;
    ensure!(met.len() == 1, "{over:?}, affinity: it met {met:?}");
    Ok(())
}

/// Which endpoints there are decides: near ones alone, those that terminate, none.
fn endpoints(stage: &Stage, over: Over, family: usize) -> Result<()> {
    let [first, second] = [stage.machine(1)?, stage.machine(2)?];
    let pick = |addresses| pick(addresses, family);
    let inside = pick(["10.96.0.22", "fd00:96::22"])?;
    let hairpin = gateways(2).get(family).cloned().unwrap_or_default();
    let seen = [format!("pod2 saw {hairpin}")];
    expect(over, "internal policy Local", (&second.pod, &inside), 2, &seen)?;
    let dropped = [Answer::Nothing.to_string()];
    expect(over, "internal policy Local, none here", (&first.pod, &inside), 1, &dropped)?;
    let own = pod_addresses(3).get(family).cloned().unwrap_or_default();
    let third = &stage.machine(3)?.pod;
    let closing = pick(["10.96.0.23", "fd00:96::23"])?;
    expect(over, "one of two terminates", (third, &closing), 3, &[format!("pod1 saw {own}")])?;
    let closed = pick(["10.96.0.24", "fd00:96::24"])?;
    let seen = [1, 2].map(|it| format!("pod{it} saw {own}"));
    expect(over, "both terminate", (third, &closed), 4, &seen)?;
    let empty = pick(["10.96.0.25", "fd00:96::25"])?;
    // The kernel's SCTP takes an ICMP error for a hint, and asks again.
    let refused = if over == Over::Sctp { Answer::Nothing } else { Answer::Refused };
    expect(over, "no endpoint", (third, &empty), 1, &[refused.to_string()])
}

/// At the addresses of nodes.
fn node_ports(stage: &Stage, over: Over, family: usize) -> Result<()> {
    let port = |node: usize, port: u16| {
        at(node_addresses(node).get(family).map(String::as_str).unwrap_or_default(), port)
    };
    for node in 1..=3 {
        expect(over, "a node port", (&stage.far, &port(node, 30081)), 3, &by_node(node, family))?;
    }
    let kept = FAR.get(family).context("a family")?;
    // The second node's only endpoint terminates, which is better than none.
    for node in [1, 2] {
        let seen = [format!("pod{node} saw {kept}")];
        let to = port(node, 30082);
        expect(over, "a node port, policy Local", (&stage.far, &to), 2, &seen)?;
    }
    let dropped = [Answer::Nothing.to_string()];
    let to = port(3, 30082);
    expect(over, "a node port, policy Local, none here", (&stage.far, &to), 1, &dropped)
}

/// From clients that are no Pods.
fn outside(stage: &Stage, over: Over, family: usize) -> Result<()> {
    let (far, near) = (&stage.far, &stage.near);
    let pick = |addresses| pick(addresses, family);
    let external = pick(["198.18.5.5", "2001:db8:18::5"])?;
    expect(over, "an external address", (far, &external), 3, &by_node(1, family))?;
    // Which node it is is for the router, or for the election.
    let any: BTreeSet<String> = (1..=3).flat_map(|it| by_node(it, family)).collect();
    for (what, from, to) in [
        ("announced over BGP", far, pick(["198.51.100.30", "2001:db8:51::30"])?),
        ("source ranges", far, pick(["198.51.100.32", "2001:db8:51::32"])?),
        ("announced on layer 2", near, pick(["192.0.2.200", "2001:db8::200"])?),
    ] {
        let met = answers(over, from, &to, 3)?;
        ensure!(met.is_subset(&any), "{over:?}, {what}: it met {met:?}");
    }
    let kept = FAR.get(family).context("a family")?;
    let local: BTreeSet<String> = [1, 2].map(|it| format!("pod{it} saw {kept}")).into();
    let met = answers(over, far, &pick(["198.51.100.31", "2001:db8:51::31"])?, 4)?;
    ensure!(met.is_subset(&local), "{over:?}, policy Local over BGP: it met {met:?}");
    let kept = [format!("pod2 saw {}", NEAR.get(family).context("a family")?)];
    let local = pick(["192.0.2.201", "2001:db8::201"])?;
    expect(over, "policy Local on layer 2", (near, &local), 2, &kept)?;
    let ranged = pick(["198.51.100.32", "2001:db8:51::32"])?;
    let answer = over.ask(near, &ranged)?;
    ensure!(answer == Answer::Nothing, "{over:?}, not in the source ranges: {answer}");
    Ok(())
}

fn pings(stage: &Stage) -> Result<()> {
    for (program, address) in [("ping", "198.51.100.30"), ("ping6", "2001:db8:51::30")] {
        let words = [program, "-c", "1", "-W", "3", address];
        stage.far.run("busybox", &words).context("ping to a Service")?;
    }
    Ok(())
}

/// The option is followed while the proxy runs.
fn masquerades_all(stage: &Stage) -> Result<()> {
    let first = stage.machine(1)?;
    first.fairway.apply("options", &options("iptables: {masqueradeAll: true}\n"))?;
    for family in 0..2 {
        let open = pick(["10.96.0.20", "fd00:96::20"], family)?;
        wait_until("Pods see the node", LIMIT, || {
            expect(Over::Tcp, "masqueradeAll", (&first.pod, &open), 3, &by_node(1, family))
        })?;
    }
    Ok(())
}

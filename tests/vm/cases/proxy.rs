//! Do packets to a Service reach the right Pods, from the right address?

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::node::LIMIT;
use lab::make_directory;
use lab::namespace::Namespace;
use lab::process::Process;
use lab::wait::wait_until;

/// A packet that nobody answers is dropped.
const PATIENCE: Duration = Duration::from_secs(3);
const CLIENT: &str = "192.0.2.1";
/// The node's address towards its Pods, which masqueraded packets have as their source.
const GATEWAY: &str = "10.1.1.1";
const PODS: [&str; 2] = ["10.1.1.11", "10.1.1.12"];

const CLUSTER: &str = "\
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {addresses: [{type: InternalIP, address: 192.0.2.11}]}
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clusterCIDR: 10.1.0.0/16,fd00:1::/64
";

/// A Service and the slice of its endpoints, each as address and node.
fn service(name: &str, spec: &str, balancer: &str, endpoints: &[(&str, &str)]) -> String {
    let status = match balancer {
        "" => String::new(),
        ip => format!("status: {{loadBalancer: {{ingress: [{{ip: {ip}}}]}}}}\n"),
    };
    let mut text = format!(
        "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n{status}"
    );
    for (family, is_ipv6) in [("IPv4", false), ("IPv6", true)] {
        let of_family = endpoints.iter().filter(|(address, _)| address.contains(':') == is_ipv6);
        let lines: Vec<_> = of_family
            .map(|(address, node)| format!("- {{addresses: ['{address}'], nodeName: {node}}}\n"))
            .collect();
        if !lines.is_empty() {
            text += &format!(
                "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: {name}-{}, \
                 labels: {{kubernetes.io/service-name: {name}}}}}\naddressType: {family}\n\
                 ports: [{{name: t, port: 8080}}, {{name: u, port: 8080, protocol: UDP}}]\nendpoints:\n{}",
                family.to_lowercase(),
                lines.concat()
            );
        }
    }
    text
}

fn services() -> String {
    let here = [(PODS[0], "node-1"), (PODS[1], "node-1"), ("fd00:1::11", "node-1")];
    let one = [(PODS[0], "node-1")];
    let far = [("10.1.2.11", "node-2")];
    let port = "ports: [{name: t, port: 80}, {name: u, port: 53, protocol: UDP}]";
    let both = "clusterIPs: [10.96.0.20, 'fd00:96::20']";
    let local = "type: LoadBalancer, externalTrafficPolicy: Local";
    let ranges = "type: LoadBalancer, loadBalancerSourceRanges: [203.0.113.0/24]";
    [
        CLUSTER.to_owned(),
        service("web", &format!("type: NodePort, {both}, ports: [{{name: t, port: 80, nodePort: 30081}}, {{name: u, port: 53, protocol: UDP}}]"), "", &here),
        service("empty", &format!("clusterIP: 10.96.0.30, {port}"), "", &[]),
        service("local", &format!("{local}, clusterIP: 10.96.0.40, {port}"), "198.51.100.1", &one),
        service("ranged", &format!("{ranges}, clusterIP: 10.96.0.41, {port}"), "198.51.100.2", &one),
        service("far", &format!("{local}, clusterIP: 10.96.0.42, {port}"), "198.51.100.3", &far),
    ]
    .concat()
}

/// What a client gets.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Answer {
    /// From this Pod, which saw this source address.
    From(String, IpAddr),
    Refused,
    Nothing,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::From(pod, source) => write!(f, "{pod} saw {source}"),
            Self::Refused => f.write_str("refused"),
            Self::Nothing => f.write_str("nothing"),
        }
    }
}

/// The node, two Pods, a client, and the proxy. Parts are dropped in this order.
struct Segment {
    proxy: Option<Process>,
    config: PathBuf,
    directory: PathBuf,
    client: Namespace,
    pods: Vec<Namespace>,
    node: Namespace,
}

impl Segment {
    fn build(number: usize, directory: &Path) -> Result<Self> {
        let node = Namespace::create(number, "node")?;
        let client = Namespace::create(number, "client")?;
        client.connect("eth0", &node, "eth0")?;
        for (namespace, ipv4, ipv6) in [
            (&client, "192.0.2.1/24", "2001:db8::1/64"),
            (&node, "192.0.2.11/24", "2001:db8::11/64"),
        ] {
            namespace.add_address("eth0", ipv4)?;
            namespace.ip(&["address", "add", ipv6, "dev", "eth0", "nodad"])?;
        }
        for prefix in ["10.96.0.0/16", "198.51.100.0/24", "10.1.1.0/24"] {
            client.add_route(prefix, "192.0.2.11")?;
        }
        for prefix in ["fd00:96::/64", "fd00:1::/64"] {
            client.ip(&["-6", "route", "add", prefix, "via", "2001:db8::11"])?;
        }
        let mut pods = Vec::new();
        for (address, position) in PODS.into_iter().zip(1..) {
            let pod = Namespace::create(number, &format!("pod{position}"))?;
            let cable = format!("pod{position}");
            node.connect(&cable, &pod, "eth0")?;
            node.add_address(&cable, &format!("{GATEWAY}/32"))?;
            node.ip(&["route", "add", address, "dev", &cable])?;
            pod.add_address("eth0", &format!("{address}/32"))?;
            pod.ip(&["route", "add", GATEWAY, "dev", "eth0"])?;
            pod.ip(&["route", "add", "default", "via", GATEWAY])?;
            let ipv6 = format!("fd00:1::1{position}");
            node.ip(&["address", "add", "fd00:1::1/128", "dev", &cable, "nodad"])?;
            node.ip(&["-6", "route", "add", &ipv6, "dev", &cable])?;
            pod.ip(&["address", "add", &format!("{ipv6}/128"), "dev", "eth0", "nodad"])?;
            pod.ip(&["-6", "route", "add", "fd00:1::1", "dev", "eth0"])?;
            pod.ip(&["-6", "route", "add", "default", "via", "fd00:1::1"])?;
            serve(&pod, position)?;
            pods.push(pod);
        }
        let config = directory.join("config");
        make_directory(&config)?;
        let directory = directory.to_owned();
        let segment = Self { proxy: None, config, directory, client, pods, node };
        segment.apply(&services())?;
        Ok(segment)
    }

    fn apply(&self, text: &str) -> Result<()> {
        let new = self.directory.join("new.yaml");
        std::fs::write(&new, text).context("writing the cluster")?;
        std::fs::rename(new, self.config.join("cluster.yaml")).context("the cluster's file")
    }

    fn start(&mut self) -> Result<()> {
        let run_dir = self.directory.join("run").display().to_string();
        let config = self.config.display().to_string();
        let arguments = ["proxy", "--config", &config, "--node", "node-1", "--run-dir", &run_dir];
        let program = lab::fairway::existing_program()?;
        let log = self.directory.join("proxy.log");
        let arguments: Vec<String> = arguments.map(str::to_owned).to_vec();
        self.proxy = Some(Process::spawn(&self.node, &program, &arguments, &log)?);
        wait_until("the last address is on the node", LIMIT, || {
            self.proxy.as_mut().map_or(Ok(()), Process::check_running)?;
            let addresses = self.node.ip(&["-br", "address"])?;
            ensure!(addresses.contains("fd00:96::20"), "it has\n{addresses}");
            Ok(())
        })
    }

    fn stop(&mut self) -> Result<()> {
        match self.proxy.take() {
            Some(mut proxy) => proxy.stop(LIMIT).map(drop),
            None => bail!("the proxy does not run"),
        }
    }

    /// Virtual servers as ipvsadm saves them.
    fn servers(&self) -> Result<String> {
        self.node.run("ipvsadm", &["-Sn"])
    }
}

/// Answers each connection and each datagram with the number of the Pod and the source address that it sees.
fn serve(pod: &Namespace, position: usize) -> Result<()> {
    for any in ["0.0.0.0:8080", "[::]:8080"] {
        let (tcp, udp) = pod.enter(|| {
            if any.starts_with('[') {
                std::fs::write("/proc/sys/net/ipv6/bindv6only", "1").context("bindv6only")?;
            }
            Ok((TcpListener::bind(any)?, UdpSocket::bind(any)?))
        })?;
        std::thread::spawn(move || {
            for mut stream in tcp.incoming().flatten() {
                let source = stream.peer_addr().map(|it| it.ip().to_string()).unwrap_or_default();
                let _ = stream.write_all(format!("pod{position} {source}").as_bytes());
            }
        });
        std::thread::spawn(move || {
            let mut buffer = [0; 64];
            while let Ok((_, from)) = udp.recv_from(&mut buffer) {
                let _ = udp.send_to(format!("pod{position} {}", from.ip()).as_bytes(), from);
            }
        });
    }
    Ok(())
}

fn read(text: &str) -> Result<Answer> {
    let (pod, source) = text.split_once(' ').with_context(|| format!("an answer: {text:?}"))?;
    Ok(Answer::From(pod.to_owned(), source.parse()?))
}

fn tcp(from: &Namespace, to: &str) -> Result<Answer> {
    let to: SocketAddr = to.parse()?;
    from.enter(|| {
        let mut stream = match TcpStream::connect_timeout(&to, PATIENCE) {
            Ok(stream) => stream,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                return Ok(Answer::Refused);
            }
            Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(Answer::Nothing),
            Err(error) => return Err(error.into()),
        };
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        read(&text)
    })
}

fn udp(from: &Namespace, to: &str) -> Result<Answer> {
    from.enter(|| {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.connect(to)?;
        socket.send(b"?")?;
        let mut buffer = [0; 64];
        match socket.recv(&mut buffer) {
            Ok(length) => read(std::str::from_utf8(buffer.get(..length).unwrap_or_default())?),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(Answer::Refused),
            Err(_) => Ok(Answer::Nothing),
        }
    })
}

/// Asks twice, so that each of two Pods is met, and compares the answers in whatever order.
fn expect(what: &str, ask: impl Fn() -> Result<Answer>, expected: [&str; 2]) -> Result<()> {
    let mut answers = [ask()?.to_string(), ask()?.to_string()];
    answers.sort();
    ensure!(answers == expected, "{what}: expected {expected:?}, it was {answers:?}");
    Ok(())
}

/// Topology: client === node === two Pods, each on a cable of its own; Services of each kind, from files.
/// Proves: each client meets the Pods that it should, with its own address as source or the node's, as policy and
/// options say; what has no endpoint, is restricted or is no port of a Service is refused or dropped.
pub(super) fn packets_reach_the_right_pods(number: usize, directory: &Path) -> Result<()> {
    let mut segment = Segment::build(number, directory)?;
    segment.start()?;
    let Segment { client, pods, node, .. } = &segment;
    let pod = pods.first().context("a Pod")?;
    let web = "10.96.0.20:80";
    let by_node = ["pod1 saw 10.1.1.1", "pod2 saw 10.1.1.1"];
    expect("cluster address, client outside", || tcp(client, web), by_node)?;
    expect("cluster address, node", || tcp(node, web), by_node)?;
    let own = ["pod1 saw 10.1.1.1", "pod2 saw 10.1.1.11"];
    expect("cluster address, Pod, which may meet itself", || tcp(pod, web), own)?;
    expect("node port", || tcp(client, "192.0.2.11:30081"), by_node)?;
    expect("UDP", || udp(client, "10.96.0.20:53"), by_node)?;
    let ipv6 = ["pod1 saw fd00:1::1"; 2];
    expect("IPv6", || tcp(client, "[fd00:96::20]:80"), ipv6)?;
    let kept = ["pod1 saw 192.0.2.1"; 2];
    ensure!(kept.iter().all(|it| it.ends_with(CLIENT)), "the client is {CLIENT}");
    expect("policy Local", || tcp(client, "198.51.100.1:80"), kept)?;
    expect("policy Local, UDP", || udp(client, "198.51.100.1:53"), kept)?;
    expect("no endpoint", || tcp(client, "10.96.0.30:80"), ["refused"; 2])?;
    expect("no endpoint, UDP", || udp(client, "10.96.0.30:53"), ["refused"; 2])?;
    expect("no port of a Service", || tcp(client, "10.96.0.20:81"), ["refused"; 2])?;
    expect("not in the source ranges", || tcp(client, "198.51.100.2:80"), ["nothing"; 2])?;
    expect("policy Local, no endpoint here", || tcp(client, "198.51.100.3:80"), ["nothing"; 2])
}

/// Topology: as above, and a virtual server of somebody else.
/// Proves: Services go on while the proxy is away; a restart changes no virtual server, with files or without any; what others remove is back; what
/// is not ours stays; and of Services that go nothing is left.
pub(super) fn what_is_removed_comes_back_and_what_is_not_ours_stays(
    number: usize,
    directory: &Path,
) -> Result<()> {
    /// The kernel is read each 30 s; an emulated machine is slow.
    const AUDITED: Duration = Duration::from_secs(60);
    const THEIRS: &str = "-A -t 203.0.113.1:80 -s wrr";
    let mut segment = Segment::build(number, directory)?;
    segment.node.run("ipvsadm", &["-A", "-t", "203.0.113.1:80", "-s", "wrr"])?;
    segment.start()?;
    let by_node = ["pod1 saw 10.1.1.1", "pod2 saw 10.1.1.1"];
    let before = segment.servers()?;
    segment.stop()?;
    expect("without the proxy", || tcp(&segment.client, "10.96.0.20:80"), by_node)?;
    // A lost volume.
    segment.apply("# No Services.\n")?;
    segment.start()?;
    wait_until("the proxy says that nothing goes", LIMIT, || {
        let log = std::fs::read_to_string(segment.directory.join("proxy.log"))?;
        ensure!(log.contains("what the kernel has stays"), "it says\n{log}");
        Ok(())
    })?;
    segment.apply(&services())?;
    segment.stop()?;
    segment.start()?;
    let after = segment.servers()?;
    ensure!(after == before, "a restart: before\n{before}\nafter\n{after}");

    segment.node.run("nft", &["flush", "ruleset"])?;
    for line in before.lines().filter(|it| it.starts_with("-A") && *it != THEIRS) {
        let words: Vec<_> = line.split(' ').skip(1).take(2).collect();
        segment.node.run("ipvsadm", &[&["-D"], words.as_slice()].concat())?;
    }
    wait_until("everything is back", AUDITED, || {
        let after = segment.servers()?;
        ensure!(after == before, "before\n{before}\nafter\n{after}");
        Ok(())
    })?;
    expect("after a flush", || tcp(&segment.client, "10.96.0.20:80"), by_node)?;

    segment.apply("# No Services.\n")?;
    wait_until("only theirs is left", LIMIT, || {
        let left = segment.servers()?;
        ensure!(left.trim() == THEIRS, "it has\n{left}");
        let addresses = segment.node.ip(&["-br", "address", "show", "fairway-ipvs0"])?;
        ensure!(!addresses.contains('/'), "it has\n{addresses}");
        Ok(())
    })
}

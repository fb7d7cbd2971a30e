//! What the neighbors of a node are told by FRR with a configuration as frr-k8s renders it: the routes of `fairway plan`, with their
//! attributes. frr-k8s itself needs a cluster and does not run: `frr-k8s/NAME.conf` is written by hand from what its own tests
//! expect. The sample `vrf` is not here: the kernel below this suite may have no VRFs.

use std::fs;

use anyhow::{Context, Result, ensure};

use lab::bird::Bird;
use lab::frr_speaker::Speaker;
use lab::namespace::Namespace;
use lab::routers::Release;
use lab::suite::{Case, Cell, Suite};
use lab::wait::{PATIENCE, wait_until};

use super::objects::{imported, plan, rows};
use super::samples;

/// An interface of node-a, to which neighbors are connected.
struct Link {
    name: &'static str,
    addresses: &'static [&'static str],
}

struct Neighbor {
    /// Of the BGPPeer that the importer makes of it.
    peer: &'static str,
    link: &'static str,
    addresses: &'static [&'static str],
    /// BIRD's lines about the session.
    session: &'static str,
}

struct Sample {
    name: &'static str,
    links: &'static [Link],
    neighbors: &'static [Neighbor],
}

const SAMPLES: &[Sample] = &[
    Sample {
        name: "attributes",
        links: &[Link { name: "eth0", addresses: &["172.18.0.1/24"] }],
        neighbors: &[
            Neighbor {
                peer: "172.18.0.5",
                link: "eth0",
                addresses: &["172.18.0.5/24"],
                session: "local 172.18.0.5 as 64512; neighbor 172.18.0.1 as 64512;",
            },
            Neighbor {
                peer: "172.18.0.6",
                link: "eth0",
                addresses: &["172.18.0.6/24"],
                session: "local 172.18.0.6 as 4200000000; neighbor 172.18.0.1 as 64512;",
            },
            Neighbor {
                peer: "172.18.0.7",
                link: "eth0",
                addresses: &["172.18.0.7/24"],
                session: "local 172.18.0.7 as 4200000000; neighbor 172.18.0.1 as 64512;",
            },
        ],
    },
    Sample {
        name: "basic",
        links: &[Link { name: "eth0", addresses: &["172.30.0.1/24"] }],
        neighbors: &[Neighbor {
            peer: "172.30.0.3",
            link: "eth0",
            addresses: &["172.30.0.3/24"],
            session: "local 172.30.0.3 port 180 as 64512; neighbor 172.30.0.1 as 64512;",
        }],
    },
    Sample {
        name: "by-node",
        links: &[Link { name: "eth0", addresses: &["10.0.0.9/24"] }],
        neighbors: &[Neighbor {
            peer: "10.0.0.1",
            link: "eth0",
            addresses: &["10.0.0.1/24"],
            session: "local 10.0.0.1 as 64500; neighbor 10.0.0.9 as 64512;",
        }],
    },
    Sample {
        name: "merged",
        links: &[Link { name: "eth0", addresses: &["10.0.0.9/24"] }],
        neighbors: &[
            Neighbor {
                peer: "10.0.0.1",
                link: "eth0",
                addresses: &["10.0.0.1/24"],
                session: "local 10.0.0.1 as 64513; neighbor 10.0.0.9 as 64512;",
            },
            Neighbor {
                peer: "10.0.0.2",
                link: "eth0",
                addresses: &["10.0.0.2/24"],
                session: "local 10.0.0.2 port 1179 as 64513; neighbor 10.0.0.9 as 64512;",
            },
        ],
    },
    Sample {
        name: "unnumbered",
        links: &[
            Link { name: "eth0", addresses: &["2001:db8::9/64", "10.9.0.9/24"] },
            Link { name: "eth1", addresses: &[] },
            Link { name: "eth2", addresses: &[] },
        ],
        neighbors: &[
            Neighbor {
                peer: "2001-db8-1",
                link: "eth0",
                addresses: &["2001:db8::1/64", "10.9.0.1/24"],
                session: "local 2001:db8::1 as 64999; neighbor 2001:db8::9 as 64998;",
            },
            Neighbor {
                peer: "eth1",
                link: "eth1",
                addresses: &[],
                session: "local as 64999; neighbor range fe80::/10 external; interface \"eth0\";",
            },
            Neighbor {
                peer: "eth2",
                link: "eth2",
                addresses: &[],
                session: "local as 64512; neighbor range fe80::/10 internal; interface \"eth0\"; direct;",
            },
        ],
    },
];

pub(crate) fn add_to(suite: &mut Suite) {
    for sample in SAMPLES {
        let name = format!("frr-k8s {}: FRR tells the neighbors what is planned", sample.name);
        suite.add(Case::new(name, move |cell| same(cell, sample)));
    }
}

fn same(cell: &Cell, sample: &Sample) -> Result<()> {
    let expected = expected(cell, sample)?;
    let node = node(cell, sample.links)?;
    let path = lab::checkout().join("tests/import/frr-k8s").join(format!("{}.conf", sample.name));
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut frr = Speaker::prepare(Release::Bookworm, &cell.directory)?;
    frr.start(&node)?;
    frr.load(&text)?;
    // BIRD has one session with the same remote address at a time.
    let mut routers = Vec::new();
    for neighbor in sample.neighbors {
        routers.push(Router::start(cell, neighbor, routers.len(), &node)?);
    }
    wait_until("the neighbors are told what is planned", 3 * PATIENCE, || {
        frr.check_running()?;
        let told = routers.iter_mut().map(Router::told).collect::<Result<Vec<_>>>()?;
        let mut told = told.concat();
        told.sort();
        ensure!(told == expected, "{told:#?} in place of {expected:#?}");
        Ok(())
    })?;
    frr.stop()
}

/// The rows of node-a, without its name.
fn expected(cell: &Cell, sample: &Sample) -> Result<Vec<String>> {
    let path = format!("frr-k8s/{}.yaml", sample.name);
    let known = samples::SAMPLES.iter().find(|it| it.path == path).context("no such sample")?;
    let text = plan(cell, &imported(cell, &path)?.file, known.cluster)?;
    let rows = rows(&text);
    let rows = rows.iter().filter_map(|it| Some(it.strip_prefix("node-a: ")?.to_owned()));
    let rows: Vec<_> = rows.collect();
    ensure!(!rows.is_empty(), "no rows of node-a in {text}");
    Ok(rows)
}

/// Each of its interfaces is a bridge, so that several neighbors are on one.
fn node(cell: &Cell, links: &[Link]) -> Result<Namespace> {
    let node = Namespace::create(cell.number, "node")?;
    for (number, link) in links.iter().enumerate() {
        // The address of a bridge without one changes with its ports.
        let mac = format!("02:00:00:00:00:{number:02}");
        let bridge = ["type", "bridge", "mcast_snooping", "0"];
        node.ip(&[&["link", "add", link.name, "address", &mac], bridge.as_slice()].concat())?;
        node.ip(&["link", "set", link.name, "up"])?;
        link.addresses.iter().try_for_each(|address| node.add_address(link.name, address))?;
    }
    Ok(node)
}

/// A neighbor: BIRD in a place of its own.
struct Router {
    peer: &'static str,
    bird: Bird,
    _place: Namespace,
}

impl Router {
    /// It offers both families.
    fn start(cell: &Cell, neighbor: &Neighbor, number: usize, node: &Namespace) -> Result<Self> {
        let name = format!("router{number}");
        let place = Namespace::create(cell.number, &name)?;
        node.connect(&name, &place, "eth0")?;
        node.ip(&["link", "set", &name, "master", neighbor.link])?;
        neighbor.addresses.iter().try_for_each(|address| place.add_address("eth0", address))?;
        let mut text =
            format!("log stderr all;\nrouter id 192.0.2.{number};\nprotocol device {{}}\n");
        let mut extended = "";
        if neighbor.addresses.is_empty() {
            text +=
                "protocol radv { interface \"eth0\" { min ra interval 3; max ra interval 4; }; }\n";
            extended = "extended next hop on; ";
        }
        text += &format!(
            "protocol bgp node {{\n  {}\n  connect retry time 1;\n  connect delay time 1;\n  error wait time 1,2;\n  \
             ipv4 {{ {extended}import all; export none; }};\n  ipv6 {{ import all; export none; }};\n}}\n",
            neighbor.session
        );
        let bird = Bird::start(&place, &cell.directory, &name, &text)?;
        Ok(Self { peer: neighbor.peer, bird, _place: place })
    }

    /// What it was told, as rows of a plan.
    fn told(&mut self) -> Result<Vec<String>> {
        let peer = self.peer;
        let protocols = self.bird.ask("show protocols")?;
        let is_up = protocols.iter().any(|it| it.contains("Established"));
        ensure!(is_up, "no session of {peer} yet: {protocols:?}");
        let mut routes: Vec<(String, Vec<String>)> = Vec::new();
        for line in self.bird.ask("show route all")? {
            if line.starts_with(|it: char| it.is_ascii_hexdigit()) {
                let prefix = line.split_whitespace().next().unwrap_or_default();
                routes.push((prefix.to_owned(), Vec::new()));
            } else if let Some((_, attributes)) = routes.last_mut() {
                attributes.extend(attribute(line.trim()));
            }
        }
        if routes.is_empty() {
            return Ok(vec![format!("{peer} <none>")]);
        }
        let rows = routes.iter().map(|(prefix, attributes)| row(peer, prefix, attributes));
        Ok(rows.collect())
    }
}

fn row(peer: &str, prefix: &str, attributes: &[String]) -> String {
    let attributes =
        if attributes.is_empty() { "<none>".to_owned() } else { attributes.join(", ") };
    format!("{peer} {prefix} {attributes}")
}

/// BIRD's line about an attribute, in the words of a plan. A preference of 100 is the default of both.
fn attribute(line: &str) -> Option<String> {
    let numbers = |text: &str| text.replace(", ", ":").replace(',', ":").replace(['(', ')'], "");
    let (name, value) = line.strip_prefix("BGP.")?.split_once(": ")?;
    match name {
        "local_pref" if value != "100" => Some(format!("localPref {value}")),
        "community" => Some(format!("communities {}", numbers(value))),
        "large_community" => Some(format!("largeCommunities {}", numbers(value))),
        "med" if value != "0" => Some(format!("med {value}")),
        _ => None,
    }
}

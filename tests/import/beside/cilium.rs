//! What GoBGP tells with what Cilium's agent gives it: `cilium/NAME.toml`, by hand, has the neighbors and the policies, and on lines that
//! begin with `#+` the paths, as words of `gobgp global rib add`. The agent has the library in it, and no file.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use lab::namespace::Namespace;
use lab::process::Process;
use lab::suite::Cell;
use lab::wait::{PATIENCE, wait_until};

use super::{Daemon, Link, Neighbor, Project, Sample};

pub(super) const PROJECT: Project =
    Project { folder: "cilium", extension: "toml", daemon: "GoBGP", samples: SAMPLES, start };

const GOBGPD: &str = "/usr/bin/gobgpd";
const GOBGP: &str = "/usr/bin/gobgp";

const SAMPLES: &[Sample] = &[
    Sample {
        name: "tor-pair",
        node: "node-a",
        more: &[],
        links: &[Link { name: "eth0", vrf: "", addresses: &["fd00:10::9/64", "fd00:11::9/64"] }],
        neighbors: &[
            Neighbor {
                peer: "instance-65000-tor1",
                link: "eth0",
                addresses: &["fd00:10::1/64"],
                session: "local fd00:10::1 as 65100; neighbor fd00:10::9 port 1179 as 65000;",
            },
            Neighbor {
                peer: "instance-65000-tor2",
                link: "eth0",
                addresses: &["fd00:11::1/64"],
                session: "local fd00:11::1 as 65100; neighbor fd00:11::9 port 1179 as 65000;",
            },
        ],
    },
    Sample {
        name: "attributes",
        node: "node-a",
        more: &[
            (
                38,
                "core-rr1 10.96.0.0/28 localPref 150, communities 64512:99 65000:100 no-export, largeCommunities 64512:100:50",
            ),
            (
                38,
                "core-rr1 192.0.2.0/28 localPref 150, communities 64512:99 65000:100 no-export, largeCommunities 64512:100:50",
            ),
            (
                38,
                "core-rr2 10.96.0.0/28 localPref 150, communities 64512:99 65000:100 no-export, largeCommunities 64512:100:50",
            ),
            (
                38,
                "core-rr2 192.0.2.0/28 localPref 150, communities 64512:99 65000:100 no-export, largeCommunities 64512:100:50",
            ),
        ],
        links: &[Link { name: "eth0", vrf: "", addresses: &["10.0.0.9/24"] }],
        neighbors: &[
            Neighbor {
                peer: "core-rr1",
                link: "eth0",
                addresses: &["10.0.0.1/24"],
                session: "local 10.0.0.1 port 1790 as 64512; neighbor 10.0.0.9 as 64512;",
            },
            Neighbor {
                peer: "core-rr2",
                link: "eth0",
                addresses: &["10.0.0.2/24"],
                session: "local 10.0.0.2 port 1790 as 64512; neighbor 10.0.0.9 as 64512;",
            },
        ],
    },
    Sample {
        name: "default-gateway",
        node: "node-a",
        more: &[],
        links: &[
            Link { name: "eth0", vrf: "", addresses: &["2001:db8::9/64"] },
            Link { name: "eth1", vrf: "", addresses: &[] },
        ],
        neighbors: &[
            Neighbor {
                peer: "65001-gateway",
                link: "eth0",
                addresses: &["2001:db8::1/64"],
                session: "local 2001:db8::1 as 65000; neighbor 2001:db8::9 as 65001;",
            },
            Neighbor {
                peer: "65001-link",
                link: "eth1",
                addresses: &[],
                session: "local as 65000; neighbor range fe80::/10 external; interface \"eth0\";",
            },
        ],
    },
    Sample {
        name: "list",
        node: "node-a",
        more: &[(24, "main-a 10.244.1.0/24 <none>")],
        links: &[Link { name: "eth0", vrf: "", addresses: &["192.0.2.9/24"] }],
        neighbors: &[
            Neighbor {
                peer: "main-a",
                link: "eth0",
                addresses: &["192.0.2.1/24"],
                session: "local 192.0.2.1 as 64501; neighbor 192.0.2.9 as 64500; password \"secret\";",
            },
            Neighbor {
                peer: "main-c",
                link: "eth0",
                addresses: &["192.0.2.3/24"],
                session: "local 192.0.2.3 as 64503; neighbor 192.0.2.9 as 64500;",
            },
        ],
    },
    Sample {
        name: "peering-policy",
        node: "node-a",
        more: &[
            (11, "rack1-172.18.0.5 10.96.0.10/32 <none>"),
            (11, "rack1-172.18.0.5 10.96.0.11/32 <none>"),
            (11, "rack1-fd00-10-2 10.96.0.10/32 <none>"),
            (11, "rack1-fd00-10-2 10.96.0.11/32 <none>"),
        ],
        links: &[Link { name: "eth0", vrf: "", addresses: &["172.18.0.9/24", "fd00:10::9/64"] }],
        neighbors: &[
            Neighbor {
                peer: "rack1-172.18.0.5",
                link: "eth0",
                addresses: &["172.18.0.5/24"],
                session: "local 172.18.0.5 port 1179 as 64512; neighbor 172.18.0.9 as 64512;",
            },
            Neighbor {
                peer: "rack1-fd00-10-2",
                link: "eth0",
                addresses: &["fd00:10::2/64"],
                session: "local fd00:10::2 as 64600; neighbor fd00:10::9 as 64512;",
            },
        ],
    },
];

/// A path of the configuration has this before it.
const PATH: &str = "#+ ";

struct Gobgp(Process);

fn start(cell: &Cell, node: &Namespace, sample: &Sample, text: &str) -> Result<Box<dyn Daemon>> {
    // It looks for the neighbor of an interface once, and ends when there is none. One that only sent a router advertisement has no
    // address of the link yet.
    for link in sample.links.iter().filter(|it| it.addresses.is_empty()) {
        wait_until("the kernel knows the neighbor", PATIENCE, || {
            let known = node.ip(&["-6", "neighbor", "show", "dev", link.name, "nud", "all"])?;
            ensure!(known.lines().any(|it| it.starts_with("fe80:")), "it knows {known:?}");
            Ok(())
        })?;
    }
    let file = cell.directory.join("gobgpd.toml");
    std::fs::write(&file, text).context("writing gobgpd.toml")?;
    let mut arguments = vec!["--config-file".to_owned(), file.to_string_lossy().into_owned()];
    arguments.extend(["--api-hosts", "127.0.0.1:50051", "--pprof-disable"].map(str::to_owned));
    let log = cell.directory.join("gobgpd.log");
    let mut process = Process::spawn(node, Path::new(GOBGPD), &arguments, &log)?;
    wait_until("gobgpd answers", PATIENCE, || {
        process.check_running()?;
        node.run(GOBGP, &["global"]).map(drop)
    })?;
    for path in text.lines().filter_map(|line| line.strip_prefix(PATH)) {
        let words: Vec<_> = path.split_whitespace().collect();
        node.run(GOBGP, &[&["global", "rib", "add"], words.as_slice()].concat())?;
    }
    Ok(Box::new(Gobgp(process)))
}

impl Daemon for Gobgp {
    fn check_running(&mut self) -> Result<()> {
        self.0.check_running()
    }

    fn stop(&mut self) -> Result<()> {
        self.0.stop(PATIENCE).map(drop)
    }
}

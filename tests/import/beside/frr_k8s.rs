//! What FRR tells with a configuration as frr-k8s renders it. frr-k8s itself needs a cluster and does not run: `frr-k8s/NAME.conf`
//! is written by hand from what its own tests expect. The sample `vrf` needs a kernel that has VRFs: `make vm` has one.

use anyhow::Result;

use lab::frr_speaker::Speaker;
use lab::namespace::Namespace;
use lab::routers::Release;
use lab::suite::Cell;

use super::{Daemon, Link, Neighbor, Project, Sample};

pub(super) const PROJECT: Project =
    Project { folder: "frr-k8s", extension: "conf", daemon: "FRR", samples: SAMPLES, start };

const SAMPLES: &[Sample] = &[
    Sample {
        name: "attributes",
        node: "node-a",
        more: &[],
        links: &[Link { name: "eth0", vrf: "", addresses: &["172.18.0.1/24"] }],
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
        node: "node-a",
        more: &[],
        links: &[Link { name: "eth0", vrf: "", addresses: &["172.30.0.1/24"] }],
        neighbors: &[Neighbor {
            peer: "172.30.0.3",
            link: "eth0",
            addresses: &["172.30.0.3/24"],
            session: "local 172.30.0.3 port 180 as 64512; neighbor 172.30.0.1 as 64512;",
        }],
    },
    Sample {
        name: "by-node",
        node: "node-a",
        more: &[],
        links: &[Link { name: "eth0", vrf: "", addresses: &["10.0.0.9/24"] }],
        neighbors: &[Neighbor {
            peer: "10.0.0.1",
            link: "eth0",
            addresses: &["10.0.0.1/24"],
            session: "local 10.0.0.1 as 64500; neighbor 10.0.0.9 as 64512;",
        }],
    },
    Sample {
        name: "merged",
        node: "node-a",
        more: &[],
        links: &[Link { name: "eth0", vrf: "", addresses: &["10.0.0.9/24"] }],
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
        node: "node-a",
        more: &[],
        links: &[
            Link { name: "eth0", vrf: "", addresses: &["2001:db8::9/64", "10.9.0.9/24"] },
            Link { name: "eth1", vrf: "", addresses: &[] },
            Link { name: "eth2", vrf: "", addresses: &[] },
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
    Sample {
        name: "vrf",
        node: "node-a",
        more: &[(29, "red-192.168.5.1 192.168.100.0/24 <none>")],
        links: &[
            Link { name: "eth0", vrf: "", addresses: &["192.168.5.9/24"] },
            Link { name: "eth1", vrf: "red", addresses: &["192.168.5.9/24"] },
        ],
        neighbors: &[
            Neighbor {
                peer: "192.168.5.1",
                link: "eth0",
                addresses: &["192.168.5.1/24"],
                session: "local 192.168.5.1 as 64513; neighbor 192.168.5.9 as 64512; password \"swordfish\"; hold time 90; \
                          bfd on;",
            },
            Neighbor {
                peer: "red-192.168.5.1",
                link: "eth1",
                addresses: &["192.168.5.1/24"],
                session: "local 192.168.5.1 as 64514; neighbor 192.168.5.9 as 64512; password \"hunter2\"; hold time 90;",
            },
        ],
    },
];

fn start(cell: &Cell, node: &Namespace, sample: &Sample, text: &str) -> Result<Box<dyn Daemon>> {
    // 8.4 takes no route of `network` from another VRF: it has no next hop there.
    let release = if sample.needs_vrfs() { Release::Trixie } else { Release::Bookworm };
    let mut frr = Speaker::prepare(release, &cell.directory)?;
    frr.start(node)?;
    frr.load(text)?;
    Ok(Box::new(frr))
}

impl Daemon for Speaker {
    fn check_running(&mut self) -> Result<()> {
        Speaker::check_running(self)
    }

    fn stop(&mut self) -> Result<()> {
        Speaker::stop(self)
    }
}

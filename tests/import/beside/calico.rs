//! What BIRD tells with a configuration as Calico's confd writes it: `calico/NAME.conf`, or `calico/NAME-NODE.conf`, by hand from its
//! templates, in the syntax of BIRD 2. Calico's node runs its own BIRD 1.6, once for each family.

use anyhow::Result;

use lab::bird::Bird;
use lab::namespace::Namespace;
use lab::suite::Cell;

use super::{Daemon, Link, Neighbor, Project, Sample};

pub(super) const PROJECT: Project =
    Project { folder: "calico", extension: "conf", daemon: "BIRD", samples: SAMPLES, start };

const SAMPLES: &[Sample] = &[
    Sample {
        name: "services",
        node: "node-a",
        more: &[(15, "router 192.0.2.64/26 <none>")],
        links: &[Link { name: "eth0", vrf: "", addresses: &["10.0.0.9/24"] }],
        neighbors: &[Neighbor {
            peer: "router",
            link: "eth0",
            addresses: &["10.0.0.1/24"],
            session: "local 10.0.0.1 as 64512; neighbor 10.0.0.9 as 64512;",
        }],
    },
    Sample {
        name: "crds",
        node: "node-a",
        more: &[(12, "edge 192.168.0.0/26 <none>")],
        links: &[Link { name: "eth0", vrf: "", addresses: &["10.1.1.9/24"] }],
        neighbors: &[Neighbor {
            peer: "edge",
            link: "eth0",
            addresses: &["10.1.1.1/24"],
            session: "local 10.1.1.1 as 64999; neighbor 10.1.1.9 as 64512;",
        }],
    },
    Sample {
        name: "filters",
        node: "node-a",
        more: &[
            (41, "marked 10.0.0.0/24 <none>"),
            (41, "marked 192.0.2.0/24 <none>"),
            (41, "marked 198.51.100.0/24 <none>"),
            (61, "lost 192.0.2.0/24 <none>"),
            (61, "lost 198.51.100.0/24 <none>"),
        ],
        links: &[Link { name: "eth0", vrf: "", addresses: &["10.0.0.9/24"] }],
        neighbors: &[
            Neighbor {
                peer: "router",
                link: "eth0",
                addresses: &["10.0.0.1/24"],
                session: "local 10.0.0.1 as 65000; neighbor 10.0.0.9 as 65546;",
            },
            Neighbor {
                peer: "marked",
                link: "eth0",
                addresses: &["10.0.0.2/24"],
                session: "local 10.0.0.2 as 65000; neighbor 10.0.0.9 as 65546; enforce first as off;",
            },
            Neighbor {
                peer: "lost",
                link: "eth0",
                addresses: &["10.0.0.3/24"],
                session: "local 10.0.0.3 as 65000; neighbor 10.0.0.9 as 65546;",
            },
        ],
    },
    Sample {
        name: "nodes",
        node: "rack1-host1",
        more: &[],
        links: HOST_OF_RACK_1,
        neighbors: &[
            Neighbor {
                peer: "rack1-host1",
                link: "eth0",
                addresses: &["192.168.1.1/24"],
                session: "local 192.168.1.1 as 63400; neighbor 192.168.1.11 as 64512;",
            },
            EVERYTHING,
            SEALED,
        ],
    },
    Sample {
        name: "nodes",
        node: "rack1-host3",
        more: &[(20, "rack1-host3 <none>")],
        links: HOST_OF_RACK_1,
        neighbors: &[
            Neighbor {
                peer: "rack1-host3",
                link: "eth0",
                addresses: &["192.168.1.1/24"],
                session: "local 192.168.1.1 as 63401; neighbor 192.168.1.11 as 64512;",
            },
            EVERYTHING,
            SEALED,
        ],
    },
    Sample {
        name: "racks",
        node: "node-a",
        more: &[],
        links: &[Link { name: "eth0", vrf: "", addresses: &["192.20.30.9/24"] }],
        neighbors: &[Neighbor {
            peer: "rack1-tor",
            link: "eth0",
            addresses: &["192.20.30.40/24"],
            session: "local 192.20.30.40 as 64567; neighbor 192.20.30.9 as 63400;",
        }],
    },
    Sample {
        name: "racks",
        node: "node-b",
        more: &[],
        links: &[Link { name: "eth0", vrf: "", addresses: &["2001:db8:2::9/64"] }],
        neighbors: &[Neighbor {
            peer: "rack2-tor",
            link: "eth0",
            addresses: &["2001:db8:2::1/64"],
            session: "local 2001:db8:2::1 as 64568; neighbor 2001:db8:2::9 as 63400;",
        }],
    },
    Sample {
        name: "route-reflectors",
        node: "rr-1",
        more: &[],
        links: &[Link { name: "eth0", vrf: "", addresses: &["10.9.0.2/24"] }],
        neighbors: &[Neighbor {
            peer: "spine",
            link: "eth0",
            addresses: &["10.9.0.1/24"],
            session: "local 10.9.0.1 as 64512; neighbor 10.9.0.2 as 64512;",
        }],
    },
    Sample {
        name: "route-reflectors",
        node: "spine-1",
        more: &[],
        links: &[Link { name: "eth0", vrf: "", addresses: &["10.9.0.3/24"] }],
        neighbors: &[Neighbor {
            peer: "spine",
            link: "eth0",
            addresses: &["10.9.0.1/24"],
            session: "local 10.9.0.1 as 64512; neighbor 10.9.0.3 as 64512;",
        }],
    },
];

/// Of both hosts of the sample `nodes`: each has a namespace of its own.
const HOST_OF_RACK_1: &[Link] = &[Link {
    name: "eth0",
    vrf: "",
    addresses: &["192.168.1.11/24", "192.168.9.11/24", "2001:db8::11/64"],
}];

/// The hold time is longer than the time between the KEEPALIVEs that the sample sets.
const EVERYTHING: Neighbor = Neighbor {
    peer: "everything",
    link: "eth0",
    addresses: &["2001:db8::9/64"],
    session: "local 2001:db8::9 port 1790 as 63500; neighbor 2001:db8::11 as 63510; password \"correct horse\"; \
              ttl security on; hold time 240;",
};

const SEALED: Neighbor = Neighbor {
    peer: "sealed",
    link: "eth0",
    addresses: &["192.168.9.1/24"],
    session: "local 192.168.9.1 as 64512; neighbor 192.168.9.11 as 64512;",
};

fn start(cell: &Cell, node: &Namespace, _: &Sample, text: &str) -> Result<Box<dyn Daemon>> {
    Ok(Box::new(Bird::start(node, &cell.directory, "node", text)?))
}

impl Daemon for Bird {
    fn check_running(&mut self) -> Result<()> {
        Bird::check_running(self)
    }

    /// It ends with its value.
    fn stop(&mut self) -> Result<()> {
        Ok(())
    }
}

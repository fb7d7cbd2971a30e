//! A node with Fairway, and a router with BIRD on the same cable.

use std::fmt::Write;
use std::path::Path;

use anyhow::Result;
use lab::bird::Bird;
use lab::fairway::Fairway;
use lab::frr_speaker::Speaker;
use lab::namespace::Namespace;
use lab::routers::Release;

use crate::client::ADDRESS;

/// The router announces these: two with a community, one through another AS.
const ROUTES: &str = "route 203.0.113.0/24 blackhole { bgp_community.add((65010,77)); };
    route 203.0.113.128/25 blackhole { bgp_community.add((65535,65281)); bgp_path.prepend(65099); };";

/// Who speaks BGP for the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Native,
    Frr,
}

pub(crate) struct Scene {
    pub(crate) node: Namespace,
    pub(crate) router: Namespace,
    pub(crate) fairway: Fairway,
    pub(crate) bird: Bird,
    _frr: Option<Speaker>,
}

impl Scene {
    /// With so many sessions between the two.
    pub(crate) fn build(
        cell: usize,
        folder: &Path,
        backend: Backend,
        sessions: u8,
    ) -> Result<Self> {
        let (node, router) = (Namespace::create(cell, "node")?, Namespace::create(cell, "router")?);
        node.connect("eth0", &router, "eth0")?;
        let mut fairway = Fairway::prepare_in(folder)?;
        fairway.log_level = "info";
        fairway.extra_arguments =
            ["--metrics-listen", "none", "--ui-listen", ADDRESS].map(str::to_owned).to_vec();
        let mut resources = String::from(RESOURCES);
        let mut configuration = String::from(
            "log stderr all;\nrouter id 10.0.0.2;\nprotocol device {}\nprotocol static { ipv4; ",
        );
        configuration.push_str(ROUTES);
        configuration.push_str("}\nprotocol kernel { ipv4 { export where source = RTS_BGP; }; }\n");
        for place in 0..sessions {
            // A network for each: BIRD tells sessions apart by the address of the neighbor.
            let address = format!("10.0.{place}.2");
            node.add_address("eth0", &format!("10.0.{place}.1/24"))?;
            router.add_address("eth0", &format!("{address}/24"))?;
            write!(resources, "---\n{}", peer(&format!("tor-{}", place + 1), &address))?;
            writeln!(
                configuration,
                "protocol bgp tor_{place} {{ local {address} as 65010; neighbor 10.0.{place}.1 as 65001; hold time 9; \
                 connect retry time 1; connect delay time 1; error wait time 1, 2; \
                 ipv4 {{ import all; export where source = RTS_STATIC; }}; }}"
            )?;
        }
        fairway.apply("lab", &resources)?;
        let frr = match backend {
            Backend::Native => None,
            Backend::Frr => {
                let mut frr = Speaker::prepare(Release::Bookworm, folder)?;
                frr.start(&node)?;
                let sockets = frr.directory().to_string_lossy().into_owned();
                fairway.extra_arguments.extend(["--bgp".to_owned(), "frr".to_owned()]);
                fairway.extra_arguments.extend(["--frr-socket-dir".to_owned(), sockets]);
                Some(frr)
            }
        };
        fairway.start(&node)?;
        let bird = Bird::start(&router, folder, "bird", &configuration)?;
        Ok(Self { node, router, fairway, bird, _frr: frr })
    }
}

fn peer(name: &str, address: &str) -> String {
    format!(
        "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {{name: {name}}}\nspec: {{myASN: 65001, peerASN: 65010, \
         peerAddress: {address}, routerID: 10.0.0.1, holdTime: 9s, keepaliveTime: 3s, connectTime: 1s, \
         toReceive: {{allowed: {{mode: all}}}}}}\n"
    )
}

/// A Service with this address.
pub(crate) fn service(name: &str, address: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: shop, annotations: \
         {{metallb.io/loadBalancerIPs: {address}}}}}\nspec: {{type: LoadBalancer, ports: [{{port: 80}}]}}\n"
    )
}

const RESOURCES: &str = "
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: public}
spec: {addresses: [198.51.100.0/24]}
---
apiVersion: metallb.io/v1beta1
kind: Community
metadata: {name: names}
spec: {communities: [{name: of-customers, value: '65010:77'}]}
---
apiVersion: metallb.io/v1beta1
kind: BGPAdvertisement
metadata: {name: public}
spec: {ipAddressPools: [public]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, annotations: {metallb.io/loadBalancerIPs: 198.51.100.10}}
spec: {type: LoadBalancer, ports: [{port: 80}]}
";

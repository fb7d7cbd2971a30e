//! Services come, change and go: their addresses are in their status, their routes on the routers.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::api::word;
use crate::objects::{SYSTEM, advertisement, pool, service, service_at, slice};
use crate::stage::{NODES, SHOP, Stage};
use lab::wait::{PATIENCE, wait_until};

/// As a user writes it. The other peer exists already.
const APPLIED: &str = r#"
apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: frr, namespace: metallb-system}
spec:
  myASN: 65001
  peerASN: 65002
  peerAddress: 10.90.0.21
  dualStackAddressFamily: true
  enableGracefulRestart: true
---
apiVersion: metallb.io/v1beta1
kind: BFDProfile
metadata: {name: quick, namespace: metallb-system}
spec: {receiveInterval: 300, transmitInterval: 300, detectMultiplier: 3}
---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: first, namespace: metallb-system}
spec:
  addresses: [198.51.100.0/28, "2001:db8:51::/124"]
---
apiVersion: metallb.io/v1beta1
kind: BGPAdvertisement
metadata: {name: first, namespace: metallb-system}
spec:
  ipAddressPools: [first]
  communities: ["65001:100"]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: LoadBalancer
  ipFamilyPolicy: PreferDualStack
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: web-1
  namespace: shop
  labels: {kubernetes.io/service-name: web}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints:
- addresses: [10.244.1.7]
  conditions: {ready: true}
  nodeName: node-b
"#;

/// `kubectl apply` of a whole file leads to addresses in `kubectl get svc`, and to routes of both
/// families by all three nodes, as the routers' operators see them.
pub(super) fn what_is_applied_gets_an_address_and_routes(stage: &mut Stage) -> Result<()> {
    let reported_become = |stage: &Stage, expected: usize| {
        wait_until(&format!("{expected} sessions with FRR are reported"), PATIENCE, || {
            let all = stage.api.list("BGPSessionState", SYSTEM)?;
            let of_frr = all.iter().filter(|it| it["status"]["peer"] == "10.90.0.21").count();
            ensure!(of_frr == expected, "there are {of_frr}");
            Ok(())
        })
    };
    // What was not written yet would not have to be deleted either.
    reported_become(stage, NODES.len())?;
    stage.api.delete("BGPPeer", SYSTEM, "frr")?;
    reported_become(stage, 0)?;
    let file = stage.directory.join("applied.yaml");
    std::fs::write(&file, APPLIED)?;
    let said = stage.kubectl(&["apply", "-f", &file.display().to_string()])?;
    ensure!(said.matches(" created").count() == 6, "kubectl apply says {said}");
    stage.routes_become("198.51.100.0/32", &NODES)?;
    stage.routes_become("2001:db8:51::/128", &NODES)?;
    let shown = stage.kubectl(&["get", "svc", "web", "-n", SHOP])?;
    ensure!(shown.contains("198.51.100.0,2001:db8:51::"), "kubectl get svc prints {shown}");
    let shown = stage.router("frr")?.router.screen("show bgp")?;
    ensure!(shown.contains("2001:db8:51::/128"), "vtysh prints {shown}");
    let shown = stage.router("frr")?.router.screen("show bgp ipv4")?;
    ensure!(shown.contains("198.51.100.0/32"), "vtysh prints {shown}");
    let route = stage.router("bird")?.router.route("198.51.100.0/32")?.context("no route")?;
    ensure!(route.communities.contains("65001:100"), "BIRD has {:?}", route.communities);
    // Applied once more it is the same, and nothing moves.
    let said = stage.kubectl(&["apply", "-f", &file.display().to_string()])?;
    ensure!(said.matches(" unchanged").count() == 6, "kubectl apply says {said}");
    stage.routes_stay("198.51.100.0/32", &NODES)
}

/// The address that a Service wants is changed, the Service is made another type and back, and
/// deleted; each time routes come and go with it.
pub(super) fn a_service_is_announced_edited_and_deleted(stage: &mut Stage) -> Result<()> {
    serve(stage, "192.0.2.0/24")?;
    stage.api.apply_all(&[
        service_at(SHOP, "web", "192.0.2.10", json!({})),
        slice(SHOP, "web", &[("node-a", true)]),
    ])?;
    stage.addresses_become("web", &["192.0.2.10"])?;
    stage.routes_become("192.0.2.10", &NODES)?;
    let annotation = "/metadata/annotations/metallb.io~1ip-allocated-from-pool";
    let of_pool = word(&stage.api.get("Service", SHOP, "web")?, annotation).to_owned();
    ensure!(of_pool == "main", "the annotation says {of_pool:?}");

    let wish =
        json!({ "metadata": { "annotations": { "metallb.io/loadBalancerIPs": "192.0.2.20" } } });
    stage.api.patch("Service", SHOP, "web", &wish)?;
    stage.routes_become("192.0.2.20", &NODES)?;
    stage.routes_become("192.0.2.10", &[])?;
    stage.addresses_become("web", &["192.0.2.20"])?;

    // Without endpoints there is nothing to send traffic to; the address stays.
    stage.api.apply(&slice(SHOP, "web", &[("node-a", false)]))?;
    stage.routes_become("192.0.2.20", &[])?;
    stage.addresses_become("web", &["192.0.2.20"])?;
    stage.api.apply(&slice(SHOP, "web", &[("node-c", true)]))?;
    stage.routes_become("192.0.2.20", &NODES)?;

    stage.api.patch("Service", SHOP, "web", &json!({ "spec": { "type": "ClusterIP" } }))?;
    stage.routes_become("192.0.2.20", &[])?;
    stage.addresses_become("web", &[])?;
    stage.api.patch("Service", SHOP, "web", &json!({ "spec": { "type": "LoadBalancer" } }))?;
    stage.routes_become("192.0.2.20", &NODES)?;

    stage.api.delete("Service", SHOP, "web")?;
    stage.routes_become("192.0.2.20", &[])
}

/// With externalTrafficPolicy Local only nodes with a ready endpoint announce, and that follows the
/// endpoints as they move.
pub(super) fn local_routes_follow_their_endpoints(stage: &mut Stage) -> Result<()> {
    serve(stage, "192.0.2.0/24")?;
    let local = json!({ "externalTrafficPolicy": "Local" });
    stage.api.apply_all(&[
        service_at(SHOP, "web", "192.0.2.30", local),
        slice(SHOP, "web", &[("node-a", true), ("node-b", false)]),
    ])?;
    stage.routes_become("192.0.2.30", &["node-a"])?;
    for endpoints in [
        &[("node-a", true), ("node-b", true)][..],
        &[("node-b", true)],
        &[("node-c", true), ("node-a", true)],
        &[("node-a", false), ("node-c", true)],
    ] {
        stage.api.apply(&slice(SHOP, "web", endpoints))?;
        let ready = endpoints.iter().filter(|(_, is_ready)| *is_ready);
        let nodes: Vec<&str> = ready.map(|(node, _)| *node).collect();
        stage.routes_become("192.0.2.30", &nodes)?;
    }
    stage.api.delete("EndpointSlice", SHOP, "web-1")?;
    stage.routes_become("192.0.2.30", &[])
}

/// The attributes of an advertisement, and its peers, change in place; a pool that goes takes the addresses
/// that it gave; one that comes gives.
pub(super) fn advertisements_and_pools_are_edited(stage: &mut Stage) -> Result<()> {
    serve(stage, "192.0.2.0/24")?;
    stage
        .api
        .apply_all(&[service(SHOP, "web", json!({})), slice(SHOP, "web", &[("node-a", true)])])?;
    let address = stage.address_of("web")?;
    let prefix = format!("{address}/32");
    stage.routes_become(&address, &NODES)?;
    let fields = json!({ "communities": ["65001:7"], "asPathPrepend": 2, "med": 40 });
    stage.api.apply(&advertisement("main", &["main"], fields))?;
    for router in &mut stage.routers {
        wait_until(&format!("{} has the route as it is now", router.name), PATIENCE, || {
            let route = router.router.route(&prefix)?.context("there is none")?;
            let is_it = route.communities.contains("65001:7") && route.as_path.len() == 3;
            ensure!(is_it && route.med == Some(40), "it says {route:?}");
            Ok(())
        })?;
    }
    let only_bird = json!({ "communities": ["65001:7"], "peers": ["bird"] });
    stage.api.apply(&advertisement("main", &["main"], only_bird))?;
    stage.routes_of_become(&["frr"], &address, &[])?;
    stage.routes_of_become(&["bird"], &address, &NODES)?;
    stage.api.apply(&advertisement("main", &["main"], json!({})))?;
    stage.routes_become(&address, &NODES)?;

    // Another pool takes over: the address is of no pool any more, and is given up for one that is.
    stage.api.apply(&pool("other", &["203.0.113.0/28"]))?;
    stage.api.apply(&advertisement("other", &["other"], json!({})))?;
    stage.api.delete("IPAddressPool", SYSTEM, "main")?;
    stage.addresses_become("web", &["203.0.113.0"])?;
    stage.routes_become("203.0.113.0", &NODES)?;
    stage.routes_become(&address, &[])?;
    stage.api.delete("BGPAdvertisement", SYSTEM, "other")?;
    stage.routes_become("203.0.113.0", &[])
}

/// A Service that gets no address has the reason in its status and in an Event; when there is room it is
/// served, and both report that.
pub(super) fn a_service_without_room_says_so(stage: &mut Stage) -> Result<()> {
    serve(stage, "192.0.2.64/32")?;
    stage.api.apply(&service(SHOP, "first", json!({})))?;
    stage.addresses_become("first", &["192.0.2.64"])?;
    stage.api.apply(&service(SHOP, "second", json!({})))?;
    wait_until("the status of the second has the reason", PATIENCE, || {
        let second = stage.api.get("Service", SHOP, "second")?;
        let condition = condition(&second, "metallb.io/AddressAssigned").context("no condition")?;
        ensure!(condition["status"] == "False", "it says {condition}");
        ensure!(word(condition, "/message").contains("no available IPs"), "it says {condition}");
        Ok(())
    })?;
    event(stage, "second", "AllocationFailed")?;
    event(stage, "first", "IPAllocated")?;
    stage.api.delete("Service", SHOP, "first")?;
    stage.addresses_become("second", &["192.0.2.64"])?;
    wait_until("the condition is gone", PATIENCE, || {
        let second = stage.api.get("Service", SHOP, "second")?;
        let left =
            condition(&second, "metallb.io/AddressAssigned").filter(|it| it["status"] == "False");
        ensure!(left.is_none(), "it says {left:?}");
        Ok(())
    })?;
    event(stage, "second", "IPAllocated")
}

/// A pool called `main`, announced to all routers.
pub(super) fn serve(stage: &Stage, addresses: &str) -> Result<()> {
    stage.api.apply_all(&[pool("main", &[addresses]), advertisement("main", &["main"], json!({}))])
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|it| it["type"] == kind)
}

/// Waits for an Event about a Service of the shop.
pub(super) fn event(stage: &Stage, service: &str, reason: &str) -> Result<()> {
    wait_until(&format!("an Event {reason} about {service}"), PATIENCE, || {
        let events = stage.api.list("Event", SHOP)?;
        let about = |event: &&Value| {
            word(event, "/involvedObject/name") == service && word(event, "/reason") == reason
        };
        let reasons = events.iter().map(|it| word(it, "/reason")).collect::<Vec<_>>();
        events.iter().find(about).map(drop).with_context(|| format!("there are {reasons:?}"))
    })
}

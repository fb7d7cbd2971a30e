//! Where the speakers are: one address of each node, from the EndpointSlices of their Service.
//!
//! Also those that are not ready, and those whose pod does not have the port yet: their nodes are what an operator looks
//! for.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fairway_model::Kind;
use kube::api::ListParams;
use serde_json::Value;

use crate::kubernetes::api::{Api, Problem};
use crate::kubernetes::page::ManagedFields;
use crate::kubernetes::resource::Resource;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// The speakers behind the Service of this name, by their nodes.
pub(super) async fn list(
    api: &Api,
    service: &str,
) -> Result<BTreeMap<String, Option<SocketAddr>>, Problem> {
    let slices = Resource::read(Kind::EndpointSlice).in_namespace(&api.namespace);
    // From the memory of the API server: a hundred endpoints are one object.
    let parameters =
        ListParams::default().labels(&format!("kubernetes.io/service-name={service}")).match_any();
    let request = kube::core::Request::new(slices).list(&parameters);
    let request = request.map_err(Problem::of_request)?;
    let page = api.list(request, ManagedFields::Skipped, REQUEST_TIMEOUT).await?;
    Ok(by_node(&page.items))
}

/// `None`: there is a speaker, and its pod does not have the port of the Service.
fn by_node(slices: &[Value]) -> BTreeMap<String, Option<SocketAddr>> {
    let mut nodes = BTreeMap::new();
    for slice in slices {
        let port = slice.pointer("/ports/0/port").and_then(Value::as_u64);
        let port = port.and_then(|it| u16::try_from(it).ok());
        let endpoints = slice.get("endpoints").and_then(Value::as_array);
        for endpoint in endpoints.into_iter().flatten() {
            let address = endpoint.pointer("/addresses/0").and_then(Value::as_str);
            let address: Option<IpAddr> = address.and_then(|it| it.parse().ok());
            let Some(node) = endpoint.get("nodeName").and_then(Value::as_str) else { continue };
            let found: &mut Option<SocketAddr> = nodes.entry(node.to_owned()).or_default();
            *found = found.or(address.zip(port).map(|(address, port)| (address, port).into()));
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_node_has_one_address() {
        let slice = |addresses: [&str; 2]| {
            json!({
                "ports": [{ "name": "node-api", "port": 7474 }],
                "endpoints": [
                    { "nodeName": "a", "addresses": [addresses[0]] },
                    { "nodeName": "b", "addresses": [addresses[1]], "conditions": { "ready": false } },
                    { "addresses": ["192.0.2.3"] },
                    { "nodeName": "c", "addresses": [] },
                ],
            })
        };
        let found = by_node(&[
            slice(["192.0.2.1", "192.0.2.2"]),
            slice(["2001:db8::1", "2001:db8::2"]),
            json!({ "endpoints": null }),
            json!({ "ports": null, "endpoints": [{ "nodeName": "d", "addresses": ["192.0.2.4"] }] }),
        ]);
        let found: Vec<_> = found.iter().map(|(node, at)| format!("{node} {at:?}")).collect();
        let [a, b] = ["a Some(192.0.2.1:7474)", "b Some(192.0.2.2:7474)"];
        // Of `d` only the pod is known.
        assert_eq!(found, [a, b, "c None", "d None"]);
    }
}

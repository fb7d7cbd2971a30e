//! Clusters as manifests, and what a node has of them.

mod endpoints;
mod histories;
mod rules;
mod virtual_servers;

use std::sync::Arc;

use fairway_model::{Node, Object, ObjectChange};
use fairway_resources::{BackendKind, Catalog};
use serde_json::Value;

use crate::{Place, Planner, report};

/// The node that plans, unless a manifest has another.
const NODE: &str = "apiVersion: v1
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}
status: {addresses: [{type: InternalIP, address: 10.0.0.1}, {type: InternalIP, address: 'fd00::1'}]}
";

/// The objects of a manifest without a fault.
fn objects(manifest: &str) -> Vec<Object> {
    let mut catalog = Catalog::for_backend(BackendKind::Proxy);
    catalog.file_read("m.yaml", manifest);
    let resolution = catalog.resolve();
    assert!(resolution.findings.is_empty(), "{:?}", resolution.findings);
    resolution.objects
}

fn present(object: Object) -> ObjectChange {
    (Arc::new(object.key()), Some(Arc::new(object)))
}

/// What [`NODE`] plans of this manifest.
fn planned(manifest: &str) -> Planner {
    let manifest = if manifest.contains("kind: Node\n") {
        manifest.to_owned()
    } else {
        format!("{NODE}---\n{manifest}")
    };
    let objects = objects(&manifest);
    let node = objects.iter().find_map(|it| match it {
        Object::Node(node) if node.name == "n1" => Some(Place::of(node)),
        _ => None,
    });
    let mut planner =
        Planner::new(node.unwrap_or_else(|| Place::of(&Node::assumed("n1", Vec::new()))));
    planner.follow(objects.into_iter().map(present));
    planner
}

/// The same as JSON.
fn plan(manifest: &str) -> Value {
    report::json(planned(manifest).wanted())
}

/// A Service with this specification, one line for each field.
fn service(name: &str, spec: &str) -> String {
    let spec: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    format!("---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec:\n{spec}")
}

/// The slice of a Service with an unnamed TCP port 8080 and these endpoints, each as `address@node` with words behind
/// it: `unready`, `leaving` (serving and terminating), `gone` (neither), `zone=Z`, `for=N`.
fn slice(service: &str, endpoints: &[&str]) -> String {
    slice_with(service, "[{protocol: TCP, port: 8080}]", endpoints)
}

fn slice_with(service: &str, ports: &str, endpoints: &[&str]) -> String {
    let family = if endpoints.iter().any(|it| it.contains("::")) { "IPv6" } else { "IPv4" };
    let mut text = format!(
        "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata:\n  name: {service}-{}\n  \
         labels: {{kubernetes.io/service-name: {service}}}\naddressType: {family}\nports: {ports}\nendpoints:\n",
        family.to_lowercase()
    );
    for endpoint in endpoints {
        let mut words = endpoint.split_whitespace();
        let (address, node) = words.next().and_then(|it| it.split_once('@')).unwrap();
        let node = if node.is_empty() { String::new() } else { format!(", nodeName: {node}") };
        let (mut conditions, mut hints) = ("ready: true", String::new());
        for word in words {
            match word.split_once('=') {
                None if word == "unready" => conditions = "ready: false",
                None if word == "leaving" => {
                    conditions = "ready: false, serving: true, terminating: true"
                }
                None if word == "gone" => {
                    conditions = "ready: false, serving: false, terminating: true"
                }
                Some(("zone", zone)) => hints += &format!("forZones: [{{name: {zone}}}], "),
                Some(("for", node)) => hints += &format!("forNodes: [{{name: {node}}}], "),
                _ => panic!("{word}"),
            }
        }
        text += &format!(
            "- {{addresses: ['{address}']{node}, conditions: {{{conditions}}}, hints: {{{hints}}}}}\n"
        );
    }
    text
}

/// The list of a plan as lines: `address:port/protocol` and what `rest` makes of each element.
fn lines(plan: &Value, list: &str, rest: fn(&Value) -> String) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let line = |it: &Value| {
        let at = format!("{} {}/{}", text(&it["address"]), it["port"], text(&it["protocol"]));
        format!("{at} {}", rest(it)).trim_end().to_owned()
    };
    plan[list].as_array().unwrap().iter().map(line).collect()
}

/// The virtual servers with their real servers.
fn servers(plan: &Value) -> Vec<String> {
    lines(plan, "virtualServers", |it| {
        let real = it["realServers"].as_array().unwrap().iter();
        real.map(|it| format!("{}:{}", it["address"].as_str().unwrap(), it["port"]))
            .collect::<Vec<_>>()
            .join(" ")
    })
}

/// The rules of the filter.
fn rules(plan: &Value) -> Vec<String> {
    lines(plan, "filter", |it| {
        let none = it["noEndpoints"].as_str().unwrap_or_default();
        let sources = match &it["allowedSources"] {
            Value::Null => String::new(),
            some => some.to_string().replace('"', ""),
        };
        let words = [it["masquerade"].as_str().unwrap(), none, &sources];
        words.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ")
    })
}

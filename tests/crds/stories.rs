//! What becomes of objects that were taken: defaults, unknown fields, changes, statuses, versions,
//! and how kubectl shows them.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use fairway_resources::status::{
    BgpSessionStateStatus, Condition, ConditionStatus, ConfigurationResult,
    ConfigurationStateStatus, InterfaceStatus, IpAddressPoolStatus, ServiceBgpStatus,
    ServiceL2Status,
};
use fairway_resources::{CustomResourceDefinition, parse_value};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{create, object, path_of};
use lab::cluster::Cluster;

type Story = fn(&Cluster) -> Result<()>;

/// Tells each.
pub(crate) fn all(cluster: &Cluster) -> Result<()> {
    let stories: [(&str, Story); 8] = [
        ("defaults are MetalLB's, and no more", defaults),
        ("unknown fields are left out, or refused where that is asked for", unknown_fields),
        ("what may not change cannot be changed", immutable_fields),
        ("a BGPPeer of v1beta1 is one of v1beta2", versions),
        ("statuses are written beside the spec and read back", statuses),
        ("kubectl shows columns and explains fields", shown_by_kubectl),
        ("all examples are taken", examples),
        ("the definitions of MetalLB, with their webhook, give way to ours", over_metallb),
    ];
    for (name, story) in stories {
        story(cluster).with_context(|| format!("not so: {name}"))?;
        println!("crds: {name}");
    }
    Ok(())
}

fn peer(name: &str) -> Value {
    let spec = json!({ "myASN": 64512, "peerASN": 64513, "peerAddress": "192.0.2.1" });
    object("BGPPeer", name, &spec)
}

/// The object as the API server has it, once it was taken.
fn taken(cluster: &Cluster, object: &Value) -> Result<Value> {
    let reply = create(cluster, object)?;
    ensure!(reply.status == 201, "{object} is refused: {}", reply.text);
    reply.json()
}

fn defaults(cluster: &Cluster) -> Result<()> {
    for (kind, given, expected) in [
        (
            "BGPPeer",
            json!({ "myASN": 1 }),
            json!({ "myASN": 1, "peerPort": 179, "disableMP": false, "dualStackAddressFamily": false }),
        ),
        ("BFDProfile", json!({}), json!({})),
        (
            "IPAddressPool",
            json!({ "addresses": [] }),
            json!({ "addresses": [], "autoAssign": true, "avoidBuggyIPs": false }),
        ),
        (
            "BGPAdvertisement",
            json!({}),
            json!({ "aggregationLength": 32, "aggregationLengthV6": 128 }),
        ),
        ("L2Advertisement", json!({}), json!({})),
        ("Community", json!({}), json!({})),
        ("BGPConfiguration", json!({}), json!({})),
    ] {
        let made = taken(cluster, &object(kind, "defaults", &given))?;
        ensure!(made["spec"] == expected, "{kind}: {} is not {expected}", made["spec"]);
    }
    Ok(())
}

fn unknown_fields(cluster: &Cluster) -> Result<()> {
    let mut odd = peer("unknown-fields");
    odd["spec"]["peerAdress"] = json!("192.0.2.1");
    odd["spec"]["passwordSecret"] = json!({ "name": "key", "nmae": "key" });
    let strictly = format!("{}?fieldValidation=Strict", path_of(&odd)?);
    let reply = cluster.ask("POST", &strictly, Some(&odd))?;
    for field in ["spec.peerAdress", "spec.passwordSecret.nmae"] {
        let says = format!("unknown field \\\"{field}\\\"");
        ensure!(reply.status == 400 && reply.text.contains(&says), "{}", reply.text);
    }
    let reply =
        cluster.ask("POST", &format!("{}?fieldValidation=Warn", path_of(&odd)?), Some(&odd))?;
    let made = reply.json()?;
    ensure!(reply.warnings.iter().any(|it| it.contains("spec.peerAdress")), "{:?}", reply.warnings);
    ensure!(made["spec"].get("peerAdress").is_none(), "{made}");
    ensure!(made["spec"]["passwordSecret"] == json!({ "name": "key" }), "{made}");
    Ok(())
}

fn immutable_fields(cluster: &Cluster) -> Result<()> {
    let mut first = peer("immutable");
    first["spec"]["enableGracefulRestart"] = json!(true);
    taken(cluster, &first)?;
    let path = format!("{}/immutable", path_of(&first)?);
    let change = |fields: Value| cluster.ask("PATCH", &path, Some(&json!({ "spec": fields })));
    let reply = change(json!({ "enableGracefulRestart": false }))?;
    let says = "cannot be changed after creation";
    ensure!(reply.status == 422 && reply.text.contains(says), "{}", reply.text);
    ensure!(change(json!({ "holdTime": "30s", "enableGracefulRestart": true }))?.status == 200);

    let status = ServiceL2Status {
        node: "a".to_owned(),
        service_name: "web".to_owned(),
        service_namespace: "default".to_owned(),
        interfaces: Vec::new(),
    };
    let l2 = object("ServiceL2Status", "l2-immutable", &Value::Null);
    taken(cluster, &l2)?;
    let path = format!("{}/l2-immutable/status", path_of(&l2)?);
    let write = |status: &ServiceL2Status| {
        cluster.ask("PATCH", &path, Some(&json!({ "status": serde_json::to_value(status)? })))
    };
    ensure!(write(&status)?.status == 200);
    let on_an_interface = ServiceL2Status {
        interfaces: vec![InterfaceStatus { name: "eth0".to_owned() }],
        ..status.clone()
    };
    ensure!(write(&on_an_interface)?.status == 200);
    for other in [
        ServiceL2Status { node: "b".to_owned(), ..status.clone() },
        ServiceL2Status { service_name: "dns".to_owned(), ..status.clone() },
        ServiceL2Status { service_namespace: "shop".to_owned(), ..status.clone() },
    ] {
        let reply = write(&other)?;
        ensure!(reply.status == 422 && reply.text.contains(says), "{}", reply.text);
    }
    Ok(())
}

fn versions(cluster: &Cluster) -> Result<()> {
    let mut old = peer("versions");
    old["apiVersion"] = json!("metallb.io/v1beta1");
    let old_path = path_of(&old)?;
    let new_path = path_of(&peer("versions"))?;
    let reply = create(cluster, &old)?;
    ensure!(reply.status == 201, "{}", reply.text);
    ensure!(reply.warnings.iter().any(|it| it.contains("deprecated")), "{:?}", reply.warnings);
    let new = cluster.ask("GET", &format!("{new_path}/versions"), None)?.json()?;
    let expected = json!({
        "myASN": 64512, "peerASN": 64513, "peerAddress": "192.0.2.1", "holdTime": "0s",
        "keepaliveTime": "0s", "peerPort": 179, "disableMP": false, "dualStackAddressFamily": false,
    });
    ensure!(new["spec"] == expected, "as v1beta2 it is {}", new["spec"]);
    // The same as when a file says v1beta1.
    let (of_file, of_server) = (parse_value(&old), parse_value(&new));
    ensure!(of_file.object.is_some(), "{:?}", of_file.findings);
    ensure!(of_file.object == of_server.object, "{:?} {:?}", of_file.object, of_server.object);

    // Port 0 is MetalLB's in v1beta1, and is served as v1beta2 too.
    let mut zero = peer("versions-port");
    zero["apiVersion"] = json!("metallb.io/v1beta1");
    zero["spec"]["peerPort"] = json!(0);
    let reply = create(cluster, &zero)?;
    ensure!(reply.status == 201, "{}", reply.text);
    let new = cluster.ask("GET", &format!("{new_path}/versions-port"), None)?.json()?;
    ensure!(new["spec"]["peerPort"] == 0 && !parse_value(&new).is_broken(), "{new}");

    // The other way, what v1beta1 has no field for is not shown.
    let mut new = peer("versions-back");
    new["spec"]["interface"] = json!("eth0");
    new["spec"]["holdTime"] = json!("9s");
    taken(cluster, &new)?;
    let old = cluster.ask("GET", &format!("{old_path}/versions-back"), None)?.json()?;
    ensure!(old["spec"]["holdTime"] == "9s" && old["spec"].get("interface").is_none(), "{old}");
    for (field, value, says) in [
        ("peerAddress", Value::Null, "spec.peerAddress: Required"),
        ("peerASN", Value::Null, "spec.peerASN: Required"),
        ("peerPort", json!(16385), "spec.peerPort"),
    ] {
        let mut bad = peer("versions-bad");
        bad["apiVersion"] = json!("metallb.io/v1beta1");
        bad["spec"][field] = value;
        let reply = create(cluster, &bad)?;
        ensure!(reply.status == 422 && reply.text.contains(says), "{}", reply.text);
    }
    Ok(())
}

/// Makes the object, writes its status, and looks that it is there, with the spec as it was.
fn write_status<T>(cluster: &Cluster, object: &Value, status: &T) -> Result<()>
where
    T: Serialize + DeserializeOwned + PartialEq,
{
    let mut made = taken(cluster, object)?;
    let spec = made.get("spec").cloned();
    let path =
        format!("{}/{}", path_of(object)?, object["metadata"]["name"].as_str().unwrap_or_default());
    made["status"] = serde_json::to_value(status)?;
    // Through the object itself a status is not written.
    let reply = cluster.ask("PUT", &path, Some(&made))?;
    ensure!(reply.status == 200 && reply.json()?.get("status").is_none(), "{}", reply.text);
    let reply = cluster.ask("PUT", &format!("{path}/status"), Some(&made))?;
    ensure!(reply.status == 200, "{}", reply.text);
    let kept = cluster.ask("GET", &path, None)?.json()?;
    ensure!(serde_json::from_value::<T>(kept["status"].clone())? == *status, "{kept}");
    ensure!(kept["status"] == made["status"], "{kept} is not {made}");
    ensure!(kept.get("spec") == spec.as_ref(), "{kept}");
    ensure!(!parse_value(&kept).is_broken(), "our parser does not read it back: {kept}");
    Ok(())
}

fn statuses(cluster: &Cluster) -> Result<()> {
    let (node, service) = ("a".to_owned(), "web".to_owned());
    let namespace = "default".to_owned();
    let pool = object("IPAddressPool", "status", &json!({ "addresses": ["192.0.2.0/24"] }));
    let counters = IpAddressPoolStatus {
        assigned_ipv4: 3,
        assigned_ipv6: 0,
        available_ipv4: 253,
        available_ipv6: i64::MAX,
    };
    write_status(cluster, &pool, &counters)?;
    let layer2 = ServiceL2Status {
        node: node.clone(),
        service_name: service.clone(),
        service_namespace: namespace.clone(),
        interfaces: vec![InterfaceStatus { name: "eth0".to_owned() }],
    };
    write_status(cluster, &object("ServiceL2Status", "l2-status", &Value::Null), &layer2)?;
    let bgp = ServiceBgpStatus {
        node: node.clone(),
        service_name: service,
        service_namespace: namespace,
        peers: vec!["tor-a".to_owned(), "tor-b".to_owned()],
    };
    write_status(cluster, &object("ServiceBGPStatus", "bgp-status", &Value::Null), &bgp)?;
    let condition = |kind: &str| Condition {
        kind: kind.to_owned(),
        status: ConditionStatus::False,
        reason: "ConfigurationError".to_owned(),
        message: "pool a: overlaps pool b".to_owned(),
        last_transition_time: "2026-01-02T03:04:05Z".to_owned(),
        observed_generation: None,
    };
    let state = |conditions| ConfigurationStateStatus {
        result: Some(ConfigurationResult::Invalid),
        error_summary: "pool a: overlaps pool b".to_owned(),
        conditions,
    };
    let controller = object("ConfigurationState", "controller", &Value::Null);
    write_status(cluster, &controller, &state(vec![condition("poolReconcilerValid")]))?;
    let twice = state(vec![condition("poolReconcilerValid"), condition("poolReconcilerValid")]);
    let path = format!("{}/controller/status", path_of(&controller)?);
    let reply =
        cluster.ask("PATCH", &path, Some(&json!({ "status": serde_json::to_value(twice)? })))?;
    ensure!(reply.status == 422 && reply.text.contains("Duplicate"), "{}", reply.text);
    let reply = cluster.ask("PATCH", &path, Some(&json!({ "status": { "result": "Good" } })))?;
    ensure!(reply.status == 422 && reply.text.contains("Unsupported"), "{}", reply.text);
    let session = json!({
        "apiVersion": "frrk8s.metallb.io/v1beta1", "kind": "BGPSessionState",
        "metadata": { "name": "a-tor-a", "namespace": "default" },
    });
    let status = BgpSessionStateStatus {
        node,
        peer: "192.0.2.1".to_owned(),
        vrf: "red".to_owned(),
        bgp_status: "Established".to_owned(),
        bfd_status: "N/A".to_owned(),
    };
    write_status(cluster, &session, &status)
}

/// After `statuses`, whose objects are shown.
fn shown_by_kubectl(cluster: &Cluster) -> Result<()> {
    for definition in CustomResourceDefinition::all() {
        let names = &definition.object["spec"]["names"];
        let group = definition.object["spec"]["group"].as_str().unwrap_or_default();
        let plural = names["plural"].as_str().unwrap_or_default();
        let versions =
            definition.object["spec"]["versions"].as_array().cloned().unwrap_or_default();
        let columns = versions.last().and_then(|it| it["additionalPrinterColumns"].as_array());
        let heads = |is_wide: bool| -> String {
            let shown =
                columns.into_iter().flatten().filter(|it| is_wide || it.get("priority").is_none());
            let heads: Vec<_> =
                shown.map(|it| it["name"].as_str().unwrap_or_default().to_uppercase()).collect();
            if heads.is_empty() {
                "NAME AGE".to_owned()
            } else {
                format!("NAME {}", heads.join(" "))
            }
        };
        if columns.is_some() {
            for (words, is_wide) in [(&["get"][..], false), (&["get", "-o", "wide"], true)] {
                let kind = format!("{plural}.{group}");
                let text = cluster.kubectl(&[words, &[kind.as_str()]].concat(), None)?;
                let head = text.lines().next().unwrap_or_default();
                let head = head.split_whitespace().collect::<Vec<_>>().join(" ");
                ensure!(head == heads(is_wide), "{kind}: {head} is not {}", heads(is_wide));
            }
        }
    }
    for (words, expected) in [
        (&["get", "bgppeers", "immutable"][..], "immutable 192.0.2.1 64513"),
        (
            &["get", "configurationstates", "controller"],
            "controller Invalid pool a: overlaps pool b",
        ),
        (&["get", "servicel2statuses", "l2-status"], "l2-status a web default"),
        (&["get", "servicebgpstatuses", "bgp-status"], "bgp-status a web default"),
        (&["get", "bgpsessionstates", "a-tor-a"], "a-tor-a a 192.0.2.1 red Established N/A"),
        (
            &["explain", "bgppeers.spec.connectTime"],
            "The maximum time between two connection attempts",
        ),
        (&["explain", "ipaddresspools.spec.serviceAllocation"], "namespaceSelectors <[]Object>"),
    ] {
        let text = cluster.kubectl(words, None)?;
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        ensure!(plain.contains(expected), "kubectl {}: {text}", words.join(" "));
    }
    Ok(())
}

fn examples(cluster: &Cluster) -> Result<()> {
    // Where MetalLB lives, and what objects of examples are in: a trial run creates none.
    for namespace in ["metallb-system", "billing", "tenant-a"] {
        cluster.kubectl(&["create", "namespace", namespace], None)?;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut folders = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let path = path.display().to_string();
        cluster.kubectl(&["apply", "--dry-run=server", "-R", "-f", &path], None)?;
        folders += 1;
    }
    ensure!(folders > 2, "only {folders} folders of examples");
    Ok(())
}

/// MetalLB converts BGPPeers by a webhook that is not there any more once it is removed.
fn over_metallb(cluster: &Cluster) -> Result<()> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/bgppeers.metallb.io";
    let conversion = json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": { "service": {
                "name": "metallb-webhook-service", "namespace": "metallb-system", "path": "/convert",
            } },
            "conversionReviewVersions": ["v1beta1", "v1"],
        },
    });
    let applied = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "bgppeers.metallb.io" }, "spec": { "conversion": conversion },
    });
    let file = cluster.folder().join("crds.yaml");
    let file = file.display().to_string();
    let by_client: &[&str] = &["apply", "-f", &file];
    let by_server: &[&str] = &["apply", "--server-side", "--force-conflicts", "-f", &file];
    // What docs/resources.md says for who applies on the server's side, which removes nothing.
    let none = r#"{"spec":{"conversion":{"strategy":"None","webhook":null}}}"#;
    let without: &[&str] = &["patch", "crd", "bgppeers.metallb.io", "--type=merge", "-p", none];
    // MetalLB's as `kubectl apply` leaves it, and as Helm does.
    for (last_applied, commands) in [
        (json!(applied.to_string()), &[by_client][..]),
        (Value::Null, &[by_client]),
        (Value::Null, &[without, by_server]),
    ] {
        let annotations =
            json!({ "kubectl.kubernetes.io/last-applied-configuration": last_applied.clone() });
        let patch = json!({ "metadata": { "annotations": annotations }, "spec": { "conversion": conversion } });
        let reply = cluster.ask("PATCH", path, Some(&patch))?;
        ensure!(reply.status == 200, "{}", reply.text);
        for words in commands {
            cluster
                .kubectl(words, None)
                .with_context(|| format!("last applied: {last_applied}"))?;
        }
        let definition = cluster.ask("GET", path, None)?.json()?;
        let ours = &definition["spec"]["conversion"];
        ensure!(*ours == json!({ "strategy": "None" }), "the conversion is {ours}");
    }
    Ok(())
}

//! What does MetalLB leave in a cluster? Its definitions with a conversion webhook, its validating
//! webhook, its daemons and their rights, by the names that its manifests have; objects of its kinds,
//! one of them stored as an older version; Services with addresses, and both prefixes of its
//! annotations. Written for this test, after its documentation. Used by the case of the migration.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use lab::fairway::existing_program;
use lab::process::{bounded, output_of};

use crate::objects::{SYSTEM, advertisement, merge, object, ours, pool, service, slice};
use crate::stage::{NODES, ROUTERS, SHOP, Stage, peer, secret};

const WEBHOOK: &str = "metallb-webhook-service";

/// Services of the cluster, and the address that each has had from MetalLB. None is the first of its pool: a
/// new allocation would give others.
pub(super) const GIVEN: [(&str, &str); 3] =
    [("web", "192.0.2.77"), ("dns", "192.0.2.99"), ("mail", "192.0.2.33")];

/// Brings MetalLB into the cluster, with Services that it has served; its manifest is kept in `file`. While
/// its webhooks answer they have no visible effect: here they come with [`lose_controller`].
pub(super) fn install(stage: &Stage, file: &Path) -> Result<()> {
    let early = file.with_extension("early.json");
    write(&early, &definitions("v1beta1", false)?)?;
    stage.kubectl(&["apply", "-f", &early.display().to_string()])?;
    let wait = ["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"];
    stage.kubectl(&wait)?;
    stage.api.apply(&object("v1", "Namespace", "", SYSTEM, json!({})))?;
    stage.api.apply(&object("v1", "Namespace", "", SHOP, json!({})))?;
    stage.register_nodes()?;
    make_old_peer(stage)?;
    let others = [daemons(), rights()].concat();
    write(&early, &[definitions("v1beta2", false)?, others.clone()].concat())?;
    stage.kubectl(&["apply", "-f", &early.display().to_string()])?;
    std::fs::remove_file(&early)?;
    configure(stage)?;
    serve(stage)?;
    write(file, &[definitions("v1beta2", true)?, others, vec![validating()]].concat())
}

/// Its controller ends: its webhooks are still there, without a server. `file` is its manifest.
pub(super) fn lose_controller(stage: &Stage, file: &Path) -> Result<()> {
    stage.kubectl(&["apply", "-f", &file.display().to_string()])?;
    let old = ["get", "bgppeers.v1beta2.metallb.io", "frr", "-n", SYSTEM];
    ensure!(stage.kubectl(&old).is_err(), "the conversion webhook is not in the way");
    let refused = stage.api.apply(&pool("another", &["198.51.100.0/24"]));
    ensure!(refused.is_err(), "the validating webhook is not in the way");
    Ok(())
}

fn write(file: &Path, objects: &[Value]) -> Result<()> {
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    std::fs::write(file, list.to_string()).with_context(|| format!("writing {}", file.display()))
}

/// The first peer is one of a long time ago, with the fields of then.
fn make_old_peer(stage: &Stage) -> Result<()> {
    let mut peer = peer(0, ROUTERS[0])?;
    let of_new = ["dualStackAddressFamily", "enableGracefulRestart"];
    let spec = peer["spec"].as_object_mut().context("a spec")?;
    of_new.iter().for_each(|field| drop(spec.remove(*field)));
    peer["apiVersion"] = json!("metallb.io/v1beta1");
    let path = format!("/apis/metallb.io/v1beta1/namespaces/{SYSTEM}/bgppeers");
    let reply = stage.api.ask("POST", &path, Some(&peer))?;
    ensure!(reply.status == 201, "{}", reply.text);
    Ok(())
}

/// Another peer, a pool and the like, as its users write them.
fn configure(stage: &Stage) -> Result<()> {
    stage.api.apply_all(&[secret(), peer(1, ROUTERS[1])?])?;
    let alias = json!({ "communities": [{ "name": "web", "value": "65001:80" }] });
    stage.api.apply_all(&[
        pool("main", &["192.0.2.0/24"]),
        advertisement("main", &["main"], json!({ "communities": ["web"] })),
        ours("Community", "aliases", alias),
    ])
}

/// Services with what MetalLB has written into them.
fn serve(stage: &Stage) -> Result<()> {
    for ((name, address), (wish, of_pool)) in GIVEN.into_iter().zip([
        (None, "metallb.universe.tf/ip-allocated-from-pool"),
        (Some("metallb.universe.tf/loadBalancerIPs"), "metallb.io/ip-allocated-from-pool"),
        (Some("metallb.io/address-pool"), "metallb.io/ip-allocated-from-pool"),
    ]) {
        let mut annotations = json!({ of_pool: "main" });
        let value = if wish.is_some_and(|it| it.ends_with("IPs")) { address } else { "main" };
        if let Some(wish) = wish {
            annotations[wish] = json!(value);
        }
        let mut service = service(SHOP, name, json!({}));
        merge(&mut service, json!({ "metadata": { "annotations": annotations } }));
        stage.api.apply_all(&[service, slice(SHOP, name, &[(NODES[0], true)])])?;
        let status = json!({ "loadBalancer": { "ingress": [{ "ip": address }] } });
        stage.api.patch_status("Service", SHOP, name, &status)?;
    }
    Ok(())
}

/// Its definitions. Ours, which `fairway crds` prints, have the same shape, and more.
fn definitions(stored: &str, with_webhook: bool) -> Result<Vec<Value>> {
    let printed = output_of(bounded(existing_program()?).arg("crds"))?;
    let mut objects: Vec<Value> =
        serde_saphyr::from_multiple(&printed).context("what `fairway crds` prints")?;
    objects.retain(|it| it["spec"]["group"] == "metallb.io");
    ensure!(!objects.is_empty(), "`fairway crds` prints no definition of metallb.io");
    for definition in objects.iter_mut().filter(|it| it["spec"]["names"]["kind"] == "BGPPeer") {
        for version in definition["spec"]["versions"].as_array_mut().into_iter().flatten() {
            version["storage"] = json!(version["name"] == stored);
        }
        if with_webhook {
            definition["spec"]["conversion"] = json!({
                "strategy": "Webhook",
                "webhook": {
                    "clientConfig": { "service": {
                        "name": WEBHOOK, "namespace": SYSTEM, "path": "/convert",
                    } },
                    "conversionReviewVersions": ["v1beta1", "v1beta2"],
                },
            });
        }
    }
    Ok(objects)
}

fn validating() -> Value {
    let webhook = |(plural, version): (&str, &str)| {
        json!({
            "name": format!("{plural}validationwebhook.metallb.io"),
            "admissionReviewVersions": ["v1"],
            "clientConfig": { "service": {
                "name": WEBHOOK, "namespace": SYSTEM, "path": format!("/validate-{plural}"),
            } },
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "rules": [{
                "apiGroups": ["metallb.io"], "apiVersions": [version], "resources": [plural],
                "operations": ["CREATE", "UPDATE"],
            }],
        })
    };
    let webhooks: Vec<Value> = [
        ("bgppeers", "v1beta2"),
        ("bfdprofiles", "v1beta1"),
        ("bgpadvertisements", "v1beta1"),
        ("communities", "v1beta1"),
        ("ipaddresspools", "v1beta1"),
        ("l2advertisements", "v1beta1"),
    ]
    .into_iter()
    .map(webhook)
    .collect();
    object(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "",
        "metallb-webhook-configuration",
        json!({ "webhooks": webhooks }),
    )
}

fn daemons() -> Vec<Value> {
    let template = |component: &str| {
        let labels = json!({ "app": "metallb", "component": component });
        json!({ "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "serviceAccountName": component,
                    "containers": [{ "name": component, "image": format!("metallb/{component}") }],
                },
            },
        } })
    };
    let webhook = json!({ "spec": {
        "ports": [{ "port": 443, "targetPort": 9443 }], "selector": { "component": "controller" },
    } });
    vec![
        object("apps/v1", "Deployment", SYSTEM, "controller", template("controller")),
        object("apps/v1", "DaemonSet", SYSTEM, "speaker", template("speaker")),
        object("v1", "Service", SYSTEM, WEBHOOK, webhook),
        object("v1", "Secret", SYSTEM, "metallb-webhook-cert", json!({})),
        object("v1", "ConfigMap", SYSTEM, "metallb-excludel2", json!({})),
        object("v1", "ServiceAccount", SYSTEM, "controller", json!({})),
        object("v1", "ServiceAccount", SYSTEM, "speaker", json!({})),
    ]
}

fn rights() -> Vec<Value> {
    let group = "rbac.authorization.k8s.io";
    let version = format!("{group}/v1");
    let rules =
        json!({ "rules": [{ "apiGroups": [""], "resources": ["services"], "verbs": ["get"] }] });
    let binding = |kind: &str, role: &str, account: &str| {
        json!({
            "roleRef": { "apiGroup": group, "kind": kind, "name": role },
            "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": SYSTEM }],
        })
    };
    let mut all = Vec::new();
    for account in ["controller", "speaker"] {
        let name = format!("{SYSTEM}:{account}");
        let bound = binding("ClusterRole", &name, account);
        all.push(object(&version, "ClusterRole", "", &name, rules.clone()));
        all.push(object(&version, "ClusterRoleBinding", "", &name, bound));
    }
    for (role, account) in [("controller", "controller"), ("pod-lister", "speaker")] {
        let bound = binding("Role", role, account);
        all.push(object(&version, "Role", SYSTEM, role, rules.clone()));
        all.push(object(&version, "RoleBinding", SYSTEM, role, bound));
    }
    all
}

//! Faults are refused when they are written, where that is enabled: the manifests of
//! `deploy/components/webhook` as they are, and an API server that calls a controller by them.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::announcing::serve;
use crate::api::word;
use crate::objects::{SYSTEM, ours, pool, service, slice};
use crate::stage::{NODES, ROUTERS, SHOP, Stage};
use lab::cluster::http::Reply;
use lab::wait::{PATIENCE, wait_until};

const NAME: &str = "fairway-webhook";
const MANIFEST: &str = "deploy/components/webhook/webhook.yaml";
const CONFIGURATIONS: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const POOLS: &str = "/apis/metallb.io/v1beta1/namespaces/metallb-system/ipaddresspools";
const PEERS: &str = "/apis/metallb.io/v1beta2/namespaces/metallb-system/bgppeers";
const PROFILES: &str = "/apis/metallb.io/v1beta1/namespaces/metallb-system/bfdprofiles";
const ADVERTISEMENTS: &str = "/apis/metallb.io/v1beta1/namespaces/metallb-system/bgpadvertisements";

/// A pool that overlaps another is refused with the field and the other's name, a reference that may still
/// be created is a warning, a BFDProfile in use is not deleted, another controller answers with the same certificate,
/// with a budget what disrupts is refused, and without a running controller writes pass.
pub(super) fn what_is_wrong_is_refused(stage: &mut Stage) -> Result<()> {
    serve(stage, "192.0.2.0/24")?;
    let manifest = lab::checkout().join(MANIFEST);
    let manifest = manifest.to_str().context("a path that is text")?;
    stage.kubectl(&["apply", "-f", manifest])?;
    // There are no nodes with a kube-proxy that would bring the Service to the controller.
    let service = stage.api.get("Service", SYSTEM, NAME)?;
    let address = format!("{}/32", word(&service, "/spec/clusterIP"));
    stage.hub.ip(&["address", "add", &address, "dev", "lo"])?;
    let variables = [("FAIRWAY_WEBHOOK_LISTEN", ":443"), ("FAIRWAY_WEBHOOK_NAME", NAME)];
    for controller in &mut stage.controllers {
        let more = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        controller.pod.variables.extend(more);
    }
    replace(stage, 0, 0)?;
    refuses(stage)?;
    let bundle = ca_bundle(stage)?;

    let spec = json!({ "ipAddressPools": ["main"], "communities": ["later"] });
    let reply = post(stage, ADVERTISEMENTS, &ours("BGPAdvertisement", "early", spec))?;
    ensure!(reply.status == 201, "{} {}", reply.status, reply.text);
    let warned = reply.warnings.iter().any(|it| it.contains("later is not defined"));
    ensure!(warned, "it warns of {:?}", reply.warnings);

    keeps_a_profile_in_use(stage)?;

    replace(stage, 0, 1)?;
    refuses(stage)?;
    ensure!(ca_bundle(stage)? == bundle, "another controller has another certificate");

    what_disrupts_is_refused(stage)?;

    stage.controllers.get_mut(1).context("a controller")?.stop()?;
    let reply = post(stage, POOLS, &overlapping())?;
    ensure!(reply.status == 201, "{} {}", reply.status, reply.text);
    stage.kubectl(&["delete", "-f", manifest])?;
    for controller in &mut stage.controllers {
        controller.pod.variables.retain(|(name, _)| !name.starts_with("FAIRWAY_WEBHOOK"));
    }
    stage.start_controller(0)
}

/// A peer with a BFDProfile that does not exist yet is accepted with a warning; the profile stays as long as
/// the peer names it.
fn keeps_a_profile_in_use(stage: &Stage) -> Result<()> {
    let spec = json!({
        "myASN": 64500, "peerASN": 64501, "peerAddress": "192.0.2.250", "bfdProfile": "guarded",
        // No node.
        "nodeSelectors": [{ "matchLabels": { "nowhere": "yes" } }],
    });
    let peer = ours("BGPPeer", "guarded", spec);
    let profile = ours("BFDProfile", "guarded", json!({}));
    wait_until("a peer without its BFDProfile is accepted with a warning", PATIENCE, || {
        let reply = post(stage, PEERS, &peer)?;
        ensure!(reply.status == 201, "{} {}", reply.status, reply.text);
        let warned = reply.warnings.iter().any(|it| it.contains("no BFDProfile"));
        ensure!(warned, "it warns of {:?}", reply.warnings);
        Ok(())
    })?;
    stage.api.create(&profile)?;
    stage.api.create(&peer)?;
    wait_until("a BFDProfile in use is not deleted", PATIENCE, || {
        let reply = stage.api.ask("DELETE", &format!("{PROFILES}/guarded?dryRun=All"), None)?;
        ensure!(reply.status == 422, "{} {}", reply.status, reply.text);
        let said = reply.json()?;
        ensure!(word(&said, "/message").contains("BGPPeer/guarded"), "{said}");
        Ok(())
    })?;
    stage.api.delete("BGPPeer", SYSTEM, "guarded")?;
    wait_until("a BFDProfile that nobody names is deleted", PATIENCE, || {
        let reply = stage.api.ask("DELETE", &format!("{PROFILES}/guarded"), None)?;
        ensure!(reply.status == 200, "{} {}", reply.status, reply.text);
        Ok(())
    })
}

/// The component `deploy/components/webhook-budget`: a pool in use and the peer of a router are not deleted, but with
/// the annotation; what adds something is taken.
fn what_disrupts_is_refused(stage: &mut Stage) -> Result<()> {
    stage
        .api
        .apply_all(&[service(SHOP, "web", json!({})), slice(SHOP, "web", &[("node-a", true)])])?;
    let address = stage.address_of("web")?;
    stage.routes_become(&address, &NODES)?;
    with_budget(stage)?;
    let more = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let variable = more(("FAIRWAY_WEBHOOK_FAIL_ON", "withdraw,reset,move"));
    for controller in &mut stage.controllers {
        controller.pod.variables.push(variable.clone());
    }
    replace(stage, 1, 1)?;
    let peer = stage.api.list("BGPPeer", SYSTEM)?.pop().context("a peer")?;
    let peer = word(&peer, "/metadata/name").to_owned();
    let routes = NODES.len() * ROUTERS.len();
    for (path, withdrawn) in [
        (format!("{POOLS}/main"), routes),
        (format!("{ADVERTISEMENTS}/main"), routes),
        (format!("{PEERS}/{peer}"), NODES.len()),
    ] {
        wait_until(&format!("the deletion of {path} is refused"), PATIENCE, || {
            let reply = stage.api.ask("DELETE", &format!("{path}?dryRun=All"), None)?;
            ensure!(reply.status == 403, "{} {}", reply.status, reply.text);
            let said = reply.json()?;
            let part =
                format!("more than the webhook permits: {withdrawn} withdrawals; permitted: 0");
            ensure!(word(&said, "/message").contains(&part), "{said}");
            Ok(())
        })?;
    }
    let refused = stage.kubectl(&["delete", "bgppeer", &peer, "-n", SYSTEM]);
    let refused = refused.err().context("kubectl deletes a peer")?.to_string();
    ensure!(refused.contains("Error from server (Forbidden)"), "{refused}");
    let added = pool("more", &["198.51.100.0/24"]);
    let reply = post(stage, POOLS, &added)?;
    ensure!(reply.status == 201, "{} {}", reply.status, reply.text);
    stage.kubectl(&[
        "annotate",
        "ipaddresspool",
        "main",
        "-n",
        SYSTEM,
        "fairway.dev/permit-disruption=true",
    ])?;
    let reply = stage.api.ask("DELETE", &format!("{POOLS}/main?dryRun=All"), None)?;
    ensure!(reply.status == 200, "{} {}", reply.status, reply.text);
    let warned = reply.warnings.iter().any(|it| it.contains("withdrawals"));
    ensure!(warned, "it warns of {:?}", reply.warnings);
    stage.routes_become(&address, &NODES)?;
    stage.api.delete_all("Service", SHOP)?;
    stage.api.delete_all("EndpointSlice", SHOP)
}

/// Applies both components as a user does.
fn with_budget(stage: &Stage) -> Result<()> {
    let overlay = stage.directory.join("webhook-budget");
    std::fs::create_dir_all(&overlay)?;
    // kustomize takes no absolute paths.
    let up = "../".repeat(overlay.components().count() - 1);
    let components = lab::checkout().join("deploy/components");
    let components = format!("{up}{}", components.strip_prefix("/")?.display());
    let text = format!(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n\
         components: [{components}/webhook, {components}/webhook-budget]\n"
    );
    std::fs::write(overlay.join("kustomization.yaml"), text)?;
    stage.kubectl(&["apply", "-k", overlay.to_str().context("a path that is text")?])?;
    Ok(())
}

fn replace(stage: &mut Stage, one: usize, by: usize) -> Result<()> {
    stage.controllers.get_mut(one).context("a controller")?.stop()?;
    stage.start_controller(by)
}

fn overlapping() -> Value {
    pool("other", &["198.51.100.0/24", "192.0.2.128/25"])
}

/// These requests are dry runs.
fn post(stage: &Stage, path: &str, object: &Value) -> Result<Reply> {
    stage.api.ask("POST", &format!("{path}?dryRun=All"), Some(object))
}

/// Waits until the API server trusts the webhook, and the webhook knows the cluster.
fn refuses(stage: &mut Stage) -> Result<()> {
    wait_until("a pool that overlaps another is refused", PATIENCE, || {
        stage.check_running()?;
        let reply = post(stage, POOLS, &overlapping())?;
        ensure!(reply.status == 422, "{} {}", reply.status, reply.text);
        let said = reply.json()?;
        let message = word(&said, "/message");
        let start =
            "admission webhook \"fairway.metallb.io\" denied the request: spec.addresses[1]: ";
        ensure!(message.starts_with(start), "{message}");
        ensure!(message.contains("IPAddressPool/main"), "{message}");
        Ok(())
    })
}

fn ca_bundle(stage: &Stage) -> Result<String> {
    let reply = stage.api.ask("GET", &format!("{CONFIGURATIONS}/{NAME}"), None)?;
    let bundle = word(&reply.json()?, "/webhooks/0/clientConfig/caBundle").to_owned();
    ensure!(!bundle.is_empty(), "{}", reply.text);
    Ok(bundle)
}

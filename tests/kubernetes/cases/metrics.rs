//! Metrics with TLS: the API server says who may read them.

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::announcing::serve;
use crate::objects::{SYSTEM, object};
use crate::stage::Stage;
use lab::wait::{PATIENCE, wait_until};

const PORT: u16 = 9120;
const READER: &str = "prometheus";
const ROLE: &str = "reads-fairway-metrics";
const REVIEWER: &str = "fairway-metrics-reviewer";

/// A client whose role may get `/metrics` reads them with TLS; one with another role is forbidden, one with an
/// invalid token or none is not; without TLS there are only probes.
pub(super) fn clients_with_a_role_read_metrics_with_tls(stage: &mut Stage) -> Result<()> {
    serve(stage, "192.0.2.0/24")?;
    let account = |name: &str| object("v1", "ServiceAccount", SYSTEM, name, json!({}));
    let role = |name: &str, rules| {
        object("rbac.authorization.k8s.io/v1", "ClusterRole", "", name, json!({ "rules": rules }))
    };
    let bound = |role: &str, account: &str| {
        let rest = json!({
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role,
            },
            "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": SYSTEM }],
        });
        object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", role, rest)
    };
    let reads = json!([{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }]);
    // As the chart has them with `prometheus.secureMetricsPort`.
    let reviews = json!([
        {
            "apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"],
            "verbs": ["create"],
        },
        {
            "apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"],
            "verbs": ["create"],
        },
    ]);
    let objects = json!({ "apiVersion": "v1", "kind": "List", "items": [
        account(READER), account("passer-by"), role(ROLE, reads), role(REVIEWER, reviews),
        bound(ROLE, READER), bound(REVIEWER, "fairway-controller"),
    ] });
    let file = stage.directory.join("metrics-roles.json");
    std::fs::write(&file, objects.to_string())?;
    let file = file.to_str().context("a path that is text")?.to_owned();
    stage.kubectl(&["apply", "-f", &file])?;

    let listen = ("FAIRWAY_METRICS_SECURE_LISTEN".to_owned(), format!(":{PORT}"));
    let controller = stage.controllers.first_mut().context("a controller")?;
    controller.pod.variables.push(listen);
    controller.stop()?;
    stage.start_controller(0)?;
    let token = |stage: &Stage, name: &str| -> Result<String> {
        Ok(stage.kubectl(&["create", "token", name, "-n", SYSTEM])?.trim().to_owned())
    };
    let (reader, passer_by) = (token(stage, READER)?, token(stage, "passer-by")?);
    wait_until("the reader reads", PATIENCE, || {
        stage.check_running()?;
        let (status, page) = get(stage, Some(&reader))?;
        ensure!(status == 200, "{status} {page}");
        ensure!(page.contains("\nmetallb_allocator_addresses_total{"), "{page}");
        Ok(())
    })?;
    for (token, expected) in [(Some(passer_by.as_str()), 403), (Some("nonsense"), 401), (None, 401)]
    {
        let (status, page) = get(stage, token)?;
        ensure!(status == expected, "{status} {page}");
    }
    let plain = stage.hub.run("curl", &["-s", "http://127.0.0.1:7472/metrics"])?;
    ensure!(plain.contains("--metrics-secure-listen"), "{plain}");
    let probe = stage.hub.run("curl", &["-s", "http://127.0.0.1:7472/healthz"])?;
    ensure!(probe == "ok\n", "{probe}");

    stage.kubectl(&["delete", "-f", &file])?;
    let controller = stage.controllers.first_mut().context("a controller")?;
    controller.pod.variables.retain(|(name, _)| name != "FAIRWAY_METRICS_SECURE_LISTEN");
    controller.stop()?;
    stage.start_controller(0)
}

/// The status and the body for a client with this token.
fn get(stage: &Stage, token: Option<&str>) -> Result<(u16, String)> {
    let url = format!("https://127.0.0.1:{PORT}/metrics");
    let mut arguments = vec!["-sk", "-w", "\n%{http_code}", &url];
    let header = token.map(|token| format!("Authorization: Bearer {token}"));
    arguments.extend(header.iter().flat_map(|header| ["-H", header.as_str()]));
    let answer = stage.hub.run("curl", &arguments)?;
    let Some((page, status)) = answer.rsplit_once('\n') else { bail!("no answer: {answer}") };
    Ok((status.parse()?, page.to_owned()))
}

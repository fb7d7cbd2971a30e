//! Does a real Kubernetes API server take our CustomResourceDefinitions, and objects of our kinds as
//! MetalLB's would? `cargo test --test crds [-- --required]`: needs no root, but the programs that
//! `scripts/kube-apiserver.sh` finds or builds.
//!
//! Each object that is offered is offered to our parser, too: what the API server refuses at once, a
//! file with the same text is refused for.

#![allow(
    clippy::indexing_slicing,
    reason = "of a JSON value it gives null, where there is nothing"
)]

mod cases;
mod stories;

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use cases::{Case, Verdict};
use clap::Parser;
use fairway_resources::{CustomResourceDefinition, parse_value};
use lab::cluster::{Cluster, http};
use lab::suite::{self, Suite};
use lab::wait;
use serde_json::{Value, json};

/// Our definitions and objects, taken or refused by a real API server.
///
/// Each part needs the ones before it: a word runs the parts up to those that have it.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
    /// Fail where there is no API server, in place of skipping
    #[arg(long)]
    required: bool,
}

/// A part of the suite.
type Part = (&'static str, fn(&Cluster) -> Result<()>);

const PARTS: [Part; 3] = [
    ("the definitions are served, and stay as they are when applied again", install),
    ("objects are taken or refused as they should be", offer),
    ("stories of objects and their statuses", stories::all),
];

fn main() -> ExitCode {
    suite::main("crds", run)
}

fn run(options: Options) -> Result<bool> {
    let assets = lab::cluster::assets()?;
    ensure!(
        assets.is_some() || !options.required,
        "there is no API server here; run: scripts/kube-apiserver.sh"
    );
    let lack = assets.is_none().then_some("no API server here; `make test-crds` builds one");
    let mut suite = Suite::new("crds", options.suite).as_chain();
    let cluster: Arc<Mutex<Option<Cluster>>> = Arc::default();
    for (name, part) in PARTS {
        let cluster = Arc::clone(&cluster);
        let run = move |_: &suite::Cell| {
            let cluster = cluster.lock().unwrap_or_else(PoisonError::into_inner);
            part(cluster.as_ref().context("no API server")?)
        };
        suite.add(suite::Case::new(name, run).not_applicable(lack));
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    if let Some(assets) = assets {
        lab::fairway::existing_program()?;
        let begin = wait::now();
        let started = Cluster::start(&assets)?;
        println!("crds: the API server was ready after {:.1} s", begin.elapsed().as_secs_f32());
        *cluster.lock().unwrap_or_else(PoisonError::into_inner) = Some(started);
    }
    Ok(chosen.run()?.all_passed())
}

/// What `fairway crds` prints, applied as a user would.
fn install(cluster: &Cluster) -> Result<()> {
    let output = Command::new(lab::fairway::existing_program()?)
        .arg("crds")
        .output()
        .context("fairway crds")?;
    ensure!(output.status.success(), "fairway crds ended with {}", output.status);
    let file = cluster.folder().join("crds.yaml");
    std::fs::write(&file, output.stdout)?;
    let count = CustomResourceDefinition::all().len();
    let said = cluster.kubectl(&["apply", "-f", "-"], Some(&file))?;
    ensure!(said.matches(" created").count() == count, "kubectl apply: {said}");
    for definition in CustomResourceDefinition::all() {
        let name = definition.object["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        wait::wait_until(&format!("{name} is served"), Duration::from_secs(30), || {
            let definition = cluster.ask("GET", &path, None)?.json()?;
            let conditions = definition["status"]["conditions"].as_array().cloned();
            let conditions: BTreeMap<String, String> = conditions
                .into_iter()
                .flatten()
                .map(|it| (words(&it["type"]), words(&it["status"])))
                .collect();
            let is = |kind: &str| conditions.get(kind).is_some_and(|status| status == "True");
            ensure!(is("Established") && is("NamesAccepted"), "{conditions:?}");
            ensure!(!conditions.contains_key("NonStructuralSchema"), "{conditions:?}");
            Ok(())
        })?;
    }
    let before = generations(cluster)?;
    ensure!(before.len() == count, "{before:?}");
    cluster.kubectl(&["apply", "-f", "-"], Some(&file))?;
    let after = generations(cluster)?;
    ensure!(before == after, "applied again, something changed: {before:?} {after:?}");
    println!("crds: {count} definitions are served, and stay as they are when applied again");
    Ok(())
}

/// How often each definition was changed.
fn generations(cluster: &Cluster) -> Result<BTreeMap<String, Value>> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let all = cluster.ask("GET", path, None)?.json()?;
    let all = all["items"].as_array().cloned().unwrap_or_default();
    let metadata = all.iter().map(|it| &it["metadata"]);
    Ok(metadata.map(|it| (words(&it["name"]), it["generation"].clone())).collect())
}

fn words(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Every case, to the API server and to our parser.
fn offer(cluster: &Cluster) -> Result<()> {
    let cases = cases::all();
    let mut wrong = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let name = format!("case-{number}");
        if let Err(error) = offer_one(cluster, case, &name) {
            wrong.push(format!("{} {}: {error:#}", case.kind, case.spec));
        }
    }
    ensure!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    println!("crds: {} objects are taken or refused as they should be", cases.len());
    Ok(())
}

fn offer_one(cluster: &Cluster, case: &Case, name: &str) -> Result<()> {
    let offered = object(case.kind, name, &case.spec);
    let reply = create(cluster, &offered)?;
    let known = if reply.status == 201 { reply.json()? } else { offered };
    let parsed = parse_value(&known);
    let findings: Vec<_> = parsed.findings.iter().map(ToString::to_string).collect();
    let (is_taken, is_faulty) = match case.verdict {
        Verdict::Taken => (true, false),
        Verdict::TakenButFaulty => (true, true),
        Verdict::Refused(because) => {
            ensure!(reply.status == 422 && reply.text.contains(because), "{}", reply.text);
            (false, true)
        }
    };
    ensure!((reply.status == 201) == is_taken, "the API server says {}", reply.text);
    ensure!(parsed.is_broken() == is_faulty, "our parser says {findings:?}");
    if is_taken {
        ensure!(holds(&known["spec"], &case.spec), "something was left out: {}", known["spec"]);
    }
    Ok(())
}

/// An object in the version that is stored.
pub(crate) fn object(kind: &str, name: &str, spec: &Value) -> Value {
    let version = if kind == "BGPPeer" { "v1beta2" } else { "v1beta1" };
    let group = if kind == "BGPConfiguration" { "fairway.dev" } else { "metallb.io" };
    let mut object = json!({
        "apiVersion": format!("{group}/{version}"),
        "kind": kind,
        "metadata": { "name": name, "namespace": "default" },
    });
    if let (Value::Object(object), false) = (&mut object, spec.is_null()) {
        object.insert("spec".to_owned(), spec.clone());
    }
    object
}

/// Where objects like this one are.
pub(crate) fn path_of(object: &Value) -> Result<String> {
    let all = CustomResourceDefinition::all();
    let is_it =
        |it: &&CustomResourceDefinition| it.object["spec"]["names"]["kind"] == object["kind"];
    let definition = all.iter().find(is_it).context("no definition has this kind")?;
    let plural = words(&definition.object["spec"]["names"]["plural"]);
    Ok(format!("/apis/{}/namespaces/default/{plural}", words(&object["apiVersion"])))
}

pub(crate) fn create(cluster: &Cluster, object: &Value) -> Result<http::Reply> {
    cluster.ask("POST", &path_of(object)?, Some(object))
}

/// Whether all that is in `part` is in `whole`, too.
fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (_, Value::Null) => true,
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(key, value)| whole.get(key).is_some_and(|of_whole| holds(of_whole, value))),
        _ => whole == part,
    }
}

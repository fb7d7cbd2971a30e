//! What may the daemons do, and what do they do? The roles of `deploy/` against the audit log of all
//! that the cases before this one have led to.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::api::word;
use crate::install::Account;
use crate::objects::SYSTEM;
use crate::stage::Stage;

/// Rights that no case uses, and why they are there all the same.
const NOT_USED: &[(&str, &str)] = &[];

/// A verb on a resource: `speaker patch servicebgpstatuses/status`.
type Right = String;

/// Nothing was forbidden; and when all cases were run, nothing is granted that was never used.
pub(super) fn what_is_granted_is_used(stage: &mut Stage) -> Result<()> {
    let used = used(stage)?;
    let granted = granted(stage)?;
    ensure!(!used.is_empty() && !granted.is_empty(), "{used:?} {granted:?}");
    let beyond: Vec<&Right> = used.difference(&granted).collect();
    ensure!(beyond.is_empty(), "used, but not by the roles of deploy: {beyond:?}");
    if !stage.is_whole {
        println!("  not all cases were run: what is granted and not used cannot be told");
        return Ok(());
    }
    let is_excused = |right: &&Right| NOT_USED.iter().any(|(it, _)| it == right);
    let idle: Vec<&Right> = granted.difference(&used).filter(|it| !is_excused(it)).collect();
    ensure!(idle.is_empty(), "granted, and never used: {idle:#?}");
    let stale: Vec<_> = NOT_USED.iter().filter(|(it, _)| used.contains(*it)).collect();
    ensure!(stale.is_empty(), "used after all: {stale:?}");
    Ok(())
}

fn used(stage: &Stage) -> Result<BTreeSet<Right>> {
    let mut rights = BTreeSet::new();
    let (mut allowed, mut forbidden) = (BTreeSet::new(), BTreeSet::new());
    for line in BufReader::new(File::open(stage.cluster()?.audit_log())?).lines() {
        let event: Value = serde_json::from_str(&line?)?;
        let user = word(&event, "/user/username");
        let account = Account::BOTH
            .into_iter()
            .find(|it| user == format!("system:serviceaccount:{SYSTEM}:{}", it.name()));
        let Some(account) = account else { continue };
        let reference = &event["objectRef"];
        let mut resource = word(reference, "/resource").to_owned();
        if resource.is_empty() {
            resource = word(&event, "/requestURI").to_owned();
        }
        if let Some(subresource) = reference["subresource"].as_str() {
            resource = format!("{resource}/{subresource}");
        }
        let right = |verb: &str| format!("{} {verb} {resource}", account.name());
        let verb = word(&event, "/verb");
        let this_one = format!("{} {}", right(verb), word(reference, "/name"));
        match event["responseStatus"]["code"].as_u64() {
            Some(403) => {
                forbidden.insert(this_one);
                continue;
            }
            // Applied where there was nothing: that takes the right to create, too.
            Some(201) if verb == "patch" => rights.extend([right("patch"), right("create")]),
            _ => rights.extend([right(verb)]),
        }
        allowed.insert(this_one);
    }
    // An API server that has just started has no roles yet, and refuses every request.
    let forbidden: Vec<&String> = forbidden.difference(&allowed).collect();
    ensure!(forbidden.is_empty(), "it was forbidden to: {forbidden:?}");
    Ok(rights)
}

fn granted(stage: &Stage) -> Result<BTreeSet<Right>> {
    let mut rights = BTreeSet::new();
    let group = "/apis/rbac.authorization.k8s.io/v1";
    for account in Account::BOTH {
        let name = account.name();
        for path in [
            format!("{group}/clusterroles/{name}"),
            format!("{group}/namespaces/{SYSTEM}/roles/{name}"),
        ] {
            let reply = stage.api.ask("GET", &path, None)?;
            ensure!(reply.status == 200, "{path}: {}", reply.text);
            let role = reply.json()?;
            for rule in role["rules"].as_array().into_iter().flatten() {
                let list = |key: &str| rule[key].as_array().cloned().unwrap_or_default();
                for (resource, verb) in list("resources")
                    .iter()
                    .flat_map(|it| list("verbs").into_iter().map(move |verb| (it.clone(), verb)))
                {
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    rights.insert(format!("{name} {} {}", text(&verb), text(&resource)));
                }
            }
        }
    }
    Ok(rights)
}

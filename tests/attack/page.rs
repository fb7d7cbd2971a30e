//! What does `docs/attacks.md` say? What is tried and what becomes of it, made from the trials and stories alone, so
//! that the page and the suite never differ. Used by main.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::STORIES;
use crate::trials::FIELDS;

const HEAD: &str = "\
# What was tried against Fairway

What an attacker, a careless colleague or a bad night does to a machine on which Fairway runs, what becomes of it, and
where you see it. `make attack` tries all of it against real routers and a real API server, checks what the middle
column says, and writes this page. Behind each trial, the session with a healthy BIRD is the same, no route has gone
there, and a change to a Service arrives within 2 s. Messages that no router sends have a page of their own:
[corpus.md](corpus.md). What to do about each sign is in [runbook.md](runbook.md).
";

/// Stories of the suite that runs Fairway in a cluster: its name, what is tried, what becomes of it, where it is seen.
const CLUSTER: &[[&str; 4]] = &[
    [
        "an_outage_withdraws_nothing",
        "the API server is away, or refuses everything",
        "all routes stay, speakers go on without it",
        "`fairway_kubernetes_requests_total`; `show config`",
    ],
    [
        "definitions_that_are_removed_withdraw_nothing",
        "the CustomResourceDefinitions are deleted, with all objects",
        "objects stay in force for `--empty-list-hold`, routes stay",
        "`fairway_kubernetes_list_held_bool`; Event `ObjectsHeld`",
    ],
    [
        "watches_that_are_cut_go_on",
        "watches are cut in the middle of a line",
        "they go on where they were, nothing is lost",
        "log",
    ],
    [
        "a_watch_that_is_gone_lists_again",
        "the API server has forgotten where a watch was (410 Gone)",
        "everything is listed again, no route goes",
        "log",
    ],
    [
        "writes_that_fail_are_repeated",
        "writes are refused, or conflict",
        "they are repeated at growing intervals, no address is given twice",
        "`fairway_kubernetes_requests_total`",
    ],
    [
        "a_slow_api_server_is_followed",
        "each answer takes seconds",
        "changes are followed, in order",
        "`fairway_event_to_update_seconds`",
    ],
    [
        "an_api_server_without_storage_changes_nothing",
        "the API server has lost its storage, and answers",
        "nothing changes",
        "log; `show config`",
    ],
    [
        "a_broken_object_is_named_and_stops_nobody",
        "an object that the API server took is faulty",
        "its last good version stays, an Event names the field",
        "Event; `fairway_config_findings`",
    ],
    [
        "another_controller_takes_over",
        "the controller that leads is killed",
        "another one leads when the lease ends, addresses stay",
        "`fairway_controller_leader`",
    ],
    [
        "a_restarted_speaker_loses_nothing",
        "a speaker is killed and started",
        "the router keeps its routes",
        "`fairway_bgp_connections_established_total`",
    ],
    [
        "what_is_wrong_is_refused",
        "the webhook gets faulty objects, bodies of 3 MiB and silent clients",
        "faulty objects are refused, the others wait for nobody",
        "the webhook's answer; log",
    ],
    [
        "what_is_granted_is_used",
        "a ServiceAccount without one of the rights",
        "each right that is granted is used, each that is used is granted",
        "log; `fairway_kubernetes_requests_total`",
    ],
];

fn path() -> PathBuf {
    lab::checkout().join("docs/attacks.md")
}

/// Writes the page.
pub(crate) fn write() -> Result<()> {
    std::fs::write(path(), page()).context("writing docs/attacks.md")
}

/// The page must be current, and the stories that it names elsewhere must be there.
pub(crate) fn check() -> Result<()> {
    let cases = lab::checkout().join("tests/kubernetes/cases/mod.rs");
    let cases = std::fs::read_to_string(cases).context("the cases of a cluster")?;
    for [name, ..] in CLUSTER {
        ensure!(cases.contains(&format!("::{name}")), "no case of a cluster is {name}");
    }
    let text = std::fs::read_to_string(path()).unwrap_or_default();
    ensure!(text == page(), "docs/attacks.md is not current; run `make docs`");
    Ok(())
}

fn page() -> String {
    let mut chapters: Vec<(&str, Vec<[&str; 3]>)> = Vec::new();
    for field in FIELDS {
        let trials = field.trials.iter().map(|it| [it.tried, it.outcome, it.sign]);
        let stories = STORIES.iter().filter(|story| story.field == field.name);
        let stories = stories.map(|it| [it.tried, it.outcome, it.sign]);
        chapters.push((field.title, trials.chain(stories).collect()));
    }
    let cluster = CLUSTER.iter().map(|[_, tried, outcome, sign]| [*tried, *outcome, *sign]);
    chapters.push(("The cluster", cluster.collect()));
    let count: usize = chapters.iter().map(|(_, rows)| rows.len()).sum();
    let mut text = HEAD.to_owned();
    let _ = writeln!(text, "\n{count} trials.");
    for (title, rows) in chapters {
        let _ = writeln!(text, "\n## {title}\n");
        text += "| tried | what happens | seen in |\n|---|---|---|\n";
        for row in rows {
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
    }
    text
}

//! How fast is it, and what does it cost? A changed endpoint until its route is in a router's kernel,
//! with a thousand Services beside it; five thousand Services at once. Reports and judges nothing.
//! Used by main, on a real API server.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::api::{Api, word};
use crate::objects::{advertisement, pool, service, service_at, slice};
use crate::stage::{NODES, ROUTERS, SHOP, Stage};
use lab::latencies::Latencies;
use lab::monitor::Monitor;
use lab::usage::Usage;
use lab::wait::{is_interrupted, now, wait_until};

/// Services beside the one that changes.
const BESIDE: usize = 1_000;
/// Changes that are measured, after some that fill caches.
const CHANGES: usize = 200;
const WARM_UP: usize = 10;
/// Services that come at once.
const AT_ONCE: usize = 5_000;
/// Threads that create them: the API server answers each, so that one alone would be slower than it is.
const CREATORS: usize = 8;

const MEASURED: &str = "192.0.2.1";
const LIMIT: Duration = Duration::from_secs(300);

/// Both, one after the other.
pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    latency(stage)?;
    stage.restore()?;
    at_once(stage)
}

/// An endpoint moves from node to node; the clock runs from the request that moves it to the route by
/// the other node in a router's kernel.
fn latency(stage: &mut Stage) -> Result<()> {
    stage.api.apply_all(&[
        pool("beside", &["198.18.0.0/16"]),
        pool("measured", &["192.0.2.0/24"]),
        advertisement("all", &["beside", "measured"], json!({})),
    ])?;
    create(&stage.api, BESIDE)?;
    let local = json!({ "externalTrafficPolicy": "Local" });
    stage.api.apply_all(&[
        service_at(SHOP, "measured", MEASURED, local),
        slice(SHOP, "measured", &[("node-a", true)]),
    ])?;
    routes_in_kernels(stage, BESIDE + 1)?;
    println!(
        "\nFrom an endpoint's change to the route in the router's kernel, {BESIDE} Services beside it, milliseconds:\n"
    );
    println!("| router | from | changes | p50 | p99 | max |\n|---|---|---|---|---|---|");
    for name in ROUTERS {
        let mut monitor = Monitor::start(&stage.router(name)?.site.namespace)?;
        let (mut since_request, mut since_answer) = (Latencies::default(), Latencies::default());
        for number in 0..WARM_UP + CHANGES {
            let to = (number + 1) % 2;
            let body = slice(SHOP, "measured", &[(*NODES.get(to).context("a node")?, true)]);
            let endpoints = json!({ "endpoints": body["endpoints"] });
            let asked = now();
            stage.api.patch("EndpointSlice", SHOP, "measured-1", &endpoints)?;
            let answered = now();
            let [via, before] = [to, 1 - to].map(|node| format!("via 10.90.0.{} ", 11 + node));
            let is_it = |line: &str| line.contains(&via) && !line.contains(&before);
            let seen = monitor.wait_for_line(MEASURED, is_it)?;
            if number >= WARM_UP {
                since_request.push(seen.duration_since(asked));
                since_answer.push(seen.saturating_duration_since(answered));
            }
        }
        for (from, latencies) in [("request", since_request), ("answer", since_answer)] {
            let [p50, p99, max] = [50, 99, 100].map(|percent| latencies.percentile(percent));
            println!(
                "| {name} | {from} | {} | {p50:.1} | {p99:.1} | {max:.1} |",
                latencies.count()
            );
        }
    }
    print_usage(stage, BESIDE)
}

/// Creates so many Services with an endpoint each, as fast as the API server accepts them; the
/// endpoints first, so that a Service has all that it needs. Returns when the first Service was sent.
fn create(api: &Api, count: usize) -> Result<Instant> {
    let name = |number: usize| format!("s-{number:04}");
    in_parallel(api, count, |api, number| {
        let node = NODES.get(number % NODES.len()).context("a node")?;
        api.create(&slice(SHOP, &name(number), &[(node, true)])).map(drop)
    })?;
    let begin = now();
    in_parallel(api, count, |api, number| {
        api.create(&service(SHOP, &name(number), json!({}))).map(drop)
    })?;
    Ok(begin)
}

fn in_parallel(
    api: &Api,
    count: usize,
    act: impl Fn(&Api, usize) -> Result<()> + Sync,
) -> Result<()> {
    thread::scope(|scope| {
        let creators = (0..CREATORS).map(|first| {
            let act = &act;
            let mut numbers = (first..count).step_by(CREATORS);
            scope.spawn(move || {
                numbers.try_for_each(|number| {
                    ensure!(!is_interrupted(), "interrupted");
                    act(api, number)
                })
            })
        });
        let creators: Vec<_> = creators.collect();
        creators.into_iter().try_for_each(|it| match it.join() {
            Ok(outcome) => outcome,
            Err(_) => bail!("a thread has panicked"),
        })
    })
}

/// All of them come as fast as the API server accepts them.
fn at_once(stage: &mut Stage) -> Result<()> {
    stage.api.apply_all(&[
        pool("main", &["198.18.0.0/16"]),
        advertisement("all", &["main"], json!({})),
    ])?;
    let log = stage.cluster()?.audit_log();
    let before = requests(&log)?.1;
    let begin = create(&stage.api, AT_ONCE)?;
    let created = begin.elapsed();
    routes_in_kernels(stage, AT_ONCE)?;
    let routed = begin.elapsed();
    let (given, mut after) = requests(&log)?;
    for (what, count) in before {
        if let Some(now) = after.get_mut(&what) {
            *now -= count;
        }
    }
    let addresses: usize = {
        let services = stage.api.list("Service", SHOP)?;
        services.iter().filter(|it| !crate::api::addresses_of(it).is_empty()).count()
    };
    ensure!(addresses == AT_ONCE, "only {addresses} have an address");
    println!("\n{AT_ONCE} Services at once:\n");
    println!("- the API server had taken all of them after {:.1} s", created.as_secs_f64());
    println!(
        "- all routes were in the kernels of both routers after {:.1} s",
        routed.as_secs_f64()
    );
    println!("- the last address was written at {given}");
    println!("- requests meanwhile:");
    for (what, count) in after.iter().filter(|(_, count)| **count > 0) {
        println!("  - {what}: {count}");
    }
    print_usage(stage, AT_ONCE)
}

/// Waits until both kernels have so many routes from the nodes.
fn routes_in_kernels(stage: &mut Stage, count: usize) -> Result<()> {
    wait_until(&format!("{count} routes are in the kernels of the routers"), LIMIT, || {
        stage.check_running()?;
        for router in &stage.routers {
            let table = router.site.namespace.ip(&["-4", "route", "show"])?;
            let routes =
                table.lines().filter(|line| line.contains("198.18.") || line.contains(MEASURED));
            let found = routes.count();
            ensure!(found >= count, "{} has {found}", router.name);
        }
        Ok(())
    })
}

/// When an address was written last, and how many requests of each kind each account made.
fn requests(log: &std::path::Path) -> Result<(String, BTreeMap<String, u64>)> {
    let mut last = String::new();
    let mut counts = BTreeMap::new();
    for line in BufReader::new(File::open(log)?).lines() {
        let event: Value = serde_json::from_str(&line?)?;
        let account = word(&event, "/user/username").rsplit(':').next().unwrap_or_default();
        let [verb, resource, subresource] =
            ["/verb", "/objectRef/resource", "/objectRef/subresource"].map(|it| word(&event, it));
        if verb == "patch" && resource == "services" {
            word(&event, "/stageTimestamp").clone_into(&mut last);
        }
        let slash = if subresource.is_empty() { "" } else { "/" };
        let what = format!("{account} {verb} {resource}{slash}{subresource}");
        *counts.entry(what).or_default() += 1;
    }
    Ok((last, counts))
}

fn print_usage(stage: &Stage, services: usize) -> Result<()> {
    println!("\nWith {services} Services:\n");
    for controller in stage.controllers.iter().filter(|it| it.is_running()) {
        println!("- {}: {}", controller.pod.name, Usage::of(controller.process_id()?)?);
    }
    for speaker in &stage.speakers {
        println!("- speaker of {}: {}", speaker.node, Usage::of(speaker.daemon.process_id()?)?);
    }
    Ok(())
}

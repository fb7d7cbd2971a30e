//! What may be announced from a node, as its kernel comes to have it.

use std::collections::{BTreeMap, BTreeSet};

use fairway_model::{Deliveries, Delivery, ObjectName};

use super::super::*;
use super::stories::{NOW, WEB, at, change, entry, run, started, wanted};
use crate::delivered::Delivered;
use crate::wanted::{Entry, NoEndpoints};

fn all(wanted: &Wanted, reconciler: &Reconciler) -> Deliveries {
    let mut delivered = Delivered::default();
    delivered.doubt_all(wanted);
    delivered.judge_by(wanted, reconciler, |_| Vec::new())
}

/// What is said of Service `default/web`.
fn said(wanted: &Wanted, reconciler: &Reconciler) -> Option<Delivery> {
    let all = all(wanted, reconciler);
    let of_address = all.get(&at(WEB).address)?;
    of_address.get(&ObjectName::new("default", "web")).cloned()
}

fn obstructed(text: &str) -> Option<Delivery> {
    Some(Delivery::Obstructed(text.to_owned()))
}

/// Runs, and all operations with this in their text fail.
fn run_failing(reconciler: &mut Reconciler, wanted: &Wanted, text: &str) {
    loop {
        let batch = reconciler.next_batch(wanted, NOW).to_vec();
        if batch.is_empty() {
            return;
        }
        let outcome = |it: &Operation| match it.to_string().contains(text) {
            true => Outcome::Failed("No space left on device".to_owned()),
            false => Outcome::Done,
        };
        reconciler.finish(batch.iter().map(outcome).collect(), wanted, NOW);
    }
}

#[test]
fn an_address_is_delivered_once_its_server_has_an_endpoint_and_the_node_has_the_address() {
    let wanted = wanted(&[(WEB, entry("web", &[1]))]);
    let mut reconciler = Reconciler::new(ReconcilerOptions::default(), Some(BTreeMap::new()));
    assert_eq!(said(&wanted, &reconciler), None, "the kernel was not read");
    reconciler.observe(Kernel::default(), &wanted);
    let mut delivered = Delivered::default();
    delivered.doubt_all(&wanted);
    for _ in 0..20 {
        let batch = reconciler.next_batch(&wanted, NOW).to_vec();
        if batch.is_empty() {
            break;
        }
        assert_eq!(said(&wanted, &reconciler), None, "before {batch:?}");
        reconciler.finish(vec![Outcome::Done; batch.len()], &wanted, NOW);
        delivered.tried(&batch);
    }
    assert_eq!(said(&wanted, &reconciler), Some(Delivery::Delivered));
    assert_eq!(delivered.judge_by(&wanted, &reconciler, |_| Vec::new()), all(&wanted, &reconciler));
    assert_eq!(
        delivered.judge_by(&wanted, &reconciler, |_| Vec::new()),
        Deliveries::new(),
        "it is said once"
    );
}

#[test]
fn a_service_that_goes_is_said_to_be_gone() {
    let before = wanted(&[(WEB, entry("web", &[1]))]);
    let mut reconciler = started(ReconcilerOptions::default(), Kernel::default(), &before);
    run(&mut reconciler, &before, NOW);
    let mut delivered = Delivered::default();
    delivered.doubt_all(&before);
    delivered.judge_by(&before, &reconciler, |_| Vec::new());
    let nothing = Wanted::default();
    change(&mut reconciler, &nothing);
    delivered.tried(&[Operation::Unbind(at(WEB).address)]);
    let changed = delivered.judge_by(&nothing, &reconciler, |_| Vec::new());
    assert_eq!(changed, BTreeMap::from([(at(WEB).address, BTreeMap::new())]));
    assert_eq!(*delivered.deliveries(), Deliveries::new());
}

#[test]
fn a_change_that_fails_withdraws_nothing_that_is_in_the_kernel() {
    let before = wanted(&[(WEB, entry("web", &[1]))]);
    let mut reconciler = started(ReconcilerOptions::default(), Kernel::default(), &before);
    run(&mut reconciler, &before, NOW);
    let more = wanted(&[(WEB, entry("web", &[1, 2]))]);
    change(&mut reconciler, &more);
    run_failing(&mut reconciler, &more, "10.1.0.2");
    assert!(reconciler.faults().next().is_some());
    assert_eq!(said(&more, &reconciler), Some(Delivery::Delivered));
}

#[test]
fn what_cannot_be_put_into_the_kernel_is_named() {
    let wanted = wanted(&[(WEB, entry("web", &[1]))]);
    for (failing, expected) in [
        (
            "adding virtual server",
            "adding virtual server 198.18.0.1:80/TCP: No space left on device",
        ),
        (
            "adding real server",
            "adding real server 10.1.0.1:8080 to 198.18.0.1:80/TCP: No space left on device",
        ),
        ("adding address", "adding address 198.18.0.1: No space left on device"),
    ] {
        let mut reconciler = started(ReconcilerOptions::default(), Kernel::default(), &wanted);
        run_failing(&mut reconciler, &wanted, failing);
        assert_eq!(said(&wanted, &reconciler), obstructed(expected));
    }
}

#[test]
fn another_program_with_its_virtual_server_is_named() {
    let wanted = wanted(&[(WEB, entry("web", &[1]))]);
    let servers = BTreeMap::from([(at(WEB), KernelServer::default())]);
    let mut reconciler = Reconciler::new(ReconcilerOptions::default(), Some(BTreeMap::new()));
    reconciler.observe(Kernel { servers, ..Kernel::default() }, &wanted);
    run(&mut reconciler, &wanted, NOW);
    let expected = obstructed("another program has virtual server 198.18.0.1:80/TCP");
    assert_eq!(said(&wanted, &reconciler), expected);
}

#[test]
fn a_policy_that_leaves_no_endpoint_is_named() {
    for (no_endpoints, expected) in [
        (NoEndpoints::Reject, "virtual server 198.18.0.1:80/TCP has no endpoint"),
        (
            NoEndpoints::Drop,
            "virtual server 198.18.0.1:80/TCP has no endpoint on this node, and the traffic policy is Local",
        ),
    ] {
        // Pods of the node are served from elsewhere.
        let mut entry = entry("web", &[1]);
        entry.rule.no_endpoints = Some(no_endpoints);
        let wanted = wanted(&[(WEB, entry)]);
        let mut reconciler = started(ReconcilerOptions::default(), Kernel::default(), &wanted);
        run(&mut reconciler, &wanted, NOW);
        assert_eq!(said(&wanted, &reconciler), Some(Delivery::NoEndpoint(expected.to_owned())));
    }
}

#[test]
fn one_port_that_works_is_enough_and_each_service_has_its_own() {
    let other = "198.18.0.1:81/TCP";
    let third = "198.18.0.1:82/TCP";
    let wanted = wanted(&[
        (WEB, entry("web", &[])),
        (other, entry("web", &[1])),
        (third, entry("mail", &[])),
    ]);
    let mut reconciler = started(ReconcilerOptions::default(), Kernel::default(), &wanted);
    run(&mut reconciler, &wanted, NOW);
    let all = all(&wanted, &reconciler);
    let words: BTreeSet<String> =
        all[&at(WEB).address].iter().map(|(name, it)| format!("{name} {it:?}")).collect();
    assert_eq!(
        words.into_iter().collect::<Vec<_>>(),
        [
            r#"default/mail NoEndpoint("virtual server 198.18.0.1:82/TCP has no endpoint")"#,
            "default/web Delivered"
        ]
    );
}

#[test]
fn addresses_that_nobody_is_told_of_are_not_mentioned() {
    let inside = Entry { is_of_balancer: false, ..entry("web", &[1]) };
    let wanted = wanted(&[(WEB, inside)]);
    let mut reconciler = started(ReconcilerOptions::default(), Kernel::default(), &wanted);
    run(&mut reconciler, &wanted, NOW);
    assert_eq!(all(&wanted, &reconciler), Deliveries::new());
}

#[test]
fn an_endpoint_behind_a_rule_that_still_drops_is_not_delivered_to() {
    let mut far = entry("web", &[1]);
    far.rule.no_endpoints = Some(NoEndpoints::Drop);
    let before = wanted(&[(WEB, far)]);
    let mut reconciler = started(ReconcilerOptions::default(), Kernel::default(), &before);
    run(&mut reconciler, &before, NOW);
    let now = wanted(&[(WEB, entry("web", &[1]))]);
    change(&mut reconciler, &now);
    run_failing(&mut reconciler, &now, "setting the filter rule");
    let expected = "setting the filter rule of 198.18.0.1:80/TCP: No space left on device";
    assert_eq!(said(&now, &reconciler), obstructed(expected));
}

#[test]
fn an_address_that_the_node_has_anyway_is_delivered_once_its_server_is() {
    let own = Entry { is_bound: false, ..entry("web", &[1]) };
    let entries = BTreeMap::from([(at(WEB), own)]);
    let wanted = Wanted { entries, ..Wanted::default() };
    let mut reconciler = started(ReconcilerOptions::default(), Kernel::default(), &wanted);
    let mut delivered = Delivered::default();
    delivered.doubt_all(&wanted);
    assert!(delivered.judge_by(&wanted, &reconciler, |_| Vec::new()).is_empty());
    loop {
        let batch = reconciler.next_batch(&wanted, NOW).to_vec();
        if batch.is_empty() {
            break;
        }
        reconciler.finish(vec![Outcome::Done; batch.len()], &wanted, NOW);
        delivered.tried(&batch);
    }
    let changed = delivered.judge_by(&wanted, &reconciler, |_| Vec::new());
    assert_eq!(changed, all(&wanted, &reconciler));
    assert_eq!(said(&wanted, &reconciler), Some(Delivery::Delivered));
}

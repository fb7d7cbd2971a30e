//! What holds on a segment.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::frames::send_from;
use crate::hosts;
use crate::members;
use crate::segment::{Segment, mac, neighbour, talk_to, who_has};
use lab::process::output_of;
use lab::suite::Cell;
use lab::wait::{PATIENCE, holds_for, wait_until};

type Act = fn(&Cell) -> Result<()>;

const IPV4: &str = "192.0.2.100";
const IPV6: &str = "2001:db8::100";

pub(crate) fn all() -> Vec<(&'static str, Act)> {
    vec![
        ("witnesses_find_the_address", witnesses_find_the_address),
        ("nothing_else_is_answered", nothing_else_is_answered),
        ("answers_stay_on_their_interfaces", answers_stay_on_their_interfaces),
        (
            "bridges_and_macvlans_answer_and_ports_do_not",
            bridges_and_macvlans_answer_and_ports_do_not,
        ),
        ("a_question_of_another_vlan_is_not_ours", a_question_of_another_vlan_is_not_ours),
        ("a_new_hardware_address_is_announced", a_new_hardware_address_is_announced),
        ("an_interface_without_carrier_says_so", an_interface_without_carrier_says_so),
        ("a_foreign_claim_is_found_and_defended", a_foreign_claim_is_found_and_defended),
        ("a_drained_node_is_silent", a_drained_node_is_silent),
        ("two_thousand_addresses_are_answered", two_thousand_addresses_are_answered),
        ("a_missing_right_is_named", a_missing_right_is_named),
        ("a_kernel_that_answers_as_well_is_named", a_kernel_that_answers_as_well_is_named),
        ("a_crashed_owner_is_replaced", members::a_crashed_owner_is_replaced),
        ("a_planned_end_hands_over", members::a_planned_end_hands_over),
        ("a_stopped_process_is_replaced", members::a_stopped_process_is_replaced),
        ("a_partition_heals_to_one_owner", members::a_partition_heals_to_one_owner),
        ("the_next_owner_asks_who_answers", members::the_next_owner_asks_who_answers),
        ("a_bound_address_takes_packets", hosts::a_bound_address_takes_packets),
        (
            "an_address_of_the_operator_is_not_touched",
            hosts::an_address_of_the_operator_is_not_touched,
        ),
        ("a_missing_right_to_bind_is_named", hosts::a_missing_right_to_bind_is_named),
        ("a_bound_address_moves_with_its_owner", hosts::a_bound_address_moves_with_its_owner),
        (
            "a_failing_health_check_moves_the_address",
            hosts::a_failing_health_check_moves_the_address,
        ),
        ("an_owner_needs_the_advertised_interface", hosts::an_owner_needs_the_advertised_interface),
    ]
}

/// A pool, an L2Advertisement with these lines in its spec, and a Service with both addresses.
pub(crate) fn resources(spec: &str) -> String {
    format!(
        "{}---
apiVersion: v1
kind: Service
metadata: {{name: web, annotations: {{metallb.io/loadBalancerIPs: \"{IPV4},{IPV6}\"}}}}
spec: {{type: LoadBalancer, ipFamilyPolicy: RequireDualStack, ports: [{{port: 80}}]}}
",
        without_services(spec)
    )
}

fn without_services(spec: &str) -> String {
    format!(
        "apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {{name: pool}}
spec: {{addresses: [192.0.2.100-192.0.2.199, '2001:db8::100-2001:db8::fff']}}
---
apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata: {{name: segment}}
spec: {{{spec}}}
"
    )
}

fn started(cell: &Cell, spec: &str) -> Result<Segment> {
    let mut segment = Segment::new(cell)?;
    segment.start(&resources(spec))?;
    segment.wait_for(IPV4)?;
    segment.wait_for(IPV6)?;
    Ok(segment)
}

/// arping, ndisc6 and the kernel of another machine agree on who has the address.
fn witnesses_find_the_address(cell: &Cell) -> Result<()> {
    let segment = started(cell, "")?;
    let ours = mac(&segment.node, "eth0")?;
    for address in [IPV4, IPV6] {
        let answers = who_has(&segment.client, "eth0", address)?;
        ensure!(answers == [ours.clone()], "{address}: {answers:?}");
        talk_to(&segment.client, address)?;
        wait_until("the kernel of the client has the address", PATIENCE, || {
            let found = neighbour(&segment.client, address)?;
            ensure!(found.as_ref() == Some(&ours), "{address}: {found:?}");
            Ok(())
        })?;
        let requests = segment.shown(address)?["requests"].as_u64();
        ensure!(requests >= Some(2), "{address}: {requests:?} requests");
    }
    Ok(())
}

/// Neither an address of the pool that no Service has, nor one whose Service is gone, nor a neighbour's.
fn nothing_else_is_answered(cell: &Cell) -> Result<()> {
    let segment = started(cell, "")?;
    for address in ["192.0.2.101", "2001:db8::101", "192.0.2.99"] {
        let answers = who_has(&segment.client, "eth0", address)?;
        ensure!(answers.is_empty(), "{address}: {answers:?}");
    }
    let foreign = who_has(&segment.client, "eth0", "192.0.2.3")?;
    ensure!(foreign == [mac(&segment.foreign, "eth0")?], "the foreign machine: {foreign:?}");
    segment.fairway.apply("resources.yaml", &without_services(""))?;
    wait_until("the Service is gone", PATIENCE, || {
        let all = segment.fairway.show(&["l2"])?;
        ensure!(all["items"] == serde_json::json!([]), "{all}");
        Ok(())
    })?;
    for address in [IPV4, IPV6] {
        let answers = who_has(&segment.client, "eth0", address)?;
        ensure!(answers.is_empty(), "{address} is withdrawn: {answers:?}");
    }
    Ok(())
}

/// `interfaces` of the advertisement: the other segment hears nothing; an edit moves the answers.
fn answers_stay_on_their_interfaces(cell: &Cell) -> Result<()> {
    let mut segment = Segment::new(cell)?;
    segment.add_switch("lan2")?;
    segment.plug("lan2", &segment.node, "eth1", "q0")?;
    segment.plug("lan2", &segment.client, "eth1", "q1")?;
    segment.client.add_address("eth1", "192.0.2.2/24")?;
    segment.start(&resources("interfaces: [eth1]"))?;
    segment.wait_for(IPV4)?;
    let expect = |interface: &str, other: &str| -> Result<()> {
        for address in [IPV4, IPV6] {
            let ours = mac(&segment.node, interface)?;
            let answers = who_has(&segment.client, interface, address)?;
            ensure!(answers == [ours], "{address} on {interface}: {answers:?}");
            // ndisc6 hears announcements on other interfaces, too: their source has no scope.
            let not_there = mac(&segment.node, other)?;
            let answers = who_has(&segment.client, other, address)?;
            let is_heard = address == IPV6 && answers == [mac(&segment.node, interface)?];
            ensure!(
                (answers.is_empty() || is_heard) && !answers.contains(&not_there),
                "{address} on {other}: {answers:?}"
            );
        }
        Ok(())
    };
    expect("eth1", "eth0")?;
    segment.fairway.apply("resources.yaml", &resources("interfaces: [eth0]"))?;
    wait_until("eth0 answers", PATIENCE, || {
        let item = segment.shown(IPV4)?;
        ensure!(item["interfaces"] == serde_json::json!(["eth0"]), "{item}");
        Ok(())
    })?;
    expect("eth0", "eth1")?;
    segment.fairway.apply("resources.yaml", &resources("interfaces: [eth7]"))?;
    wait_until("no interface answers, and the reason is shown", PATIENCE, || {
        let item = segment.shown(IPV4)?;
        ensure!(item["interfaces"] == serde_json::json!([]), "{item}");
        ensure!(item["reason"].as_str().is_some_and(|it| it.contains("no interface")), "{item}");
        Ok(())
    })
}

/// A port of a bridge leaves the answer to the bridge; a macvlan answers with its own address.
fn bridges_and_macvlans_answer_and_ports_do_not(cell: &Cell) -> Result<()> {
    let mut segment = Segment::new(cell)?;
    for words in [
        "link add br0 type bridge mcast_snooping 0",
        "link set br0 address 02:00:00:00:00:b0",
        "link set br0 up",
        "link set eth0 master br0",
        "link add mv0 link br0 type macvlan mode bridge",
        "link set mv0 up",
    ] {
        segment.node.ip(&words.split(' ').collect::<Vec<_>>())?;
    }
    segment.start(&resources("interfaces: [br0, eth0]"))?;
    segment.wait_for(IPV4)?;
    for address in [IPV4, IPV6] {
        let answers = who_has(&segment.client, "eth0", address)?;
        ensure!(answers == ["02:00:00:00:00:b0"], "{address}: {answers:?}");
    }
    segment.fairway.apply("resources.yaml", &resources("interfaces: [mv0]"))?;
    wait_until("the macvlan answers", PATIENCE, || {
        let item = segment.shown(IPV4)?;
        ensure!(item["interfaces"] == serde_json::json!(["mv0"]), "{item}");
        Ok(())
    })?;
    let ours = mac(&segment.node, "mv0")?;
    for address in [IPV4, IPV6] {
        let answers = who_has(&segment.client, "eth0", address)?;
        ensure!(answers == [ours.clone()], "{address}: {answers:?}");
    }
    Ok(())
}

/// The kernel of the client learns it without asking.
fn a_new_hardware_address_is_announced(cell: &Cell) -> Result<()> {
    let segment = started(cell, "")?;
    for address in [IPV4, IPV6] {
        talk_to(&segment.client, address)?;
    }
    let new = "02:00:00:00:00:aa";
    segment.node.ip(&["link", "set", "eth0", "address", new])?;
    for address in [IPV4, IPV6] {
        wait_until("the client has the new address", PATIENCE, || {
            let found = neighbour(&segment.client, address)?;
            ensure!(found.as_deref() == Some(new), "{address}: {found:?}");
            Ok(())
        })?;
    }
    Ok(())
}

/// A cable that is pulled: the reason is shown, and the answers are back with the cable.
fn an_interface_without_carrier_says_so(cell: &Cell) -> Result<()> {
    let segment = started(cell, "")?;
    segment.unplug("p0")?;
    wait_until("the reason is shown", PATIENCE, || {
        let item = segment.shown(IPV4)?;
        let reason = item["reason"].as_str().unwrap_or_default();
        ensure!(reason.contains("eth0: it has no carrier"), "{item}");
        Ok(())
    })?;
    segment.plug_again("p0")?;
    segment.wait_for(IPV4)?;
    let ours = mac(&segment.node, "eth0")?;
    wait_until("the address is answered for again", PATIENCE, || {
        let answers = who_has(&segment.client, "eth0", IPV4)?;
        ensure!(answers == [ours.clone()], "{answers:?}");
        Ok(())
    })
}

/// A machine that takes the address: it is counted with its hardware address, and the owner announces the
/// address at once, and again not before ten seconds.
fn a_foreign_claim_is_found_and_defended(cell: &Cell) -> Result<()> {
    let segment = started(cell, "")?;
    let (ours, theirs) = (mac(&segment.node, "eth0")?, mac(&segment.foreign, "eth0")?);
    segment.foreign.add_address("eth0", &format!("{IPV4}/24"))?;
    talk_to(&segment.client, IPV4)?;
    let before = segment.shown(IPV4)?["announcements"].as_u64();
    segment.foreign.run("arping", &["-U", "-c", "3", "-I", "eth0", IPV4])?;
    wait_until("the claim is shown", PATIENCE, || {
        let item = segment.shown(IPV4)?;
        ensure!(item["conflicts"].as_u64() >= Some(3), "{item}");
        ensure!(item["lastConflict"]["mac"] == theirs.as_str(), "{item}");
        ensure!(item["lastConflict"]["interface"] == "eth0", "{item}");
        ensure!(item["announcements"].as_u64() > before, "{item}");
        Ok(())
    })?;
    let log = std::fs::read_to_string(cell.directory.join("fairway.log"))?;
    let said = log.lines().filter(|it| it.contains("another host claims an address")).count();
    ensure!(said == 1, "three claims in two seconds are said {said} times");
    let explained = segment.fairway.explain("service", "web")?;
    let first = explained.lines().next().unwrap_or_default();
    ensure!(first.contains(&format!("another host, {theirs} on eth0, claimed {IPV4}")), "{first}");
    let answers = who_has(&segment.client, "eth0", IPV4)?;
    ensure!(answers.contains(&ours), "the owner has given up: {answers:?}");
    Ok(())
}

/// `fairway drain` ends the answers, and `--undo` brings them back.
fn a_drained_node_is_silent(cell: &Cell) -> Result<()> {
    let segment = started(cell, "")?;
    let ours = mac(&segment.node, "eth0")?;
    output_of(&mut segment.fairway.drain(&["--wait", "0s"]))?;
    holds_for("nobody answers", Duration::from_millis(500), || {
        let answers = who_has(&segment.client, "eth0", IPV4)?;
        ensure!(answers.is_empty(), "{answers:?}");
        Ok(())
    })?;
    output_of(&mut segment.fairway.drain(&["--undo"]))?;
    wait_until("the address is answered for again", PATIENCE, || {
        let answers = who_has(&segment.client, "eth0", IPV4)?;
        ensure!(answers == [ours.clone()], "{answers:?}");
        Ok(())
    })
}

/// More solicited-node groups than the kernel allows for one socket, more ranges than fit into a filter.
fn two_thousand_addresses_are_answered(cell: &Cell) -> Result<()> {
    const COUNT: usize = 2_000;
    let mut segment = Segment::new(cell)?;
    let mut text = without_services("");
    for number in 0..COUNT {
        // Every second address, so that no two of them are a range.
        let address = format!("2001:db8::{:x}", 0x100 + 2 * number % 0xF00 + number / 0x780);
        write!(
            text,
            "---
apiVersion: v1
kind: Service
metadata: {{name: s{number}, annotations: {{metallb.io/loadBalancerIPs: '{address}'}}}}
spec: {{type: LoadBalancer, ipFamilies: [IPv6], ports: [{{port: 80}}]}}
"
        )?;
    }
    segment.start(&text)?;
    let all = wait_until("all are answered for", 2 * PATIENCE, || {
        let all = segment.fairway.show(&["l2"])?;
        let items = all["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let answered = items.iter().filter(|it| it["interfaces"] == serde_json::json!(["eth0"]));
        let count = answered.filter(|it| it["reason"] == "").count();
        ensure!(count == COUNT, "{count} of {}", items.len());
        Ok(items
            .iter()
            .filter_map(|it| it["address"].as_str())
            .map(str::to_owned)
            .collect::<Vec<_>>())
    })?;
    let ours = mac(&segment.node, "eth0")?;
    for address in all.iter().step_by(199) {
        let answers = who_has(&segment.client, "eth0", address)?;
        ensure!(answers == [ours.clone()], "{address}: {answers:?}");
    }
    let groups = segment.node.ip(&["-6", "maddress", "show", "dev", "eth0"])?;
    let count = groups.lines().filter(|it| it.contains("ff02::1:ff")).count();
    ensure!(count >= COUNT, "the kernel is in {count} groups");
    Ok(())
}

/// Without NET_RAW nothing can be answered; `show l2` says why.
fn a_missing_right_is_named(cell: &Cell) -> Result<()> {
    let mut segment = Segment::new(cell)?;
    segment.start_without("net_raw", &resources(""))?;
    wait_until("the reason is shown", PATIENCE, || {
        let item = segment.shown(IPV4)?;
        let reason = item["reason"].as_str().unwrap_or_default();
        ensure!(reason.contains("NET_RAW"), "{item}");
        Ok(())
    })
}

/// The address is on another interface, as kube-proxy's IPVS mode has it, and the kernel answers for it, too.
fn a_kernel_that_answers_as_well_is_named(cell: &Cell) -> Result<()> {
    let segment = started(cell, "")?;
    segment.node.add_address("lo", &format!("{IPV4}/32"))?;
    let reason = || -> Result<String> {
        Ok(segment.shown(IPV4)?["reason"].as_str().unwrap_or_default().to_owned())
    };
    wait_until("the reason is shown", PATIENCE, || {
        let reason = reason()?;
        ensure!(reason.contains("arp_ignore=1") && reason.contains("on lo"), "{reason:?}");
        Ok(())
    })?;
    segment.node.run("sysctl", &["-q", "-w", "net.ipv4.conf.all.arp_ignore=1"])?;
    wait_until("it is mended", PATIENCE, || {
        let reason = reason()?;
        ensure!(reason.is_empty(), "{reason}");
        Ok(())
    })?;
    let ours = mac(&segment.node, "eth0")?;
    let answers = who_has(&segment.client, "eth0", IPV4)?;
    ensure!(answers == [ours], "{answers:?}");
    Ok(())
}

/// A frame of a VLAN that this machine has no interface for, and one without a tag.
fn a_question_of_another_vlan_is_not_ours(cell: &Cell) -> Result<()> {
    let segment = started(cell, "")?;
    let requests =
        || -> Result<u64> { segment.shown(IPV4)?["requests"].as_u64().context("requests") };
    let sender = [2, 0, 0, 0, 0, 9];
    let mut question = [&[0xFF; 6][..], &sender, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &sender].concat();
    question.extend([192, 0, 2, 77, 0, 0, 0, 0, 0, 0, 192, 0, 2, 100]);
    let mut tagged = question.clone();
    tagged.splice(12..12, [0x81, 0x00, 0x00, 77]);
    let before = requests()?;
    for _ in 0..3 {
        send_from(&segment.client, &tagged)?;
    }
    send_from(&segment.client, &question)?;
    wait_until("the one without a tag has arrived", PATIENCE, || {
        ensure!(requests()? > before, "none has arrived");
        Ok(())
    })?;
    // They arrive in order.
    let counted = requests()? - before;
    ensure!(counted == 1, "{counted} questions were answered in place of one");
    Ok(())
}

//! What is promised with a real FRR.

use std::pin::Pin;
use std::time::Duration;

use anyhow::{Result, ensure};
use fairway_seam::{Backend, Leave};

use crate::lab::wait_until;
use crate::node::{Node, backend, route};

type Story = fn(Node) -> Pin<Box<dyn Future<Output = Result<()>>>>;

/// All of them.
pub(crate) const ALL: &[(&str, Story)] = &[
    ("a_community_is_on_the_router_within_the_second", |it| Box::pin(community(it))),
    ("broken_extras_leave_everything_else_as_it_was_and_going_on", |it| {
        Box::pin(broken_extras(it))
    }),
    ("extras_reach_the_daemon_that_knows_them", |it| Box::pin(extras_for_others(it))),
    ("bgpd_that_is_killed_while_it_is_told_is_told_again", |it| Box::pin(killed(it))),
    ("bgpd_that_hangs_is_a_fault_and_then_is_put_right", |it| Box::pin(hangs(it))),
    ("what_hands_changed_is_put_right_and_lines_of_others_stay", |it| Box::pin(hands(it))),
    ("a_restart_of_ours_and_leaving_for_good", |it| Box::pin(leaving(it))),
];

async fn community(mut node: Node) -> Result<()> {
    let sessions = node.sessions().await?;
    for number in 2..6 {
        let community = format!("65001:{number}");
        node.set_routes((0..3).map(|it| route(it, &community)).collect());
        let took = node.wait_for_route(0, &community).await?;
        ensure!(took < Duration::from_secs(1), "it took {took:?}");
    }
    node.wait_for_force().await?;
    ensure!(node.sessions().await? == sessions, "the session was reset");
    let running = node.running().await?;
    ensure!(
        running.matches("route-map fairway-00000000-set-").count() == 4,
        "old tags are left:\n{running}"
    );
    ensure!(node.faults().await?.is_empty(), "{:?}", node.faults().await?);
    Ok(())
}

async fn broken_extras(mut node: Node) -> Result<()> {
    let sessions = node.sessions().await?;
    node.set_extras(Some("router bgp 65001\n bgp default local-preference 7\n"));
    node.wait_for_force().await?;
    ensure!(node.running().await?.contains("local-preference 7"), "extras are not there");
    node.set_extras(Some("router bgp 65001\n bgp default local-preference 9\n bogus line\n"));
    node.wait_for_faults(|it| it.iter().any(|it| it.contains("bogus line"))).await?;
    let faults = node.faults().await?;
    ensure!(faults[0].contains("ConfigMap metallb-system/bgpextras"), "{faults:?}");
    wait_until("the other line is in force", || async {
        Ok(node.running().await?.contains("local-preference 9"))
    })
    .await?;
    // A service that is not related to it.
    node.set_routes((0..4).map(|it| route(it, "65001:1")).collect());
    node.wait_for_route(3, "65001:1").await?;
    ensure!(!node.faults().await?.is_empty(), "the fault is gone");
    node.set_extras(None);
    node.wait_for_force().await?;
    ensure!(!node.running().await?.contains("local-preference"), "extras are left");
    ensure!(node.sessions().await? == sessions, "the session was reset");
    Ok(())
}

async fn extras_for_others(mut node: Node) -> Result<()> {
    let route = "ip route 203.0.113.0/24 blackhole";
    node.set_extras(Some(&format!("{route}\ninterface cable\n description to the router\n")));
    node.wait_for_force().await?;
    let others = node.running_of_others().await;
    ensure!(others.contains(route) && others.contains("to the router"), "{others}");
    node.set_extras(None);
    node.wait_for_force().await?;
    let others = node.running_of_others().await;
    ensure!(!others.contains(route) && !others.contains("to the router"), "{others}");
    Ok(())
}

async fn killed(mut node: Node) -> Result<()> {
    for round in 0..3_u64 {
        node.set_routes((0..500).map(|it| route(it, &format!("65001:{}", round + 10))).collect());
        tokio::time::sleep(Duration::from_millis(5 + 20 * round)).await;
        node.host.signal("bgpd", "-KILL")?;
        node.host.start_daemon("bgpd")?;
        node.wait_for_route(499, &format!("65001:{}", round + 10)).await?;
        node.wait_for_count(500).await?;
        node.wait_for_force().await?;
    }
    ensure!(node.faults().await?.is_empty(), "{:?}", node.faults().await?);
    Ok(())
}

async fn hangs(mut node: Node) -> Result<()> {
    let sessions = node.sessions().await?;
    node.host.signal("bgpd", "-STOP")?;
    node.set_routes((0..5).map(|it| route(it, "65001:2")).collect());
    let took = node.wait_for_faults(|it| it.iter().any(|it| it.contains("bgpd"))).await?;
    ensure!(took < Duration::from_secs(5), "the fault was there after {took:?}");
    node.host.signal("bgpd", "-CONT")?;
    node.wait_for_route(4, "65001:2").await?;
    node.wait_for_force().await?;
    node.wait_for_faults(<[String]>::is_empty).await?;
    ensure!(node.sessions().await? == sessions, "the session was reset");
    Ok(())
}

async fn hands(mut node: Node) -> Result<()> {
    let foreign = [
        "router bgp 65001",
        "neighbor 10.77.0.99 remote-as 65099",
        "neighbor 10.77.0.99 shutdown",
        "route-map MINE permit 10",
        "set metric 5",
    ];
    node.host.configure(&foreign).await?;
    let network = format!("no network {}", route(1, "65001:1").prefix);
    let ours = ["router bgp 65001", "address-family ipv4 unicast", &network];
    node.host.configure(&ours).await?;
    let took = wait_until("the route is back in FRR", || async {
        Ok(node.running().await?.contains(&format!("{}", route(1, "65001:1").prefix)))
    })
    .await?;
    println!("  put right after {took:?}");
    ensure!(took < Duration::from_secs(12), "it took {took:?}");
    node.set_routes((1..3).map(|it| route(it, "65001:3")).collect());
    node.wait_for_route(1, "65001:3").await?;
    node.wait_for_force().await?;
    let running = node.running().await?;
    ensure!(running.contains("neighbor 10.77.0.99 shutdown"), "{running}");
    ensure!(running.contains("route-map MINE permit 10\n set metric 5"), "{running}");
    Ok(())
}

async fn leaving(mut node: Node) -> Result<()> {
    let sessions = node.sessions().await?;
    node.backend.shutdown(Leave::ForRestart).await;
    ensure!(node.routes_there().await? == 3, "routes are gone");
    node.backend = backend(&node.host);
    // Not all sources have reported yet: nothing is removed.
    node.apply(|desired| {
        desired.routes = [route(0, "65001:1")].into();
        desired.awaits_sources = true;
    });
    node.apply(|desired| desired.routes = [route(0, "65001:1"), route(7, "65001:1")].into());
    node.wait_for_route(7, "65001:1").await?;
    ensure!(node.routes_there().await? == 4, "{} routes", node.routes_there().await?);
    node.apply(|desired| desired.awaits_sources = false);
    node.wait_for_count(2).await?;
    node.wait_for_force().await?;
    ensure!(node.sessions().await? == sessions, "the session was reset");
    node.backend.shutdown(Leave::ForGood).await;
    let running = node.running().await?;
    ensure!(!running.contains("fairway-00000000-") && !running.contains("router bgp"), "{running}");
    wait_until("the router has lost its neighbor", || async {
        Ok(node.router.ask("show bgp ipv4 unicast summary json").await?.contains("\"pfxRcd\":0"))
    })
    .await?;
    Ok(())
}

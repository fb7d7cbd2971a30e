//! Time from a change to the route on another router.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use crate::lab::Release;
use crate::node::{Node, route};

/// Ways to change 500 routes.
pub(crate) async fn run(release: Release) -> Result<()> {
    println!("{release:?}, milliseconds from apply() to the last route on the router:");
    let mut node = Node::start(release).await?;
    let all = |count: usize, community: &str| -> Vec<_> {
        (0..count).map(|it| route(it, community)).collect()
    };
    let begun = Instant::now();
    node.set_routes(all(500, "65001:1"));
    node.wait_for_count(500).await?;
    println!("  500 at once: {}", begun.elapsed().as_millis());
    node.wait_for_force().await?;
    let mut single = Vec::new();
    for round in 0..10 {
        let mut routes = all(500, "65001:1");
        routes[round] = route(round, &format!("65001:{}", 100 + round));
        let begun = Instant::now();
        node.set_routes(routes);
        node.wait_for_route(round, &format!("65001:{}", 100 + round)).await?;
        single.push(begun.elapsed().as_millis());
        node.wait_for_force().await?;
        // As in production, not directly after another change.
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    println!("  one of 500 changed, ten times: {single:?}");
    let begun = Instant::now();
    node.set_routes(all(600, "65001:1"));
    node.wait_for_count(600).await?;
    println!("  100 new: {}", begun.elapsed().as_millis());
    node.wait_for_force().await?;
    let begun = Instant::now();
    node.set_routes(
        (0..600).map(|it| route(it, if it < 100 { "65001:2" } else { "65001:1" })).collect(),
    );
    for number in [99, 0, 50] {
        node.wait_for_route(number, "65001:2").await?;
    }
    println!("  100 changed: {}", begun.elapsed().as_millis());
    node.wait_for_force().await?;
    let begun = Instant::now();
    node.set_routes(
        (0..500).map(|it| route(it, if it < 100 { "65001:2" } else { "65001:1" })).collect(),
    );
    node.wait_for_count(500).await?;
    println!("  100 gone: {}", begun.elapsed().as_millis());
    let begun = Instant::now();
    node.wait_for_force().await?;
    println!("  and withdrawn() after: {}", begun.elapsed().as_millis());
    Ok(())
}

//! What viewers and programs are told.

use std::io::{Read, Write};

use anyhow::{Result, ensure};
use lab::suite::{Case, Cell, Suite};
use lab::wait::{PATIENCE, wait_until};

use crate::client::{Reply, Viewer, connect, exchange, get, seen};
use crate::scene::{Backend, Scene};

pub(crate) fn add_to(suite: &mut Suite) {
    for (word, backend) in [("native", Backend::Native), ("frr", Backend::Frr)] {
        let name = format!("{word}: the search and birdwatcher's JSON have what BIRD announces");
        suite.add(Case::new(name, move |cell| search(cell, backend)));
        let name = format!("{word}: a session that goes down and comes back is seen as it happens");
        suite.add(Case::new(name, move |cell| events(cell, backend)));
    }
    suite.add(Case::new("a client can neither write nor ask for too much", bounds));
    suite.add(Case::new("silent clients make room, and viewers leave room", crowd));
}

/// Waits until the page has all of these.
fn page_with(scene: &Scene, path: &str, wanted: &[&str]) -> Result<String> {
    wait_until(&format!("{wanted:?} at {path}"), 2 * PATIENCE, || {
        let reply = get(&scene.node, path)?;
        ensure!(reply.status == 200, "{}", reply.head);
        for text in wanted {
            ensure!(reply.body.contains(text), "{text:?} is not in {}", reply.body);
        }
        Ok(reply.body)
    })
}

fn search(cell: &Cell, backend: Backend) -> Result<()> {
    let scene = Scene::build(cell.number, &cell.directory, backend, 1)?;
    page_with(&scene, "/", &["1 of 1 up", "shop/</span>web", "198.51.100.10", "tor-1"])?;
    let page = page_with(
        &scene,
        "/?q=203.0.113.200",
        &["203.0.113.128/25", "203.0.113.0/24", "longest match"],
    )?;
    let found = page.split("id=\"head\"").next().unwrap_or_default();
    let place = |text: &str| found.find(text);
    ensure!(
        place("203.0.113.128/25") < place("203.0.113.0/24"),
        "the longest match is first: {found}"
    );
    for (query, prefix) in [
        ("203.0.113.0%2F24", "203.0.113.128/25"),
        ("65010%3A77", "203.0.113.0/24"),
        ("of-customers", "203.0.113.0/24"),
        ("no-export", "203.0.113.128/25"),
        ("AS65099", "203.0.113.128/25"),
        ("tor-1", "203.0.113.0/24"),
        ("shop%2Fweb", "198.51.100.10/32"),
    ] {
        page_with(&scene, &format!("/?q={query}"), &[prefix])?;
    }
    let json = |path: &str| {
        let reply = get(&scene.node, path)?;
        ensure!(reply.status == 200 && reply.head.contains("application/json"), "{}", reply.head);
        reply.json()
    };
    let protocols = json("/protocols/bgp")?;
    let protocol = &protocols["protocols"]["tor-1"];
    ensure!(protocol["state"] == "up" && protocol["routes"]["imported"] == 2, "{protocol}");
    ensure!(
        protocol["neighbor_address"] == "10.0.0.2" && protocol["neighbor_as"] == 65010,
        "{protocol}"
    );
    for path in ["/routes/protocol/tor-1", "/routes/peer/10.0.0.2", "/routes/peer?peer=10.0.0.2"] {
        let routes = json(path)?;
        let networks: Vec<_> =
            routes["routes"].as_array().into_iter().flatten().map(|it| &it["network"]).collect();
        ensure!(networks == ["203.0.113.0/24", "203.0.113.128/25"], "{path}: {routes}");
    }
    let net = json("/route/net/203.0.113.129")?;
    ensure!(net["routes"][0]["network"] == "203.0.113.128/25", "{net}");
    ensure!(json("/status")?["status"]["router_id"] == "10.0.0.1", "the router ID");
    let missing = get(&scene.node, "/routes/protocol/tor-9")?;
    ensure!(missing.status == 404 && missing.body.contains("tor-9"), "{}", missing.body);
    Ok(())
}

fn events(cell: &Cell, backend: Backend) -> Result<()> {
    let mut scene = Scene::build(cell.number, &cell.directory, backend, 2)?;
    let page = page_with(&scene, "/", &["2 of 2 up", "<span class=\"tag\">→ tor-2</span>"])?;
    let mut viewer = Viewer::after(&scene.node, seen(&page)?)?;
    scene.bird.ask("disable tor_0")?;
    viewer.wait_for(|it| {
        it.contains("1 of 2 up") && it.contains("<b>neighbor tor-1 (10.0.0.2)</b> session down")
    })?;
    let parts = viewer.parts();
    ensure!(parts.contains(&"neighbors") && parts.contains(&"events"), "{parts:?}");
    ensure!(
        !parts.contains(&"pools") && !parts.contains(&"segment"),
        "what did not change is not sent: {parts:?}"
    );
    viewer.forget();
    scene.bird.ask("enable tor_0")?;
    viewer.wait_for(|it| it.contains("2 of 2 up"))?;
    // One that comes late gets what it has missed.
    let mut late = Viewer::after(&scene.node, seen(&page)?)?;
    late.wait_for(|it| it.contains("event: events") && it.contains("event: neighbors"))?;
    page_with(&scene, "/", &["went down once in the last hour", "class=\"down\" x="]).map(drop)?;
    Ok(())
}

fn bounds(cell: &Cell) -> Result<()> {
    let scene = Scene::build(cell.number, &cell.directory, Backend::Native, 1)?;
    let page = page_with(&scene, "/", &["tor-1"])?;
    ensure!(!page.contains("<script>") && !page.contains("style="), "the policy forbids both");
    let head = exchange(&scene.node, "HEAD / HTTP/1.1\r\nHost: node\r\n\r\n")?;
    ensure!(head.status == 200 && head.body.is_empty(), "{}", head.head);
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ] {
        ensure!(head.head.contains(header), "{header}: {}", head.head);
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        for path in ["/", "/events", "/status"] {
            let request =
                format!("{method} {path} HTTP/1.1\r\nHost: node\r\nContent-Length: 0\r\n\r\n");
            let reply = exchange(&scene.node, &request)?;
            ensure!(
                reply.status == 405 && reply.head.contains("allow: get, head"),
                "{method} {path}: {}",
                reply.head
            );
        }
    }
    ensure!(get(&scene.node, "/../etc/passwd")?.status == 404, "a path that is none");
    for kind in ["/style.css", "/page.js", "/icon.svg"] {
        ensure!(get(&scene.node, kind)?.status == 200, "{kind}");
    }
    let long = format!("GET / HTTP/1.1\r\nHost: node\r\nX: {}\r\n\r\n", "x".repeat(64 * 1024));
    ensure!(
        matches!(exchange(&scene.node, &long), Ok(Reply { status: 431, .. })),
        "a long head is refused"
    );
    let many: String = (0..200).map(|it| format!("X-{it}: x\r\n")).collect();
    let many = exchange(&scene.node, &format!("GET / HTTP/1.1\r\nHost: node\r\n{many}\r\n"))?;
    ensure!(many.status == 431, "{}", many.head);
    // A text of others is a text.
    let hostile = get(&scene.node, "/?q=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E")?;
    ensure!(hostile.status == 200 && !hostile.body.contains("<script>"), "{}", hostile.body);
    ensure!(hostile.body.contains("&lt;script&gt;alert(1)"), "{}", hostile.body);
    Ok(())
}

fn crowd(cell: &Cell) -> Result<()> {
    let scene = Scene::build(cell.number, &cell.directory, Backend::Native, 1)?;
    let page = page_with(&scene, "/", &["1 of 1 up"])?;
    // More than may follow: the last ones are told so.
    let mut viewers = Vec::new();
    for _ in 0..224 {
        viewers.push(Viewer::after(&scene.node, seen(&page)?)?);
    }
    let refused = get(&scene.node, "/events")?;
    ensure!(refused.status == 503 && refused.head.contains("retry-after"), "{}", refused.head);
    // Those that say nothing make room for those that ask.
    let silent = (0..100).map(|_| connect(&scene.node)).collect::<Result<Vec<_>>>()?;
    page_with(&scene, "/", &["1 of 1 up"])?;
    drop(silent);
    // When viewers leave, others come in.
    viewers.truncate(100);
    wait_until("room for a viewer", PATIENCE, || {
        let mut stream = connect(&scene.node)?;
        write!(stream, "GET /events HTTP/1.1\r\nHost: node\r\n\r\n")?;
        let mut head = [0; 12];
        stream.read_exact(&mut head)?;
        ensure!(&head == b"HTTP/1.1 200", "{}", String::from_utf8_lossy(&head));
        Ok(())
    })
}

//! The installer against the kernel of this machine, in network namespaces that each test makes. Needs root.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)] // What fails here fails the test.

use std::future::Future;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fairway_fib::{Input, Installer, MARK};
use fairway_ground::Prefix;
use fairway_netlink::{Route, RouteScope, Scope, read};
use fairway_seam::{Forward, ForwardingChange, Gateway};
use nix::sched::{CloneFlags, unshare};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a story in a namespace of its own, with two interfaces on networks with a router each: 10.1.0.2 and 10.2.0.2.
fn in_namespace<F: Future<Output = ()>>(story: impl FnOnce() -> F + Send + 'static) {
    let thread = std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace needs root");
        for number in ["1", "2"] {
            ip(&format!("link add e{number} type veth peer name f{number}"));
            ip(&format!("link set f{number} up"));
            ip(&format!("link set e{number} up"));
            ip(&format!("address add 10.{number}.0.1/24 dev e{number}"));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(story());
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn ip(line: &str) {
    let outcome = Command::new("ip").args(line.split_whitespace()).status();
    assert!(outcome.expect("ip is installed").success(), "ip {line}");
}

/// Many changes in one process.
fn ip_batch(lines: &str) {
    let mut batch = Command::new("ip");
    let mut batch = batch.args(["-batch", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    batch.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert!(batch.wait().unwrap().success());
}

fn ours() -> Vec<Route> {
    let scope = Scope { routes: Some(RouteScope::Marked(MARK)), ..Scope::default() };
    read(scope).unwrap().routes().cloned().collect()
}

async fn until(what: &str, is_so: impl Fn(&[Route]) -> bool) {
    let waiting = async {
        while !is_so(&ours()) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    if timeout(PATIENCE, waiting).await.is_err() {
        panic!("{what}: there are {} routes", ours().len());
    }
}

fn prefix(number: u32) -> Prefix {
    format!("172.{}.{}.0/24", number / 250, number % 250).parse().unwrap()
}

async fn want(installer: &Installer, count: u32, gateways: &[&str]) {
    let gateway = |it: &&str| Gateway { rank: 0, address: it.parse().unwrap(), on_link_of: None };
    let gateways: Arc<[Gateway]> = gateways.iter().map(gateway).collect();
    let change = |number| ForwardingChange {
        vrf: None,
        prefix: prefix(number),
        forward: Forward::By(Arc::clone(&gateways)),
    };
    let changes = (0..count).map(change).collect();
    installer.inputs().send(Input::Want(changes)).await.unwrap();
}

async fn leave(installer: &Installer, removes: bool) {
    let (done, ended) = oneshot::channel();
    installer.inputs().send(Input::Leave { removes, done }).await.unwrap();
    timeout(PATIENCE, ended).await.unwrap().unwrap();
}

#[test]
fn routes_stay_for_the_next_run_and_go_at_the_end() {
    in_namespace(|| async {
        ip("route add 172.0.0.0/24 via 10.2.0.9 proto static");
        let installer = Installer::start().unwrap();
        want(&installer, 3000, &["10.1.0.2", "10.2.0.2"]).await;
        // All but the one that is somebody else's.
        until("all are there", |it| it.len() == 2999 && it[0].next_hops.len() == 2).await;
        leave(&installer, false).await;
        assert_eq!(ours().len(), 2999);
        let next = Installer::start().unwrap();
        want(&next, 1000, &["10.1.0.2"]).await;
        until("some have one way", |it| {
            it.iter().filter(|it| it.next_hops.len() == 1).count() == 999
        })
        .await;
        assert_eq!(ours().len(), 2999, "the others may come again");
        next.inputs().send(Input::Complete).await.unwrap();
        until("the others are gone", |it| it.len() == 999).await;
        leave(&next, true).await;
        assert_eq!(ours(), []);
    });
}

#[test]
fn an_interface_that_is_down_for_a_moment_costs_no_route() {
    in_namespace(|| async {
        let installer = Installer::start().unwrap();
        installer.inputs().send(Input::Complete).await.unwrap();
        want(&installer, 3000, &["10.1.0.2"]).await;
        until("all are there", |it| it.len() == 3000).await;
        // In one go: the kernel removes all of them.
        ip_batch("link set e1 down\nlink set e1 up\n");
        until("all are back", |it| it.len() == 3000).await;
        ip("link set f1 down");
        until("all are gone", <[Route]>::is_empty).await;
        ip("link set f1 up");
        until("all are back again", |it| it.len() == 3000).await;
        want(&installer, 3000, &[]).await;
        until("none is wanted", <[Route]>::is_empty).await;
    });
}

//! What somebody sees who watches: `fairway top` on a terminal, and in a pipe.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;

use anyhow::{Context, Result, ensure};
use lab::process::{bounded, output_of};
use lab::suite::{Case, Cell, Suite};
use lab::terminal::Terminal;
use lab::wait::{PATIENCE, wait_until};

use crate::scene::{PEER, Router, Scene, peer};

pub(crate) fn add_to(suite: &mut Suite) {
    suite.add(Case::new("top draws what happens, and leaves the terminal as it was", drawn));
    suite.add(Case::new("top prints a line for each event where there is no terminal", printed));
}

/// As with most terminals over ssh.
const SIZE: (u16, u16) = (24, 80);

const SERVICES: &str = "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {name: public}\n\
                        spec: {addresses: [203.0.113.0/24]}\n---\n\
                        apiVersion: metallb.io/v1beta1\nkind: BGPAdvertisement\nmetadata: {name: all}\n---\n\
                        apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\n\
                        spec: {type: LoadBalancer, ports: [{port: 80}]}\n";

fn top(scene: &Scene, words: &[&str]) -> Command {
    let mut command = Command::new(lab::fairway::program());
    command.arg("top").args(words).arg("--socket").arg(scene.fairway.socket());
    command.env("TERM", "xterm");
    command
}

fn drawn(cell: &Cell) -> Result<()> {
    let mut scene = Scene::near(cell)?;
    scene.start(&format!("{}---\n{SERVICES}", peer(PEER)))?;
    scene.route(Router::HEALTHY)?;
    scene.wait_for_session()?;
    let mut terminal = Terminal::start(&mut top(&scene, &[]), SIZE)?;
    // Two prefixes come from the router, and one Service goes there.
    terminal.wait_for_screen("the session", &["node-a  AS 65001", "1/1 sessions", "tor  "])?;
    ensure!(terminal.is_taken(), "it draws over what was there before");
    terminal.press("2")?;
    terminal.wait_for_screen("the Service", &["shop/web", "203.0.113.0", "tor"])?;
    terminal.press("\r")?;
    terminal.wait_for_screen("why", &["fairway explain service shop/web"])?;
    terminal.press("x1")?;
    scene.birdc(&["disable", "node"])?;
    terminal.wait_for_screen("the end of the session", &["0/1 sessions", "session down"])?;
    scene.birdc(&["enable", "node"])?;
    terminal.wait_for_screen("the next session", &["1/1 sessions", "session Established"])?;
    // A daemon that ends is said, and what it said last stays.
    scene.fairway.kill()?;
    terminal.wait_for_screen("that nobody answers", &["no answer: no daemon answers", "tor"])?;
    terminal.press("q")?;
    is_left(&mut terminal)?;

    // A signal ends it in the same way.
    scene.fairway.start(&scene.node)?;
    let mut terminal = Terminal::start(&mut top(&scene, &[]), SIZE)?;
    terminal.wait_for_screen("the node", &["node-a  AS 65001"])?;
    output_of(bounded("kill").arg(terminal.process_id().to_string()))?;
    is_left(&mut terminal)
}

/// It has ended without an error, and the terminal shows what was there before.
fn is_left(terminal: &mut Terminal) -> Result<()> {
    let status = terminal.wait_for_end()?;
    ensure!(status.success(), "{status}");
    wait_until("the screen from before", PATIENCE, || {
        ensure!(!terminal.is_taken(), "the terminal is still taken");
        Ok(())
    })
}

fn printed(cell: &Cell) -> Result<()> {
    let mut scene = Scene::near(cell)?;
    scene.start(&peer(PEER))?;
    scene.route(Router::HEALTHY)?;
    scene.wait_for_session()?;
    let mut child = top(&scene, &[]).stdout(Stdio::piped()).spawn().context("top")?;
    let output = child.stdout.take().context("no stdout")?;
    let (send, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let _ = send.send(line);
        }
    });
    let next = |what: &str, part: &str| -> Result<()> {
        let mut seen: Vec<String> = Vec::new();
        wait_until(what, PATIENCE, || {
            seen.extend(lines.try_iter());
            ensure!(seen.iter().any(|it| it.contains(part)), "no {part:?} in {seen:#?}");
            Ok(())
        })
    };
    let told = (|| {
        next("the first look", "node node-a 1 of 1 sessions Established; no services")?;
        scene.fairway.apply("services", SERVICES)?;
        next("the Service", "service shop/web 203.0.113.0 announced")?;
        scene.birdc(&["disable", "node"])?;
        next("the end of the session", "neighbor tor (10.0.0.2) session down")
    })();
    let _ = child.kill();
    let _ = child.wait();
    told
}

//! Do real routers notice anything? BIRDs on loopback beside the scripted neighbours: each has one session from the
//! start to the end, and the routes to all Services. Used by the case of all floods.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::healthy::HOLD_TIMES_SECONDS;
use crate::stage::{NODE_AS, PEER_AS, Stage};
use lab::bird::Bird;
use lab::namespace::Network;
use lab::wait::{PATIENCE, wait_until};

/// What BIRD's log says when its session comes up, and how each line of another state begins.
const STATE_UP: &str = "node: State changed to up";
const STATE_CHANGED: &str = "node: State changed to";

/// BIRDs that fairway dials.
pub(crate) struct Birds(Vec<Neighbour>);

struct Neighbour {
    address: Ipv4Addr,
    bird: Bird,
    log: PathBuf,
}

impl Birds {
    /// Starts one for each of the hold times and makes it a peer of the stage, whose daemon does not run yet.
    pub(crate) fn start(stage: &Stage) -> Result<Self> {
        let mut birds = Vec::new();
        for (number, hold_time) in (1_u8..).zip(HOLD_TIMES_SECONDS) {
            let address = Ipv4Addr::new(127, 1, 4, number);
            let name = format!("bird-{number}");
            let text = configuration(address, stage.peer_port, hold_time);
            let bird = Bird::start(&Network::Own, &stage.directory, &name, &text)?;
            let log = stage.directory.join(format!("{name}.log"));
            birds.push(Neighbour { address, bird, log });
            stage.apply_peer(&name, address, "")?;
        }
        Ok(Self(birds))
    }

    /// Waits until each has a session and the routes to all Services.
    pub(crate) fn come_up(&mut self, stage: &Stage) -> Result<()> {
        let routes = stage.routes();
        for it in &mut self.0 {
            wait_until("BIRD has a session", PATIENCE, || it.expect_session())?;
            wait_until("BIRD has all routes", PATIENCE, || it.expect_routes(&routes))?;
        }
        Ok(())
    }

    /// Fails when a session was disturbed, as either side sees it, or when routes are missing or left over; else
    /// prints how they fared.
    pub(crate) fn report(&mut self, stage: &Stage) -> Result<String> {
        let routes = stage.routes();
        for it in &mut self.0 {
            it.expect_undisturbed()?;
            // The last change may be on its way.
            wait_until("BIRD has exactly all routes", PATIENCE, || it.expect_routes(&routes))?;
            stage.expect_one_session(it.address)?;
        }
        Ok(format!("{} BIRDs, no flap, {} routes each", self.0.len(), routes.len()))
    }
}

impl Neighbour {
    fn expect_session(&mut self) -> Result<()> {
        self.bird.check_running()?;
        let lines = self.bird.ask("show protocols node")?;
        // Name, Proto, Table, State, Since, Info.
        let mut words = lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let is_up = words.any(|it| matches!(it.as_slice(), ["node", .., "Established"]));
        ensure!(is_up, "BIRD at {} has no session: {lines:?}", self.address);
        Ok(())
    }

    /// Fails unless its session has come up once and is still the same. The log says so: the time that `show protocols`
    /// prints may differ by a millisecond from one answer to the next.
    fn expect_undisturbed(&mut self) -> Result<()> {
        self.expect_session()?;
        let log = fs::read_to_string(&self.log).context("BIRD's log")?;
        let (_, after) = log.split_once(STATE_UP).context("BIRD's log has no session")?;
        let changes = after.lines().filter(|line| line.contains(STATE_CHANGED)).count();
        ensure!(changes == 0, "{changes} more states of the session in {}", self.log.display());
        Ok(())
    }

    /// Fails unless it has these routes and no other.
    fn expect_routes(&mut self, routes: &BTreeSet<String>) -> Result<()> {
        let lines = self.bird.ask("show route protocol node")?;
        let first_words = lines.iter().filter_map(|line| line.split_whitespace().next());
        let found: BTreeSet<&str> = first_words.filter(|word| word.contains('/')).collect();
        let missing = routes.iter().filter(|route| !found.contains(route.as_str())).count();
        let left_over = found.iter().filter(|route| !routes.contains(**route)).count();
        ensure!(
            (missing, left_over) == (0, 0),
            "of {} routes BIRD at {} lacks {missing}, and it has {left_over} others",
            routes.len(),
            self.address
        );
        Ok(())
    }
}

/// A BIRD that waits to be dialled. It has nothing to do with the kernel's routes, so it needs no root.
fn configuration(address: Ipv4Addr, port: u16, hold_time_seconds: u16) -> String {
    format!(
        "router id {address};\n\
         log stderr all;\n\
         protocol device {{ scan time 10; }}\n\
         protocol bgp node {{\n  \
         debug {{ states }};\n  \
         local {address} port {port} as {PEER_AS};\n  \
         neighbor {} as {NODE_AS};\n  \
         multihop;\n  \
         strict bind;\n  \
         passive;\n  \
         hold time {hold_time_seconds};\n  \
         ipv4 {{ import all; export none; }};\n}}\n",
        Ipv4Addr::LOCALHOST
    )
}

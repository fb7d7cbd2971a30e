//! Do both ends of a BFD session agree, whatever the way between them and however they are set? Rows
//! of the matrix; `bfd_failures` has what happens when the other end goes.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::scene::{Cell, POOL_IPV4, Scene, expect_equal};
use super::shown::{expect_at, neighbour, number_at, table_becomes};
use lab::cut::Cut;
use lab::resources::{Allowed, BfdProfile, Peer, opaque_secret, pool};
use lab::routers::bfd::{BfdKey, BfdSpec, the_only};
use lab::routers::{Dialling, Origination, RouterKind, RouterSpec};
use lab::wait::{PATIENCE, holds_for};
use lab::{Family, ROUTER_INTERFACE, Wiring};

/// Quick enough for a test, slow enough for one of several on a busy machine.
pub(super) const INTERVAL_MILLISECONDS: u32 = 150;
pub(super) const MULTIPLIER: u8 = 3;

/// How long the suite watches that nothing happens.
const DISTRUST: Duration = Duration::from_secs(2);

/// What each side announces, by family.
const OURS: [(&str, &str); 2] =
    [("203.0.113.10", "203.0.113.10/32"), ("2001:db8:77::10", "2001:db8:77::10/128")];
const THEIRS: [&str; 2] = ["10.90.1.0/24", "2001:db8:90::/48"];

const KEY: BfdKey = BfdKey { meticulous: false, id: 7, key: "Correct-Horse-7" };

/// The counts of a session that nothing has disturbed stay what they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Undisturbed {
    connections_established: u64,
    our_downs: u64,
    router_downs: u64,
}

/// How the router monitors its neighbour unless a case says otherwise.
pub(super) fn spec() -> BfdSpec {
    BfdSpec::every(INTERVAL_MILLISECONDS, MULTIPLIER)
}

/// How we monitor the router unless a case says otherwise.
pub(super) fn profile() -> BfdProfile {
    BfdProfile::every(INTERVAL_MILLISECONDS, MULTIPLIER)
}

/// The peer of the scene, with BFD; it accepts the routes of the router.
pub(super) fn peer(scene: &Scene) -> Peer {
    let mut peer = scene.peer();
    peer.to_receive = Some(Allowed::All);
    peer.bfd_profile = Some(profile().name);
    peer
}

fn of(family: Family) -> usize {
    usize::from(family == Family::Ipv6)
}

/// An external session for which both sides dial, with BFD at both ends, and a route each way. Nothing
/// runs yet.
pub(super) fn scene(
    cell: &Cell,
    wiring: Wiring,
    family: Family,
    adjust: impl FnOnce(&mut RouterSpec),
) -> Result<Scene> {
    let scene = Scene::open(cell, wiring, family, |router| {
        router.dialling = Dialling::Dials;
        router.originated = vec![Origination::plain(THEIRS.get(of(family)).context("a family")?)];
        router.bfd = Some(spec());
        adjust(router);
        Ok(())
    })?;
    scene.fairway.apply("bfd", &profile().yaml())?;
    scene.apply_peer(&peer(&scene))?;
    let (address, _) = OURS.get(of(family)).context("a family")?;
    scene.announce(address)?;
    Ok(scene)
}

/// The same for a direct session over IPv4, everything up.
pub(super) fn plain(cell: &Cell, adjust: impl FnOnce(&mut RouterSpec)) -> Result<Scene> {
    let mut scene = scene(cell, Wiring::Direct, Family::Ipv4, adjust)?;
    scene.start()?;
    all_up(&mut scene, Family::Ipv4)?;
    Ok(scene)
}

/// Our end of the only BFD session.
pub(super) fn ours(scene: &Scene) -> Result<Value> {
    the_only(&scene.fairway.show(&["bfd", "peers"])?).cloned()
}

/// The counters of it.
pub(super) fn counted(scene: &Scene, key: &str) -> Result<u64> {
    let counters = scene.fairway.show(&["bfd", "peers", "counters"])?;
    number_at(the_only(&counters)?, &format!("/{key}"))
}

/// BFD is up at both ends, and BGP with it.
fn are_up(scene: &Scene) -> Result<Undisturbed> {
    let router = scene.router.bfd()?;
    ensure!(router.state == "up", "BFD at the router is {router:?}");
    let ours = ours(scene)?;
    ensure!(ours.get("status") == Some(&"up".into()), "BFD at our end is {ours}");
    let session = scene.router.session()?;
    ensure!(session.established, "the router says {}", session.state);
    let neighbour = scene.fairway.neighbour(&scene.neighbour)?;
    ensure!(neighbour.is_established(), "fairway says {}", neighbour.state);
    Ok(Undisturbed {
        connections_established: neighbour.connections_established,
        our_downs: counted(scene, "session-down")?,
        router_downs: router.downs,
    })
}

/// Waits until BFD and BGP are up at both ends.
pub(super) fn up(scene: &mut Scene) -> Result<Undisturbed> {
    let limit = 2 * scene.patience();
    scene.wait("BFD and BGP are up at both ends", limit, are_up)
}

/// Waits for that, and for the routes of both sides.
pub(super) fn all_up(scene: &mut Scene, family: Family) -> Result<Undisturbed> {
    let before = up(scene)?;
    let (_, ours) = OURS.get(of(family)).context("a family")?;
    let theirs = THEIRS.get(of(family)).context("a family")?;
    scene.route_arrives(ours)?;
    table_becomes(scene, family, &[theirs, ours])?;
    Ok(before)
}

/// Neither BFD nor BGP has gone down since.
pub(super) fn expect_undisturbed(scene: &Scene, before: &Undisturbed) -> Result<()> {
    expect_equal("what both ends count", &are_up(scene)?, before)
}

/// Both ends report the same intervals, multipliers and discriminators.
fn ends_agree(scene: &mut Scene) -> Result<()> {
    scene.wait("both ends report the same BFD settings", PATIENCE, |scene| {
        let ours = ours(scene)?;
        let of = |key: &str| number_at(&ours, &format!("/{key}"));
        let router = scene.router.bfd()?;
        let interval = of("remote-transmit-interval")?.max(of("receive-interval")?);
        let silence = of("transmit-interval")?.max(of("remote-receive-interval")?);
        let detection = silence * of("detect-multiplier")?;
        let found = (router.interval, router.detection);
        let expected = (Duration::from_millis(interval), Duration::from_millis(detection));
        expect_equal("interval and detection time of the router", &found, &expected)?;
        let answer = scene.router.screen("show bfd peers json");
        let Ok(answer) = answer else { return Ok(()) };
        let theirs: Value = serde_json::from_str(&answer).context("FRR's BFD peers")?;
        mirrors(&ours, the_only(&theirs)?)
    })
}

/// What FRR reports for its own end we report for the remote one, and the other way round.
fn mirrors(ours: &Value, theirs: &Value) -> Result<()> {
    for key in ["id", "transmit-interval", "receive-interval", "detect-multiplier", "diagnostic"] {
        let remote = format!("/remote-{key}");
        let own = format!("/{key}");
        for (one, other) in [(ours, theirs), (theirs, ours)] {
            let expected = one.pointer(&own).with_context(|| format!("no {key} in {one}"))?;
            expect_at(other, &remote, expected)?;
        }
    }
    let expected = theirs.get("multihop").context("FRR's multihop")?;
    expect_at(ours, "/multihop", expected)
}

/// Packets go both ways.
fn packets_flow(scene: &mut Scene, keys: &[&str]) -> Result<()> {
    let count =
        |scene: &Scene| keys.iter().map(|key| counted(scene, key)).collect::<Result<Vec<_>>>();
    let before = count(scene)?;
    scene.wait(&format!("more of {keys:?} than {before:?}"), PATIENCE, |scene| {
        let after = count(scene)?;
        let more = after.iter().zip(&before).all(|(after, before)| *after > before + 5);
        ensure!(more, "there are {after:?}");
        Ok(())
    })
}

const CONTROL: [&str; 2] = ["control-packet-input", "control-packet-output"];

/// Everything up, both ends agree, packets both ways, and nothing disturbed meanwhile.
fn agreed(scene: &mut Scene, family: Family) -> Result<()> {
    scene.start()?;
    let before = all_up(scene, family)?;
    ends_agree(scene)?;
    packets_flow(scene, &CONTROL)?;
    expect_undisturbed(scene, &before)
}

/// Topology: node --- router, eBGP over IPv4, BFD at both ends.
/// Proves: a session over one hop; both ends say the same of it.
pub(super) fn bfd_guards_a_direct_session(cell: &Cell) -> Result<()> {
    agreed(&mut scene(cell, Wiring::Direct, Family::Ipv4, |_| ())?, Family::Ipv4)
}

/// Topology: node --- router, eBGP over IPv6, BFD at both ends.
/// Proves: the same between IPv6 addresses.
pub(super) fn bfd_guards_a_session_over_ipv6(cell: &Cell) -> Result<()> {
    agreed(&mut scene(cell, Wiring::Direct, Family::Ipv6, |_| ())?, Family::Ipv6)
}

/// Topology: node --- middle --- router, eBGP over IPv4, BFD at both ends. BIRD sends with the TTL of
/// any other packet, 64, of which 63 is left behind one hop.
/// Proves: a session over several hops, `ebgpMultiHop: true`; both ends say the same of it.
pub(super) fn bfd_crosses_a_middle_hop(cell: &Cell) -> Result<()> {
    let mut scene = scene(cell, Wiring::MiddleHop, Family::Ipv4, |_| ())?;
    if matches!(cell.router, RouterKind::Bird(_)) {
        let profile = BfdProfile { minimum_ttl: Some(63), ..profile() };
        scene.fairway.apply("bfd", &profile.yaml())?;
    }
    agreed(&mut scene, Family::Ipv4)?;
    expect_at(&ours(&scene)?, "/multihop", &true.into())
}

/// Topology: node --- router, iBGP over IPv4 on one cable, BFD at both ends.
/// Proves: inside an AS, too, BFD is for one hop unless the peer is said to be further away.
pub(super) fn bfd_guards_an_internal_session(cell: &Cell) -> Result<()> {
    let mut scene = scene(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.local_as = router.peer_as;
    })?;
    agreed(&mut scene, Family::Ipv4)?;
    expect_at(&ours(&scene)?, "/multihop", &false.into())
}

/// Topology: node --- router, eBGP, no address on the cable but the link-local ones.
/// Proves: BFD between link-local addresses, of a neighbour that was found by its advertisements.
pub(super) fn bfd_guards_an_unnumbered_session(cell: &Cell) -> Result<()> {
    let mut scene = scene(cell, Wiring::Direct, Family::Ipv6, |router| {
        router.interface = Some(ROUTER_INTERFACE);
        router.extended_next_hop = true;
    })?;
    scene.lab.forget_addresses()?;
    let mut peer = peer(&scene);
    peer.dynamic_as = Some("external");
    scene.apply_peer(&peer)?;
    scene.start()?;
    let before = up(&mut scene)?;
    ends_agree(&mut scene)?;
    packets_flow(&mut scene, &CONTROL)?;
    expect_undisturbed(&scene, &before)
}

/// Topology: node --- router, eBGP over IPv4, BFD with echo at both ends; the node forwards, as nodes
/// of a cluster do: FRR's echo packets are addressed to FRR, and sent back by the kernel.
/// Proves: echo packets go out and come back.
pub(super) fn bfd_echo_packets_come_back(cell: &Cell) -> Result<()> {
    let echo = BfdSpec { echo: true, ..spec() };
    let mut scene = scene(cell, Wiring::Direct, Family::Ipv4, |router| router.bfd = Some(echo))?;
    scene.fairway.apply("bfd", &BfdProfile { echo: true, ..profile() }.yaml())?;
    if scene.speaker.is_some() {
        // FRR echoes for IPv4 only, and a profile for it with routes of both families is refused.
        scene.fairway.apply("pool", &pool("main", &[POOL_IPV4]))?;
    }
    scene.lab.node.enable_forwarding()?;
    scene.lab.router.namespace.enable_forwarding()?;
    scene.start()?;
    let before = all_up(&mut scene, Family::Ipv4)?;
    packets_flow(&mut scene, &["echo-packet-input", "echo-packet-output"])?;
    let theirs = |scene: &Scene, key: &str| {
        let answer = scene.router.screen("show bfd peers counters json")?;
        let answer: Value = serde_json::from_str(&answer).context("FRR's counters of BFD")?;
        number_at(the_only(&answer)?, &format!("/{key}"))
    };
    scene.wait("the router's echo packets come back", PATIENCE, |scene| {
        let (sent, heard) =
            (theirs(scene, "echo-packet-output")?, theirs(scene, "echo-packet-input")?);
        ensure!(sent > 5 && heard > 5, "it has sent {sent} and received {heard}");
        Ok(())
    })?;
    holds_for("nothing is disturbed", DISTRUST, || expect_undisturbed(&scene, &before))
}

/// Both ends sign with `key`, ours in the words of a BFDProfile.
fn signed(cell: &Cell, key: BfdKey, kind: &'static str) -> Result<Scene> {
    let scene = scene(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.bfd = Some(BfdSpec { key: Some(key), ..spec() });
    })?;
    scene.fairway.apply("secret", &opaque_secret("bfd-key", "key", KEY.key))?;
    let profile = BfdProfile { authentication: Some((kind, key.id, "bfd-key")), ..profile() };
    scene.fairway.apply("bfd", &profile.yaml())?;
    Ok(scene)
}

/// Topology: node --- router, eBGP over IPv4, BFD with keyed SHA1.
/// Proves: packets are signed and verified at both ends.
pub(super) fn bfd_packets_are_signed(cell: &Cell) -> Result<()> {
    agreed(&mut signed(cell, KEY, "sha1")?, Family::Ipv4)
}

/// Topology: node --- router, eBGP over IPv4, BFD with meticulous keyed SHA1.
/// Proves: the same with a sequence number that no packet has twice.
pub(super) fn bfd_packets_are_signed_meticulously(cell: &Cell) -> Result<()> {
    let key = BfdKey { meticulous: true, ..KEY };
    agreed(&mut signed(cell, key, "meticulous-sha1")?, Family::Ipv4)
}

/// Topology: node --- router, eBGP over IPv4, `bfdStrict: true`; the router has another key, then ours.
/// Proves: packets of a router without the key are not accepted.
pub(super) fn bfd_packets_with_a_wrong_key_are_not_heard(cell: &Cell) -> Result<()> {
    let mut scene = signed(cell, BfdKey { key: "Wrong-Horse-7", ..KEY }, "sha1")?;
    let mut peer = peer(&scene);
    peer.bfd_strict = true;
    scene.apply_peer(&peer)?;
    scene.start()?;
    scene.wait("packets go out", PATIENCE, |scene| {
        let sent = counted(scene, "control-packet-output")?;
        ensure!(sent > 2, "there are {sent}");
        Ok(())
    })?;
    scene.expect_no_session()?;
    expect_equal("packets that were received", &counted(&scene, "control-packet-input")?, &0)?;
    scene.router.change_bfd(BfdSpec { key: Some(KEY), ..spec() })?;
    all_up(&mut scene, Family::Ipv4).map(drop)
}

/// Topology: node --- router, eBGP over IPv4, BFD at both ends; our intervals and our multiplier become
/// larger and small again, then those of the router.
/// Proves: each change takes effect at both ends, and neither BFD nor BGP is disturbed by it.
pub(super) fn bfd_timers_change_without_a_flap(cell: &Cell) -> Result<()> {
    let mut scene = plain(cell, |_| ())?;
    let before = up(&mut scene)?;
    let incarnation = scene.router.session()?.incarnation;
    let slow = BfdProfile { receive_milliseconds: 400, ..BfdProfile::every(600, 5) };
    for profile in [slow, BfdProfile::every(100, 4), profile()] {
        scene.fairway.apply("bfd", &profile.yaml())?;
        scene.wait("our new timers are in force at both ends", PATIENCE, |scene| {
            let ours = ours(scene)?;
            expect_at(&ours, "/transmit-interval", &profile.transmit_milliseconds.into())?;
            expect_at(&ours, "/receive-interval", &profile.receive_milliseconds.into())?;
            expect_at(&ours, "/detect-multiplier", &profile.multiplier.into())
        })?;
        ends_agree(&mut scene)?;
        expect_undisturbed(&scene, &before)?;
    }
    let slow = BfdSpec { receive_milliseconds: 400, ..BfdSpec::every(600, 5) };
    for spec in [slow, BfdSpec::every(100, 4), spec()] {
        scene.router.change_bfd(spec)?;
        scene.wait("the router's new timers are in force at both ends", PATIENCE, |scene| {
            let ours = ours(scene)?;
            expect_at(&ours, "/remote-transmit-interval", &spec.transmit_milliseconds.into())?;
            expect_at(&ours, "/remote-receive-interval", &spec.receive_milliseconds.into())?;
            expect_at(&ours, "/remote-detect-multiplier", &spec.multiplier.into())
        })?;
        ends_agree(&mut scene)?;
        expect_undisturbed(&scene, &before)?;
    }
    // A wrong detection time would show now.
    holds_for("nothing is disturbed", DISTRUST, || expect_undisturbed(&scene, &before))?;
    scene.expect_router_kept(&incarnation)
}

/// Topology: node --- router, eBGP over IPv4, `passiveMode: true`; the router's BFD packets are dropped,
/// then they are not.
/// Proves: we send nothing to a router that sends nothing, and answer one that does.
pub(super) fn bfd_that_is_passive_waits_for_the_router(cell: &Cell) -> Result<()> {
    let mut scene = scene(cell, Wiring::Direct, Family::Ipv4, |_| ())?;
    scene.fairway.apply("bfd", &BfdProfile { passive: true, ..profile() }.yaml())?;
    Cut::of_packets(&scene.lab, "udp dport 3784")?;
    scene.start()?;
    scene.established()?;
    holds_for("we send nothing", DISTRUST, || {
        expect_at(&ours(&scene)?, "/passive-mode", &true.into())?;
        expect_equal("packets sent", &counted(&scene, "control-packet-output")?, &0)
    })?;
    Cut::heal(&scene.lab)?;
    all_up(&mut scene, Family::Ipv4).map(drop)
}

/// Topology: node --- router, eBGP over IPv4; the router is passive.
/// Proves: we send first.
pub(super) fn bfd_speaks_to_a_router_that_waits(cell: &Cell) -> Result<()> {
    let passive = BfdSpec { passive: true, ..spec() };
    agreed(
        &mut scene(cell, Wiring::Direct, Family::Ipv4, |router| router.bfd = Some(passive))?,
        Family::Ipv4,
    )
}

/// Topology: node --- router, eBGP over IPv4; BFD is administratively down at the router, then it is
/// not, then it is again.
/// Proves: BFD that was never up ends no session, and neither does a router that takes it down.
//+ RFC 5882 §3.2: AdminDown of the other end is taken as a failure.
pub(super) fn bfd_that_is_taken_down_ends_no_session(cell: &Cell) -> Result<()> {
    let mut scene = scene(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.bfd = Some(BfdSpec { shut_down: true, ..spec() });
    })?;
    scene.start()?;
    scene.established()?;
    scene.route_arrives("203.0.113.10/32")?;
    let count = |scene: &Scene| number_at(&neighbour(scene)?, "/connectionsEstablished");
    let before = count(&scene)?;
    let stays = |scene: &Scene, period| {
        holds_for("the session stays, without BFD", period, || {
            let session = scene.router.session()?;
            ensure!(session.established, "the router says {}", session.state);
            expect_equal("connections", &count(scene)?, &before)?;
            let ours = ours(scene)?;
            ensure!(ours.get("status") != Some(&"up".into()), "BFD is up: {ours}");
            Ok(())
        })
    };
    stays(&scene, DISTRUST)?;
    scene.router.change_bfd(spec())?;
    up(&mut scene)?;
    scene.router.change_bfd(BfdSpec { shut_down: true, ..spec() })?;
    scene.wait("BFD is down at our end", PATIENCE, |scene| {
        let ours = ours(scene)?;
        ensure!(ours.get("status") != Some(&"up".into()), "it is {ours}");
        Ok(())
    })?;
    stays(&scene, DISTRUST)?;
    scene.router.change_bfd(spec())?;
    up(&mut scene)?;
    expect_equal("connections", &count(&scene)?, &before)
}

/// Topology: node --- router, eBGP over IPv4, `bfdStrict: true`; BFD is administratively down at the
/// router, then it is not.
/// Proves: there is no session before BFD is up, whichever side dials.
pub(super) fn bfd_in_strict_mode_comes_before_the_session(cell: &Cell) -> Result<()> {
    let mut scene = scene(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.bfd = Some(BfdSpec { shut_down: true, ..spec() });
    })?;
    let mut peer = peer(&scene);
    peer.bfd_strict = true;
    scene.apply_peer(&peer)?;
    scene.start()?;
    scene.expect_no_session()?;
    scene.router.change_bfd(spec())?;
    all_up(&mut scene, Family::Ipv4).map(drop)
}

//! What becomes of one entry from one kind of peer, with a fairway of its own? Good routes first,
//! then the bytes, then a sentinel; then everything that could stumble over what was kept: every
//! `show`, a refresh both ways, another peer that receives the routes, and the end. Used by the runner.

use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::bytes::{HEADER_LENGTH_BYTES, keepalive, kind, route_refresh};
use crate::daemon::Daemon;
use crate::entry::{
    AS_PATH_POINTER, Action, Entry, FIRST_ORIGIN, KEPT, KEPT_NLRI, Kind, Manner, Moment,
    ORIGINATED, SECOND_ORIGIN, SENTINEL, SENTINEL_NLRI, SUBJECT, SUBJECT_NLRI, SUBJECT6, Scene,
    hex,
};
use crate::looks;
use crate::observer::Observer;
use crate::runner::Subject;
use crate::speaker::{Farewell, Heard, Speaker, listen};

/// One entry from one kind of peer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trial<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) kind: Kind,
    /// No other trial of this run has it: it chooses the addresses.
    pub(crate) number: usize,
}

/// The addresses of a trial: the speaker under test, the peer, the second peer. Each run and each
/// trial has its own, so that many can go on at once.
fn addresses(number: usize) -> [[u8; 4]; 3] {
    let run = u8::try_from(std::process::id() % 200).unwrap_or(0) + 20;
    let [middle, low] = [number % 250, number / 250].map(|it| u8::try_from(it).unwrap_or(0));
    [1, 2, 3].map(|role| [127, run, middle + 1, 10 * low + role])
}

impl Trial<'_> {
    pub(crate) fn name(&self) -> String {
        format!("{} from {}", self.entry.name, self.kind.name())
    }

    /// Fairway is at the machine's own loopback address: one that is on a network. BIRD, which
    /// listens, has one for each trial.
    pub(crate) fn scene(&self, subject: Subject) -> Scene {
        let [own, peer, _] = addresses(self.number);
        let speaker = match subject {
            Subject::Fairway => [127, 0, 0, 1],
            Subject::Bird => own,
        };
        Scene { kind: self.kind, offer: self.entry.offer, peer, speaker }
    }

    fn action(&self) -> Action {
        self.entry.action(self.kind)
    }

    /// Runs it in `folder`.
    pub(crate) fn run(&self, folder: &Path) -> Result<()> {
        let scene = self.scene(Subject::Fairway);
        let [_, _, second] = addresses(self.number);
        let listeners = [listen(scene.peer)?, listen(second)?];
        let mut daemon = Daemon::start(folder, &scene, second, self.entry.adjacent)?;
        let [first_listener, second_listener] = listeners;
        let second_speaker = Speaker::accept(second_listener)?;
        let mut observer = Observer::establish(second_speaker, second, scene.speaker)?;
        let mut peer = Speaker::accept(first_listener)?;
        self.play(&scene, &mut peer, &mut observer)?;
        self.judge(&scene, &daemon, &mut observer)?;
        self.look_around(&scene, &daemon, &mut peer)?;
        daemon.terminate()?;
        if self.action().is_mild() {
            let farewell = peer.farewell()?;
            let shutdown = Farewell::Notification(6, 2, Vec::new());
            ensure!(
                farewell == shutdown,
                "expected {shutdown:02x?} after SIGTERM; got {farewell:02x?}"
            );
        }
        observer.listen_to_the_end()?;
        drop((peer, observer));
        daemon.ended()
    }

    /// The script: up to the sentinel, or to the end of the session.
    fn play(&self, scene: &Scene, peer: &mut Speaker, observer: &mut Observer) -> Result<()> {
        let bytes = (self.entry.bytes)(scene);
        let moment = self.entry.moment;
        let mild = self.action().is_mild();
        peer.expect(kind::OPEN, "an OPEN")?;
        match moment {
            Moment::InsteadOfOpen => peer.send_in(self.entry.manner, &bytes)?,
            Moment::BehindOpen => peer.send(&[scene.open().bytes(), bytes.clone()].concat())?,
            _ => peer.send(&scene.open().bytes())?,
        }
        if moment == Moment::InsteadOfKeepalive {
            peer.expect(kind::KEEPALIVE, "a KEEPALIVE")?;
            peer.send_in(self.entry.manner, &bytes)?;
        }
        if !mild && moment != Moment::Established {
            return self.end(scene, peer);
        }
        if moment != Moment::InsteadOfKeepalive {
            peer.expect(kind::KEEPALIVE, "a KEEPALIVE")?;
        }
        peer.send(&keepalive())?;
        announce(scene, peer)?;
        observer.wait_until("the good routes", |routes| {
            [KEPT, SUBJECT, ORIGINATED].iter().all(|prefix| routes.contains_key(*prefix))
        })?;
        if moment == Moment::Established {
            peer.send_in(self.entry.manner, &bytes)?;
        }
        if !mild {
            return self.end(scene, peer);
        }
        peer.send(&scene.announcement(SENTINEL_NLRI).bytes())?;
        answers(peer).context("after the bytes")
    }

    /// The session must end as the entry specifies.
    fn end(&self, scene: &Scene, peer: &mut Speaker) -> Result<()> {
        if self.entry.manner == Manner::ThenReset {
            // Nothing more can be received; what is shown will tell.
            return Ok(());
        }
        let expected = match self.action() {
            Action::Notification(code, subcode, data) => {
                Farewell::Notification(code, subcode, self.entry.expected_data(scene, data))
            }
            _ => Farewell::Silence,
        };
        let farewell = peer.farewell()?;
        ensure!(farewell == expected, "expected {expected:02x?}; got {farewell:02x?}");
        Ok(())
    }

    /// What is known of the routes now, here and at the second peer.
    fn judge(&self, scene: &Scene, daemon: &Daemon, observer: &mut Observer) -> Result<()> {
        if !self.action().is_mild() {
            observer.wait_until("all routes of the first peer withdrawn", |routes| {
                [KEPT, SUBJECT, SENTINEL].iter().all(|prefix| !routes.contains_key(*prefix))
                    && routes.contains_key(ORIGINATED)
            })?;
            for prefix in [KEPT, SUBJECT, SUBJECT6] {
                ensure!(daemon.path(prefix)?.is_none(), "{prefix} outlived its session");
            }
            return Ok(());
        }
        observer.wait_until("the sentinel", |routes| {
            routes.contains_key(SENTINEL) && routes.contains_key(KEPT)
        })?;
        for prefix in [KEPT, SENTINEL] {
            let path = daemon.path(prefix)?.with_context(|| format!("{prefix} is not shown"))?;
            is_shown(&path, AS_PATH_POINTER, &scene.shown_path(FIRST_ORIGIN))?;
        }
        for prefix in self.entry.about {
            let path = daemon.path(prefix)?;
            self.judge_path(scene, prefix, path.as_ref())
                .with_context(|| format!("{prefix} is shown as {path:?}"))?;
            self.judge_observed(prefix, observer)?;
        }
        Ok(())
    }

    /// Whether the path to `prefix` is as the action says.
    fn judge_path(&self, scene: &Scene, prefix: &str, path: Option<&Value>) -> Result<()> {
        match (self.action(), path) {
            (Action::Withdraw | Action::Exclude, None) => Ok(()),
            (Action::Withdraw | Action::Exclude, Some(_)) => bail!("{prefix} should be gone"),
            (Action::Ignore, path) if !was_announced(prefix, scene) => {
                ensure!(path.is_none(), "{prefix} should not have come");
                Ok(())
            }
            (Action::Ignore, Some(path)) => {
                is_shown(path, AS_PATH_POINTER, &scene.shown_path(FIRST_ORIGIN))
            }
            (Action::Accept, Some(path)) => self.judge_attributes(scene, path),
            (Action::Discard(codes), Some(path)) => {
                self.judge_attributes(scene, path)?;
                codes.iter().try_for_each(|code| is_discarded(path, *code))
            }
            (_, path) => {
                ensure!(path.is_some(), "{prefix} should be there");
                Ok(())
            }
        }
    }

    fn judge_attributes(&self, scene: &Scene, path: &Value) -> Result<()> {
        for (pointer, expected) in &self.entry.shows {
            is_shown(path, pointer, expected)?;
        }
        let special = self.entry.shows.iter().any(|(pointer, _)| *pointer == AS_PATH_POINTER);
        if special || self.entry.has_long_path {
            return Ok(());
        }
        is_shown(path, AS_PATH_POINTER, &scene.shown_path(SECOND_ORIGIN))
    }

    /// Whether the second peer received the same. It does not receive IPv6.
    fn judge_observed(&self, prefix: &str, observer: &mut Observer) -> Result<()> {
        if prefix.contains(':') {
            return Ok(());
        }
        let action = self.action();
        let told = match action {
            Action::Accept | Action::Discard(_) => !self.entry.too_long_to_tell,
            Action::Ignore => prefix == SUBJECT,
            _ => false,
        };
        let origin = match action {
            Action::Ignore => FIRST_ORIGIN,
            _ => SECOND_ORIGIN,
        };
        let changed = self.entry.shows.is_empty() && !self.entry.has_long_path;
        let origin = u32::from(origin).to_be_bytes();
        let expected = format!("{prefix} {}", if told { "told" } else { "not told" });
        observer.wait_until(&expected, |routes| match routes.get(prefix) {
            None => !told,
            Some(attributes) => {
                let path = attributes.get(&2).map(|(_, value)| value.as_slice());
                told && (!changed || path.is_some_and(|path| path.ends_with(&origin)))
            }
        })?;
        let Action::Discard(codes) = action else { return Ok(()) };
        for code in codes {
            let kept = observer.route(prefix).is_some_and(|it| it.contains_key(code));
            ensure!(!kept, "the second peer received attribute {code}");
        }
        Ok(())
    }

    /// Whether an operator can find out: what was malformed, octet by octet, and what the second peer was not
    /// sent for lack of room.
    fn judge_neighbours(&self, scene: &Scene, daemon: &Daemon) -> Result<()> {
        let neighbours = daemon.show_json(&["bgp", "neighbors"])?;
        if matches!(self.action(), Action::Withdraw | Action::Discard(_)) {
            let pointer = format!("/{}/lastMalformedUpdate/bytes", Ipv4Addr::from(scene.peer));
            let bytes = (self.entry.bytes)(scene);
            let body = hex(&bytes[HEADER_LENGTH_BYTES..]).replace(' ', "");
            is_shown(&neighbours, &pointer, &body)?;
        }
        if self.entry.too_long_to_tell {
            let [_, _, second] = addresses(self.number).map(Ipv4Addr::from);
            is_shown(&neighbours, &format!("/{second}/unannounced/0/prefix"), SUBJECT)?;
        }
        Ok(())
    }

    /// Everything that an operator might do next.
    fn look_around(&self, scene: &Scene, daemon: &Daemon, peer: &mut Speaker) -> Result<()> {
        let address = Ipv4Addr::from(scene.peer).to_string();
        looks::show_everything(daemon, &address, self.entry.about)?;
        let mild = self.action().is_mild();
        for way in ["in", "out"] {
            let answer = daemon.ask(&["clear", "bgp", &address, "soft", way])?;
            let code = answer.status.code();
            // A peer that is down, or does not support ROUTE-REFRESH, cannot be asked; that may be reported.
            let refusable = !mild || way == "in" && self.entry.offers_no_refresh;
            let fine = code == Some(0) || refusable && code == Some(1);
            ensure!(fine, "clear soft {way}: {}: {}", answer.status, answer.errors);
        }
        if !mild {
            return Ok(());
        }
        if !self.entry.offers_no_refresh {
            peer.expect(kind::ROUTE_REFRESH, "a ROUTE-REFRESH after `soft in`")?;
        }
        answers(peer).context("after `clear bgp PEER soft`")?;
        self.judge_neighbours(scene, daemon)?;
        let summary = daemon.show_json(&["bgp", "summary"])?;
        let pointer = format!("/ipv4Unicast/peers/{address}/state");
        is_shown(&summary, &pointer, "Established")?;
        for heard in peer.heard_so_far()? {
            let ended = heard == Heard::End || matches!(heard, Heard::Message(3, _));
            ensure!(!ended, "the session should live; got {heard:02x?}");
        }
        Ok(())
    }
}

/// The good routes: IPv6 first, so that the others tell when all are known.
pub(crate) fn announce(scene: &Scene, peer: &mut Speaker) -> Result<()> {
    if scene.offer.has_ipv6() {
        peer.send(&scene.announcement6().bytes())?;
    }
    for nlri in [SUBJECT_NLRI, KEPT_NLRI] {
        peer.send(&scene.announcement(nlri).bytes())?;
    }
    Ok(())
}

/// Whether `prefix` was among the good routes.
pub(crate) fn was_announced(prefix: &str, scene: &Scene) -> bool {
    prefix == SUBJECT || prefix == SUBJECT6 && scene.offer.has_ipv6()
}

/// The session lives: a peer that requests routes gets them.
fn answers(peer: &mut Speaker) -> Result<()> {
    peer.heard_so_far().and_then(|heard| match heard.iter().find(|it| is_end(it)) {
        Some(end) => bail!("the session should live; got {end:02x?}"),
        None => Ok(()),
    })?;
    // The connection may have been closed meanwhile: reading shows more than sending.
    let _ = peer.send(&route_refresh(1, 0, 1, &[]));
    peer.listen_until("an answer to a ROUTE-REFRESH", |heard| match heard {
        Heard::Message(kind::NOTIFICATION, body) => {
            bail!("the session should live; got NOTIFICATION {}", hex(body))
        }
        Heard::Message(kind::UPDATE, body) => Ok(body.ends_with(&[24, 198, 51, 100]).then_some(())),
        _ => Ok(None),
    })
}

fn is_end(heard: &Heard) -> bool {
    matches!(heard, Heard::End | Heard::Message(kind::NOTIFICATION, _))
}

/// Whether `value` has this text, or a number that reads so, at `pointer`.
fn is_shown(value: &Value, pointer: &str, expected: &str) -> Result<()> {
    let found = value.pointer(pointer);
    let text = match found {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    ensure!(text == expected, "expected {pointer} to be {expected:?}; got {found:?}");
    Ok(())
}

/// Whether nothing of an attribute is left in the path.
fn is_discarded(path: &Value, code: u8) -> Result<()> {
    let keys: &[&str] = match code {
        6 => &["atomicAggregate"],
        7 => &["aggregatorAs", "aggregatorId"],
        9 => &["originatorId"],
        10 => &["clusterList"],
        _ => &[],
    };
    for key in keys {
        ensure!(path.get(key).is_none(), "attribute {code} should be gone, but {key} is shown");
    }
    let preference = path.get("locPrf").and_then(Value::as_u64);
    ensure!(code != 5 || preference != Some(200), "LOCAL_PREF 200 should be gone");
    Ok(())
}

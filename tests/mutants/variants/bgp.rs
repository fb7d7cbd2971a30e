//! Mistakes in the session, the RIB and the speaker, held against their tables, stories and the simulator.

use super::{Subject, Variant, variant};

pub(crate) const BGP: Subject = Subject {
    folder: "crates/bgp",
    package: "fairway-bgp",
    is_story: false,
    rounds: &[&["session::", "rib::", "speaker::", "wire::header::"], &["sim::"]],
    seeds: "300",
    variants: VARIANTS,
};

const PEER: &str = "session/peer.rs";
const COLLISION: &str = "session/collision.rs";
const CONNECTION: &str = "session/connection.rs";
const BACKOFF: &str = "session/backoff.rs";
/// What is kept of a neighbour that restarts.
const STALE: &str = "session/stale.rs";
const REPLACEMENT: &str = "session/replacement.rs";
const OFFERS: &str = "session/graceful_restart.rs";
const OUTBOUND: &str = "session/outbound.rs";
const VALIDATION: &str = "session/validation.rs";
const RECEIVE: &str = "session/receive.rs";
/// What we say and keep quiet when we restart ourselves.
const COMEBACK: &str = "session/restart.rs";
const STARTUP: &str = "session/startup.rs";
const CONTROL: &str = "session/control.rs";
const EXPORT: &str = "rib/export.rs";
const EXPORT_POLICY: &str = "rib/export/policy.rs";
const ADJ_RIB_IN: &str = "rib/adj_rib_in.rs";
/// What passes between peers, and what the start, the desired state and a panic do to them.
const SPEAKER: &str = "speaker/speaker.rs";
const SPEAKER_NEIGHBOUR: &str = "speaker/neighbour.rs";
const SPEAKER_TOLD: &str = "speaker/told.rs";
const SPEAKER_DESIRED: &str = "speaker/desired.rs";
const SPEAKER_STARTUP: &str = "speaker/startup.rs";
/// What of a neighbour the RIB has not got yet.
const SPEAKER_UNLEARNED: &str = "speaker/unlearned.rs";

const VARIANTS: &[Variant] = &[
    variant(
        "the loser of a collision is kept, and promoted when the winner ends",
        COLLISION,
        "        self.end(now, loser, collision());\n",
        "        let _ = (now, loser);\n",
    ),
    variant(
        "the connection that was confirmed first wins a collision",
        COLLISION,
        "            (_, true) => incoming.id,\n            (_, false) => outgoing.id,\n",
        "            _ => id,\n",
    ),
    variant(
        "a session comes up while the neighbour has not seen our dial, which it takes for a restart",
        COLLISION,
        "        let dials = self.is_dialling() && self.config.graceful_restart.is_some();\n",
        "        let dials = false;\n",
    ),
    variant(
        "a collision is decided by the smaller identifier",
        COLLISION,
        "match (other.state, ours > theirs)",
        "match (other.state, ours < theirs)",
    ),
    variant(
        "equal identifiers ignore the AS",
        COLLISION,
        "match (other.state, ours > theirs)",
        "match (other.state, ours.0 > theirs.0)",
    ),
    variant(
        "a dial on its way closes a connection that is up",
        COLLISION,
        "            _ if !other.is_connected() => other.id,\n",
        "",
    ),
    variant(
        "a dial on its way goes on beside a connection that is up",
        COLLISION,
        "            _ if !other.is_connected() => other.id,\n",
        "            _ if !other.is_connected() => return,\n",
    ),
    variant(
        "the others are not closed when one is Established",
        PEER,
        "        self.end_all_but(now, id);\n",
        "",
    ),
    variant(
        "an Established session does not win over a new one",
        PEER,
        "let refusal = if self.established.is_some() && !self.may_be_replaced(now) {",
        "let refusal = if false {",
    ),
    variant(
        "a second accept leaves the first open",
        PEER,
        "            self.actions.push_back(Action::Close(older.id, None));\n",
        "            let _ = older;\n",
    ),
    variant(
        "no connection is accepted while Idle",
        PEER,
        "} else if self.refused_until.is_some_and(|until| now < until) {",
        "} else if self.idle_hold || self.refused_until.is_some_and(|until| now < until) {",
    ),
    variant(
        "a late end of an old connection ends the new one",
        PEER,
        "Event::Closed(id, None) => self.end(now, id, DownReason::Closed),",
        "Event::Closed(_, None) => {
                for id in self.connection_ids() {
                    self.end(now, id, DownReason::Closed);
                }
            }",
    ),
    variant(
        "a NOTIFICATION is answered with a NOTIFICATION",
        PEER,
        "self.end(now, id, DownReason::Received(notification));",
        "self.end(now, id, DownReason::Sent { notification, why: String::new() });",
    ),
    variant(
        "something is sent after a NOTIFICATION",
        PEER,
        "let last_words = notification.encode();\n                (reason, Some(last_words))",
        "let keepalive = crate::wire::header::keepalive();
                let last_words = Bytes::from([notification.encode(), keepalive].concat());
                (reason, Some(last_words))",
    ),
    variant(
        "a NOTIFICATION goes out before any OPEN",
        PEER,
        "if !connection.has_spoken() => {",
        "if !connection.is_connected() => {",
    ),
    variant(
        "a failed dial is repeated without a wait",
        PEER,
        "            self.dial_at = Some(now + wait);\n            self.last_attempt",
        "            self.dial_at = Some(now + wait / 1000);\n            self.last_attempt",
    ),
    variant(
        "a failed dial is never repeated",
        PEER,
        "            self.dial_at = Some(now + wait);\n            self.last_attempt",
        "            let _ = wait;\n            self.last_attempt",
    ),
    variant(
        "a session that ended is dialled again without a wait",
        PEER,
        "            self.dial_at = Some(now + wait);\n            self.idle_hold",
        "            self.dial_at = Some(now + wait / 1000);\n            self.idle_hold",
    ),
    variant(
        "the idle hold never grows",
        BACKOFF,
        "        self.sessions_failed = self.sessions_failed.saturating_add(1);\n",
        "",
    ),
    variant(
        "the idle hold never starts again",
        BACKOFF,
        "            self.sessions_failed = 0;\n",
        "            let _ = STABLE;\n",
    ),
    variant(
        "the connect retry never grows",
        BACKOFF,
        "        self.connects_failed = self.connects_failed.saturating_add(1);\n",
        "",
    ),
    variant(
        "KEEPALIVEs do not restart the hold timer",
        CONNECTION,
        "            (S::Established, M::Keepalive) => {\n                self.restart_hold_timer(now);\n",
        "            (S::Established, M::Keepalive) => {\n",
    ),
    variant(
        "UPDATEs do not restart the hold timer",
        CONNECTION,
        "            (S::Established, M::Update) => {\n                self.restart_hold_timer(now);\n",
        "            (S::Established, M::Update) => {\n",
    ),
    variant(
        "no KEEPALIVE is ever due",
        CONNECTION,
        "            self.keepalive_due = true;\n            self.restart_keepalive_timer(now, rng);\n",
        "            self.restart_keepalive_timer(now, rng);\n",
    ),
    variant(
        "an OPEN is not confirmed",
        CONNECTION,
        "                self.keepalive_due = true;\n",
        "",
    ),
    variant(
        "a connection without an OPEN keeps its slot",
        CONNECTION,
        "        self.state = SessionState::OpenSent;\n        self.hold_deadline = Some(now + OPEN_TIMEOUT);\n",
        "        self.state = SessionState::OpenSent;\n        self.hold_deadline = None;\n",
    ),
    variant(
        "a delayed OPEN goes out at once",
        CONNECTION,
        "        if self.delay_open_deadline.is_some() {\n            return None;",
        "        if false {\n            return None;",
    ),
    variant(
        "the larger of two hold times is agreed on",
        "../../ground/src/timers.rs",
        "        self.min(other)\n",
        "        self.max(other)\n",
    ),
    variant(
        "a message that has come in part is dropped",
        "wire/header.rs",
        "        if self.buffer.len() < whole {\n",
        "        if self.buffer.len() < whole {\n            self.buffer.clear();\n",
    ),
    variant(
        "the bit F of a neighbour that is back is ignored",
        STALE,
        "            if !forwarded.contains(family) {\n",
        "            if false && !forwarded.contains(family) {\n",
    ),
    variant(
        "the bit R is said in every session",
        COMEBACK,
        "            restarted: own.restarted && is_first && over_at.is_none_or(|over_at| now < over_at),\n",
        "            restarted: own.restarted && over_at.is_none_or(|over_at| now < over_at),\n",
    ),
    variant(
        "the bit R is said after the restart time",
        COMEBACK,
        "            restarted: own.restarted && is_first && over_at.is_none_or(|over_at| now < over_at),\n",
        "            restarted: own.restarted && is_first && over_at.is_none_or(|_| now == now),\n",
    ),
    variant(
        "the bit F is set by a machine that was rebooted",
        COMEBACK,
        "            forwarding: own.forwarding || !is_first,\n",
        "            forwarding: true,\n",
    ),
    variant(
        "End-of-RIB does not wait for the sources",
        PEER,
        "        if holds_end_of_rib {\n",
        "        if false && holds_end_of_rib {\n",
    ),
    variant(
        "End-of-RIB waits for silent sources for ever",
        COMEBACK,
        "        if self.comeback.hold_end_of_rib_until.is_some_and(|until| until <= now) {\n",
        "        if self.comeback.hold_end_of_rib_until.is_some_and(|until| until < Instant::ZERO) {\n",
    ),
    variant(
        "what an earlier run announced is not announced",
        STARTUP,
        "            Some(earlier) => beside(&desired.routes, earlier).into(),\n",
        "            Some(_) => Arc::clone(&desired.routes),\n",
    ),
    variant(
        "stale routes stay after End-of-RIB",
        RECEIVE,
        "            changes.extend(up.inbound.give_up_stale(family));\n        }\n        self",
        "        }\n        self",
    ),
    variant(
        "no route outlives its session",
        STALE,
        "        if !stay {\n",
        "        if !stay || restarts.sends_markers {\n",
    ),
    variant(
        "a second loss keeps what was stale, without RFC 8538",
        STALE,
        "        let outlast = |it: &Stale| restarts.notifications || it.was_long_lived;\n",
        "        let outlast = |_: &Stale| true;\n",
    ),
    variant(
        "a second loss removes what was stale, with RFC 8538",
        STALE,
        "        let outlast = |it: &Stale| restarts.notifications || it.was_long_lived;\n",
        "        let outlast = |it: &Stale| it.was_long_lived;\n",
    ),
    variant(
        "a NOTIFICATION keeps routes without the bit N",
        STALE,
        "            restarts.notifications && !is_hard_reset\n",
        "            !is_hard_reset\n",
    ),
    variant(
        "a Hard Reset keeps routes",
        STALE,
        "            restarts.notifications && !is_hard_reset\n",
        "            restarts.notifications || is_hard_reset\n",
    ),
    variant(
        "no NOTIFICATION keeps routes",
        STALE,
        "            restarts.notifications && !is_hard_reset\n",
        "            restarts.notifications && !is_hard_reset && false\n",
    ),
    variant(
        "routes are kept for our restart time, not for the neighbour's",
        OFFERS,
        "        restart_time: Duration::from_secs(offer.restart_time_seconds.into()),\n",
        "        restart_time: ours.restart_time(),\n",
    ),
    variant(
        "stale routes outlive the restart time",
        STALE,
        "                (StalePhase::Away | StalePhase::LongLived, _) => changes.extend(self.clear(family)),\n",
        "                (StalePhase::Away | StalePhase::LongLived, _) => {}\n",
    ),
    variant(
        "a neighbour that is back may take for ever",
        STALE,
        "                    changes.extend(self.give_up_stale(family));\n",
        "",
    ),
    variant(
        "long-lived stale routes are preferred",
        "rib/decision.rs",
        "    contest.keep_least(DecisionStep::LongLivedStale, is_long_lived_stale);\n",
        "    contest.keep_least(DecisionStep::LongLivedStale, |path| !is_long_lived_stale(path));\n",
    ),
    variant(
        "a drained node still announces",
        EXPORT,
        "            return Err(Ineligible::Drained);\n",
        "",
    ),
    variant(
        "a draining node does not say GRACEFUL_SHUTDOWN",
        EXPORT_POLICY,
        "        let attributes = attributes.with_community(Community::GRACEFUL_SHUTDOWN);\n",
        "",
    ),
    variant(
        "a stop for a restart sends a NOTIFICATION",
        CONTROL,
        "            Parting::ForRestart => keeps,\n",
        "            Parting::ForRestart => false,\n",
    ),
    variant(
        "a stop for good sends no Hard Reset",
        CONTROL,
        "        if notifications { farewell.as_hard_reset() } else { farewell.clone() }\n",
        "        if false && notifications { farewell.as_hard_reset() } else { farewell.clone() }\n",
    ),
    variant(
        "a new connection never takes the place of an old one",
        REPLACEMENT,
        "        keeps && now.since(up.since) >= SETTLED_AFTER\n",
        "        keeps && now.since(up.since) >= SETTLED_AFTER && false\n",
    ),
    variant(
        "a new connection takes the place of one that is just up",
        REPLACEMENT,
        "        keeps && now.since(up.since) >= SETTLED_AFTER\n",
        "        keeps && now.since(up.since) >= Duration::ZERO\n",
    ),
    variant(
        "the routes of a peer are not passed on",
        SPEAKER,
        "            if !self.rib.has_changes() {\n                break;\n            }\n            self.pass_on(now);\n",
        "            break;\n",
    ),
    variant(
        "routes touched while a peer is handled are forgotten",
        SPEAKER_NEIGHBOUR,
        "                    self.unlearned.push(source, changes, rib);\n",
        "                    self.unlearned.push(source, changes, rib);\n                    rib.take_changes();\n",
    ),
    variant(
        "waiting changes outlive the neighbour's panic",
        SPEAKER_NEIGHBOUR,
        "        self.unlearned.clear();\n",
        "",
    ),
    variant(
        "waiting changes are lost when the neighbour is removed",
        SPEAKER_DESIRED,
        "        gone.unlearned.learn_all(&mut self.rib);\n",
        "        gone.unlearned.clear();\n",
    ),
    variant(
        "waiting changes are forgotten after the first part",
        SPEAKER_TOLD,
        "!neighbour.unlearned.is_empty() || neighbour.peer",
        "neighbour.peer",
    ),
    variant(
        "waiting changes enter the RIB in one turn",
        SPEAKER,
        "        let is_first = !self.acted.contains(&key);\n",
        "        let is_first = true;\n",
    ),
    variant(
        "waiting changes are overtaken by later ones",
        SPEAKER_UNLEARNED,
        "        if !is_long && self.lists.is_empty() {\n",
        "        if !is_long {\n",
    ),
    variant(
        "waiting changes have no bound",
        SPEAKER_UNLEARNED,
        "        while self.announced > ANNOUNCED_MAX {\n",
        "        while self.announced > usize::MAX - 1 {\n",
    ),
    variant(
        "the routes of a peer that panicked are not withdrawn",
        SPEAKER,
        "        self.rib.forget(key);\n",
        "        self.rib.forget(key);\n        self.rib.take_changes();\n",
    ),
    variant(
        "the peer that was configured last keeps its incarnation when it panics",
        SPEAKER,
        "        self.incarnations = self.incarnations.saturating_add(1);\n        let farewell",
        "        let farewell",
    ),
    variant(
        "a peer that panicked is dialled at once",
        SPEAKER_NEIGHBOUR,
        "self.peer.after_panic(now, now + FAULT_WAIT, seed, incarnation)",
        "self.peer.after_panic(now, now, seed, incarnation)",
    ),
    variant(
        "a peer to which something happened has no turn",
        SPEAKER,
        "            self.agenda.touch(key);\n            self.run_guarded",
        "            self.run_guarded",
    ),
    variant(
        "nothing that is due happens in a turn",
        SPEAKER,
        "                neighbour.peer.handle(now, session::Event::Tick);\n",
        "                let _ = session::Event::Tick;\n",
    ),
    variant(
        "a session that came up is told nothing",
        SPEAKER_NEIGHBOUR,
        "                    self.peer.announce_all(rib);\n",
        "",
    ),
    variant(
        "a socket without room is given more",
        SPEAKER_NEIGHBOUR,
        ".filter(|id| !self.writing.contains(id))",
        ".filter(|id| !self.writing.contains(id) || now > Instant::ZERO)",
    ),
    variant(
        "a connection that was closed is being written for ever",
        SPEAKER_NEIGHBOUR,
        "                    self.writing.remove(&id);\n                    outbox",
        "                    outbox",
    ),
    variant(
        "what has been written is not known to have been withdrawn",
        SPEAKER_NEIGHBOUR,
        "            self.withdrawn_up_to.written();\n",
        "",
    ),
    variant(
        "one peer that knows what is gone speaks for all",
        SPEAKER_TOLD,
        ".map(|it| it.withdrawn_up_to()).min();",
        ".map(|it| it.withdrawn_up_to()).max();",
    ),
    variant(
        "what an earlier run announced counts as withdrawn",
        SPEAKER_TOLD,
        "if self.startup.keeps_earlier() { 0 }",
        "if self.startup.keeps_earlier() { self.desired.generation }",
    ),
    variant(
        "a peer that waits is not woken",
        SPEAKER_TOLD,
        "        self.agenda.wait(key, deadline);\n",
        "        self.agenda.wait(key, deadline.filter(|_| false));\n",
    ),
    variant(
        "a neighbour of a range stays when it is at rest",
        SPEAKER_TOLD,
        "neighbour.peer.config().is_dynamic() && neighbour.peer.is_at_rest()",
        "neighbour.peer.config().is_dynamic() && neighbour.peer.is_down()",
    ),
    variant(
        "a place in a range is not given back",
        SPEAKER_DESIRED,
        "        self.agenda.forget(key);\n        self.ranges.leave(key);\n",
        "        self.agenda.forget(key);\n",
    ),
    variant(
        "a peer that is not desired stays",
        SPEAKER_DESIRED,
        "                self.remove(now, key);\n",
        "                let _ = key;\n",
    ),
    variant(
        "a policy that changed is not applied to what was told",
        SPEAKER_DESIRED,
        "                neighbour.peer.announce_all(rib);\n",
        "                let _ = rib;\n",
    ),
    variant(
        "a peer of a range that joins a drained node is told routes",
        SPEAKER_DESIRED,
        "        peer.set_drain(&self.rib, self.desired.drain);\n",
        "",
    ),
    variant(
        "what an earlier run announced is withdrawn before the sources speak",
        SPEAKER_DESIRED,
        "        self.originate(now, routes);\n",
        "        let _ = routes;\n        self.originate(now, Arc::clone(&desired.routes));\n",
    ),
    variant(
        "changed routes of our own are not advertised",
        SPEAKER_STARTUP,
        "        self.pass_on(now);\n",
        "        self.rib.take_changes();\n",
    ),
    variant(
        "End-of-RIB never goes once it was held",
        SPEAKER_STARTUP,
        "        for key in complete.collect::<Vec<_>>() {\n",
        "        for key in complete.take(0).collect::<Vec<_>>() {\n",
    ),
    variant(
        "a source that never speaks is waited for for ever",
        SPEAKER_STARTUP,
        "            self.startup.forget_earlier();\n",
        "",
    ),
    variant(
        "a change is not said",
        SPEAKER_TOLD,
        "            self.outbox.push(Action::Changed);\n",
        "            let _ = &self.outbox;\n",
    ),
    variant(
        "silent strangers keep a full range closed",
        SPEAKER_DESIRED,
        "if self.ranges.is_over(range) {",
        "if !self.ranges.is_over(range) {",
    ),
    variant(
        "the stranger that came last makes room, so that nobody has time for an OPEN",
        SPEAKER_DESIRED,
        "silent.min()",
        "silent.max()",
    ),
    variant(
        "bytes of attributes have no bound",
        RECEIVE,
        "self.adj_rib_in.attribute_bytes() > maximum.attribute_bytes_max()",
        "self.adj_rib_in.attribute_bytes() > u64::MAX - maximum.attribute_bytes_max()",
    ),
    variant(
        "a refused route stays among the refused ones when it is accepted",
        RECEIVE,
        "        self.refused.remove(nlri);\n        let gone",
        "        let gone",
    ),
    variant(
        "a refused route stays among the refused ones when it is withdrawn",
        RECEIVE,
        "            self.refused.remove(nlri);\n            self.withdraw",
        "            self.withdraw",
    ),
    variant(
        "origins: what a rule refused is not looked at again",
        VALIDATION,
        "chain(self.refused.ruled(concerns));",
        "chain(self.refused.ruled(|_| false));",
    ),
    variant(
        "origins: a route that rules changed is judged as they changed it",
        ADJ_RIB_IN,
        "(nlri, self.originals.get(&nlri).unwrap_or(attributes))",
        "(nlri, attributes)",
    ),
    variant(
        "origins: routes after the first part are not judged again",
        SPEAKER_TOLD,
        "|| neighbour.peer.has_to_look_again()",
        "",
    ),
    variant(
        "origins: what was refused in a session that is over is accepted",
        "session/stale.rs",
        "            self.refused.clear(family);\n",
        "",
    ),
    variant(
        "origins: an original outlives its route",
        ADJ_RIB_IN,
        "        self.set_original(nlri, None);\n",
        "",
    ),
    variant(
        "origins: what a rule refused has a bound although it may be accepted later",
        "session/refused.rs",
        "Self::Ruled(most) => matches!(refusal, Refusal::Rule { .. }) && others < most,",
        "Self::Ruled(most) => most == 0,",
    ),
    variant(
        "origins: what a peer was sent stays when RPKI says something else",
        OUTBOUND,
        "        self.replace_policy(validated, concerned);\n",
        "        self.replace_policy(validated, PrefixSet::default());\n",
    ),
    variant(
        "origins: a route that was nothing for a peer is not sent when RPKI calls it valid",
        OUTBOUND,
        "        self.is_behind |= self.was_told && concerned.first_from(self.ahead).is_some();\n",
        "",
    ),
    variant(
        "origins: peers of whose routes RPKI says different things are sent one UPDATE",
        EXPORT_POLICY,
        "            && *origins == group.origins\n",
        "",
    ),
    variant(
        "refused routes have no bound",
        "session/refused.rs",
        "self.routes.len() >= ROUTES_MAX || bytes > ATTRIBUTE_BYTES_MAX",
        "self.routes.len() >= usize::MAX || bytes == u64::MAX",
    ),
    variant(
        "attributes that were replaced count for ever",
        ADJ_RIB_IN,
        "                self.attributes.release(&before);\n",
        "                let _ = before;\n",
    ),
    variant(
        "the neighbour with the fewest routes gives them up",
        SPEAKER,
        "held.max().filter(|(bytes, _)| *bytes > 0)?",
        "held.filter(|(bytes, _)| *bytes > 0).min()?",
    ),
];

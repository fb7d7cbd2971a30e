//! Which mistakes could the state machine hold? One text of its source that stands there exactly
//! once, and what a tired engineer might have written instead. Used by main.

/// One mistake.
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    /// Below `sessions/src`.
    pub(crate) file: &'static str,
    pub(crate) right: &'static str,
    pub(crate) wrong: &'static str,
}

const fn variant(
    name: &'static str,
    file: &'static str,
    right: &'static str,
    wrong: &'static str,
) -> Variant {
    Variant { name, file, right, wrong }
}

const PEER: &str = "bgp/peer.rs";
const COLLISION: &str = "bgp/collision.rs";
const CONNECTION: &str = "bgp/connection.rs";
const BACKOFF: &str = "bgp/backoff.rs";

pub(crate) const VARIANTS: &[Variant] = &[
    variant(
        "the loser of a collision is kept, and promoted when the winner ends",
        COLLISION,
        "        self.end(now, loser, collision());\n",
        "        let _ = (now, loser);\n",
    ),
    variant(
        "a collision is decided by who was confirmed first",
        COLLISION,
        "            (_, true) => incoming.id,\n            (_, false) => outgoing.id,\n",
        "            _ => id,\n",
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
        "nobody is let in while Idle",
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
        "the idle hold never begins anew",
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
        "who never sends an OPEN keeps its slot",
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
        "types/timers.rs",
        "        self.min(other)\n",
        "        self.max(other)\n",
    ),
    variant(
        "a message that has come in part is dropped",
        "wire/header.rs",
        "        if self.buffer.len() < whole {\n",
        "        if self.buffer.len() < whole {\n            self.buffer.clear();\n",
    ),
];

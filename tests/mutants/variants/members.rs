//! Mistakes in who is alive, held against the simulator of members.

use super::{Subject, Variant, variant};

pub(crate) const MEMBERS: Subject = Subject {
    folder: "crates/members",
    package: "fairway-members",
    is_story: false,
    rounds: &[&["membership::", "seal::", "heartbeat::"]],
    seeds: "60",
    variants: VARIANTS,
};

const MEMBERSHIP: &str = "membership.rs";
const PEER: &str = "membership/peer.rs";
const VIEW: &str = "membership/view.rs";
const SEAL: &str = "seal.rs";

const VARIANTS: &[Variant] = &[
    variant(
        "what a member abstains from is told when the next heartbeat is due",
        MEMBERSHIP,
        "            self.abstentions.clone_from(abstentions);\n            self.due = now;",
        "            self.abstentions.clone_from(abstentions);",
    ),
    variant(
        "one that left and came back unheard has announced nothing",
        PEER,
        "self.is_unknown |= is_silent;",
        "self.is_unknown |= is_silent && self.state != MemberState::Left;",
    ),
    variant(
        "abstentions of others are not heard",
        MEMBERSHIP,
        "            peer.abstentions = abstentions;\n",
        "",
    ),
    variant(
        "abstentions are never taken back",
        MEMBERSHIP,
        "            peer.abstentions = abstentions;",
        "            peer.abstentions.extend(abstentions);",
    ),
    variant(
        "a member does not abstain itself",
        VIEW,
        "others.chain([own]).filter(|(_, it)| !it.is_empty()).collect()",
        "{\n            let _ = own;\n            others.filter(|(_, it)| !it.is_empty()).collect()\n        }",
    ),
    variant(
        "a member is dead after ten intervals",
        MEMBERSHIP,
        "    interval.saturating_mul(7) / 2\n",
        "    interval.saturating_mul(10)\n",
    ),
    variant(
        "one lost heartbeat makes a member dead",
        MEMBERSHIP,
        "    interval.saturating_mul(7) / 2\n",
        "    interval.saturating_mul(11) / 10\n",
    ),
    variant(
        "a machine that has just started owns at once",
        MEMBERSHIP,
        "            phase: Phase::Joining { until: now + JOIN_LIMIT },\n",
        "            phase: Phase::Active,\n",
    ),
    variant(
        "a machine that has just started waits for ever for those that are gone",
        MEMBERSHIP,
        "let is_over = has_told && (is_whole || now >= until);",
        "let is_over = has_told && is_whole;",
    ),
    variant(
        "a machine that has just started waits although it has heard all",
        MEMBERSHIP,
        "let is_over = has_told && (is_whole || now >= until);",
        "let is_over = has_told && now >= until;",
    ),
    variant(
        "a member that joins counts as an owner",
        PEER,
        "(false, Standing::Active) if self.is_confirmed => MemberState::Alive,",
        "(false, Standing::Active | Standing::Joining) => MemberState::Alive,",
    ),
    variant(
        "a member that does not hear us counts as an owner",
        PEER,
        "(false, Standing::Active) if self.is_confirmed => MemberState::Alive,",
        "(false, Standing::Active) => MemberState::Alive,",
    ),
    variant(
        "a member that leaves stays an owner",
        PEER,
        "            (false, Standing::Leaving) => MemberState::Left,\n",
        "            (false, Standing::Leaving) => MemberState::Alive,\n",
    ),
    variant(
        "who leaves is silent at once",
        MEMBERSHIP,
        "            Phase::Active | Phase::Leaving { .. } => Some(self.name.as_str()),\n            Phase::Left => None,\n",
        "            Phase::Active => Some(self.name.as_str()),\n            Phase::Leaving { .. } | Phase::Left => None,\n",
    ),
    variant(
        "who leaves never stops",
        MEMBERSHIP,
        "if is_over || now >= until {",
        "if is_over && now >= until + LEAVE_LIMIT * 100 {",
    ),
    variant(
        "who leaves waits for no acknowledgement",
        MEMBERSHIP,
        "let all_know_at = all_know_at.or(all_know(&[Standing::Leaving]).then_some(now));",
        "let all_know_at = all_know_at.or(Some(now));",
    ),
    variant(
        "who leaves takes any answer for an acknowledgement",
        MEMBERSHIP,
        "all_know(&[Standing::Leaving])",
        "all_know(&[Standing::Leaving, Standing::Active, Standing::Joining])",
    ),
    variant(
        "who comes back does not own again",
        MEMBERSHIP,
        "            self.enter(now, if self.is_able { Phase::Active } else { until });\n",
        "            let _ = until;\n",
    ),
    variant(
        "a process that was stopped goes on as an owner",
        MEMBERSHIP,
        "            Phase::Active => self.enter(now, Phase::Joining { until: heard_by }),\n",
        "            Phase::Active => {}\n",
    ),
    variant(
        "a process that was stopped while it joined owns when it goes on",
        MEMBERSHIP,
        "self.phase = Phase::Joining { until: until.max(heard_by) },",
        "self.phase = Phase::Joining { until },",
    ),
    variant(
        "a machine that did not run answers on",
        MEMBERSHIP,
        "            _ => self.ticked + dead_after(self.ticked_interval),\n",
        "            _ => self.ticked + dead_after(self.ticked_interval) * 20,\n",
    ),
    variant(
        "a repetition counts as a heartbeat",
        MEMBERSHIP,
        "        if order <= (peer.incarnation, peer.sequence) {\n",
        "        if order < (peer.incarnation, 0) {\n",
    ),
    variant(
        "a recorded process counts as confirmed",
        MEMBERSHIP,
        "        let of_us = of_us.filter(|it| it.incarnation == self.incarnation);\n",
        "",
    ),
    variant(
        "a process whose clock went back is never heard again",
        MEMBERSHIP,
        "            self.incarnation = heard.incarnation.saturating_add(1);\n",
        "",
    ),
    variant(
        "a restarted member is as confirmed as its former process",
        MEMBERSHIP,
        "            (peer.is_confirmed, peer.is_told) = (false, false);\n",
        "            peer.is_told = false;\n",
    ),
    variant(
        "nobody vouches for others",
        MEMBERSHIP,
        "            heartbeat.heard.iter().for_each(|it| self.vouched(now, it));\n",
        "",
    ),
    variant(
        "who is vouched for never dies",
        MEMBERSHIP,
        "            peer.alive_at = at;\n",
        "            peer.alive_at = now;\n",
    ),
    variant(
        "a member that was replaced is not told so",
        PEER,
        "            self.revivals = self.revivals.wrapping_add(1);\n",
        "",
    ),
    variant(
        "what members say of having replaced us is ignored",
        MEMBERSHIP,
        "            self.has_healed |= peer.revivals_of_us != of_us.revivals;\n",
        "",
    ),
    variant(
        "a new process of a member has announced nothing before",
        PEER,
        "                judged.has_healed = std::mem::take(&mut self.is_unknown);\n",
        "",
    ),
    variant(
        "what waited while a process was stopped is news",
        MEMBERSHIP,
        "        let of_us = of_us.filter(|it| it.sequence >= self.joins_from);\n",
        "",
    ),
    variant(
        "a machine that joins is not silent",
        MEMBERSHIP,
        "            Phase::Joining { .. } => Instant::ZERO,\n",
        "            Phase::Joining { .. } => self.ticked + dead_after(self.ticked_interval),\n",
    ),
    variant(
        "a machine that cannot answer owns addresses",
        MEMBERSHIP,
        "if is_over && self.is_able { Phase::Active }",
        "if is_over { Phase::Active }",
    ),
    variant(
        "a machine that can no longer answer stays an owner",
        MEMBERSHIP,
        "        if !is_able && self.phase == Phase::Active {\n",
        "        if !is_able && self.phase == Phase::Left {\n",
    ),
    variant(
        "the interval of others is ours",
        MEMBERSHIP,
        "        peer.interval = interval.clamp(INTERVAL, INTERVAL_MAX);\n",
        "        let _ = interval;\n",
    ),
    variant(
        "a member that is reverted is never heard again",
        MEMBERSHIP,
        "            if heartbeat.incarnation < peer.incarnation || is_back {\n",
        "            if heartbeat.incarnation < peer.incarnation && is_back {\n",
    ),
    variant(
        "a forgotten member can be replayed",
        MEMBERSHIP,
        "            self.forgotten.insert(id, (peer.incarnation, peer.sequence));\n",
        "            let _ = (id, peer);\n",
    ),
    variant(
        "what a member said while it was not heard is no reason to announce again",
        MEMBERSHIP,
        "            peer.is_outdated |= !is_next && self.has_owned;\n",
        "            let _ = is_next;\n",
    ),
    variant(
        "who joins among many owns before all were told",
        MEMBERSHIP,
        "let has_told = now >= until + TELL_LIMIT || present().all(|it| it.is_told);",
        "let has_told = true;",
    ),
    variant(
        "many members send as often as few",
        MEMBERSHIP,
        "    INTERVAL.saturating_mul(members.div_ceil(MESH_MEMBERS).max(1))\n",
        "    INTERVAL.saturating_mul(members.clamp(1, 1))\n",
    ),
    variant(
        "the key that is being replaced no longer opens",
        SEAL,
        "self.0.iter().find(|(it, _)| it == id && *magic == MAGIC)?",
        "self.0.iter().take(1).find(|(it, _)| it == id && *magic == MAGIC)?",
    ),
    variant(
        "the second key seals",
        SEAL,
        "let (id, key) = self.keys.0.first()?;",
        "let (id, key) = self.keys.0.last()?;",
    ),
];

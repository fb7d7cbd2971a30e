//! Mistakes in what is answered and announced on the segment, held against the stories of the responder.

use super::{Subject, Variant, variant};

pub(crate) const LAYER2: Subject = Subject {
    folder: "crates/layer2",
    package: "fairway-layer2",
    is_story: false,
    rounds: &[&[
        "responder::",
        "arp::",
        "ndp::",
        "filter::",
        "segment::",
        "witness::",
        "binding::",
    ]],
    seeds: "0",
    variants: VARIANTS,
};

const RESPONDER: &str = "responder/mod.rs";
const ANNOUNCEMENTS: &str = "responder/announcements.rs";
const ARP: &str = "arp.rs";
const NDP: &str = "ndp.rs";
const FILTER: &str = "filter.rs";
const SEGMENT: &str = "segment.rs";
const WITNESS: &str = "witness.rs";
const BINDING: &str = "binding.rs";

const VARIANTS: &[Variant] = &[
    variant(
        "an address that somebody else put on an interface is taken over",
        BINDING,
        "None => match machine.addresses().find(|it| it.address == address) {",
        "None => match machine.addresses().find(|_| false) {",
    ),
    variant(
        "a lifetime is not renewed",
        BINDING,
        "if now.since(bound.at) >= REFRESH_INTERVAL {",
        "if now.since(bound.at) >= 2 * LIFETIME {",
    ),
    variant(
        "an address stays on its former interface",
        BINDING,
        "            self.bound.iter().filter(|(address, it)| wanted.get(*address) != Some(&it.index));",
        "            self.bound.iter().filter(|(address, _)| !wanted.contains_key(*address));",
    ),
    variant(
        "what the kernel refused counts as there",
        BINDING,
        "self.bound.remove(&address);\n                self.refused",
        "self.bound.insert(address, Bound { index: 0, at: now });\n                self.refused",
    ),
    variant(
        "an address that its next owner has announced stays on the interface",
        RESPONDER,
        "self.owned.iter().filter(|(_, it)| it.terms.bind && !it.is_handed_over);",
        "self.owned.iter().filter(|(_, it)| it.terms.bind);",
    ),
    variant(
        "a check that fails once counts",
        WITNESS,
        "if has_failed && !check.is_repeated {",
        "if false {",
    ),
    variant(
        "any host that answers is the owner",
        WITNESS,
        "        match answers.iter().find(|it| !known.contains(it)) {\n",
        "        match answers.iter().find(|it| known.is_empty() && !known.contains(it)) {\n",
    ),
    variant(
        "an owner behind a router is asked for",
        WITNESS,
        "let interfaces = owner.into_iter().flat_map(|it| &it.interfaces);",
        "let _ = owner;\n        let interfaces = self.places.keys();",
    ),
    variant(
        "the end of a failure is no news",
        WITNESS,
        "if has_failed || before.is_some() {",
        "if has_failed {",
    ),
    variant(
        "one lost answer is silence",
        WITNESS,
        "if questions == QUESTIONS || !answers.is_empty() {",
        "if questions > 0 {",
    ),
    variant(
        "an address is answered for on every interface",
        RESPONDER,
        "if owned.is_handed_over || !owned.is_answered_on(&on.segment) {",
        "if owned.is_handed_over {",
    ),
    variant(
        "what another machine has taken over is answered for",
        RESPONDER,
        "if owned.is_handed_over || !owned.is_answered_on(&on.segment) {",
        "if !owned.is_answered_on(&on.segment) {",
    ),
    variant(
        "who hands over announces again",
        RESPONDER,
        "            segments.for_each(|it| it.announcements = PacedAnnouncements::default());\n",
        "            let _ = segments;\n",
    ),
    variant(
        "frames to other hosts are answered",
        RESPONDER,
        "        if !is_to_us || !frame.sender_mac.is_unicast() || self.is_own(frame.sender_mac) {\n",
        "        if !frame.sender_mac.is_unicast() || self.is_own(frame.sender_mac) {\n",
    ),
    variant(
        "questions of this machine are answered",
        RESPONDER,
        "        if !is_to_us || !frame.sender_mac.is_unicast() || self.is_own(frame.sender_mac) {\n",
        "        if !is_to_us || !frame.sender_mac.is_unicast() {\n",
    ),
    variant(
        "replies are answered",
        RESPONDER,
        "frame.operation == Operation::Request && frame.sender != frame.target",
        "frame.sender != frame.target",
    ),
    variant(
        "announcements of members are conflicts",
        RESPONDER,
        "        if self.members.contains(&mac) {\n            return None;\n        }\n",
        "",
    ),
    variant(
        "an address is defended each time",
        RESPONDER,
        "        owned.defended = Some(now);\n",
        "",
    ),
    variant(
        "an address is defended once and never again",
        RESPONDER,
        "owned.defended.is_some_and(|before| now.since(before) < DEFEND_INTERVAL)",
        "owned.defended.is_some_and(|before| now >= before)",
    ),
    variant(
        "a host that asks with an address of ours claims nothing",
        RESPONDER,
        "        frames.extend(self.hear_claim(now, index, frame.sender.into(), frame.sender_mac));\n",
        "        if frame.operation == Operation::Reply {\n            frames.extend(self.hear_claim(now, index, frame.sender.into(), frame.sender_mac));\n        }\n",
    ),
    variant(
        "an address that is given up is announced on",
        RESPONDER,
        "            self.segments.values_mut().for_each(|it| it.announcements.end(address));\n",
        "",
    ),
    variant(
        "a new hardware address is not announced",
        RESPONDER,
        ".filter(|it| it.segment.mac == segment.mac);",
        ".filter(|it| it.segment.index == segment.index);",
    ),
    variant(
        "the kernel hands over nothing but IPv4",
        RESPONDER,
        "                    IpAddr::V6(address) => wanted.ipv6.push(*address),\n",
        "                    IpAddr::V6(_) => {}\n",
    ),
    variant(
        "a take-over is announced with replies alone",
        RESPONDER,
        "IpAddr::V4(address) => [Operation::Request, Operation::Reply]\n",
        "IpAddr::V4(address) => [Operation::Reply, Operation::Reply]\n",
    ),
    variant(
        "who hands over defends its addresses",
        RESPONDER,
        "        if self.is_handing_over {\n            // The next",
        "        if self.is_handing_over && self.members.contains(&mac) {\n            // The next",
    ),
    variant(
        "the oldest address is announced first",
        ANNOUNCEMENTS,
        "self.ready.pop_first()?",
        "self.ready.pop_last()?",
    ),
    variant(
        "a thousand announcements go at once",
        ANNOUNCEMENTS,
        "        self.paced = self.paced.max(now) + SPACING;\n",
        "",
    ),
    variant(
        "an address is announced once",
        ANNOUNCEMENTS,
        "INTERVALS.get(place.round).copied().or(refresh);",
        "refresh;",
    ),
    variant(
        "announcements never end",
        ANNOUNCEMENTS,
        "INTERVALS.get(place.round).copied().or(refresh);",
        "INTERVALS.get(place.round.min(3)).copied().or(refresh);",
    ),
    variant(
        "the answer has the address of the asker as its own",
        ARP,
        "            sender: self.target,\n",
        "            sender: self.sender,\n",
    ),
    variant(
        "packets of other hardware are read",
        ARP,
        "header.ethertype != ARP || fields.take()? != ETHERNET_AND_IPV4",
        "header.ethertype != ARP || fields.take::<6>()?.is_empty()",
    ),
    variant(
        "forwarded solicitations are answered",
        NDP,
        "        if fields.take()? != [ICMPV6, HOP_LIMIT] {\n",
        "        if fields.take::<2>()?[0] != ICMPV6 {\n",
    ),
    variant(
        "damaged solicitations are answered",
        NDP,
        "        if checksum(source, destination, message) != 0 {\n",
        "        if checksum(source, destination, message) == 1 {\n",
    ),
    variant(
        "detection of duplicates is answered as solicited",
        NDP,
        "let solicited = if self.asker.is_some() { SOLICITED } else { 0 };",
        "let solicited = SOLICITED;",
    ),
    variant(
        "the entry of the former owner is not replaced",
        NDP,
        "router | solicited | OVERRIDE",
        "router | solicited",
    ),
    variant(
        "every node is a router",
        NDP,
        "let router = if self.is_router { ROUTER } else { 0 };",
        "let router = ROUTER;",
    ),
    variant(
        "questions of a VLAN are answered on the interface below it",
        FILTER,
        "        Instruction { code: JUMP_IF_EQUAL, if_true: 1, if_false: 0, value: index },\n",
        "        Instruction { code: JUMP_IF_EQUAL, if_true: 1, if_false: 1, value: index },\n",
    ),
    variant(
        "questions of a VLAN of nobody are answered",
        FILTER,
        "if_true: 0, if_false: 1, value: FOR_OTHERS",
        "if_true: 1, if_false: 1, value: FOR_OTHERS",
    ),
    variant(
        "ports of a bridge are answered on",
        SEGMENT,
        "    [\"bridge\", \"bond\", \"team\", \"openvswitch\", \"ovs\", \"hsr\", \"batadv\"];\n",
        "    [\"bridg\", \"bond\", \"team\", \"openvswitch\", \"ovs\", \"hsr\", \"batadv\"];\n",
    ),
    variant(
        "an interface without carrier is answered on",
        SEGMENT,
        "    if !link.has_carrier {\n",
        "    if !link.is_up {\n",
    ),
];

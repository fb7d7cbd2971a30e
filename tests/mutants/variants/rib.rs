//! Mistakes in the RIB and in what neighbours are told of it: what was told before, prefixes by number, paths by identifier,
//! routes that wait.

use super::{Subject, Variant, variant};

pub(crate) const RIB: Subject = Subject {
    folder: "crates/bgp",
    package: "fairway-bgp",
    is_story: false,
    // The histories first: what they notice needs no test of its own.
    rounds: &[&["passing_on"], &["rib::", "speaker::", "session::"], &["sim::"]],
    seeds: "300",
    variants: VARIANTS,
};

const CONTROL: &str = "session/control.rs";
const EXPORT: &str = "rib/export.rs";
const EXPORT_POLICY: &str = "rib/export/policy.rs";
const IMPORT: &str = "rib/import.rs";
const PASSED_ON: &str = "rib/passed_on.rs";
const LOC_RIB: &str = "rib/loc_rib.rs";
const ROUTES: &str = "rib/routes.rs";
const RULES: &str = "rib/rules.rs";
/// What waits to be sent, and what was told before.
const WAITING: &str = "rib/waiting.rs";
const GROUPS: &str = "rib/groups.rs";
const ENTRIES: &str = "rib/entries.rs";
/// What was only noted since so much waits.
const LAGGING: &str = "rib/lagging.rs";
const ADJ_RIB_OUT: &str = "rib/adj_rib_out.rs";
/// What peers with the same policy are sent.
const EXPORT_GROUPS: &str = "rib/export_groups.rs";
const GROUP_UPDATES: &str = "rib/group_updates.rs";
const OUTBOUND: &str = "session/outbound.rs";
/// What was told by an earlier policy.
const EARLIER: &str = "session/outbound/earlier.rs";
const LOOK_AGAIN: &str = "session/outbound/look_again.rs";
/// What passes between peers, and what the start, the desired state and a panic do to them.
const SPEAKER: &str = "speaker/speaker.rs";
/// What is not used because its next hop cannot be reached.
const UNREACHABLE: &str = "rib/unreachable.rs";
const NEXT_HOPS: &str = "speaker/next_hops.rs";

const VARIANTS: &[Variant] = &[
    variant(
        "RIB: a route goes back to its source",
        EXPORT_POLICY,
        "if path.source.key == self.key {",
        "if path.source.key != path.source.key {",
    ),
    variant(
        "RIB: what was told follows from the new routes, not from those before",
        OUTBOUND,
        "Before::ByPresent(before) => told(self.exporter.route(prefix, before)),",
        "Before::ByPresent(_) => told(self.exporter.route(prefix, routes)),",
    ),
    variant(
        "RIB: the same with several paths",
        OUTBOUND,
        "Before::ByPresent(before) => self.exporter.paths(prefix, before),",
        "Before::ByPresent(_) => self.exporter.paths(prefix, routes),",
    ),
    variant(
        "RIB: another policy forgets what was told",
        LOOK_AGAIN,
        "Before::ByEarlier(exporter, routes)",
        "{ let _ = &exporter; Before::Nothing }",
    ),
    variant(
        "RIB: a path that is no longer among the best stays with the peer",
        OUTBOUND,
        "        for (path_id, told) in told {\n",
        "        for (path_id, told) in told.into_iter().take(0) {\n",
    ),
    variant(
        "RIB: a session that comes up between two changes knows the later one",
        LOC_RIB,
        "self.changed(id).map_or(routes, |it| &it.before)",
        "self.changed(id).filter(|_| false).map_or(routes, |it| &it.before)",
    ),
    variant(
        "RIB: what has changed again since the changes were taken counts as told",
        LOC_RIB,
        "self.known_of(id, self.nets.get(id)?)",
        "self.nets.get(id)?",
    ),
    variant(
        "RIB: a neighbour that has caught up is told nothing new",
        OUTBOUND,
        "            if change.id >= self.ahead && self.is_behind {\n",
        "            if change.id >= self.ahead {\n",
    ),
    variant(
        "RIB: a lagging peer looks at nothing more once something waits",
        OUTBOUND,
        "                self.ahead = id;\n",
        "                self.ahead = rib.end();\n",
    ),
    variant(
        "RIB: a lagging peer knows what it was not told yet",
        OUTBOUND,
        "reads_all.then(|| rib.known_between(PrefixId::FIRST, self.ahead))",
        "reads_all.then(|| rib.known_between(PrefixId::FIRST, rib.end()))",
    ),
    variant(
        "RIB: a lagging peer is told no change of what it was told",
        OUTBOUND,
        "            if change.id >= self.ahead && self.is_behind {\n",
        "            if self.is_behind {\n",
    ),
    variant(
        "RIB: other settings of a neighbour never change what it is told",
        CONTROL,
        "        self.renew_exporter();\n",
        "",
    ),
    variant(
        "RIB: a table that is gone is kept for ever",
        SPEAKER,
        "self.rib.has_vacant() && is_quiet()",
        "self.rib.has_vacant() && !is_quiet()",
    ),
    variant(
        "RIB: a refresh forgets what waits to be withdrawn",
        OUTBOUND,
        "originated.chain(self.adj_rib_out.waiting_prefixes())",
        "originated.chain(self.adj_rib_out.waiting_prefixes().take(0))",
    ),
    variant(
        "RIB: a group withdraws a path from its source",
        GROUP_UPDATES,
        "self.before == Some(peer) || self.now == Some(peer)",
        "self.now == Some(peer)",
    ),
    variant(
        "RIB: a group tells a path to its source",
        GROUP_UPDATES,
        "self.before == Some(peer) || self.now == Some(peer)",
        "self.before == Some(peer)",
    ),
    variant(
        "RIB: a source is not told of the path that replaces its own",
        GROUP_UPDATES,
        "            alone.extend(needs(sources.before, wanted.is_some()).map(|it| (it, place)));\n",
        "",
    ),
    variant(
        "RIB: a path that takes the place of another one stays with its source",
        GROUP_UPDATES,
        "            alone.extend(needs(sources.now, told.is_some()).map(|it| (it, place)));\n",
        "",
    ),
    variant(
        "RIB: all peers of a group are sent the next hop of the first",
        GROUP_UPDATES,
        "                place.copy_from_slice(own);\n",
        "                let _ = (place, own);\n",
    ),
    variant(
        "RIB: a received next hop becomes that of each peer of a group",
        EXPORT_POLICY,
        "!stays && self.has_own_next_hop(family)",
        "self.has_own_next_hop(family)",
    ),
    variant(
        "RIB: a group is sent an earlier table",
        LOC_RIB,
        "        self.version = self.version.wrapping_add(1);\n",
        "",
    ),
    variant(
        "RIB: what is sent with a group is not counted",
        OUTBOUND,
        "            self.adj_rib_out.grow(growth);\n",
        "            let _ = growth;\n",
    ),
    variant(
        "RIB: a group has the routes of our own of its first peer",
        EXPORT_GROUPS,
        "kept.updates.as_ref().is_none_or(|it| it.is_for(key))",
        "kept.updates.as_ref().is_none_or(|_| key == key)",
    ),
    variant(
        "RIB: what is sent with a group counts as not looked at",
        OUTBOUND,
        "        self.ahead = self.ahead.max(rib.end());\n        self.send",
        "        self.send",
    ),
    variant(
        "RIB: a group has the filter of its first peer",
        EXPORT_POLICY,
        "            && *pass_on == group.pass_on\n",
        "            && pass_on == pass_on\n",
    ),
    variant(
        "RIB: changes overtake what waits",
        OUTBOUND,
        "            && self.nothing_goes_first()\n            && changes",
        "            && changes",
    ),
    variant(
        "RIB: a second group takes the place of what is on the way",
        OUTBOUND,
        "            self.on_the_way.push_back(OnTheWay::new(",
        "            self.on_the_way.clear();\n            self.on_the_way.push_back(OnTheWay::new(",
    ),
    variant(
        "RIB: the last of what is on the way goes first",
        OUTBOUND,
        "self.on_the_way.front_mut()",
        "self.on_the_way.back_mut()",
    ),
    variant(
        "RIB: what is on the way of a peer that is behind has no bound",
        OUTBOUND,
        "            && self.keeps_up(rib, groups);\n",
        "            && (self.keeps_up(rib, groups) || true);\n",
    ),
    variant(
        "RIB: what is on the way goes before the start of a refresh",
        OUTBOUND,
        " && !self.adj_rib_out.owes_start_marker()",
        "",
    ),
    variant(
        "RIB: withdrawals of our own wait behind the change of a whole table on the way",
        OUTBOUND,
        "!rib.has_originated() && groups",
        "groups",
    ),
    variant(
        "RIB: what is on the way of all peers has no bound",
        EXPORT_GROUPS,
        "self.length_bytes() >= ENCODED_BYTES_MAX",
        "self.length_bytes() == usize::MAX",
    ),
    variant(
        "RIB: what is on the way of one group takes the place of another's last changes",
        EXPORT_GROUPS,
        "position(|it| it.of != Of::Changes)",
        "position(|_| true)",
    ),
    variant(
        "RIB: a prefix changes once and never again",
        LOC_RIB,
        "                *place = 0;\n",
        "                let _ = place;\n",
    ),
    variant(
        "RIB: changes of our own routes concern only those that learned routes are passed on to",
        LOC_RIB,
        "                changes.of_originated |=\n",
        "                let _ =\n",
    ),
    variant(
        "RIB: the number of a prefix is given away while a peer awaits it",
        LOC_RIB,
        "(self.changed(*id).is_some() || is_awaited(*id))",
        "self.changed(*id).is_some()",
    ),
    variant(
        "RIB: a prefix that came back is forgotten with the vacant ones",
        LOC_RIB,
        "self.nets.get(*id).is_some_and(Routes::is_none);",
        "self.nets.get(*id).is_some();",
    ),
    variant(
        "RIB: another best path is no change",
        ROUTES,
        "(!ours.is_empty() || self.best() == other.best())",
        "(!ours.is_empty() || self.best().is_some() == other.best().is_some())",
    ),
    variant(
        "RIB: paths of one neighbour replace each other",
        ROUTES,
        "known.source.key == peer && known.path_id == path_id",
        "known.source.key == peer",
    ),
    variant(
        "RIB: two paths have one identifier",
        ROUTES,
        "            if path_id.get() == free {\n",
        "            if path_id.get() == free && free < 2 {\n",
    ),
    variant(
        "RIB: the last path to a prefix gets another identifier",
        ROUTES,
        "|path_id| !keeps_path_ids || path_id == FIRST_PATH_ID",
        "|_: PathId| keeps_path_ids || !keeps_path_ids",
    ),
    variant(
        "RIB: a path is counted with the identifier of our own route",
        ROUTES,
        "!self.offers().is_empty() && number >= self.offer_id().get()",
        "self.offers().is_empty() && number > self.offer_id().get()",
    ),
    variant(
        "RIB: identifiers of paths are counted again when one is withdrawn",
        ROUTES,
        "            true => (0..self.paths.len()).map(|place| self.path_id(place)).collect(),\n",
        "            true => Vec::new(),\n",
    ),
    variant(
        "RIB: a number of one family is given to a prefix of the other",
        "rib/prefix_table.rs",
        "self.numbers.of_mut(prefix.family()).free.push(id);",
        "self.numbers.of_mut(AddressFamily::Ipv4Unicast).free.push(id);",
    ),
    variant(
        "waiting routes: one that left a group is announced with it",
        GROUPS,
        "        if !self.has_left {\n",
        "        if self.count > 0 {\n",
    ),
    variant(
        "waiting routes: a group does not know that some have left",
        GROUPS,
        "        self.has_left = true;\n",
        "",
    ),
    variant(
        "waiting routes: those that have left stay in the list for ever",
        GROUPS,
        "        if self.joined.len() / 2 <= self.count.max(LEFT_MAX) {\n",
        "        if self.joined.len() / 2 <= self.count.max(LEFT_MAX) || group.place() > 1 {\n",
    ),
    variant(
        "waiting routes: those that are still there are forgotten with the others",
        GROUPS,
        "joined.retain(|place| entries.is_in(*place, group));",
        "joined.retain(|place| !entries.is_in(*place, group));",
    ),
    variant(
        "RIB: a lagging peer counts as told nothing",
        LAGGING,
        "        if is_told {\n",
        "        if is_told && false {\n",
    ),
    variant(
        "RIB: a lagging peer counts as told everything",
        LAGGING,
        "        if is_told {\n",
        "        if is_told || true {\n",
    ),
    variant(
        "RIB: a lagging peer counts as told what it is to have",
        ENTRIES,
        "            Self::Something => false,\n",
        "            Self::Something => wanted.is_some(),\n",
    ),
    variant(
        "RIB: the number of a prefix that lags is given away",
        ADJ_RIB_OUT,
        "        self.waiting.paths(prefix).next().is_some() || self.lagging.contains(prefix)\n",
        "        self.waiting.paths(prefix).next().is_some()\n",
    ),
    variant("RIB: a lagging peer does not catch up", OUTBOUND, "        self.catch_up(rib);\n", ""),
    variant(
        "waiting routes: one that is set again as it waits goes to the end",
        WAITING,
        "        if self.groups.find(family, wanted) == Some(group) {\n",
        "        if self.groups.find(family, wanted) == Some(group) && wanted.is_none() {\n",
    ),
    variant(
        "waiting routes: one that the peer has is sent all the same",
        WAITING,
        "        if is_owed || !told.is_same(wanted) {\n",
        "        if is_owed || !matches!(told, ToldBefore::Nothing) || wanted.is_some() {\n",
    ),
    variant(
        "waiting routes: what a refresh asked for is left out if it changes back",
        WAITING,
        "        if is_owed || !told.is_same(wanted) {\n",
        "        if !told.is_same(wanted) {\n",
    ),
    variant(
        "waiting routes: a refresh is never over",
        WAITING,
        "            *self.owed = self.owed.saturating_sub(1);\n",
        "            let _ = &self.owed;\n",
    ),
    variant(
        "waiting routes: a group that is gone is found again",
        GROUPS,
        "        self.found.take_if(|(_, _, found)| *found == id);\n",
        "",
    ),
    variant(
        "waiting routes: a refresh sends the other family",
        OUTBOUND,
        "family.is_some_and(|family| family != prefix.family())",
        "family.is_some_and(|family| family == prefix.family())",
    ),
    variant(
        "clients: a route of an internal neighbour goes on to one that is no client",
        EXPORT_POLICY,
        "if !is_client && is_internal(path.source.kind)",
        "if false && is_internal(path.source.kind)",
    ),
    variant(
        "clients: the best of all is sent although a hidden one had removed a better one by its MED",
        "rib/routes.rs",
        "        if has_one_med(paths)\n",
        "        if !paths.is_empty()\n",
    ),
    variant(
        "clients: attributes that two neighbours share have one originator",
        EXPORT,
        "_ => self.passed_on_in.entry((manner, reach)).or_default(),",
        "_ => self.passed_on_in.entry((Manner::Transparent, reach)).or_default(),",
    ),
    variant(
        "clients: a cluster is put behind those that the route has passed",
        PASSED_ON,
        "cluster_id.map(ClusterId::address).into_iter().chain(heard.clusters())",
        "heard.clusters().chain(cluster_id.map(ClusterId::address))",
    ),
    variant(
        "clients: a route that has passed our cluster is accepted",
        IMPORT,
        "attributes.clusters().any(|it| it == own.address())",
        "attributes.clusters().any(|it| it != it && it == own.address())",
    ),
    variant(
        "clients: the best route hides those that are for a client of a route server",
        EXPORT,
        "        let route = if self.chooses() {",
        "        let route = if self.chooses() && self.policy.paths_max == 0 {",
    ),
    variant(
        "clients: a change behind the best route is not told to who chooses",
        OUTBOUND,
        "change.concerns_all || chooses || several",
        "change.concerns_all || several",
    ),
    variant(
        "rules: a received route has the result of another with its attributes, whatever its prefix",
        IMPORT,
        "find(|(known, _)| *known == reach)",
        "find(|(_, _)| true)",
    ),
    variant(
        "rules: a route that is passed on has the result of another with its attributes",
        EXPORT,
        "            (Manner::Usual, 0) => &mut self.passed_on,",
        "            (Manner::Usual, _) => &mut self.passed_on,",
    ),
    variant(
        "rules: a group has those of its first peer",
        EXPORT_POLICY,
        "            && *rules == group.rules\n",
        "            && rules == rules\n",
    ),
    variant(
        "rules: those behind one that accepts are tried",
        RULES,
        "            accepted_by = Some(place);\n            break;",
        "            accepted_by = Some(place);\n            continue;",
    ),
    variant(
        "rules: routes that were received before have the result of the old ones",
        IMPORT,
        "            || self.policy.rules != policy.rules\n",
        "",
    ),
    variant(
        "forwarding: a router of a worse path has the rank of the best",
        "rib/forwarding.rs",
        ".map(|(path, _)| gateway(rank, path))",
        ".map(|(path, _)| gateway(rank / 9, path))",
    ),
    variant(
        "forwarding: a blackhole stays when nobody asks for it any more",
        "speaker/forwarding.rs",
        "let is_dropped = now.contains(&(prefix, vrf));",
        "let is_dropped = !changes.is_empty() || !now.is_empty() || now.is_empty();",
    ),
    variant(
        "RIB: sessions that end at once do not share a turn",
        "speaker/parts.rs",
        "(PART_MAX / neighbours.max(1)).max(PART_MIN)",
        "(PART_MAX / neighbours.clamp(1, 1)).max(PART_MIN)",
    ),
    variant(
        "earlier policy: a route that changes meanwhile counts as told by the policy in force",
        OUTBOUND,
        "} else if let Some(exporter) = earlier.take(change.id) {",
        "} else if let Some(exporter) = earlier.take(change.id).filter(|_| false) {",
    ),
    variant(
        "earlier policy: a route that changes meanwhile is looked at once more",
        EARLIER,
        "        policy.prefixes.remove(id);\n        Some(&mut policy.exporter)\n",
        "        Some(&mut policy.exporter)\n",
    ),
    variant(
        "earlier policy: what waited too long is told, and counts as told before",
        OUTBOUND,
        "            self.earlier.take(id);\n",
        "",
    ),
    variant(
        "earlier policy: a peer that is told nothing of others keeps what it was told",
        "session/receive.rs",
        " || up.outbound.has_earlier()",
        "",
    ),
    variant(
        "earlier policy: what was told by it is listed as if by the one in force",
        OUTBOUND,
        "earlier.policy_of(id).or(exporter.as_mut())",
        "earlier.policy_of(id).filter(|_| false).or(exporter.as_mut())",
    ),
    variant(
        "earlier policy: two have the same prefix",
        EARLIER,
        "        self.oldest_first.iter().for_each(|it| prefixes.subtract(&it.prefixes));\n",
        "",
    ),
    variant(
        "earlier policy: each change keeps one more",
        EARLIER,
        "self.oldest_first.len() > POLICIES_MAX",
        "self.oldest_first.len() == usize::MAX",
    ),
    variant(
        "earlier policy: routes of our own wait like those of others",
        LOOK_AGAIN,
        "            if let Some(exporter) = earlier.take(id) {\n",
        "            if let Some(exporter) = earlier.take(id).filter(|_| false) {\n",
    ),
    variant(
        "earlier policy: all of it is looked at in one turn",
        LOOK_AGAIN,
        "        for _ in 0..count {\n",
        "        for _ in 0..count.max(1 << 20) {\n",
    ),
    variant(
        "next hops: paths of one that is lost stay in use",
        LOC_RIB,
        "        if !lost.is_empty() {",
        "        if !lost.is_empty() && self.unreachable.is_empty() {",
    ),
    variant(
        "next hops: paths of one that is back stay out of use",
        LOC_RIB,
        "self.unreachable.released().for_each(|(nlri, path)| add(nlri, path));",
        "self.unreachable.released().take(0).for_each(|(nlri, path)| add(nlri, path));",
    ),
    variant(
        "next hops: a path that was withdrawn meanwhile comes back",
        UNREACHABLE,
        "            && let Some(before) = paths.remove(&nlri)\n",
        "            && attributes.is_some()\n            && let Some(before) = paths.remove(&nlri)\n",
    ),
    variant(
        "next hops: the paths of a neighbor that is gone are not forgotten",
        LOC_RIB,
        "        self.unreachable.forget(peer);\n",
        "",
    ),
    variant(
        "next hops: one that has paths is let go",
        UNREACHABLE,
        "*count = count.saturating_add(1);",
        "*count = (*count).max(1);",
    ),
    variant(
        "next hops: what waits enters the RIB behind what is newer",
        NEXT_HOPS,
        "            neighbour.unlearned.learn_all(&mut self.rib);\n",
        "            let _ = neighbour;\n",
    ),
    variant(
        "next hops: one is let go while its paths are on their way",
        NEXT_HOPS,
        "if !self.rib.may_have_unused_next_hops() || waits() {",
        "if !self.rib.may_have_unused_next_hops() {",
    ),
    variant(
        "origins: what RPKI says goes before what it said and waits",
        OUTBOUND,
        "        if self.has_earlier() {\n            // Caches that start",
        "        if !self.earlier.is_empty() {\n            // Caches that start",
    ),
];

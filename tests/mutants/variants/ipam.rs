//! Mistakes in which Pod has which address.

use super::{Subject, Variant, variant};

pub(crate) const IPAM: Subject = Subject {
    folder: "crates/ipam",
    package: "fairway-ipam",
    is_story: false,
    rounds: &[&["tests::"]],
    seeds: "1000",
    variants: VARIANTS,
};

const ASSIGN: &str = "assign.rs";
const BLOCK: &str = "block.rs";
const CLAIM: &str = "claim.rs";
const COLLECTOR: &str = "collector.rs";
const CNI: &str = "cni/serve.rs";
const CNI_ADDING: &str = "cni/adding.rs";
const CNI_REQUEST: &str = "cni/request.rs";
const GATEWAY: &str = "gateway.rs";
const HANDLE: &str = "handle.rs";
const POOL: &str = "pool.rs";
const RELEASE: &str = "release.rs";
const REMEMBERED: &str = "remembered.rs";
const ROUTES: &str = "routes.rs";
const SEARCH: &str = "search.rs";
const SELECTOR: &str = "selector.rs";
const TOGETHER: &str = "together.rs";

const VARIANTS: &[Variant] = &[
    variant(
        "block: an address that is released is given first",
        BLOCK,
        "self.taken.remove(ordinal);\n                self.free.push_back(*ordinal);",
        "self.taken.remove(ordinal);\n                self.free.push_front(*ordinal);",
    ),
    variant(
        "block: an address cools for no time",
        BLOCK,
        "if cooldown == 0 {",
        "if cooldown < Seconds::MAX {",
    ),
    variant(
        "block: an address that cools is released once more",
        BLOCK,
        "found.filter(|(_, it)| it.attributes.released_at.is_none())",
        "found.filter(|_| true)",
    ),
    variant(
        "block: an address remembers the number after its write",
        BLOCK,
        "Taken { attributes, sequence: self.sequence }",
        "Taken { attributes, sequence: self.sequence + 1 }",
    ),
    variant(
        "block: half of a request is released",
        BLOCK,
        "return Err(ReleaseError::Handle(*address));",
        "continue;",
    ),
    variant(
        "block: an address with two owners",
        BLOCK,
        "if self.taken.contains_key(&ordinal) {",
        "if self.free.is_empty() {",
    ),
    variant(
        "pool: those that are disabled serve",
        POOL,
        "pools.into_iter().filter(|it| it.is_usable()).collect();",
        "pools.into_iter().filter(|_| true).collect();",
    ),
    variant(
        "pool: a pool of another namespace serves",
        POOL,
        "(Some(Ok(_)), None) => Ok(false),",
        "(Some(Ok(_)), None) => Ok(true),",
    ),
    variant(
        "pool: those that have to be named serve any request",
        POOL,
        "if !pool.is_manual && pool.selects_node(node)?",
        "if pool.selects_node(node)?",
    ),
    variant(
        "selector: a missing label is like every value",
        SELECTOR,
        "Self::Unequal(text) => value.is_none_or(|it| it != text),",
        "Self::Unequal(text) => value.is_some_and(|it| it != text),",
    ),
    variant(
        "selector: or binds closer than and",
        SELECTOR,
        "let mut term = self.both(depth)?;\n        while self.takes(\"||\") {\n            term = Term::Either(Box::new(term), Box::new(self.both(depth)?));",
        "let mut term = self.one(depth)?;\n        while self.takes(\"||\") {\n            term = Term::Either(Box::new(term), Box::new(self.one(depth)?));",
    ),
    variant(
        "claim: a block without its owner's mark is deleted",
        CLAIM,
        "let marked = match block.is_some() {",
        "let marked = match block.is_some() && affinity.is_some() {",
    ),
    variant(
        "claim: a block is made before the affinity",
        CLAIM,
        "self.set_affinity(owner, prefix, AffinityState::Pending, affinity).await?;",
        "self.set_affinity(owner, prefix, AffinityState::Confirmed, affinity).await?;",
    ),
    variant(
        "claim: what others have read of a half claimed block stands",
        CLAIM,
        "value.touch();",
        "",
    ),
    variant(
        "claim: the loser's affinity stays",
        CLAIM,
        "self.store.delete(&key, &stale.version).await?;",
        "_ = (key, stale);",
    ),
    variant(
        "claim: a block in use is deleted",
        CLAIM,
        "if block.is_empty() {\n            return self.store.delete",
        "if block.free_count() > 0 {\n            return self.store.delete",
    ),
    variant(
        "assign: a node uses a block that is not its own any more",
        ASSIGN,
        "if owner.is_some() && block.value.owner() != owner {",
        "if owner.is_none() && block.value.owner() != owner {",
    ),
    variant(
        "assign: a handle counts what was not written",
        ASSIGN,
        "self.take_from_handle(handle, &generation, &counts).await?;\n                }",
        "_ = (handle, generation, counts);\n                }",
    ),
    variant(
        "assign: the block is written before the handle",
        ASSIGN,
        "let generation = self.add_to_handle(handle, &counts).await?;",
        "let Some(generation) = self.generation(handle).await? else { continue };",
    ),
    variant(
        "assign: strict nodes borrow",
        ASSIGN,
        "if !self.facts.config.is_strict {\n            for block",
        "if self.facts.config.is_strict {\n            for block",
    ),
    variant(
        "assign: a young block is taken",
        SEARCH,
        "now.saturating_sub(it) <= YOUNG_SECONDS",
        "now.saturating_sub(it) < YOUNG_SECONDS",
    ),
    variant(
        "assign: the limit counts blocks of the pools that are asked for",
        SEARCH,
        ".filter(|it| it.family() == *family)\n            .collect();",
        ".filter(|it| it.family() == *family && pools.iter().any(|p| p.prefix.contains(it.address())))\n            .collect();",
    ),
    variant(
        "assign: an explicit wish ignores strict affinity",
        ASSIGN,
        "if self.facts.config.is_strict && block.value.owner() != Some(&owner) {",
        "if false && block.value.owner() != Some(&owner) {",
    ),
    variant(
        "release: an empty block of nobody stays",
        RELEASE,
        "if value.owner().is_none() && value.is_empty() {",
        "if false && value.is_empty() {",
    ),
    variant(
        "release: handles are not counted down",
        RELEASE,
        "let uncounted = uncounted.iter().map(",
        "let uncounted = uncounted.iter().take(0).map(",
    ),
    variant(
        "release: a block of a pool for others stays the node's",
        RELEASE,
        "&& self.facts.is_of_other_nodes(prefix, host)",
        "&& !self.facts.is_of_other_nodes(prefix, host)",
    ),
    variant(
        "handle: a block about to be written is not stopped",
        HANDLE,
        "block.value.touch();\n                self.put_block(block).await?;",
        "_ = block;",
    ),
    variant(
        "handle: one without addresses stays",
        HANDLE,
        "handle.counts.retain(|_, count| *count > 0);\n            match",
        "match",
    ),
    variant(
        "collector: the grace is not waited for",
        COLLECTOR,
        "now.saturating_sub(since) >= pass.grace;",
        "now.saturating_sub(since) < pass.grace;",
    ),
    variant(
        "collector: one address of a Pod goes without the other",
        COLLECTOR,
        "due.retain(|handle, _| !spared.contains(handle));",
        "",
    ),
    variant(
        "collector: a node's last block goes",
        COLLECTOR,
        "if serves && count.as_ref().is_none_or(|it| **it <= 1) {",
        "if serves && count.as_ref().is_none_or(|it| **it < 1) {",
    ),
    variant(
        "collector: half a claim stays",
        COLLECTOR,
        "let claimed = pass.addressing.confirm(owner, prefix).await;\n                pass.done.errors.extend(claimed.err());",
        "",
    ),
    variant(
        "collector: empty blocks of nobody stay",
        COLLECTOR,
        "if has_rested || is_nobodys {",
        "if has_rested && !is_nobodys {",
    ),
    variant(
        "routes: a hidden pool is announced",
        ROUTES,
        "if is_announced {\n                routes",
        "if !is_announced || is_announced {\n                routes",
    ),
    variant(
        "routes: a single address is announced without its Pod",
        ROUTES,
        "if is_own && !is_single {",
        "if is_own {",
    ),
    variant(
        "cni: DEL frees the other interface's address",
        CNI,
        "let mine = held.iter().filter(|it| self.is_of_interface(it));",
        "let mine = held.iter();",
    ),
    variant(
        "cni: a repeated ADD takes a second address",
        CNI_ADDING,
        "had.retain(|it| families.contains(&AddressFamily::of(it.address)));",
        "had.clear();",
    ),
    variant(
        "cni: one family is given where two are asked for",
        CNI_ADDING,
        "if error.is_some() || got.len() < missing.len() {",
        "if error.is_some() && got.is_empty() {",
    ),
    variant("cni: a container is believed to be new", CNI_ADDING, "request.is_first = true;", ""),
    variant(
        "together: what became of one block is forgotten with the next",
        TOGETHER,
        "answer.error = answer.error.take().or(taken.err());",
        "answer.error = taken.err();",
    ),
    variant(
        "together: a full block gives a container addresses that it has",
        TOGETHER,
        "&& self.generation(handle).await?.is_some()",
        "&& self.generation(handle).await?.is_none()",
    ),
    variant(
        "together: an address of a failed Pod is lost",
        TOGETHER,
        "block.value.take_back(addresses);",
        "",
    ),
    variant(
        "remembered: a late watch is believed",
        REMEMBERED,
        "(Ok(state), Ok(earlier)) => state >= earlier,",
        "(Ok(_), Ok(_)) => true,",
    ),
    variant(
        "remembered: the end of an earlier affinity ends the next",
        REMEMBERED,
        "it.version.object == version.object",
        "!version.object.is_empty()",
    ),
    variant(
        "remembered: a write that fails is no reason to doubt a block",
        REMEMBERED,
        "Key::Block(prefix) => _ = self.doubtful_blocks.insert(*prefix),",
        "Key::Block(_) => {}",
    ),
    variant(
        "remembered: a write that fails is no reason to doubt an affinity",
        REMEMBERED,
        "_ = self.doubtful.insert(*prefix),",
        "_ = prefix,",
    ),
    variant(
        "remembered: a write that fails withdraws the block",
        REMEMBERED,
        "Key::Block(prefix) => _ = self.doubtful_blocks.insert(*prefix),",
        "Key::Block(prefix) => self.forget_block(*prefix),",
    ),
    variant(
        "gateway: a block without room has none",
        GATEWAY,
        "address == gateway(block) || is_edge(block, address)",
        "is_edge(block, address)",
    ),
    variant(
        "gateway: the last address is given",
        GATEWAY,
        "|| is_last()",
        "|| (false && is_last())",
    ),
    variant(
        "cni: a name by chance is an earlier one",
        CNI,
        "let is_other = held.iter().any(|it| it.interface.is_some()) ||",
        "let is_other = false ||",
    ),
    variant(
        "remembered: blocks of others are not occupied",
        REMEMBERED,
        "own.chain(memory.foreign.keys())",
        "own.chain(memory.foreign.keys().take(0))",
    ),
    variant(
        "remembered: a handle that is deleted is believed to be there",
        REMEMBERED,
        "(Ok(()), Key::Handle(id)) => memory.put_handle(id.clone(), None),",
        "(Ok(()), Key::Handle(_)) => {}",
    ),
    variant(
        "cni: GC reaches other nodes",
        CNI,
        "&& of.node.as_deref() == Some(self.node)",
        "&& of.node.is_some()",
    ),
    variant(
        "cni: GC without a list releases everything",
        CNI_REQUEST,
        "let items = document.get(KEY).and_then(Value::as_array).ok_or_else(|| {",
        "let none = Vec::new();\n    let items = document.get(KEY).and_then(Value::as_array).or(Some(&none)).ok_or_else(|| {",
    ),
    variant(
        "assign: STATUS gives blocks up",
        SEARCH,
        "let in_pools = std::mem::take(&mut search.untried);\n        for",
        "self.leave_pools_of_others(&mut search).await;\n        let in_pools = std::mem::take(&mut search.untried);\n        for",
    ),
    variant(
        "claim: a block that is in use after all stays marked",
        CLAIM,
        "self.try_to_claim(owner, prefix, New::None).await?;\n            }",
        "}",
    ),
    variant(
        "collector: nobody is asked once more",
        COLLECTOR,
        "if left(pod.as_ref(), &leak.attributes, leak.leak.address).is_none() {",
        "if pod.is_some() && leak.node.is_none() {",
    ),
    variant(
        "collector: a node with Pods loses its blocks",
        COLLECTOR,
        "if of_host.iter().any(is_left) {",
        "if of_host.is_empty() {",
    ),
    variant(
        "routes: a pending block is announced",
        ROUTES,
        "if is_own && !confirmed.contains(&prefix) {",
        "if is_own && confirmed.is_empty() {",
    ),
    variant(
        "claim: a mark is not written again",
        CLAIM,
        "Some(before) if before.value == value && state != AffinityState::PendingDeletion => {",
        "Some(before) if before.value == value => {",
    ),
    variant(
        "claim: a block over one of another size",
        CLAIM,
        "Ok(!prefixes.any(|it| it != prefix && it.overlaps(prefix)))",
        "Ok(prefixes.all(|it| it != prefix))",
    ),
    variant(
        "claim: what rests of nobody's block keeps it from all",
        CLAIM,
        "Some(block) if block.value.owner().is_none() && block.value.is_empty() => {",
        "Some(block) if block.value.owner().is_none() && block.value.free_count() == 0 => {",
    ),
    variant(
        "release: an assignment on its way is not stopped",
        RELEASE,
        "if outcome.released.is_empty() {\n                    block.touch();\n                }",
        "",
    ),
    variant(
        "release: only the block of the pool's size is looked at",
        RELEASE,
        "if places.is_taken_in(prefix, address) {",
        "if places.known.contains_key(&prefix) {",
    ),
    variant(
        "collector: one handle with too many addresses stops all",
        COLLECTOR,
        "if after > RELEASED_MAX && !pass.done.released.is_empty() {\n                continue;",
        "if after > RELEASED_MAX {\n                break;",
    ),
    variant(
        "collector: what has no handle does not count",
        COLLECTOR,
        "if attributes.handle.is_none() {\n            return Verdict::Valid;",
        "if attributes.handle.is_none() {\n            return Verdict::Tunnel;",
    ),
    variant(
        "cni: a bad configuration keeps addresses",
        CNI_REQUEST,
        "if !matches!(command, Command::Add | Command::Status) {",
        "if !matches!(command, Command::Add | Command::Status | Command::Delete) {",
    ),
    variant(
        "remembered: a block that another process claims stays unknown",
        REMEMBERED,
        "if !memory.blocks.contains_key(&prefix) {",
        "if memory.blocks.is_empty() {",
    ),
    variant(
        "remembered: a list at the start says nothing of the node's blocks",
        REMEMBERED,
        "memory.doubtful_blocks.extend(unread);",
        "memory.unowned.iter_mut().for_each(|it| it.extend(unread.clone()));",
    ),
    variant(
        "together: what own blocks have no room for is served one by one",
        TOGETHER,
        "None => self.next_free_block(&mut search).await?,",
        "None => None,",
    ),
];

//! Which lines need an entry in the record, and when is an entry written and removed?
//!
//! An entry is in FRR before its line is sent, and until its line is undone: whatever ends in between, no line is left
//! without an owner. Called by [`super::Application`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::left::Left;
use super::{Broken, Now, Running, Said, Step};
use crate::configuration::{Configuration, Statement};
use crate::daemon::Daemon;
use crate::difference::{
    Place, Purpose, is_marked, is_of_every_router, is_router, is_view, neighbor, shown_for,
    unnumbered, unset,
};
use crate::record::{EntryKey, Record};

/// Lines that are remembered as sent: more than any ConfigMap has room for (1 MiB).
const SENT_MAX: usize = 100_000;
/// How often an entry is sent that FRR does not show: the first time, a manual change may have interfered.
const WRITES_MAX: u8 = 3;

/// The record, as FRR has it, and what is about to change in it.
#[derive(Debug, Default)]
pub(super) struct Recording {
    record: Record,
    /// Entries that this process has seen: a restart of bgpd alone loses the record, and not the lines of others.
    remembered: BTreeMap<EntryKey, Option<Arc<str>>>,
    /// Entries that were just written, whose lines are sent next.
    fresh: BTreeSet<EntryKey>,
    /// Entries whose lines this process has sent: FRR 10 may show one for a while after it was removed.
    sent: BTreeSet<EntryKey>,
    /// Entries whose lines turned out to be somebody else's: of another process, or of another daemon.
    theirs: BTreeSet<EntryKey>,
    /// Entries whose lines were undone.
    undone: BTreeSet<EntryKey>,
    /// Lines that zebra shows although mgmtd, which gave them to it, does not.
    left: Left,
    /// The step that undoes each line that is no longer wanted.
    undoing: BTreeMap<EntryKey, Vec<EntryKey>>,
    /// Entries are being written, and nothing else.
    is_writing: bool,
    /// How often each line of an entry was sent in a row.
    written: BTreeMap<Arc<str>, u8>,
    /// Nothing is sent: no line has to wait for its entry.
    is_preview: bool,
    /// Lines of entries that FRR does not take, with its reply.
    unwritable: BTreeMap<Arc<str>, String>,
}

/// What a plan is made from.
pub(super) struct Facts<'a> {
    pub(super) running: &'a BTreeMap<Daemon, Configuration>,
    pub(super) target: &'a [&'a Statement],
    pub(super) mark: &'a str,
    /// The target may be incomplete.
    pub(super) is_partial: bool,
    /// Routers that we created and that others use as well.
    pub(super) shared_routers: &'a BTreeSet<Arc<str>>,
    /// Lines of bgpd that are ours although the record does not say so.
    pub(super) claimed: &'a BTreeSet<Place>,
}

/// What follows from a target.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Entries to write before anything else.
    pub(super) to_write: Vec<Step>,
    /// The wanted record.
    pub(super) record: Vec<Statement>,
    /// Lines that need an entry and have none.
    held_back: BTreeSet<EntryKey>,
    /// Those of them that FRR does not have.
    absent: BTreeSet<EntryKey>,
    /// The steps that undo lines that FRR shows in another form, or not at all.
    unseen: Vec<(Daemon, Step)>,
    /// Lines that mgmtd is sent for their removal to reach zebra.
    pub(super) again: Vec<Statement>,
    undoing: BTreeMap<EntryKey, Vec<EntryKey>>,
}

fn place(it: &Statement) -> Place {
    (it.context.clone(), it.line.clone())
}

fn statement((context, line): &Place) -> Statement {
    Statement { context: context.clone(), line: line.clone(), origin: None }
}

impl Recording {
    /// Takes the record that FRR shows.
    ///
    /// `is_new_bgpd`: it has restarted since the last time.
    pub(super) fn read(&mut self, now: Now, record: Record, is_new_bgpd: bool, running: &Running) {
        for key in std::mem::take(&mut self.fresh) {
            // It was sent by nobody here: somebody else was faster.
            let is_there = running.daemons.get(&key.0).is_some_and(|it| shows(it, &key.1));
            if is_there && !self.sent.contains(&key) {
                self.theirs.insert(key);
            }
        }
        self.theirs.retain(|key| record.0.contains_key(key));
        self.undone.retain(|key| record.0.contains_key(key));
        self.left.read(now, &record, &running.daemons);
        // What bgpd itself loads again after a restart may be somebody's by then.
        let of_others = record.0.iter().filter(|((daemon, _), _)| *daemon != Daemon::Bgpd);
        let of_others = of_others.map(|(key, before)| (key.clone(), before.clone()));
        if !is_new_bgpd {
            self.remembered.clear();
        }
        self.remembered.extend(of_others);
        self.record = record;
    }

    /// No line has to wait for its entry.
    pub(super) fn preview(&mut self) {
        self.is_preview = true;
    }

    /// Whether a router is one that we created.
    pub(super) fn has_made(&self, router: &str) -> bool {
        self.record.contains(Daemon::Bgpd, &([].into(), router.into()))
    }

    pub(super) fn places(&self, daemon: Daemon) -> BTreeSet<Place> {
        let mut places = self.record.places(daemon);
        let theirs = self.theirs.iter().filter(|(it, _)| *it == daemon);
        theirs.for_each(|(_, place)| {
            places.remove(place);
        });
        places
    }

    pub(super) fn replaced(&self, daemon: Daemon) -> BTreeMap<Place, Arc<str>> {
        self.record.replaced(daemon)
    }

    /// What to record for a target, given what the daemons show.
    pub(super) fn plan(
        &self,
        facts: &Facts<'_>,
        may_take: impl Fn(Daemon, &Statement) -> bool,
    ) -> Plan {
        let Facts { running, mark, is_partial, .. } = *facts;
        let needed = self.needed(facts, may_take);
        let mut plan = Plan::default();
        let mut record = self.record.clone();
        for (key, before) in needed.iter().filter(|(key, _)| !self.record.0.contains_key(*key)) {
            record.0.insert(key.clone(), before.clone());
            plan.held_back.insert(key.clone());
            if running.get(&key.0).is_some_and(|it| !shows(it, &key.1)) {
                plan.absent.insert(key.clone());
            }
        }
        if self.is_preview {
            plan.held_back.clear();
        }
        if !plan.held_back.is_empty() && running.contains_key(&Daemon::Bgpd) {
            let there: BTreeSet<Statement> = self.record.statements(mark).into_iter().collect();
            let all = record.statements(mark);
            let is_new = |it: &&[Statement]| {
                it.iter().any(|it| !there.contains(it))
                    && !it.iter().any(|it| self.unwritable.contains_key(&it.line))
            };
            let (entries, _) = all.as_chunks::<2>();
            let new = entries.iter().map(<[Statement; 2]>::as_slice).filter(is_new);
            plan.to_write = new.flatten().map(Step::add).collect();
            if !plan.to_write.is_empty() {
                return plan;
            }
            record.0.retain(|key, _| !plan.held_back.contains(key));
        }
        if !is_partial {
            self.plan_to_undo(facts, &needed, &mut record, &mut plan);
        }
        plan.record = record.statements(mark);
        plan
    }

    /// What to do about entries whose lines are no longer wanted.
    fn plan_to_undo(
        &self,
        Facts { running, shared_routers, .. }: &Facts<'_>,
        needed: &BTreeMap<EntryKey, Option<Arc<str>>>,
        record: &mut Record,
        plan: &mut Plan,
    ) {
        for (key, before) in self.record.0.iter().filter(|(key, _)| !needed.contains_key(*key)) {
            let (daemon, (context, line)) = key;
            let Some(shown) = running.get(daemon) else { continue };
            if let Some(is_due) = self.left.has(key, &self.record, running) {
                plan.again.extend(is_due.then(|| statement(&key.1)));
                continue;
            }
            if self.theirs.contains(key) || self.is_undone(key, shown) {
                record.0.remove(key);
                continue;
            }
            let undo = match before {
                Some(before) => before.clone(),
                None => unset(context, line).into(),
            };
            let step = Step {
                context: context.clone(),
                line: undo,
                origin: None,
                purpose: Purpose::Remove,
            };
            plan.undoing.entry((*daemon, step.place())).or_default().push(key.clone());
            // A router is shown as it is sent; what was in a context went with it.
            let is_gone = is_router(line)
                || context
                    .split_last()
                    .is_some_and(|(opener, outer)| !shows(shown, &(outer.into(), opener.clone())));
            if is_router(line) && shared_routers.contains(line) {
                // Others have lines in it: it is left to them.
                record.0.remove(key);
                continue;
            }
            if shows(shown, &key.1) {
                continue;
            }
            // FRR does not show what is its default: to undo that would set the opposite. Another value is somebody
            // else's.
            let is_replaced = shown_for(shown, context, line).is_some();
            if is_gone || is_replaced || before.is_none() {
                record.0.remove(key);
            } else {
                plan.unseen.push((*daemon, step));
            }
        }
    }

    /// When zebra is to be looked at again.
    pub(super) fn waits_for_zebra(&self, running: &Running) -> Option<Now> {
        self.left.next_look(&self.record, &running.daemons)
    }

    /// Whether nothing is left of an entry's line. FRR 10's mgmtd may lose a removal: the entry stays as long as the line.
    fn is_undone(&self, key: &EntryKey, shown: &Configuration) -> bool {
        self.undone.contains(key) && !shows(shown, &key.1)
    }

    /// Lines that need an entry, with what they replace.
    fn needed(
        &self,
        facts: &Facts<'_>,
        may_take: impl Fn(Daemon, &Statement) -> bool,
    ) -> BTreeMap<EntryKey, Option<Arc<str>>> {
        let Facts { running, target, mark, claimed, .. } = *facts;
        let marked = target.iter().filter(|it| is_marked(it, mark));
        let neighbors: BTreeSet<_> =
            marked.filter_map(|it| neighbor(&it.context, &it.line)).collect();
        let routers: BTreeSet<&Arc<str>> =
            target.iter().filter(|it| it.context.is_empty()).map(|it| &it.line).collect();
        let tells_its_owner = |it: &Statement| {
            let router = it.context.first().filter(|it| is_router(it));
            is_marked(it, mark)
                || is_view(router.unwrap_or(&it.line))
                || neighbor(&it.context, &it.line).is_some_and(|it| neighbors.contains(&it))
                || opens_what_all_share(it)
                || (router.is_some_and(|it| routers.contains(it)) && is_of_every_router(&it.line))
        };
        let mut needed = BTreeMap::new();
        for it in target.iter().filter(|it| !tells_its_owner(it)) {
            for (daemon, shown) in running.iter().filter(|(daemon, _)| may_take(**daemon, it)) {
                let key = (*daemon, place(it));
                if self.theirs.contains(&key) && shows(shown, &key.1) {
                    continue;
                }
                if let Some(before) = self.record.0.get(&key) {
                    needed.insert(key, before.clone());
                    continue;
                }
                let is_there = shows(shown, &key.1);
                let before = match self.remembered.get(&key).filter(|_| is_there) {
                    Some(earlier) => earlier.clone(),
                    None if claimed.contains(&key.1) || self.sent.contains(&key) => None,
                    // What is there already, and is not ours, stays somebody else's.
                    None if is_there => continue,
                    // Of two lines of ours, the later one replaces what the earlier one did.
                    None => shown_for(shown, &it.context, &it.line).and_then(|line| {
                        let earlier = (*daemon, (it.context.clone(), line.clone()));
                        self.record.0.get(&earlier).cloned().unwrap_or(Some(line))
                    }),
                };
                needed.insert(key, before);
            }
        }
        needed
    }

    /// The plan is carried out.
    pub(super) fn begin(&mut self, plan: Plan) {
        self.undoing = plan.undoing;
        self.is_writing = !plan.to_write.is_empty();
        if self.is_writing {
            self.fresh = plan.absent;
        }
        if !self.is_writing {
            self.written.clear();
        }
    }

    /// Whether the last step wrote entries, whose lines follow at once.
    pub(super) fn is_writing(&self) -> bool {
        self.is_writing
    }

    /// Whether every line that needs an entry can have one.
    pub(super) fn is_written(&self) -> bool {
        self.unwritable.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.record.0.is_empty()
    }

    /// bgpd restarted, and may take what it refused before.
    pub(super) fn forget_refusals(&mut self) {
        self.unwritable.clear();
        self.written.clear();
    }

    pub(super) fn faults(&self) -> impl Iterator<Item = String> {
        let unwritable = self.unwritable.values().map(|words| {
            format!(
                "lines of bgpextras or settings of FRR's zebra are not configured: FRR's bgpd refused the \
                 record of them: {words}"
            )
        });
        unwritable.chain(self.left.faults())
    }

    /// Takes the outcome.
    pub(super) fn said(&mut self, now: Now, said: &Said) {
        if self.is_writing {
            if let Some(Broken::Refused(_, step, words)) = &said.broken {
                self.unwritable.insert(step.line.clone(), words.clone());
            }
            for (_, step) in &said.taken {
                let times = self.written.entry(step.line.clone()).or_default();
                *times = times.saturating_add(1);
                if *times > WRITES_MAX {
                    self.unwritable.insert(step.line.clone(), "it is not shown".to_owned());
                }
            }
        }
        let added = said.taken.iter().filter(|(_, step)| step.purpose == Purpose::Add);
        let added = added.map(|(daemon, step)| (*daemon, step.place()));
        added.clone().for_each(|key| self.left.added(now, &key));
        self.sent.extend(added.filter(|key| self.record.0.contains_key(key)));
        if self.sent.len() > SENT_MAX {
            self.sent.clear();
        }
        // A daemon that does not know a line may show it all the same: FRR 10's zebra shows the lists that its mgmtd
        // gives it. It would not know the removal either.
        let unknown = said.unknown.iter().filter(|(_, step, _)| step.purpose == Purpose::Add);
        self.theirs.extend(unknown.map(|(daemon, step, _)| (*daemon, step.place())));
        let taken = said.taken.iter().map(|(daemon, step)| (*daemon, step));
        // FRR refuses to undo what is not there.
        let refused = said.broken.iter().filter_map(|broken| match broken {
            Broken::Refused(daemon, step, _) => Some((*daemon, step)),
            Broken::Lost(..) => None,
        });
        for (daemon, step) in taken.chain(refused).filter(|(_, it)| it.purpose == Purpose::Remove) {
            if let Some(entries) = self.undoing.remove(&(daemon, step.place())) {
                self.undone.extend(entries);
            }
        }
    }
}

impl Plan {
    /// Whether a line can be sent: it and the contexts that it opens tell their owner, or the record does.
    pub(super) fn may_be_sent(&self, daemon: Daemon, statement: &Statement) -> bool {
        let is_held_back = |context: &[Arc<str>], line: &Arc<str>| {
            self.held_back.contains(&(daemon, (context.into(), line.clone())))
        };
        let mut openers = statement.context.iter().enumerate();
        self.held_back.is_empty()
            || !(is_held_back(&statement.context, &statement.line)
                || openers.any(|(depth, it)| {
                    is_held_back(statement.context.get(..depth).unwrap_or_default(), it)
                }))
    }

    pub(super) fn undo_unseen(&self, daemon: Daemon) -> impl Iterator<Item = Step> {
        let of_it = self.unseen.iter().filter(move |(it, _)| *it == daemon);
        of_it.map(|(_, step)| step.clone())
    }
}

/// Whether a daemon shows a line, or the same entry of a list with a number.
pub(super) fn shows(running: &Configuration, (context, line): &Place) -> bool {
    let is_it =
        |it: &&Statement| it.line == *line || unnumbered(&it.line).is_some_and(|it| *it == **line);
    running.statements.iter().filter(is_it).any(|it| it.context == *context)
}

/// Contexts without settings of their own, in which all put their lines.
fn opens_what_all_share(statement: &Statement) -> bool {
    let words: Vec<&str> = statement.line.split(' ').collect();
    matches!(words.as_slice(), ["address-family", ..] | ["vrf" | "interface", _] | ["bfd"])
}

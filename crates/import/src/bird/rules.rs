//! Moves of a filter as the rules of a BGPPeer, for routes that are learned.
//!
//! Answers rules that do the same, where there are such. A rule that accepts or rejects ends the list for what it matches, and
//! one that continues goes on with the next rule only: there are no jumps. Where a filter needs one, what follows a condition is
//! written twice, once for routes that it holds for. Knows no session.

use super::condition::is_of_other_kind;
use super::filter::{Action as Does, Change, Flaw, Move, add};
use crate::policy::{Action, Matches, Passes, Rule, Settings};

/// Moves that are looked at, some of them twice.
const WORK_MAX: usize = 20_000;
/// A filter whose rules are more than a BGPPeer takes is given up then.
const RULES_MAX: usize = 1_000;

/// What passes a filter.
pub(super) struct Translation {
    pub(super) passes: Passes,
    pub(super) flaws: Vec<Flaw>,
    /// Where communities of all kinds are replaced.
    pub(super) notes: Vec<Flaw>,
}

/// The rules of a filter, which are named after it.
pub(super) fn passes(moves: &[Move], name: Option<&str>) -> Translation {
    let mut writer = Writer::default();
    let all: Vec<&Move> = moves.iter().collect();
    writer.run(&all, &Guard::default(), true);
    let Writer { rules, mut flaws, notes, broken, .. } = writer;
    if let Some(flaw) = broken {
        flaws.push(flaw);
        return Translation { passes: Passes::Nothing, flaws, notes };
    }
    Translation { passes: shortened(rules, name), flaws, notes }
}

/// The same with `allowed` where that says it, and without rules at the end that change nothing.
fn shortened(mut rules: Vec<Rule>, name: Option<&str>) -> Passes {
    let is_plain = |it: &Rule, action| it.action == action && it.settings == Settings::default();
    // The first of two rules about the same routes decides.
    rules.dedup_by(|after, before| {
        before.action != Action::Continue && before.matches == after.matches
    });
    // What is rejected at the end anyway needs no rule before it.
    while let [.., before, last] = rules.as_slice()
        && is_plain(last, Action::Reject)
        && last.matches.is_everything()
        && before.action != Action::Accept
    {
        let place = rules.len().saturating_sub(2);
        rules.remove(place);
    }
    if rules.iter().all(|it| it.action == Action::Reject) {
        return Passes::Nothing;
    }
    let mut allowed = None;
    match rules.as_slice() {
        [.., last] if is_plain(last, Action::Accept) && last.matches.is_everything() => {
            rules.pop();
        }
        [before @ .., accept, reject]
            if is_plain(reject, Action::Reject)
                && reject.matches.is_everything()
                && is_plain(accept, Action::Accept)
                && before.iter().all(|it| it.action != Action::Accept)
                && accept.matches.is_of_ranges_only() =>
        {
            allowed.clone_from(&accept.matches.ranges);
            let count = rules.len().saturating_sub(2);
            rules.truncate(count);
        }
        _ => {}
    }
    let letter = |it: char| if it.is_ascii_alphanumeric() || "-_.".contains(it) { it } else { '-' };
    if let Some(name) = name {
        let name: String = name.chars().take(50).map(letter).collect();
        for (number, rule) in (1_usize..).zip(&mut rules) {
            rule.name = Some(format!("{name}-{number}"));
        }
    }
    Passes::Some { allowed, rules }
}

/// What routes a part of the filter is about.
#[derive(Debug, Clone, Default)]
struct Guard {
    matches: Matches,
    /// The part of it without which routes may be accepted: of the others all are rejected that do not match.
    decisive: Matches,
    /// When it was said of AS paths and communities, which the filter can change.
    since: [usize; 2],
}

/// Which of AS paths and communities are matched.
fn kinds(matches: &Matches) -> [bool; 2] {
    [matches.as_path.is_some(), matches.communities.is_some()]
}

/// Whether large or extended communities are matched.
fn has_other_kinds(matches: &Matches) -> bool {
    matches.communities.iter().flatten().any(|it| is_of_other_kind(it))
}

#[derive(Default)]
struct Writer {
    rules: Vec<Rule>,
    flaws: Vec<Flaw>,
    notes: Vec<Flaw>,
    /// The filter as a whole has no equal.
    broken: Option<Flaw>,
    /// A part that is to be followed by the rest cannot be.
    needs_whole: bool,
    /// When AS paths and communities were last changed.
    changed: [usize; 2],
    /// A rule removes communities of all kinds.
    is_cleared: bool,
    clock: usize,
    work: usize,
}

impl Writer {
    /// Writes the rules of moves for what `guard` matches. What none of them decides is rejected at the end of the filter
    /// (`is_whole`), else it goes on behind them.
    fn run(&mut self, moves: &[&Move], guard: &Guard, is_whole: bool) {
        let mut pending = Settings::default();
        for (at, it) in moves.iter().enumerate() {
            self.work = self.work.saturating_add(1);
            if self.work > WORK_MAX || self.rules.len() > RULES_MAX {
                self.give_up(it, "the filter comes to too many rules, so that nothing passes");
            }
            if self.broken.is_some() {
                return;
            }
            match &it.does {
                Does::Accept => return self.emit(it, guard, pending, Action::Accept),
                Does::Reject => return self.emit(it, guard, Settings::default(), Action::Reject),
                Does::Unknown(why) => {
                    self.flaw(it, why);
                    return self.emit(it, guard, Settings::default(), Action::Reject);
                }
                Does::Set(change) => {
                    if let Err(why) = add(&mut pending, change) {
                        self.flaw(it, why);
                        return self.emit(it, guard, Settings::default(), Action::Reject);
                    }
                    if matches!(change, Change::Clear) {
                        let why =
                            "removes communities of all kinds; in BIRD those of other kinds stay";
                        self.notes.push(Flaw::of(it, why));
                    }
                }
                Does::If(tested, then, otherwise) => {
                    let matches = &tested.matches;
                    self.flush(it, guard, &mut pending);
                    if self.is_cleared && has_other_kinds(matches) {
                        let why = "a rule before it removes communities of all kinds, so that none matches these";
                        self.flaw(it, why);
                        return self.emit(it, guard, Settings::default(), Action::Reject);
                    }
                    let rest = moves.get(at.saturating_add(1)..).unwrap_or_default();
                    let branches = Branches { it, matches, then, otherwise, rest };
                    if self.branch(&branches, guard, is_whole) {
                        return;
                    }
                }
            }
        }
        match (moves.last(), is_whole) {
            (Some(last), true) => self.emit(last, guard, Settings::default(), Action::Reject),
            (Some(last), false) => self.flush(last, guard, &mut pending),
            (None, true) => {
                let matches = guard.decisive.clone();
                self.rules.push(Rule { matches, ..Rule::reject_rest() });
            }
            (None, false) => {}
        }
    }

    /// Whether the rest is written, too.
    fn branch(&mut self, branches: &Branches<'_>, guard: &Guard, is_whole: bool) -> bool {
        let Branches { it, matches, then, otherwise, rest } = branches;
        if rejects(then) {
            return self.reject(branches, guard, is_whole);
        }
        let then_all: Vec<&Move> = then.iter().collect();
        let otherwise_all: Vec<&Move> = otherwise.iter().collect();
        let then_and_rest: Vec<&Move> = then.iter().chain(rest.iter().copied()).collect();
        let otherwise_and_rest: Vec<&Move> = otherwise.iter().chain(rest.iter().copied()).collect();
        let decisive = if is_whole && rejects(otherwise) {
            Ok(Some(guard.decisive.clone()))
        } else {
            guard.decisive.and(matches)
        };
        let inner = match (guard.matches.and(matches), decisive) {
            (Ok(Some(matches)), Ok(Some(decisive))) => {
                Guard { since: self.since(guard, branches.matches), matches, decisive }
            }
            (Ok(None), _) | (_, Ok(None)) => {
                self.run(&otherwise_and_rest, guard, is_whole);
                return true;
            }
            (Err(why), _) | (_, Err(why)) => {
                self.flaw(it, why);
                self.emit(it, guard, Settings::default(), Action::Reject);
                return true;
            }
        };
        if ends(then) {
            self.run(&then_all, &inner, true);
            if otherwise.is_empty() {
                return false;
            }
            self.run(&otherwise_and_rest, guard, is_whole);
            return true;
        }
        if otherwise.is_empty() {
            let before = (self.rules.len(), self.flaws.len(), self.changed, self.is_cleared);
            self.run(&then_all, &inner, false);
            if !self.needs_whole {
                return false;
            }
            if !is_whole {
                return true;
            }
            self.needs_whole = false;
            self.rules.truncate(before.0);
            self.flaws.truncate(before.1);
            self.changed = before.2;
            self.is_cleared = before.3;
        }
        if !is_whole {
            self.needs_whole = true;
            return true;
        }
        self.run(&then_and_rest, &inner, true);
        if ends(otherwise) {
            self.run(&otherwise_all, guard, true);
        } else {
            self.run(&otherwise_and_rest, guard, true);
        }
        true
    }

    /// What matches is rejected, and the rest goes on. Whether the rest is written, too.
    fn reject(&mut self, branches: &Branches<'_>, guard: &Guard, is_whole: bool) -> bool {
        let Branches { it, matches, otherwise, rest, .. } = branches;
        let remaining: Vec<&Move> = otherwise.iter().chain(rest.iter().copied()).collect();
        match guard.decisive.and(matches) {
            Ok(Some(both)) => {
                let since = self.since(guard, matches);
                let inner = Guard { matches: both.clone(), decisive: both, since };
                self.emit(it, &inner, Settings::default(), Action::Reject);
            }
            Ok(None) => {}
            Err(why) => {
                self.flaw(it, why);
                self.emit(it, guard, Settings::default(), Action::Reject);
                return true;
            }
        }
        if otherwise.is_empty() {
            return false;
        }
        self.run(&remaining, guard, is_whole);
        true
    }

    fn since(&self, guard: &Guard, matches: &Matches) -> [usize; 2] {
        let mut since = guard.since;
        let known = kinds(&guard.matches);
        for ((since, known), new) in since.iter_mut().zip(known).zip(kinds(matches)) {
            if new && !known {
                *since = self.clock;
            }
        }
        since
    }

    fn flaw(&mut self, it: &Move, why: &str) {
        let why = format!(
            "{why}; until it is changed, routes that come this far in the filter are rejected"
        );
        self.flaws.push(Flaw::of(it, why));
    }

    fn give_up(&mut self, it: &Move, why: &str) {
        self.broken.get_or_insert_with(|| Flaw::of(it, why));
    }

    fn flush(&mut self, it: &Move, guard: &Guard, pending: &mut Settings) {
        if *pending == Settings::default() {
            return;
        }
        let settings = std::mem::take(pending);
        self.is_cleared |= settings.replace.is_some();
        let changes = [
            settings.prepend.is_some(),
            settings.replace.is_some() || !settings.add.is_empty() || !settings.remove.is_empty(),
        ];
        self.emit(it, guard, settings, Action::Continue);
        self.clock = self.clock.saturating_add(1);
        for (changed, is_changed) in self.changed.iter_mut().zip(changes) {
            if is_changed {
                *changed = self.clock;
            }
        }
    }

    fn emit(&mut self, it: &Move, guard: &Guard, settings: Settings, action: Action) {
        let matches = if action == Action::Reject { &guard.decisive } else { &guard.matches };
        let stale = kinds(matches)
            .into_iter()
            .zip(guard.since.iter().zip(self.changed))
            .any(|(is_matched, (since, changed))| is_matched && changed > *since);
        if stale {
            let why = "a rule matches routes as the rules before it left them, and this needs them as they were; nothing passes";
            self.give_up(it, why);
        }
        self.rules.push(Rule { name: None, matches: matches.clone(), settings, action });
    }
}

struct Branches<'a> {
    it: &'a Move,
    matches: &'a Matches,
    then: &'a [Move],
    otherwise: &'a [Move],
    rest: &'a [&'a Move],
}

/// Whether all routes are rejected by these moves.
fn rejects(moves: &[Move]) -> bool {
    let decides = moves.iter().find(|it| !matches!(it.does, Does::Set(_)));
    matches!(decides, Some(Move { does: Does::Reject, .. }))
}

/// Whether each route is accepted or rejected by these moves.
fn ends(moves: &[Move]) -> bool {
    moves.iter().any(|it| match &it.does {
        Does::Accept | Does::Reject | Does::Unknown(_) => true,
        Does::If(_, then, otherwise) => ends(then) && ends(otherwise),
        Does::Set(_) => false,
    })
}

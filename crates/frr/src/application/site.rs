//! Where in FRR is our configuration, and what of others is in its way?
//!
//! Lines of a router belong to all who have neighbours in it, so ours are in a router of our own: the default
//! instance where nobody else has one, and a view otherwise, whose routes, settings and kernel are its own. FRR has no
//! second instance of a VRF. Decides from the running configuration alone. Called by [`super::Application`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::Now;
use super::refusals::Subject;
use crate::configuration::{Configuration, Statement, without_secrets};
use crate::difference::{Ours, is_router, is_view, neighbor};
use crate::owner::{Owner, VIEW};
use crate::render::Site;

/// How long after its start FRR may load its own configuration, in which the default instance may be somebody's:
/// created by us before, it would refuse theirs.
const LOADING_LIMIT: Duration = Duration::from_secs(3);
/// How long nothing changes between the removal of a router and its replacement, as frr-reload.py and operators at a
/// prompt do it.
const REST: Duration = Duration::from_millis(500);
/// How long changes by somebody else put off a default instance that is gone.
const RESTLESS_LIMIT: Duration = Duration::from_secs(10);

/// Where the neighbours of the default VRF are. `made`: routers that the record says we created.
pub(super) fn choose(bgpd: &Configuration, made: impl Fn(&str) -> bool) -> Site {
    match default_router(bgpd) {
        Some(router) if made(router) => Site::Alone,
        Some(_) => Site::Beside,
        None => Site::Alone,
    }
}

/// Moves a line of ours to the instance of this site.
pub(super) fn moved(statement: &mut Statement, site: Site) {
    let renamed = |router: &str| match (instance(router), site) {
        ("", Site::Beside) => Some(format!("{router} view {VIEW}")),
        (_, Site::Alone) if is_view(router) => {
            router.split_once(" view ").map(|(default, _)| default.to_owned())
        }
        _ => None,
    };
    let router = statement.context.first().unwrap_or(&statement.line);
    let Some(to) = Some(router).filter(|it| is_router(it)).and_then(|it| renamed(it)) else {
        return;
    };
    let to: Arc<str> = to.into();
    match statement.context.split_first() {
        None => statement.line = to,
        Some((_, inner)) => statement.context = [&[to], inner].concat().into(),
    }
}

/// When the default instance may be created: somebody may be about to create theirs.
#[derive(Debug, Default)]
pub(super) struct Vacancy {
    was_read: bool,
    has_default: bool,
    /// When it was found that there is none any more.
    lost_at: Option<Now>,
    /// Since when somebody else removes lines while the default instance is ours.
    cleared_since: Option<Now>,
}

/// What somebody else does to the configuration, compared with the one that was read before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Disturbance {
    pub(super) is_changing: bool,
    /// Lines are removed, and the default instance is ours: it may be the next line, and theirs may follow. A line of
    /// ours that is sent meanwhile enters the instance and so creates it, after which FRR refuses theirs.
    pub(super) is_clearing: bool,
}

impl Disturbance {
    pub(super) fn between(
        shown: Option<&Configuration>,
        bgpd: &Configuration,
        site: Option<Site>,
        is_loading: bool,
    ) -> Self {
        let Some(shown) = shown.filter(|it| *it != bgpd) else {
            return Self { is_changing: is_loading, is_clearing: false };
        };
        let key = |it: &Statement| (it.context.clone(), it.line.clone());
        let is_left: BTreeSet<_> = bgpd.statements.iter().map(key).collect();
        let is_clearing = site == Some(Site::Alone)
            && shown.statements.iter().any(|it| !is_left.contains(&key(it)));
        Self { is_changing: true, is_clearing }
    }
}

impl Vacancy {
    /// How long to wait, in an FRR that has been up for so long; unknown counts as just started.
    pub(super) fn wait(
        &mut self,
        now: Now,
        bgpd: &Configuration,
        age: Option<Duration>,
        disturbance: Disturbance,
    ) -> Duration {
        let is_first = !std::mem::replace(&mut self.was_read, true);
        let has_default = default_router(bgpd).is_some();
        let had_default = std::mem::replace(&mut self.has_default, has_default);
        if has_default {
            self.lost_at = None;
            if !disturbance.is_clearing {
                self.cleared_since = None;
                return Duration::ZERO;
            }
            let since = *self.cleared_since.get_or_insert(now);
            let is_waiting = now.saturating_sub(since) < RESTLESS_LIMIT;
            return if is_waiting { REST } else { Duration::ZERO };
        }
        self.cleared_since = None;
        if had_default {
            self.lost_at = Some(now);
        }
        let age = age.or((!is_first).then_some(Duration::MAX)).unwrap_or_default();
        let after_start = LOADING_LIMIT.saturating_sub(age);
        let is_restless = self.lost_at.is_some_and(|lost_at| {
            had_default || (disturbance.is_changing && now.saturating_sub(lost_at) < RESTLESS_LIMIT)
        });
        after_start.max(if is_restless { REST } else { Duration::ZERO })
    }

    /// bgpd has restarted, or only the connection to it, which its age shows.
    pub(super) fn reconnected(&mut self, age: Option<Duration>) {
        if age.is_none_or(|age| age < LOADING_LIMIT) {
            *self = Self::default();
        }
    }
}

/// The Fairway that this FRR belongs to, if it is another one. The first one stays; of two that came at once the lower
/// one.
pub(super) fn other_owner(bgpd: &Configuration, own: Owner) -> Option<Owner> {
    let top = bgpd.statements.iter().filter(|it| it.context.is_empty());
    let names = top.filter_map(|it| it.line.strip_prefix("route-map ")?.split(' ').next());
    let mut owners: BTreeSet<Owner> = names.filter_map(Owner::in_name).collect();
    let is_here = owners.remove(&own);
    owners.into_iter().next().filter(|other| !is_here || *other < own)
}

/// What is wanted and would change something of others.
#[derive(Debug, Default)]
pub(super) struct Obstacles {
    /// Routers of others.
    routers: BTreeSet<Arc<str>>,
    /// Resources and lines that are left out, with the reason.
    subjects: BTreeMap<Subject, String>,
}

impl Obstacles {
    pub(super) fn find(bgpd: &Configuration, wanted: &[&Statement], ours: &Ours<'_>) -> Self {
        let mut routers: BTreeMap<Arc<str>, Arc<str>> = BTreeMap::new();
        let mut neighbors: BTreeMap<(String, String), Arc<str>> = BTreeMap::new();
        for it in &bgpd.statements {
            if it.context.is_empty() && is_router(&it.line) && !ours.made(&it.line) {
                routers.insert(it.line.clone(), it.line.clone());
            }
            if let Some((router, name)) = neighbor(&it.context, &it.line)
                && !ours.has(it)
            {
                neighbors.insert((scope(&router), name), router);
            }
        }
        let in_the_way = |router: &str| {
            let of_same_vrf = routers.keys().find(|it| instance(it) == instance(router));
            of_same_vrf.filter(|_| is_router(router) && !ours.made(router)).cloned()
        };
        let mut obstacles = Self::default();
        for it in wanted {
            let router = it.context.first().unwrap_or(&it.line);
            if let Some(other) = in_the_way(router) {
                obstacles.routers.insert(router.clone());
                let reason = format!(
                    "FRR has `{other}` of somebody else, and no second router for a VRF; remove it, or \
                     use another VRF"
                );
                obstacles.leave_out(it, reason);
            } else if let Some((router, name)) = neighbor(&it.context, &it.line)
                && let Some(other) = neighbors.get(&(scope(&router), name.clone()))
            {
                let reason = format!(
                    "FRR has neighbor {name} of somebody else in `{other}`; remove it there, or the \
                     resource"
                );
                obstacles.leave_out(it, reason);
            }
        }
        obstacles
    }

    fn leave_out(&mut self, statement: &Statement, reason: String) {
        // Lines without a resource are those of the router, which go with it.
        if statement.origin.as_ref().is_some_and(|it| !it.starts_with("router ")) {
            self.subjects.entry(Subject::of_statement(statement)).or_insert(reason);
        }
    }

    /// Whether a wanted line is left out.
    pub(super) fn concern(&self, statement: &Statement) -> bool {
        let router = statement.context.first().unwrap_or(&statement.line);
        self.routers.contains(router)
            || self.subjects.contains_key(&Subject::of_statement(statement))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.routers.is_empty() && self.subjects.is_empty()
    }

    pub(super) fn faults(&self) -> impl Iterator<Item = String> {
        self.subjects.iter().map(|(subject, reason)| match subject {
            Subject::Resource(resource) => format!("{resource} is not configured: {reason}"),
            Subject::Line((_, line)) => {
                format!("`{}` is not configured: {reason}", without_secrets(line))
            }
        })
    }
}

/// The default instance.
fn default_router(bgpd: &Configuration) -> Option<&Arc<str>> {
    let top = bgpd.statements.iter().filter(|it| it.context.is_empty() && is_router(&it.line));
    top.map(|it| &it.line).find(|it| instance(it).is_empty())
}

/// What is behind the AS: a VRF or a view, or nothing.
fn instance(router: &str) -> &str {
    let router = router.split_once(" as-notation ").map_or(router, |(it, _)| it);
    router.strip_prefix("router bgp ").and_then(|it| it.split_once(' ')).map_or("", |(_, it)| it)
}

/// Routers of one scope share their connections: the default instance and all views.
fn scope(router: &str) -> String {
    let instance = instance(router);
    if instance.starts_with("view ") { String::new() } else { instance.to_owned() }
}

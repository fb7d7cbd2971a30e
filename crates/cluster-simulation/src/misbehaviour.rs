//! Mistakes that are put into the box on purpose, which the rules must notice.
//!
//! Each acts on the inputs or outputs of a core as a core with this bug would behave; so no core has a
//! switch for it. There are no mistakes by default.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_cluster::{LeaseRecord, LeaseReply, ListedObject, Reply, name_of, version_of};
use fairway_ground::Instant;
use fairway_model::{Kind, ObjectName};
use fairway_seam::Leave;
use serde_json::Value;

use crate::process::News;
use crate::schedule::Who;

/// How much faster the clock of a hasty controller runs.
const HASTE: u64 = 30;

/// One mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// A controller ignores the statuses: double allocation after a restart.
    NoAdoption,
    /// A controller takes the first half of a list for the whole.
    DecidesBeforeSynced,
    /// A speaker takes an outage for an empty list.
    WithdrawsInOutage,
    /// Deletions are never noticed.
    LosesDeletes,
    /// Every write is repeated.
    WritesForEver,
    /// A 409 is answered with a write without a precondition.
    OverwritesOnConflict,
    /// Every controller believes that it holds the Lease.
    EverybodyLeads,
    /// A leader that cannot renew continues.
    NeverStepsDown,
    /// A controller's cool-down ends at once.
    ReusesAtOnce,
    /// A speaker sends End-of-RIB before it knows everything.
    EndOfRibTooEarly,
    /// A speaker ends its sessions when it is restarted.
    LeavesForGood,
    /// Nothing is stored on disk.
    KeepsNoSnapshot,
    /// A speaker never receives changes or deletions of pools.
    AnnouncesOutsidePools,
    /// Services are announced with the addresses that they request, assigned or not.
    AnnouncesWishes,
    /// When a pool is added, all addresses are assigned again.
    MovesOnNewPool,
    /// A leader leaves no trace of the addresses that it has assigned and released.
    LeavesNoRecord,
}

impl Mistake {
    /// All mistakes.
    pub const ALL: [Self; 16] = [
        Self::NoAdoption,
        Self::DecidesBeforeSynced,
        Self::WithdrawsInOutage,
        Self::LosesDeletes,
        Self::WritesForEver,
        Self::OverwritesOnConflict,
        Self::EverybodyLeads,
        Self::NeverStepsDown,
        Self::ReusesAtOnce,
        Self::EndOfRibTooEarly,
        Self::LeavesForGood,
        Self::KeepsNoSnapshot,
        Self::AnnouncesOutsidePools,
        Self::AnnouncesWishes,
        Self::MovesOnNewPool,
        Self::LeavesNoRecord,
    ];
}

/// The mistake in a box, and the state that it needs.
#[derive(Debug, Clone, Default)]
pub struct Misbehaviour {
    mistake: Option<Mistake>,
    /// The objects of each kind that each process received, where that matters.
    heard: BTreeMap<(Who, Kind), BTreeMap<ObjectName, Arc<Value>>>,
    /// The last Lease that each controller wrote.
    leases: BTreeMap<Who, LeaseRecord>,
    /// How many lists were cut short.
    halved: BTreeMap<Who, u32>,
}

impl Misbehaviour {
    /// This one mistake.
    pub fn of(mistake: Mistake) -> Self {
        Self { mistake: Some(mistake), ..Self::default() }
    }

    fn is(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// The time that a process believes it is.
    pub(crate) fn clock(&self, now: Instant, who: Who) -> Instant {
        if self.is_hasty(who) { Instant::from_micros(now.as_micros() * HASTE) } else { now }
    }

    /// The real time for a time of that process.
    pub(crate) fn real_time(&self, at: Instant, who: Who) -> Instant {
        if self.is_hasty(who) { Instant::from_micros(at.as_micros() / HASTE) } else { at }
    }

    fn is_hasty(&self, who: Who) -> bool {
        self.is(Mistake::ReusesAtOnce) && matches!(who, Who::Controller(_))
    }

    pub(crate) fn ends_rib_too_early(&self) -> bool {
        self.is(Mistake::EndOfRibTooEarly)
    }

    pub(crate) fn withdraws_in_outage(&self) -> bool {
        self.is(Mistake::WithdrawsInOutage)
    }

    pub(crate) fn keeps_snapshots(&self) -> bool {
        !self.is(Mistake::KeepsNoSnapshot)
    }

    pub(crate) fn overwrites(&self) -> bool {
        self.is(Mistake::OverwritesOnConflict)
    }

    pub(crate) fn writes_for_ever(&self) -> bool {
        self.is(Mistake::WritesForEver)
    }

    pub(crate) fn leaves(&self, leave: Leave) -> Leave {
        if self.is(Mistake::LeavesForGood) { Leave::ForGood } else { leave }
    }

    /// What a core receives in place of `news`.
    pub(crate) fn hears(&mut self, who: Who, run: u64, news: News) -> Vec<News> {
        let Some(mistake) = self.mistake else { return vec![news] };
        let is_controller = matches!(who, Who::Controller(_));
        match (mistake, news) {
            (Mistake::NoAdoption, News::Reply(Kind::Service, reply)) if is_controller => {
                vec![News::Reply(Kind::Service, each(reply, without_status))]
            }
            (Mistake::AnnouncesWishes, News::Reply(Kind::Service, reply)) if !is_controller => {
                vec![News::Reply(Kind::Service, each(reply, wish_as_status))]
            }
            (Mistake::MovesOnNewPool, news) if is_controller => self.moves(who, news),
            (Mistake::DecidesBeforeSynced, News::Reply(kind, reply)) if is_controller => {
                self.halves(who, kind, reply)
            }
            (Mistake::LosesDeletes, News::Reply(kind, reply)) => self.remembers(who, kind, reply),
            (Mistake::AnnouncesOutsidePools, News::Reply(Kind::IpAddressPool, reply))
                if !is_controller =>
            {
                self.sticks(who, reply)
            }
            (Mistake::EverybodyLeads, News::Lease(reply)) => {
                vec![News::Lease(self.leads_anyway(who, run, reply))]
            }
            (Mistake::LeavesNoRecord, News::Lease(LeaseReply::Is(record))) => {
                let record = LeaseRecord { addresses: Some(String::new()), ..record };
                vec![News::Lease(LeaseReply::Is(record))]
            }
            (Mistake::NeverStepsDown, News::Lease(reply)) => {
                vec![News::Lease(self.renews_anyway(who, reply))]
            }
            (_, news) => vec![news],
        }
    }

    /// Every other pool is deleted and added again when one is added.
    fn moves(&mut self, who: Who, news: News) -> Vec<News> {
        let heard = self.heard.entry((who, Kind::IpAddressPool)).or_default();
        let News::Reply(kind, Reply::Applied(pool)) = news else { return vec![news] };
        if kind != Kind::IpAddressPool {
            return vec![News::Reply(kind, Reply::Applied(pool))];
        }
        let others: Vec<_> = heard.values().filter(|it| name_of(it) != name_of(&pool)).collect();
        let mut all = vec![News::Reply(kind, Reply::Applied(Arc::clone(&pool)))];
        let mut version = version_of(&pool).and_then(|it| it.parse().ok()).unwrap_or(0_u64);
        for other in others {
            // There are no versions between this change and the next one; these are invented.
            let mut stamped = || {
                version += 1;
                let mut other = Value::clone(other);
                other["metadata"]["resourceVersion"] = Value::from(version.to_string());
                Arc::new(other)
            };
            all.push(News::Reply(kind, Reply::Deleted(stamped())));
            all.push(News::Reply(kind, Reply::Applied(stamped())));
        }
        heard.insert(name_of(&pool), pool);
        all
    }

    fn halves(&mut self, who: Who, kind: Kind, reply: Reply) -> Vec<News> {
        let halved = self.halved.entry(who).or_default();
        match reply {
            Reply::Listed { mut items, resource_version, continue_token }
                if kind == Kind::Service && *halved < 2 =>
            {
                *halved += 1;
                items.truncate(items.len() / 2);
                let listed = Reply::Listed { items, resource_version, continue_token };
                vec![News::Reply(kind, listed), News::Reply(kind, Reply::Gone)]
            }
            reply => vec![News::Reply(kind, reply)],
        }
    }

    fn remembers(&mut self, who: Who, kind: Kind, reply: Reply) -> Vec<News> {
        let heard = self.heard.entry((who, kind)).or_default();
        let reply = match reply {
            Reply::Listed { items, resource_version, continue_token } => {
                heard.extend(items.into_iter().map(|it| (it.name, Arc::new(it.text.value()))));
                Reply::Listed {
                    items: heard.values().map(|it| ListedObject::from(&**it)).collect(),
                    resource_version,
                    continue_token,
                }
            }
            Reply::Applied(object) => {
                heard.insert(name_of(&object), Arc::clone(&object));
                Reply::Applied(object)
            }
            Reply::Deleted(object) => {
                let version = version_of(&object).unwrap_or_default();
                Reply::Bookmark(version.to_owned())
            }
            reply => reply,
        };
        vec![News::Reply(kind, reply)]
    }

    /// Only the first version of each pool, for ever.
    fn sticks(&mut self, who: Who, reply: Reply) -> Vec<News> {
        let heard = self.heard.entry((who, Kind::IpAddressPool)).or_default();
        let mut first = |object: Arc<Value>| {
            let name = name_of(&object);
            Arc::clone(heard.entry(name).or_insert(object))
        };
        let reply = match reply {
            Reply::Listed { items, resource_version, continue_token } => {
                for object in items {
                    first(Arc::new(object.text.value()));
                }
                Reply::Listed {
                    items: heard.values().map(|it| ListedObject::from(&**it)).collect(),
                    resource_version,
                    continue_token,
                }
            }
            Reply::Applied(object) => Reply::Applied(first(object)),
            Reply::Deleted(object) => {
                let version = version_of(&object).unwrap_or_default();
                Reply::Bookmark(version.to_owned())
            }
            reply => reply,
        };
        vec![News::Reply(Kind::IpAddressPool, reply)]
    }

    /// The Lease does not exist for this process until it writes one; every writer gets it.
    fn leads_anyway(&mut self, who: Who, run: u64, reply: LeaseReply) -> LeaseReply {
        let Who::Controller(number) = who else { return reply };
        let record = LeaseRecord {
            holder: format!("controller-{number}-{run}"),
            transitions: 0,
            resource_version: "1".to_owned(),
            addresses: None,
        };
        let before = self.leases.insert(who, record.clone());
        match before {
            Some(before) if before == record => LeaseReply::Is(record),
            _ => LeaseReply::Missing,
        }
    }

    fn renews_anyway(&mut self, who: Who, reply: LeaseReply) -> LeaseReply {
        match reply {
            LeaseReply::Is(record) => {
                self.leases.insert(who, record.clone());
                LeaseReply::Is(record)
            }
            LeaseReply::Failed | LeaseReply::Conflict => match self.leases.get(&who) {
                Some(record) => LeaseReply::Is(record.clone()),
                None => reply,
            },
            LeaseReply::Missing => reply,
        }
    }
}

/// The reply with every object in it changed.
fn each(reply: Reply, change: fn(Arc<Value>) -> Arc<Value>) -> Reply {
    match reply {
        Reply::Listed { items, resource_version, continue_token } => {
            let changed =
                |it: ListedObject| ListedObject::from(&*change(Arc::new(it.text.value())));
            let items = items.into_iter().map(changed).collect();
            Reply::Listed { items, resource_version, continue_token }
        }
        Reply::Applied(object) => Reply::Applied(change(object)),
        reply => reply,
    }
}

fn without_status(object: Arc<Value>) -> Arc<Value> {
    let mut object = Value::clone(&object);
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    Arc::new(object)
}

fn wish_as_status(object: Arc<Value>) -> Arc<Value> {
    let wish = object["metadata"]["annotations"]["metallb.io/loadBalancerIPs"].clone();
    if wish.is_null() {
        return object;
    }
    let mut object = Value::clone(&object);
    object["status"] = serde_json::json!({ "loadBalancer": { "ingress": [{ "ip": wish }] } });
    Arc::new(object)
}

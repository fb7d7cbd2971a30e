//! Recently released addresses: their former holders, and whether routers may still send traffic to
//! them.
//!
//! Until the withdrawal of an address is reported as sent to all neighbours, only its former holder may
//! have it again; after that any Service may, but for some time it is the last choice.
//! Knows no pool beyond a name. Called by the allocator.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use fairway_ground::{AddressFamily, Instant};
use fairway_model::ObjectName;

/// How long an address is the last choice, and kept for its former holder.
pub(super) const COOL_DOWN: Duration = Duration::from_secs(60);
/// The bound on remembered releases, a few megabytes. If more are released within a minute, the oldest
/// ones are chosen like any other. Those without a reported withdrawal are not bounded, since no other
/// Service may have them: they are what was released since the last updates to neighbours.
pub(super) const RELEASES_MAX: usize = if cfg!(test) { 1_000 } else { 65_536 };

/// Everything that was released before some moment. Later ones are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ReleaseMark(u64);

/// The pool that assigns an address automatically, and its family.
pub(super) type Home = (ObjectName, AddressFamily);

/// The release of one address by one Service.
#[derive(Debug, Clone)]
struct Release {
    address: IpAddr,
    former: ObjectName,
    at: Instant,
    /// Neighbours have received its withdrawal.
    is_told: bool,
}

/// An unused address that was released recently.
#[derive(Debug, Clone)]
struct Cooling {
    /// The release that left it unused.
    mark: u64,
    is_withdrawn: bool,
    home: Option<Home>,
}

/// All remembered releases.
#[derive(Debug, Clone, Default)]
pub(super) struct Released {
    /// By mark, so oldest first. At most one for an address and its holder.
    releases: BTreeMap<u64, Release>,
    marks: BTreeMap<ObjectName, BTreeMap<IpAddr, u64>>,
    marks_of_address: BTreeMap<IpAddr, BTreeSet<u64>>,
    /// When each is forgotten. Those that are not withdrawn are not.
    due: BTreeSet<(Instant, u64)>,
    cooling: BTreeMap<IpAddr, Cooling>,
    /// Those with a withdrawal that is not reported yet.
    untold: BTreeSet<u64>,
    /// Withdrawn ones by the pool that can assign them again, oldest first.
    usable: BTreeMap<Home, BTreeSet<(u64, IpAddr)>>,
    last_mark: u64,
    /// [`Self::iter`] may return something different.
    is_other: bool,
}

impl Released {
    /// All releases until now.
    pub(super) fn last(&self) -> ReleaseMark {
        ReleaseMark(self.last_mark)
    }

    /// Addresses and their former holders, oldest first: what must survive a restart. A Service that must
    /// not get an address because others held it since must not count as a former holder afterwards.
    pub(super) fn iter(&self) -> impl Iterator<Item = (IpAddr, &ObjectName)> {
        let is_withdrawn =
            |address| self.cooling.get(address).is_some_and(|cooling| cooling.is_withdrawn);
        let releases = self.releases.values();
        let kept = releases.filter(move |it| !it.is_told || is_withdrawn(&it.address));
        kept.map(|release| (release.address, &release.former))
    }

    /// Whether [`Self::iter`] may return something different than at the last call of this.
    pub(super) fn take_is_other(&mut self) -> bool {
        std::mem::take(&mut self.is_other)
    }

    /// Addresses that cool down.
    pub(super) fn cooling(&self) -> impl Iterator<Item = IpAddr> {
        self.cooling.keys().copied()
    }

    /// Addresses without a reported withdrawal, with their last holder.
    pub(super) fn not_withdrawn(&self) -> impl Iterator<Item = (IpAddr, &ObjectName, Instant)> {
        let releases = self.untold.iter().filter_map(|mark| Some((mark, self.releases.get(mark)?)));
        let cooling = releases.filter(|(mark, release)| {
            self.cooling.get(&release.address).is_some_and(|cooling| cooling.mark == **mark)
        });
        cooling.map(|(_, release)| (release.address, &release.former, release.at))
    }

    /// The former addresses of `name`.
    pub(super) fn of(&self, name: &ObjectName) -> impl Iterator<Item = IpAddr> {
        self.marks.get(name).into_iter().flat_map(|marks| marks.keys().copied())
    }

    /// The last holder of `address`, if others may not have it yet and `name` is one of those: it has not
    /// shared the address since neighbours were last updated.
    pub(super) fn kept_for(&self, address: IpAddr, name: &ObjectName) -> Option<&ObjectName> {
        let cooling = self.cooling.get(&address).filter(|cooling| !cooling.is_withdrawn)?;
        let own = self.marks.get(name).and_then(|marks| marks.get(&address));
        let was_theirs = own.and_then(|mark| self.releases.get(mark)).is_some_and(|it| !it.is_told);
        let release = self.releases.get(&cooling.mark).filter(|_| !was_theirs)?;
        Some(&release.former)
    }

    /// The address that has been waiting longest to be assigned by this pool again.
    pub(super) fn oldest_usable(&self, home: &Home) -> Option<IpAddr> {
        self.usable.get(home)?.first().map(|(_, address)| *address)
    }

    /// `former` released `address` at `now`. Unless others still use it, it cools down, and `home` is the
    /// pool that can assign it again. Returns those that are dropped to stay within the bound.
    pub(super) fn add(
        &mut self,
        now: Instant,
        address: IpAddr,
        former: &ObjectName,
        is_unused: bool,
        home: Option<Home>,
    ) -> Vec<IpAddr> {
        let earlier = self.marks.get(former).and_then(|marks| marks.get(&address)).copied();
        if let Some(mark) = earlier {
            self.forget(mark);
        }
        self.last_mark = self.last_mark.saturating_add(1);
        let mark = self.last_mark;
        self.is_other = true;
        let release = Release { address, former: former.clone(), at: now, is_told: false };
        self.releases.insert(mark, release);
        self.marks.entry(former.clone()).or_default().insert(address, mark);
        self.marks_of_address.entry(address).or_default().insert(mark);
        self.untold.insert(mark);
        if is_unused {
            // After a restart, of several holders that shared it the last one counts.
            self.end_cooling(address);
            self.cooling.insert(address, Cooling { mark, is_withdrawn: false, home });
        } else {
            self.due.insert((now, mark));
        }
        let mut freed = Vec::new();
        while self.releases.len() > RELEASES_MAX
            && let Some((_, mark)) = self.due.first().copied()
        {
            freed.extend(self.forget(mark));
        }
        freed
    }

    /// A Service uses `address` now.
    pub(super) fn taken(&mut self, address: IpAddr, by: &ObjectName) {
        self.end_cooling(address);
        if let Some(mark) = self.marks.get(by).and_then(|marks| marks.get(&address)).copied() {
            self.forget(mark);
        }
    }

    /// Forgets releases that are old enough, and returns the addresses with a finished cool-down.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<IpAddr> {
        let mut freed = Vec::new();
        while let Some((at, mark)) = self.due.first().copied() {
            if now < at + COOL_DOWN {
                break;
            }
            self.due.remove(&(at, mark));
            freed.extend(self.forget(mark));
        }
        freed
    }

    /// When [`Self::expire`] has something to do.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at + COOL_DOWN)
    }

    /// The withdrawals of everything released until then were sent to neighbours. Returns the addresses
    /// that others may have from now on, and their pools.
    pub(super) fn withdrawn(&mut self, up_to: ReleaseMark) -> Vec<(IpAddr, Option<Home>)> {
        let mut told = Vec::new();
        while let Some(mark) = self.untold.first().copied().filter(|mark| *mark <= up_to.0) {
            told.extend(self.tell(mark));
        }
        told
    }

    /// As [`Self::withdrawn`], of one address.
    pub(super) fn address_withdrawn(&mut self, address: IpAddr) -> Option<(IpAddr, Option<Home>)> {
        let marks = self.marks_of_address.get(&address).cloned().unwrap_or_default();
        let told: Vec<_> = marks.into_iter().filter_map(|mark| self.tell(mark)).collect();
        // Only one of them left it unused.
        told.into_iter().next()
    }

    /// Neighbours have received this withdrawal. Returns the address if others may have it now.
    fn tell(&mut self, mark: u64) -> Option<(IpAddr, Option<Home>)> {
        self.untold.remove(&mark);
        let release = self.releases.get_mut(&mark)?;
        self.is_other = true;
        release.is_told = true;
        let (address, at) = (release.address, release.at);
        let cooling = self.cooling.get_mut(&address)?;
        if cooling.mark != mark || cooling.is_withdrawn {
            return None;
        }
        cooling.is_withdrawn = true;
        self.due.insert((at, mark));
        if let Some(home) = &cooling.home {
            self.usable.entry(home.clone()).or_default().insert((cooling.mark, address));
        }
        Some((address, cooling.home.clone()))
    }

    /// The pools changed: determines again which pool can assign each address.
    pub(super) fn rehome(&mut self, home_of: impl Fn(IpAddr) -> Option<Home>) {
        self.usable.clear();
        for (address, cooling) in &mut self.cooling {
            cooling.home = home_of(*address);
            if let Some(home) = cooling.home.as_ref().filter(|_| cooling.is_withdrawn) {
                self.usable.entry(home.clone()).or_default().insert((cooling.mark, *address));
            }
        }
    }

    /// The time of what was restored after a restart counts from `now`.
    pub(super) fn begin_at(&mut self, now: Instant) {
        self.releases.values_mut().for_each(|release| release.at = now);
        self.due = std::mem::take(&mut self.due).into_iter().map(|(_, mark)| (now, mark)).collect();
    }

    /// Forgets a release; returns the address if that ends its cool-down.
    fn forget(&mut self, mark: u64) -> Option<IpAddr> {
        let Release { address, former, at, .. } = self.releases.remove(&mark)?;
        self.is_other = true;
        self.due.remove(&(at, mark));
        self.untold.remove(&mark);
        if let Some(marks) = self.marks_of_address.get_mut(&address) {
            marks.remove(&mark);
            if marks.is_empty() {
                self.marks_of_address.remove(&address);
            }
        }
        if let Some(marks) = self.marks.get_mut(&former) {
            marks.remove(&address);
            if marks.is_empty() {
                self.marks.remove(&former);
            }
        }
        let is_cooling = self.cooling.get(&address).is_some_and(|cooling| cooling.mark == mark);
        if is_cooling {
            self.end_cooling(address);
        }
        is_cooling.then_some(address)
    }

    fn end_cooling(&mut self, address: IpAddr) {
        let Some(Cooling { mark, is_withdrawn, home }) = self.cooling.remove(&address) else {
            return;
        };
        self.is_other = true;
        if let Some(release) = self.releases.get(&mark).filter(|_| !is_withdrawn) {
            self.due.insert((release.at, mark));
        }
        if let Some(home) = home
            && let Some(usable) = self.usable.get_mut(&home)
        {
            usable.remove(&(mark, address));
            if usable.is_empty() {
                self.usable.remove(&home);
            }
        }
    }
}

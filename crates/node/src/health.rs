//! Which Services does this machine serve itself? Decided by checks, one after the other.
//!
//! A pure machine: outcomes of checks in, which Services fail out. One failure is no outage, and one success no
//! recovery: how many are is said by the Service. Knows no socket and no clock; driven by the daemon that has the
//! files.

use std::collections::{BTreeMap, BTreeSet};

use fairway_model::{HealthCheck, ObjectName};

/// What is known of one Service.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    /// No check has ended, and it is not served until one has.
    Unknown,
    /// No check has ended, and it goes on being served until one has.
    Presumed,
    Passes,
    Fails(String),
}

#[derive(Debug)]
struct Checked {
    check: HealthCheck,
    verdict: Verdict,
    /// Outcomes that contradict the verdict, one after the other.
    against: u8,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Health {
    services: BTreeMap<ObjectName, Checked>,
}

impl Health {
    /// The checks of all Services. `is_served`: the Service was announced before without this check, and remains so
    /// until the check says otherwise. Returns whether the checks are other ones than before.
    pub fn follow(
        &mut self,
        wanted: BTreeMap<ObjectName, HealthCheck>,
        is_served: impl Fn(&ObjectName) -> bool,
    ) -> bool {
        let count = self.services.len();
        self.services.retain(|name, _| wanted.contains_key(name));
        let mut is_other = count != self.services.len();
        for (name, check) in wanted {
            if let Some(known) = self.services.get_mut(&name) {
                is_other |= known.check != check;
                if known.check.probe != check.probe {
                    // What fails goes on failing, and what is served is served, until the new one says otherwise.
                    known.against = 0;
                    if known.verdict == Verdict::Passes {
                        known.verdict = Verdict::Presumed;
                    }
                }
                known.check = check;
                continue;
            }
            is_other = true;
            let verdict = if is_served(&name) { Verdict::Presumed } else { Verdict::Unknown };
            self.services.insert(name, Checked { check, verdict, against: 0 });
        }
        is_other
    }

    /// The first checks have not ended in time: what they are of counts as not served from now on.
    pub fn stop_waiting(&mut self) {
        for service in self.services.values_mut().filter(|it| it.verdict == Verdict::Unknown) {
            service.verdict = Verdict::Fails("it has not ended in time".to_owned());
        }
    }

    /// A check has ended. What is not checked any more, or with another check, is ignored. Returns whether it is known
    /// now and was not that the Service is served, or that it is not, or why.
    pub fn ended(
        &mut self,
        name: &ObjectName,
        check: &HealthCheck,
        outcome: Result<(), String>,
    ) -> bool {
        let Some(service) = self.services.get_mut(name).filter(|it| it.check == *check) else {
            return false;
        };
        let enough = match (&service.verdict, &outcome) {
            (Verdict::Passes, Ok(())) => {
                service.against = 0;
                return false;
            }
            (Verdict::Fails(_), Err(failure)) => {
                service.against = 0;
                // What it is now helps more than what it was hours ago.
                let now = Verdict::Fails(failure.clone());
                return std::mem::replace(&mut service.verdict, now) != service.verdict;
            }
            (Verdict::Unknown, _) | (Verdict::Presumed, Ok(())) => 1,
            (Verdict::Presumed | Verdict::Passes, Err(_)) => check.failures,
            (Verdict::Fails(_), Ok(())) => check.successes,
        };
        service.against = service.against.saturating_add(1);
        if service.against < enough {
            return false;
        }
        service.against = 0;
        let now = match outcome {
            Ok(()) => Verdict::Passes,
            Err(failure) => Verdict::Fails(failure),
        };
        let before = std::mem::replace(&mut service.verdict, now);
        before != Verdict::Presumed || service.verdict != Verdict::Passes
    }

    /// The Services whose check fails, and how.
    pub fn failing(&self) -> BTreeMap<ObjectName, String> {
        let failure = |it: &Checked| match &it.verdict {
            Verdict::Fails(failure) => Some(failure.clone()),
            Verdict::Unknown | Verdict::Presumed | Verdict::Passes => None,
        };
        let failing = self.services.iter();
        failing.filter_map(|(name, it)| Some((name.clone(), failure(it)?))).collect()
    }

    /// The Services of which it is not known yet whether they are served.
    pub fn pending(&self) -> BTreeSet<ObjectName> {
        let unknown = self.services.iter().filter(|(_, it)| it.verdict == Verdict::Unknown);
        unknown.map(|(name, _)| name.clone()).collect()
    }

    /// Each Service that is checked, and whether this machine serves it.
    pub fn verdicts(&self) -> BTreeMap<ObjectName, bool> {
        let serves = |it: &Checked| matches!(it.verdict, Verdict::Presumed | Verdict::Passes);
        self.services.iter().map(|(name, it)| (name.clone(), serves(it))).collect()
    }

    /// The checks to run.
    pub fn checks(&self) -> impl Iterator<Item = (&ObjectName, &HealthCheck)> {
        self.services.iter().map(|(name, it)| (name, &it.check))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fairway_model::Probe;

    use super::*;

    fn web() -> ObjectName {
        ObjectName::new("default", "web")
    }

    fn check(port: u16) -> HealthCheck {
        HealthCheck {
            probe: Probe::Tcp(([127, 0, 0, 1], port).into()),
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            failures: 3,
            successes: 2,
        }
    }

    fn checked(is_served: bool) -> Health {
        let mut health = Health::default();
        assert!(health.follow(BTreeMap::from([(web(), check(1))]), |_| is_served));
        health
    }

    fn fails(health: &Health) -> bool {
        health.verdicts().get(&web()) == Some(&false)
    }

    fn is_pending(health: &Health) -> bool {
        health.pending().contains(&web())
    }

    #[test]
    fn a_service_that_starts_is_served_after_its_first_success() {
        let mut health = checked(false);
        assert!(is_pending(&health) && fails(&health));
        assert!(health.ended(&web(), &check(1), Ok(())));
        assert!(!is_pending(&health) && !fails(&health));
        let mut health = checked(false);
        assert!(health.ended(&web(), &check(1), Err("refused".to_owned())));
        assert!(!is_pending(&health));
        assert_eq!(health.failing()[&web()], "refused");
    }

    #[test]
    fn a_first_check_that_hangs_is_not_waited_for() {
        let mut health = checked(false);
        health.stop_waiting();
        assert!(!is_pending(&health) && fails(&health));
        assert_eq!(health.failing()[&web()], "it has not ended in time");
        assert!(!health.ended(&web(), &check(1), Ok(())));
        assert!(health.ended(&web(), &check(1), Ok(())));
    }

    #[test]
    fn some_failures_in_a_row_are_an_outage_and_some_successes_a_recovery() {
        let mut health = checked(false);
        let mut ends = |outcome: Result<(), &str>| {
            health.ended(&web(), &check(1), outcome.map_err(str::to_owned))
        };
        let (good, bad) = (Ok(()), Err("no"));
        assert!(ends(good));
        let all: Vec<bool> =
            [bad, bad, good, bad, bad, bad, bad].into_iter().map(&mut ends).collect();
        assert_eq!(all, [false, false, false, false, false, true, false]);
        let all: Vec<bool> = [good, bad, good, good].into_iter().map(&mut ends).collect();
        assert_eq!(all, [false, false, false, true]);
    }

    #[test]
    fn a_check_that_is_added_changes_nothing_before_it_has_failed() {
        let mut health = checked(true);
        assert!(!is_pending(&health) && !fails(&health));
        let failed = || Err("refused".to_owned());
        assert!(!health.ended(&web(), &check(1), failed()));
        assert!(!health.ended(&web(), &check(1), failed()));
        assert!(health.ended(&web(), &check(1), failed()));
        // Another probe says nothing yet of what fails, and the outcome of the former one counts no more.
        assert!(health.follow(BTreeMap::from([(web(), check(2))]), |_| true));
        assert!(fails(&health) && !is_pending(&health));
        assert!(!health.ended(&web(), &check(1), Ok(())));
        assert!(
            health.ended(&web(), &check(2), Err("status 503".to_owned())),
            "why is another one"
        );
        assert!(!health.ended(&web(), &check(2), Ok(())));
        assert!(health.ended(&web(), &check(2), Ok(())));
        assert!(health.follow(BTreeMap::new(), |_| true));
        assert!(!fails(&health) && !health.ended(&web(), &check(2), Err(String::new())));
    }
}

//! A cache that fails in every way, by seed, and stories of what a router does then.

use std::collections::BTreeMap;

use super::*;
use crate::payloads::Payloads;
use fairway_ground::{OriginValidation, Rng};

fn payload(number: u8, asn: u32) -> RoaPayload {
    RoaPayload { prefix: format!("10.{number}.0.0/16").parse().unwrap(), length_max: 24, asn }
}

/// A cache's side, in bytes that are written by hand.
struct Server {
    version: u8,
    session: u16,
    serial: u32,
    payloads: BTreeSet<RoaPayload>,
    /// The payloads of earlier serials of this session.
    history: BTreeMap<u32, BTreeSet<RoaPayload>>,
    /// A question of another session is an error to it, and no reason to send all.
    is_strict: bool,
}

fn header(version: u8, kind: u8, session: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(8 + body.len()).unwrap();
    [&[version, kind][..], &session.to_be_bytes(), &length.to_be_bytes(), body].concat()
}

impl Server {
    fn new(version: u8) -> Self {
        let history = BTreeMap::new();
        let payloads = BTreeSet::new();
        Self { version, session: 7, serial: 1, payloads, history, is_strict: false }
    }

    fn change(&mut self, payloads: BTreeSet<RoaPayload>) {
        self.history.insert(self.serial, std::mem::replace(&mut self.payloads, payloads));
        self.serial += 1;
    }

    fn prefix(&self, payload: &RoaPayload, flags: u8) -> Vec<u8> {
        let std::net::IpAddr::V4(address) = payload.prefix.address() else { panic!() };
        let mut body = vec![flags, payload.prefix.length(), payload.length_max, 0];
        body.extend(address.octets());
        body.extend(payload.asn.to_be_bytes());
        header(self.version, 4, 0, &body)
    }

    fn data(&self, before: &BTreeSet<RoaPayload>) -> Vec<u8> {
        let mut bytes = header(self.version, 3, self.session, &[]);
        for gone in before.difference(&self.payloads) {
            bytes.extend(self.prefix(gone, 0));
        }
        for new in self.payloads.difference(before) {
            bytes.extend(self.prefix(new, 1));
        }
        let mut body = self.serial.to_be_bytes().to_vec();
        if self.version == 1 {
            body.extend([3600_u32, 60, 7200].map(u32::to_be_bytes).concat());
        }
        bytes.extend(header(self.version, 7, self.session, &body));
        bytes
    }

    fn notify(&self) -> Vec<u8> {
        header(self.version, 0, self.session, &self.serial.to_be_bytes())
    }

    /// Its answer to the bytes of one question.
    fn answer(&self, query: &[u8]) -> Vec<u8> {
        let [version, kind, high, low, ..] = query else { panic!("{query:?}") };
        if *version > self.version {
            // As older caches do.
            return header(self.version, 10, 4, &[0, 0, 0, 0, 0, 0, 0, 0]);
        }
        match kind {
            2 => self.data(&BTreeSet::new()),
            1 => {
                let session = u16::from_be_bytes([*high, *low]);
                let serial = u32::from_be_bytes(query[8..12].try_into().unwrap());
                if session != self.session && self.is_strict {
                    return header(self.version, 10, 0, &[0, 0, 0, 0, 0, 0, 0, 0]);
                }
                let known = self.history.get(&serial).filter(|_| session == self.session);
                if (session, serial) == (self.session, self.serial) {
                    return self.data(&self.payloads);
                }
                known.map_or_else(|| header(self.version, 8, 0, &[]), |it| self.data(it))
            }
            10 => Vec::new(),
            other => panic!("{other}"),
        }
    }
}

struct Lab {
    now: Instant,
    cache: Cache,
    table: Payloads,
    server: Server,
    reports: Vec<Report>,
    /// How many changes there were.
    changes: usize,
    is_reachable: bool,
    is_connected: bool,
    to_router: Vec<u8>,
}

impl Lab {
    fn new(version: u8) -> Self {
        Self {
            now: Instant::ZERO,
            cache: Cache::new(Instant::ZERO),
            table: Payloads::default(),
            server: Server::new(version),
            reports: Vec::new(),
            changes: 0,
            is_reachable: true,
            is_connected: false,
            to_router: Vec::new(),
        }
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.cache.poll_action() {
            match action {
                Action::Connect if self.is_reachable => {
                    self.is_connected = true;
                    self.to_router.clear();
                    self.cache.handle(self.now, Event::Connected);
                }
                Action::Connect => {
                    self.cache.handle(self.now, Event::Closed("the connection ended"))
                }
                Action::Send(bytes) => self.to_router.extend(self.server.answer(&bytes)),
                Action::Close => {
                    self.is_connected = false;
                    self.to_router.clear();
                }
                Action::Changed(changes) => {
                    self.changes += changes.len();
                    self.table.apply(&changes);
                }
                Action::Report(report) => self.reports.push(report),
            }
        }
    }

    /// Delivers at most so many octets.
    fn deliver(&mut self, count: usize) {
        let count = count.min(self.to_router.len());
        let bytes: Vec<u8> = self.to_router.drain(..count).collect();
        if self.is_connected && !bytes.is_empty() {
            self.cache.handle(self.now, Event::Received(&bytes));
        }
        self.carry_out();
    }

    fn pass(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
        self.deliver_all();
        while let Some(deadline) = self.cache.next_deadline().filter(|it| *it <= end) {
            self.now = self.now.max(deadline);
            self.cache.handle(self.now, Event::Tick);
            self.carry_out();
            self.deliver_all();
        }
        self.now = end;
    }

    fn deliver_all(&mut self) {
        while !self.to_router.is_empty() {
            self.deliver(7);
        }
    }

    fn lose(&mut self) {
        if std::mem::take(&mut self.is_connected) {
            self.to_router.clear();
            self.cache.handle(self.now, Event::Closed("the connection ended"));
            self.carry_out();
        }
    }

    fn expect_same(&self, what: &str) {
        assert_eq!(self.cache.payloads, self.server.payloads, "{what}");
        assert_eq!(self.table.table().len(), self.server.payloads.len(), "{what}");
    }
}

//= RFC 8210 §7 MUST: each connection begins with a Reset Query or a Serial Query.
//= RFC 8210 §7 MUST: an answer in version 0 is followed by version 0, or by the end.
#[test]
fn a_cache_says_all_and_then_what_changes() {
    for version in [1, 0] {
        let mut lab = Lab::new(version);
        lab.server.change([payload(1, 65_010), payload(2, 65_020)].into());
        lab.pass(1);
        lab.expect_same("all");
        assert_eq!(lab.reports.last(), Some(&Report::Synchronized(2)));
        let before = lab.changes;
        lab.server.change([payload(1, 65_010), payload(3, 65_030)].into());
        lab.to_router.extend(lab.server.notify());
        lab.deliver(99);
        lab.pass(2);
        lab.expect_same("a change that was notified");
        assert_eq!(lab.changes - before, 2, "only what differs is a change");
        let prefix = "10.3.7.0/24".parse().unwrap();
        assert_eq!(lab.table.table().state(prefix, Some(65_030)), OriginValidation::Valid);
        assert_eq!(u8::from(lab.cache.version == Version::One), version);
    }
}

#[test]
fn a_cache_that_starts_again_with_the_same_data_changes_nothing() {
    for is_strict in [false, true] {
        let mut lab = Lab::new(1);
        lab.server.is_strict = is_strict;
        lab.server.change([payload(1, 65_010), payload(2, 65_020)].into());
        lab.pass(1);
        let before = lab.changes;
        lab.server.session = 8;
        lab.server.serial = 1;
        lab.server.history.clear();
        lab.lose();
        lab.pass(20);
        lab.expect_same("after its restart");
        assert_eq!(lab.cache.known.map(|known| known.session), Some(8));
        assert_eq!(lab.changes, before);
    }
}

//= RFC 8210 §5.1 MUST: an answer with another session ends the connection with error 0.
#[test]
fn an_answer_of_another_session_is_no_answer() {
    let mut lab = Lab::new(1);
    lab.server.change([payload(1, 65_010)].into());
    lab.pass(1);
    lab.lose();
    lab.cache.handle(lab.now + Duration::from_secs(5), Event::Tick);
    assert_eq!(lab.cache.poll_action(), Some(Action::Connect));
    lab.cache.handle(lab.now, Event::Connected);
    lab.cache.handle(lab.now, Event::Received(&header(1, 3, 8, &[])));
    let sent: Vec<Action> = std::iter::from_fn(|| lab.cache.poll_action()).collect();
    let report = sent.iter().find_map(|it| match it {
        Action::Send(bytes) if bytes.starts_with(&[1, 10, 0, 0]) => Some(bytes),
        _ => None,
    });
    assert!(report.is_some() && sent.contains(&Action::Close), "{sent:?}");
}

#[test]
fn what_is_notified_while_an_answer_is_read_is_asked_for_after_it() {
    let mut lab = Lab::new(1);
    lab.server.change([payload(1, 65_010)].into());
    lab.cache.handle(lab.now, Event::Tick);
    lab.carry_out();
    lab.deliver(20);
    lab.server.change([payload(2, 65_020)].into());
    // The answer is that of before; the notification is in it.
    let (first, rest) = (lab.to_router.clone(), lab.server.notify());
    let end = first.len() - 24;
    lab.to_router = [&first[..end], &rest, &first[end..]].concat();
    lab.pass(3);
    lab.expect_same("seconds later");
}

#[test]
fn data_that_expires_while_changes_are_read_is_not_those_changes_alone() {
    let mut lab = Lab::new(1);
    lab.server.change([payload(1, 65_010)].into());
    lab.pass(1);
    lab.lose();
    // It is asked for changes shortly before the time is over, and answers shortly after.
    lab.now = Instant::ZERO + Duration::from_secs(7_199);
    lab.server.change([payload(1, 65_010), payload(2, 65_020)].into());
    lab.cache.handle(lab.now, Event::Tick);
    lab.carry_out();
    assert_eq!(lab.cache.connection, Connection::Asked { all: false });
    lab.now = Instant::ZERO + Duration::from_secs(7_201);
    lab.cache.handle(lab.now, Event::Tick);
    lab.deliver_all();
    lab.pass(60);
    lab.expect_same("all of it, and not the difference");
}

/// A cache whose changes make no sense is asked for all, and its data is too old some day.
#[test]
fn what_may_be_wrong_does_not_stay_forever() {
    let mut lab = Lab::new(1);
    lab.server.change([payload(1, 65_010)].into());
    lab.pass(1);
    let twice = lab.server.data(&BTreeSet::new());
    lab.to_router.extend(lab.server.notify());
    lab.cache.handle(lab.now, Event::Tick);
    lab.cache.ask(lab.now);
    lab.cache.handle(lab.now, Event::Received(&twice));
    lab.carry_out();
    assert!(!lab.is_connected, "it said a payload that it had said");
    lab.is_reachable = false;
    lab.pass(7_300);
    assert!(lab.table.table().is_empty());
}

//= RFC 8210 §6 MUST NOT: data is used for longer than its expire interval.
#[test]
fn a_cache_that_is_away_keeps_its_data_for_its_expire_time() {
    let mut lab = Lab::new(1);
    lab.server.change([payload(1, 65_010)].into());
    lab.pass(1);
    lab.is_reachable = false;
    lab.lose();
    lab.pass(7_100);
    lab.expect_same("before the time is over");
    lab.pass(200);
    assert!(lab.table.table().is_empty());
    assert!(lab.reports.contains(&Report::Expired), "{:?}", lab.reports);
    let failures = lab.reports.iter().filter(|it| matches!(it, Report::Failed(_))).count();
    assert_eq!(failures, 1, "one that is away is reported once");
    lab.is_reachable = true;
    lab.pass(700);
    lab.expect_same("when it is back");
}

#[test]
fn what_cannot_be_read_is_reported_and_ends_the_connection() {
    let mut lab = Lab::new(1);
    lab.server.change([payload(1, 65_010)].into());
    lab.pass(1);
    for bytes in [
        header(1, 99, 0, &[]),
        header(2, 3, 7, &[]),
        // A length that is none of its type, one below the header's, and one above all bounds.
        header(1, 4, 0, &[1, 16]),
        vec![1, 3, 0, 7, 0, 0, 0, 4],
        vec![1, 10, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF],
        // A prefix longer than its longest, and a payload that nothing asked for.
        header(1, 4, 0, &[1, 24, 16, 0, 10, 0, 0, 0, 0, 0, 0, 1]),
        header(1, 4, 0, &[1, 16, 24, 0, 10, 9, 0, 0, 0, 0, 0, 1]),
    ] {
        assert!(lab.is_connected);
        lab.to_router.extend(&bytes);
        lab.deliver(999);
        assert!(!lab.is_connected, "{bytes:?}");
        lab.expect_same("what was known stays");
        lab.pass(100);
    }
}

#[test]
fn data_is_asked_for_again_while_it_lasts_whatever_the_cache_says() {
    let day = 86_400;
    let timing = Timing { refresh_seconds: day, retry_seconds: day, expire_seconds: 0 };
    let Timing { refresh_seconds, retry_seconds, expire_seconds } = bounded(timing);
    assert_eq!((refresh_seconds, retry_seconds, expire_seconds), (300, 300, 600));
}

/// `FAIRWAY_SEED` replays one history, `FAIRWAY_SEEDS` says how many there are.
#[test]
fn after_any_history_the_router_knows_what_the_cache_says() {
    let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let first = number("FAIRWAY_SEED").unwrap_or(1);
    for seed in first..first + number("FAIRWAY_SEEDS").unwrap_or(2_000) {
        let mut rng = Rng::seeded(seed);
        let mut below = |bound: u64| usize::try_from(rng.next_u64() % bound).unwrap();
        let mut lab = Lab::new(u8::try_from(below(2)).unwrap());
        lab.server.is_strict = below(2) == 0;
        for _ in 0..60 {
            match below(9) {
                0..3 => {
                    let mut payloads = lab.server.payloads.clone();
                    for _ in 0..below(4) {
                        let number = u8::try_from(below(6)).unwrap();
                        let one = payload(number, 65_000 + u32::try_from(below(2)).unwrap());
                        if !payloads.remove(&one) {
                            payloads.insert(one);
                        }
                    }
                    lab.server.change(payloads);
                    if lab.is_connected {
                        // Behind what is on its way.
                        lab.to_router.extend(lab.server.notify());
                    }
                }
                3 => lab.lose(),
                4 => {
                    // It starts again, and knows no numbers of before.
                    lab.server.session = lab.server.session.wrapping_add(1);
                    lab.server.serial = u32::try_from(below(3)).unwrap();
                    lab.server.history.clear();
                    lab.lose();
                }
                5 => lab.is_reachable = below(3) > 0,
                6 => lab.server.history.clear(),
                7 => lab.deliver(below(40)),
                _ => {
                    let seconds = [1, 61, 700][below(3)];
                    lab.pass(seconds);
                }
            }
        }
        lab.is_reachable = true;
        lab.pass(4_000);
        lab.expect_same(&format!("seed {seed}"));
    }
}

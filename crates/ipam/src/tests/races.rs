//! Two processes at one object, in the order that once was, or would be, fatal: each goes as many calls as it is told.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use crate::claim::ReleaseIf;
use crate::gateway::Edges;
use crate::tests::pool::pool;
use crate::tests::schedules::{Contents, ShakyStore};
use crate::{
    AddressRequest, Addressing, Affinity, AffinityState, Attributes, Block, Facts, FamilyRequest,
    IpamError, Key, MemoryStore, Moment, Object, Owner, Selection, Store, StoreError, Use, Version,
    Versioned,
};

/// Lets a process make so many calls. Returns whether it has ended.
fn go<T>(process: &mut Pin<Box<dyn Future<Output = T> + '_>>, calls: usize) -> Option<T> {
    let mut context = Context::from_waker(Waker::noop());
    // The first poll stands before the first call.
    for _ in 0..=calls {
        if let Poll::Ready(value) = process.as_mut().poll(&mut context) {
            return Some(value);
        }
    }
    None
}

fn to_end<T>(mut process: Pin<Box<dyn Future<Output = T> + '_>>) -> T {
    go(&mut process, 100_000).expect("it ends")
}

fn facts() -> Facts {
    let mut pool = pool("v4", "10.0.0.0/28");
    pool.block_length = 30;
    let nodes = ["a", "b"].map(|it| (it.to_owned(), BTreeMap::new())).into();
    Facts { pools: vec![pool], nodes, ..Facts::default() }
}

fn request(host: &str, handle: &str) -> AddressRequest {
    AddressRequest {
        host: host.to_owned(),
        attributes: Attributes { handle: Some(handle.to_owned()), ..Attributes::default() },
        ipv4: FamilyRequest { count: 1, ..FamilyRequest::default() },
        ipv6: FamilyRequest::default(),
        purpose: Some(Use::Workload),
        namespace: None,
        blocks_max: None,
        per_handle_max: None,
        is_windows: false,
        is_first: false,
        edges: Edges::Given,
    }
}

fn owner() -> Owner {
    Owner::Host("a".to_owned())
}

/// A store in which node `a` has an empty block.
fn store(state: AffinityState) -> ShakyStore {
    let prefix = "10.0.0.0/30".parse().unwrap();
    let now = Moment::from_nanoseconds(1);
    let block = Block::new(prefix, owner(), now, None).unwrap();
    let affinity = Affinity { owner: owner(), prefix, state };
    let objects = [Object::Block(block), Object::Affinity(affinity)];
    ShakyStore::new(MemoryStore::new(objects), 0, 0)
}

fn addressing<'a>(store: &'a ShakyStore, facts: &'a Facts) -> Addressing<'a, ShakyStore> {
    Addressing { store, facts, now: Moment::from_nanoseconds(1_000_000_000_000) }
}

/// How many addresses the handle has by its own count, and by the blocks.
fn counts(store: &ShakyStore, handle: &str) -> (u32, usize) {
    let (mut counted, mut held) = (0, 0);
    for object in store.inner.objects() {
        match object {
            Object::Handle(it) if it.id == handle => counted += it.counts.values().sum::<u32>(),
            Object::Block(it) => held += it.addresses_of(handle).count(),
            _ => {}
        }
    }
    (counted, held)
}

#[test]
fn a_release_of_a_handle_stops_an_assignment_that_has_counted_but_not_written() {
    for calls in 0..12 {
        let (store, facts) = (store(AffinityState::Confirmed), facts());
        let it = addressing(&store, &facts);
        let (request, mut got) = (request("a", "x"), Vec::new());
        let mut assignment: Pin<Box<dyn Future<Output = _>>> =
            Box::pin(it.assign_families(&request, &mut got));
        if go(&mut assignment, calls).is_some() {
            break;
        }
        _ = to_end(Box::pin(it.release_handle("x")));
        to_end(assignment).unwrap();
        let (counted, held) = counts(&store, "x");
        assert_eq!((counted, held), (1, 1), "released after {calls} calls of the assignment");
    }
}

#[test]
fn a_handle_is_not_corrected_under_an_assignment_that_is_about_to_be_written() {
    for calls in 0..12 {
        let (store, facts) = (store(AffinityState::Confirmed), facts());
        let it = addressing(&store, &facts);
        let (request, mut got) = (request("a", "x"), Vec::new());
        let mut assignment: Pin<Box<dyn Future<Output = _>>> =
            Box::pin(it.assign_families(&request, &mut got));
        if go(&mut assignment, calls).is_some() {
            break;
        }
        let read = to_end(Box::pin(crate::store::handle(&store, "x"))).unwrap();
        if let Some(read) = read {
            let prefixes = read.value.counts.keys().copied().collect();
            let version = read.version.clone();
            let recount = it.recount_handle(read.value, Some(&version), &prefixes);
            _ = to_end(Box::pin(recount));
        }
        to_end(assignment).unwrap();
        assert_eq!(counts(&store, "x"), (1, 1), "corrected after {calls} calls of the assignment");
    }
}

#[test]
fn what_one_handle_has_counted_is_not_taken_from_the_next_of_its_name() {
    for (i, j) in (0..10).flat_map(|i| (0..8).map(move |j| (i, j))) {
        let (store, facts) = (store(AffinityState::Confirmed), facts());
        let it = addressing(&store, &facts);
        let (request, mut got) = (request("a", "x"), Vec::new());
        let mut first: Pin<Box<dyn Future<Output = _>>> =
            Box::pin(it.assign_families(&request, &mut got));
        let mut has_ended = go(&mut first, i).is_some();
        let mut release: Pin<Box<dyn Future<Output = _>>> = Box::pin(it.release_handle("x"));
        let is_released = go(&mut release, j).is_some();
        let mut second = Vec::new();
        to_end(Box::pin(it.assign_families(&request, &mut second))).unwrap();
        while !has_ended {
            has_ended = go(&mut first, 0).is_some();
        }
        if !is_released {
            _ = to_end(release);
        }
        let (counted, held) = counts(&store, "x");
        assert_eq!(counted as usize, held, "after {i} and {j} calls");
    }
}

#[test]
fn an_owner_that_uses_a_block_that_is_being_given_up_keeps_it() {
    for calls in 0..12 {
        let (store, facts) = (store(AffinityState::Confirmed), facts());
        let it = addressing(&store, &facts);
        let prefix = "10.0.0.0/30".parse().unwrap();
        let of_a = owner();
        let mut release: Pin<Box<dyn Future<Output = _>>> =
            Box::pin(it.give_up(&of_a, prefix, ReleaseIf::Empty));
        if go(&mut release, calls).is_some() {
            break;
        }
        let (request, mut got) = (request("a", "x"), Vec::new());
        to_end(Box::pin(it.assign_families(&request, &mut got))).unwrap();
        to_end(release).unwrap();
        assert_eq!(counts(&store, "x"), (1, 1));
        let states = store.inner.objects().into_iter().filter_map(|it| match it {
            Object::Affinity(it) => Some(it.state),
            _ => None,
        });
        assert_eq!(states.collect::<Vec<_>>(), [AffinityState::Confirmed], "after {calls} calls");
    }
}

#[test]
fn a_claim_and_a_release_in_any_order_leave_no_affinity_without_its_block() {
    let states = [
        None,
        Some(AffinityState::Pending),
        Some(AffinityState::Confirmed),
        Some(AffinityState::PendingDeletion),
    ];
    let orders = (0..8).flat_map(|i| (0..8).flat_map(move |j| (0..8).map(move |k| (i, j, k))));
    for (state, (i, j, k)) in
        states.iter().flat_map(|it| orders.clone().map(move |order| (it, order)))
    {
        let store = match state {
            Some(state) => store(*state),
            None => ShakyStore::new(MemoryStore::default(), 0, 0),
        };
        let facts = facts();
        let it = addressing(&store, &facts);
        let prefix = "10.0.0.0/30".parse().unwrap();
        let of_a = owner();
        let mut release: Pin<Box<dyn Future<Output = _>>> =
            Box::pin(it.give_up(&of_a, prefix, ReleaseIf::Empty));
        let mut claim: Pin<Box<dyn Future<Output = _>>> = Box::pin(it.claim(&of_a, prefix, None));
        let mut has_ended = (false, false);
        for (calls, is_release) in [(i, true), (j, false), (k, true), (100, false), (100, true)] {
            for _ in 0..=calls {
                match is_release {
                    true if !has_ended.0 => has_ended.0 = go(&mut release, 0).is_some(),
                    false if !has_ended.1 => has_ended.1 = go(&mut claim, 0).is_some(),
                    _ => {}
                }
                let contents = Contents::new(store.inner.objects());
                if let Err(fault) = contents.check_always(&BTreeMap::new()) {
                    panic!("{state:?}, {i} {j} {k}: {fault}");
                }
            }
        }
        assert_eq!(has_ended, (true, true));
    }
}

#[test]
fn a_block_that_is_claimed_again_is_not_deleted_by_a_release_from_before() {
    let (store, facts) = (store(AffinityState::PendingDeletion), facts());
    let it = addressing(&store, &facts);
    let prefix = "10.0.0.0/30".parse().unwrap();
    let of_a = owner();
    // It has read the affinity and the block, and marked the affinity: the block is next.
    let mut release: Pin<Box<dyn Future<Output = _>>> =
        Box::pin(it.give_up(&of_a, prefix, ReleaseIf::Empty));
    assert!(go(&mut release, 2).is_none());
    let claimed = to_end(Box::pin(it.claim(&of_a, prefix, None)));
    assert!(matches!(claimed, Ok(crate::claim::Claim::Ours(_))));
    let block =
        |store: &ShakyStore| store.inner.objects().iter().any(|it| matches!(it, Object::Block(_)));
    assert!(go(&mut release, 0).is_none());
    assert!(block(&store), "the release meets another block than it has read, and looks again");
}

#[test]
fn pods_that_ask_at_once_share_the_write_of_a_block() {
    let mut pool = pool("v4", "10.0.0.0/20");
    pool.block_length = 22;
    let mut ipv6 = crate::tests::pool::pool("v6", "fd00::/112");
    ipv6.block_length = 118;
    let facts = Facts {
        pools: vec![pool, ipv6],
        nodes: [("a".to_owned(), BTreeMap::new())].into(),
        ..Facts::default()
    };
    let store = ShakyStore::new(MemoryStore::default(), 0, 0);
    let it = addressing(&store, &facts);
    let both = |handle: &str| AddressRequest {
        ipv6: FamilyRequest { count: 1, ..FamilyRequest::default() },
        ..request("a", handle)
    };
    to_end(Box::pin(it.assign_together(&[both("first")])));
    let writes = store.inner.writes();
    let alone = to_end(Box::pin(it.assign_together(&[both("alone")])));
    assert_eq!((alone[0].got.len(), alone[0].error.as_ref()), (2, None));
    assert_eq!(store.inner.writes() - writes, 3, "its handle, and a block of each family");
    let writes = store.inner.writes();
    let requests: Vec<AddressRequest> = (0..500).map(|it| both(&format!("pod-{it}"))).collect();
    let answers = to_end(Box::pin(it.assign_together(&requests)));
    assert!(answers.iter().all(|it| it.got.len() == 2 && it.error.is_none()));
    assert_eq!(store.inner.writes() - writes, 502);
}

/// A store that makes the first block that is written without an answer, and finds that somebody else has written the second.
#[derive(Default)]
struct HalfAnswering {
    inner: MemoryStore,
    block_writes: AtomicU32,
}

impl Store for HalfAnswering {
    async fn get(&self, key: &Key) -> Result<Option<Versioned<Object>>, StoreError> {
        self.inner.get(key).await
    }

    async fn list(&self, selection: &Selection) -> Result<Vec<Versioned<Object>>, StoreError> {
        self.inner.list(selection).await
    }

    async fn write(
        &self,
        object: Object,
        expected: Option<&Version>,
    ) -> Result<Version, StoreError> {
        let is_assignment =
            matches!(&object, Object::Block(block) if block.taken().next().is_some());
        match is_assignment.then(|| self.block_writes.fetch_add(1, Ordering::Relaxed)) {
            Some(0) => {
                self.inner.write(object, expected).await?;
                Err(StoreError::Unavailable("no answer".to_owned()))
            }
            Some(1) => Err(StoreError::Conflict),
            _ => self.inner.write(object, expected).await,
        }
    }

    async fn delete(&self, key: &Key, expected: &Version) -> Result<(), StoreError> {
        self.inner.delete(key, expected).await
    }
}

#[test]
fn a_block_without_an_answer_ends_a_request_whatever_becomes_of_the_next() {
    let facts = Facts {
        pools: vec![pool("v4", "10.0.0.0/20"), pool("v6", "fd00::/112")],
        nodes: [("a".to_owned(), BTreeMap::new())].into(),
        ..Facts::default()
    };
    let store = HalfAnswering::default();
    let now = Moment::from_nanoseconds(1_000_000_000_000);
    let it = Addressing { store: &store, facts: &facts, now };
    // Blocks of both families are there.
    for prefix in ["10.0.0.0/26", "fd00::/122"] {
        to_end(Box::pin(it.claim(&owner(), prefix.parse().unwrap(), None))).unwrap();
    }
    let both = AddressRequest {
        ipv6: FamilyRequest { count: 1, ..FamilyRequest::default() },
        ..request("a", "h")
    };
    let answers = to_end(Box::pin(it.assign_together(&[both])));
    assert!(
        matches!(answers[0].error, Some(IpamError::Store(StoreError::Unavailable(_)))),
        "{answers:?}"
    );
    let taken: usize = store
        .inner
        .objects()
        .iter()
        .map(|it| match it {
            Object::Block(block) => block.taken().count(),
            _ => 0,
        })
        .sum();
    assert_eq!(taken, 1, "no second address beside the one that nobody has heard of");
}

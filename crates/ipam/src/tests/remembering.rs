//! A node that remembers its blocks: how many requests its Pods cost, and what it does where its memory is wrong.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};

use crate::cni::{CniError, Code, Invocation, PodNotes, Request, answer_together};
use crate::tests::pool::pool;
use crate::{
    Addressing, Affinity, AffinityState, Facts, Key, MemoryStore, Moment, Object, Owner,
    RememberedStore, Selection, Store, StoreError, Version, Versioned,
};

/// A store that counts what it is asked for, and fails where it is told to.
#[derive(Default)]
pub(super) struct CountingStore {
    inner: MemoryStore,
    calls: Mutex<Vec<&'static str>>,
    /// So many calls are served before one fails; 0 for none that fails.
    fails_after: AtomicU32,
}

impl CountingStore {
    fn note(&self, call: &'static str) -> Result<(), StoreError> {
        self.calls.lock().unwrap().push(call);
        match self.fails_after.load(Ordering::Relaxed) {
            0 => Ok(()),
            1 => Err(StoreError::Unavailable("of the test".to_owned())),
            left => {
                self.fails_after.store(left - 1, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    pub(super) fn inner(&self) -> &MemoryStore {
        &self.inner
    }

    pub(super) fn take_calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }
}

impl Store for CountingStore {
    async fn get(&self, key: &Key) -> Result<Option<Versioned<Object>>, StoreError> {
        self.note("get")?;
        self.inner.get(key).await
    }

    async fn list(&self, selection: &Selection) -> Result<Vec<Versioned<Object>>, StoreError> {
        self.note("list")?;
        self.inner.list(selection).await
    }

    async fn write(
        &self,
        object: Object,
        expected: Option<&Version>,
    ) -> Result<Version, StoreError> {
        self.note("write")?;
        self.inner.write(object, expected).await
    }

    async fn delete(&self, key: &Key, expected: &Version) -> Result<(), StoreError> {
        self.note("delete")?;
        self.inner.delete(key, expected).await
    }
}

type Remembered = RememberedStore<CountingStore>;

/// What is done at once by a store that answers at once.
pub(super) fn done<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the store has not answered"),
    }
}

fn facts() -> Facts {
    let nodes = ["a", "b"].map(|it| (it.to_owned(), BTreeMap::new())).into();
    let pools = vec![pool("v4", "10.0.0.0/20"), pool("v6", "fd00::/112")];
    Facts { pools, nodes, ..Facts::default() }
}

/// Node `a`, whose watch has told everything, and that has listed all blocks once.
fn node() -> Remembered {
    let store = RememberedStore::new(CountingStore::default(), "a");
    store.affinities_are([]);
    done(store.list(&Selection::Blocks)).unwrap();
    store.inner().take_calls();
    store
}

pub(super) fn call(command: &str, container: &str) -> Invocation<'static> {
    let ipam = br#"{"cniVersion": "1.1.0", "name": "net", "ipam": {"assign_ipv6": "true"}}"#;
    Invocation {
        command: Some(command.to_owned()),
        container_id: Some(container.to_owned()),
        netns: Some("/proc/1/ns/net".to_owned()),
        interface: Some("eth0".to_owned()),
        args: None,
        stdin: ipam,
    }
}

fn answers(store: &impl Store, calls: &[Invocation<'_>]) -> Vec<Result<Option<Value>, CniError>> {
    let facts = facts();
    let now = Moment::from_nanoseconds(1_000_000_000_000);
    let addressing = Addressing { store, facts: &facts, now };
    let requests: Vec<_> = calls.iter().map(Request::parse).collect();
    done(answer_together(&addressing, &requests, "a", |_| PodNotes::default()))
}

fn addresses(answer: &Result<Option<Value>, CniError>) -> Vec<String> {
    let answer = answer.as_ref().unwrap().as_ref().unwrap();
    let ips = answer["ips"].as_array().unwrap();
    ips.iter().map(|it| it["address"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_lone_pod_costs_a_request_for_its_handle_and_one_for_each_family() {
    let store = node();
    answers(&store, &[call("ADD", "first")]);
    let calls = store.inner().take_calls();
    assert!(calls.len() <= 15 && !calls.contains(&"list"), "two blocks are made: {calls:?}");
    assert_eq!(addresses(&answers(&store, &[call("ADD", "c")])[0]).len(), 2);
    assert_eq!(store.inner().take_calls(), ["write"; 3]);
    assert!(answers(&store, &[call("DEL", "c")])[0].is_ok());
    // A handle of an earlier release is looked for.
    assert_eq!(store.inner().take_calls(), ["write", "write", "delete", "get"]);
}

#[test]
fn many_pods_at_once_share_the_writes_of_blocks() {
    let store = node();
    let named: Vec<String> = (0..50).map(|it| format!("c{it}")).collect();
    answers(&store, &[call("ADD", "first")]);
    store.inner().take_calls();
    let adds: Vec<_> = named.iter().map(|it| call("ADD", it)).collect();
    let mut given: Vec<String> = answers(&store, &adds).iter().flat_map(addresses).collect();
    assert_eq!(store.inner().take_calls(), ["write"; 52]);
    given.sort_unstable();
    given.dedup();
    assert_eq!(given.len(), 100);
    let dels: Vec<_> = named.iter().map(|it| call("DEL", it)).collect();
    assert!(answers(&store, &dels).iter().all(Result::is_ok));
    let calls = store.inner().take_calls();
    let writes = calls.iter().filter(|it| **it == "write").count();
    assert_eq!(
        (writes, calls.len()),
        (2, 102),
        "two blocks, the handles, and a look for each earlier one"
    );
}

/// As they come from a runtime that starts 50 at a time: the next ones wait while a batch is written.
#[test]
fn five_hundred_pods_cost_few_requests_besides_their_handles() {
    let store = node();
    for batch in 0..42 {
        let named: Vec<String> = (0..12).map(|it| format!("c{batch}-{it}")).collect();
        let adds: Vec<_> = named.iter().map(|it| call("ADD", it)).collect();
        assert!(answers(&store, &adds).iter().all(Result::is_ok));
        keep_stock_after(&store, &adds[0]);
    }
    let calls = store.inner().take_calls();
    let of = |kind: &str| calls.iter().filter(|it| **it == kind).count();
    assert_eq!((of("list"), of("delete")), (0, 0));
    // 504 handles, two blocks for each batch, and what 16 new blocks and the batches that run into them take.
    assert!(of("write") + of("get") <= 680, "{} and {}", of("write"), of("get"));
}

fn keep_stock_after(store: &impl Store, add: &Invocation<'_>) {
    let facts = facts();
    let now = Moment::from_nanoseconds(1_000_000_000_000);
    let addressing = Addressing { store, facts: &facts, now };
    done(crate::cni::keep_stock(&addressing, &Request::parse(add).unwrap(), "a")).unwrap();
}

#[test]
fn a_container_that_is_asked_for_again_keeps_its_addresses_also_beside_new_ones() {
    let store = node();
    let first = answers(&store, &[call("ADD", "c")]);
    // The daemon has started again since.
    let objects = store.inner().inner.objects();
    let inner = CountingStore { inner: MemoryStore::new(objects), ..CountingStore::default() };
    let store = RememberedStore::new(inner, "a");
    let again = answers(&store, &[call("ADD", "new"), call("ADD", "c")]);
    assert_eq!(addresses(&again[1]), addresses(&first[0]));
    assert_ne!(addresses(&again[0]), addresses(&first[0]));
    let next = answers(&store, &[call("ADD", "next")]);
    let last = |answer: &Result<Option<Value>, CniError>| -> u8 {
        let first = addresses(answer).swap_remove(0);
        first.split(['.', '/']).nth(3).unwrap().parse().unwrap()
    };
    // What was planned for the container that has its addresses already is the next to be given.
    assert_eq!((last(&again[0]), last(&next[0])), (last(&first[0]) + 1, last(&first[0]) + 2));
}

#[test]
fn a_block_that_another_has_taken_meanwhile_is_noticed_by_the_write() {
    let store = node();
    let gone = answers(&store, &[call("ADD", "c"), call("DEL", "d")]);
    assert!(gone.iter().all(Result::is_ok));
    answers(&store, &[call("DEL", "c")]);
    // Another node takes the empty blocks, and this one's watch is late.
    let direct = &store.inner().inner;
    for it in direct.versioned() {
        done(direct.delete(&it.value.key(), &it.version)).unwrap();
    }
    let prefix = "10.0.0.0/26".parse().unwrap();
    let now = Moment::from_nanoseconds(1);
    let owner = Owner::Host("b".to_owned());
    for object in [
        Object::Block(crate::Block::new(prefix, owner.clone(), now, None).unwrap()),
        Object::Affinity(Affinity {
            owner: owner.clone(),
            prefix,
            state: AffinityState::Confirmed,
        }),
    ] {
        done(direct.write(object, None)).unwrap();
    }
    let given = addresses(&answers(&store, &[call("ADD", "e")])[0]);
    let block = done(direct.get(&Key::Block(prefix))).unwrap().unwrap();
    let Object::Block(block) = block.value else { panic!("no block") };
    assert_eq!((block.owner(), block.is_empty()), (Some(&owner), true), "{given:?}");
}

#[test]
fn a_delete_that_the_store_does_not_serve_fails_and_is_repeated_until_nothing_is_left() {
    // Each call of a DEL fails once.
    for calls in 1..8 {
        let store = node();
        answers(&store, &[call("ADD", "c")]);
        store.inner().fails_after.store(calls, Ordering::Relaxed);
        let failed = answers(&store, &[call("DEL", "c")]);
        let has_failed = store.inner().fails_after.load(Ordering::Relaxed) == 1;
        store.inner().fails_after.store(0, Ordering::Relaxed);
        if has_failed && calls < 5 {
            let error = failed[0].as_ref().expect_err("it is to be repeated");
            assert_eq!(error.code, Code::Unavailable, "{error} after {calls} calls");
        }
        assert!(answers(&store, &[call("DEL", "c")])[0].is_ok());
        let objects = store.inner().inner.objects();
        let is_left = |it: &Object| match it {
            Object::Block(it) => !it.is_empty(),
            Object::Handle(_) => true,
            Object::Affinity(_) => false,
        };
        assert!(!objects.iter().any(is_left), "after {calls} calls: {objects:?}");
    }
}

#[test]
fn a_late_watch_does_not_undo_what_the_node_has_written() {
    let store = node();
    answers(&store, &[call("ADD", "c")]);
    let (_, now) = store.own().unwrap();
    assert!(now.iter().all(|it| it.state == AffinityState::Confirmed) && now.len() == 2);
    let first = &now[0];
    let pending = Affinity { state: AffinityState::Pending, ..first.clone() };
    let version = Version { object: "1".to_owned(), state: "0".to_owned() };
    store.affinity_is(Versioned { value: pending, version: version.clone() });
    store.affinity_is_gone(
        &first.owner,
        first.prefix,
        &Version { object: "0".to_owned(), ..version },
    );
    assert_eq!(store.own().unwrap().1, now);
}

#[test]
fn what_others_have_is_not_claimed_without_a_list() {
    let store = node();
    let others = (0..63).map(|it| {
        let owner = Owner::Host(format!("n{it}"));
        let prefix = format!("10.0.{}.{}/26", it / 4, it % 4 * 64).parse().unwrap();
        let value = Affinity { owner, prefix, state: AffinityState::Confirmed };
        let version = Version { object: it.to_string(), state: it.to_string() };
        Versioned { value, version }
    });
    store.affinities_are(others);
    let given = addresses(&answers(&store, &[call("ADD", "c")])[0]);
    assert_eq!(given[0], "10.0.15.192/26");
    assert!(!store.inner().take_calls().contains(&"list"));
    assert_eq!(json!(given[1].ends_with("/122")), json!(true));
}

/// The prefixes that node `a` announces.
fn announced(store: &Remembered) -> Vec<String> {
    let (blocks, affinities) = store.own().unwrap();
    let routes = crate::routes("a", blocks.iter(), affinities.iter(), &facts());
    routes.announced.iter().map(ToString::to_string).collect()
}

#[test]
fn a_store_that_is_away_withdraws_no_route() {
    let store = node();
    answers(&store, &[call("ADD", "c")]);
    let own = announced(&store);
    // An address of another node's block, too.
    let prefix = "10.0.8.0/26".parse().unwrap();
    let owner = Owner::Host("b".to_owned());
    let now = Moment::from_nanoseconds(1);
    let mut block = crate::Block::new(prefix, owner, now, None).unwrap();
    let secondary = [("node".to_owned(), "a".to_owned())].into();
    let attributes = crate::Attributes { secondary, ..crate::Attributes::default() };
    block.assign_address("10.0.8.7".parse().unwrap(), &attributes).unwrap();
    done(store.inner().inner.write(Object::Block(block), None)).unwrap();
    done(store.list(&Selection::Blocks)).unwrap();
    let all = announced(&store);
    assert_eq!(all.len(), own.len() + 1);
    store.inner().fails_after.store(1, Ordering::Relaxed);
    assert!(answers(&store, &[call("DEL", "c")])[0].is_err());
    assert!(done(store.refresh()).is_err());
    assert_eq!(announced(&store), all);
    store.inner().fails_after.store(0, Ordering::Relaxed);
    done(store.refresh()).unwrap();
    assert_eq!(announced(&store), all);
    assert!(answers(&store, &[call("DEL", "c")])[0].is_ok());
}

/// calico-ipam claims a block for the node while the daemon runs, as it may while a cluster is taken over.
#[test]
fn a_block_that_another_process_of_the_node_claims_is_announced() {
    for is_listed_again in [false, true] {
        let store = node();
        answers(&store, &[call("ADD", "own")]);
        let prefix: fairway_ground::Prefix = "10.0.8.0/26".parse().unwrap();
        let owner = Owner::Host("a".to_owned());
        let block = crate::Block::new(prefix, owner.clone(), Moment::from_nanoseconds(1), None);
        done(store.inner().inner.write(Object::Block(block.unwrap()), None)).unwrap();
        let value = Affinity { owner, prefix, state: AffinityState::Confirmed };
        let written = store.inner().inner.write(Object::Affinity(value.clone()), None);
        let affinity = Versioned { value, version: done(written).unwrap() };
        match is_listed_again {
            false => store.affinity_is(affinity),
            true => store.affinities_are([affinity]),
        }
        assert!(
            !announced(&store).contains(&prefix.to_string()),
            "it is not known what the block is"
        );
        store.inner().take_calls();
        store.inner().fails_after.store(1, Ordering::Relaxed);
        assert!(done(store.settle()).is_err());
        store.inner().fails_after.store(0, Ordering::Relaxed);
        done(store.settle()).unwrap();
        assert!(announced(&store).contains(&prefix.to_string()));
        assert_eq!(store.inner().take_calls(), ["get", "get"]);
        done(store.settle()).unwrap();
        assert_eq!(store.inner().take_calls(), [""; 0], "what is known is not asked for");
    }
}

#[test]
fn a_list_that_fails_at_the_start_is_made_up_for() {
    let store = RememberedStore::new(CountingStore::default(), "a");
    store.affinities_are([]);
    store.inner().fails_after.store(1, Ordering::Relaxed);
    assert!(done(store.refresh()).is_err() && store.own().is_none());
    store.inner().fails_after.store(0, Ordering::Relaxed);
    done(store.refresh()).unwrap();
    assert!(store.own().is_some());
}

#[test]
fn garbage_is_collected_without_a_question_about_other_nodes() {
    let store = node();
    answers(&store, &[call("ADD", "c1"), call("ADD", "c2")]);
    for it in 0..100 {
        let counts = [("10.0.9.0/26".parse().unwrap(), 1)].into();
        let handle = crate::Handle { id: format!("net.other{it}"), counts };
        done(store.inner().inner.write(Object::Handle(handle), None)).unwrap();
    }
    store.inner().take_calls();
    let stdin = br#"{"cniVersion": "1.1.0", "name": "net",
        "cni.dev/valid-attachments": [{"containerID": "c1", "ifname": "eth0"}]}"#;
    let collect = Invocation { stdin, ..call("GC", "") };
    assert!(answers(&store, &[collect])[0].is_ok());
    assert_eq!(store.inner().take_calls(), ["write", "write", "delete"]);
}

#[test]
fn a_deletion_of_one_interface_leaves_the_other_whatever_cannot_be_read() {
    for calls in 1..6 {
        let store = node();
        let second = Invocation { interface: Some("eth1".to_owned()), ..call("ADD", "c") };
        let first = answers(&store, &[call("ADD", "c")]);
        assert!(answers(&store, std::slice::from_ref(&second))[0].is_ok());
        // The daemon has started again, and the store does not answer each question.
        let inner = CountingStore {
            inner: MemoryStore::new(store.inner().inner.objects()),
            ..CountingStore::default()
        };
        let store = RememberedStore::new(inner, "a");
        store.inner().fails_after.store(calls, Ordering::Relaxed);
        let delete = Invocation { command: Some("DEL".to_owned()), ..second };
        _ = answers(&store, &[delete]);
        store.inner().fails_after.store(0, Ordering::Relaxed);
        assert_eq!(addresses(&answers(&store, &[call("ADD", "c")])[0]), addresses(&first[0]));
    }
}

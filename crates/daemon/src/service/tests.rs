//! A watchdog signal needs both: the main loop, and the BGP core. The hanging parts are mocks here, since
//! real ones cannot be made to hang.

use std::pin::Pin;
use std::sync::mpsc::{Receiver, sync_channel};

use fairway_ground::PeerKey;
use fairway_model::Node;
use fairway_plan as plan;
use fairway_seam::{BackendError, Clear, ClearError, ClearFuture, Desired, Leave, ViewFuture};
use tokio::time::timeout;

use super::*;

/// Watchdog signals are due every 10 ms.
const WATCHDOG: Duration = Duration::from_millis(40);
/// Time for many of them.
const WHILE: Duration = Duration::from_millis(400);

/// Answers this often, and then no more.
struct Core(std::sync::Mutex<u32>);

impl Backend for Core {
    fn apply(&self, _: Desired) {}

    fn view(&self, _: ViewScope) -> ViewFuture<'_> {
        let mut answers = self.0.lock().unwrap();
        *answers = answers.saturating_sub(1);
        let is_alive = *answers > 0;
        Box::pin(async move {
            if !is_alive {
                std::future::pending::<()>().await;
            }
            Ok::<_, BackendError>(BgpView::default())
        })
    }

    fn changed(&self, _: u64) -> Pin<Box<dyn Future<Output = u64> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    fn clear(&self, _: PeerKey, _: Clear) -> ClearFuture<'_> {
        Box::pin(async { Err(ClearError::NoSuchPeer) })
    }

    fn withdrawn(&self, _: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    fn stopped(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    fn shutdown(&self, _: Leave) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {})
    }
}

/// Watchdog signals of a daemon with a main loop and a core that answer this often, and the state of its
/// start.
async fn signs_of_life(of_loop: usize, of_core: u32) -> (usize, bool) {
    let node = Node::assumed("node-a", Vec::new());
    let enquirer = Enquirer::hearing(Published {
        router_id: plan::router_id(&node),
        node,
        index: Arc::default(),
        outcomes: Default::default(),
        plan: Default::default(),
        layer2: None,
        members: None,
        health: Default::default(),
        is_reading: true,
        drain: Default::default(),
        history: Default::default(),
        findings: Vec::new(),
        stale: Vec::new(),
        sources: Vec::new(),
        outage: None,
    });
    let (messages, said) = sync_channel(1000);
    let (ask, questions) = mpsc::channel(1);
    let notifier = Notifier::into(messages);
    let attendant = Attendant {
        ask,
        enquirer,
        backend: Arc::new(Core(std::sync::Mutex::new(of_core))),
        watchdog: Some(WATCHDOG),
        notifier: notifier.clone(),
        said: Said::default(),
    };
    let mut service = Service { notifier: Some(notifier), questions, sources_have_spoken: true };
    let answering = async {
        for _ in 0..of_loop {
            service.answer().await;
        }
        std::future::pending::<()>().await;
    };
    let _ = timeout(WHILE, async { tokio::join!(attendant.run(), answering) }).await;
    let words: Vec<Word> = said.try_iter().flat_map(|message| message.words).collect();
    let count = words.iter().filter(|word| **word == Word::Watchdog).count();
    (count, words.contains(&Word::Ready))
}

#[tokio::test]
async fn a_daemon_that_answers_lives() {
    let (signs, is_ready) = signs_of_life(usize::MAX, u32::MAX).await;
    assert!(signs > 5 && is_ready, "{signs} signs of life, ready: {is_ready}");
}

#[tokio::test]
async fn a_core_that_hangs_gives_no_sign_of_life() {
    assert_eq!(signs_of_life(usize::MAX, 1).await, (0, false));
    assert!(signs_of_life(usize::MAX, 3).await.0 <= 2);
}

#[tokio::test]
async fn a_main_loop_that_hangs_gives_no_sign_of_life() {
    assert_eq!(signs_of_life(0, u32::MAX).await, (0, false));
    assert!(signs_of_life(2, u32::MAX).await.0 <= 2);
}

/// A service that says farewell into this queue.
fn leaving() -> (impl Future<Output = ()>, Receiver<notifier::Message>) {
    let (messages, queue) = sync_channel(1);
    let (_ask, questions) = mpsc::channel(1);
    let notifier = Some(Notifier::into(messages));
    let service = Service { notifier, questions, sources_have_spoken: true };
    (service.leaving(), queue)
}

#[tokio::test]
async fn the_end_waits_until_the_service_manager_is_told() {
    let (told, queue) = leaving();
    tokio::pin!(told);
    let message = queue.recv().unwrap();
    assert!(message.words.contains(&Word::Stopping), "{message:?}");
    tokio::select! {
        biased;
        () = &mut told => panic!("the message is not sent yet"),
        () = tokio::task::yield_now() => {}
    }
    drop(message);
    told.await;
}

#[tokio::test]
async fn a_service_manager_that_does_not_read_does_not_keep_the_daemon() {
    let (told, _queue) = leaving();
    timeout(Duration::from_secs(30), told).await.expect("the daemon waits for a bounded time");
}

//! Daemons that are down, that hang, and that answer as FRR did.

use std::path::PathBuf;
use std::time::Duration;

use fairway_ground::{Asn, RemoteAs, RouterId};
use fairway_seam::PeerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::*;

fn desired() -> Arc<Desired> {
    let asn = |number| Asn::new(number).unwrap();
    let router_id: RouterId = "10.0.0.1".parse().unwrap();
    let key = PeerKey::from("10.1.1.2".parse::<std::net::IpAddr>().unwrap());
    let peer = PeerConfig::new(key, asn(65_001), RemoteAs::Asn(asn(65_010)), router_id);
    Arc::new(Desired { peers: vec![peer], generation: 3, ..Desired::default() })
}

fn recorded(question: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/answers/10.3/steady.txt");
    let text = std::fs::read_to_string(folder).unwrap();
    let mut answers = text.split("=== ").filter_map(|it| it.split_once('\n'));
    let answer = answers.find(|(it, _)| *it == question).map_or("% Unknown command", |it| it.1);
    let status = if answer.starts_with('%') { 2 } else { 0 };
    [answer.as_bytes(), &[0, 0, 0, status]].concat()
}

/// Replays FRR's answers in order, and counts the questions.
async fn answer(mut stream: UnixStream, questions: Arc<std::sync::Mutex<Vec<String>>>) {
    let (mut question, mut byte) = (Vec::new(), [0]);
    while stream.read_exact(&mut byte).await.is_ok() {
        if byte != [0] {
            question.extend(byte);
            continue;
        }
        let line = String::from_utf8(std::mem::take(&mut question)).unwrap();
        let reply = if line.starts_with("show") { recorded(&line) } else { vec![0; 4] };
        questions.lock().unwrap().push(line);
        if stream.write_all(&reply).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn without_frr_all_neighbours_are_idle_and_the_fault_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let observer = Observer::start(folder.path(), watch::channel(None).1);
    let view = observer.view(&desired(), ViewScope::EVERYTHING).await.unwrap();
    assert_eq!((view.generation, view.peers.len()), (3, 1));
    assert_eq!(view.peers[0].state, SessionState::Idle);
    let [fault] = view.faults.as_slice() else { panic!("{:?}", view.faults) };
    assert!(fault.starts_with("bgpd of FRR") && fault.contains("bgpd.vty"), "{fault}");
    let key = view.peers[0].config.key;
    let soft = observer.clear(&desired(), key, Clear::Soft).await;
    assert_eq!(soft, Err(ClearError::NotEstablished));
    let hard = observer.clear(&desired(), key, Clear::Hard).await;
    assert_eq!(hard, Err(ClearError::Backend(BackendError::Stopped)));
}

#[tokio::test]
async fn a_daemon_that_hangs_is_a_fault_after_two_seconds_for_all_who_ask() {
    let folder = tempfile::tempdir().unwrap();
    // Nothing accepts, and the kernel completes every connection.
    let _listener = UnixListener::bind(folder.path().join(BGPD)).unwrap();
    let observer = Observer::start(folder.path(), watch::channel(None).1);
    let begun = Instant::now();
    let desired = desired();
    let ask = || observer.view(&desired, ViewScope::SESSIONS);
    let (one, other, third) = tokio::join!(ask(), ask(), ask());
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    for view in [one, other, third] {
        let faults = view.unwrap().faults;
        assert!(faults.iter().any(|it| it.contains("bgpd") && it.contains("2 s")), "{faults:?}");
    }
}

#[tokio::test]
async fn what_frr_says_is_the_view_and_a_restart_is_bridged() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join(BGPD);
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let serve = |listener: UnixListener| {
        let asked = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut conversations = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                conversations.spawn(answer(stream, Arc::clone(&asked)));
            }
        })
    };
    let daemon = serve(UnixListener::bind(&socket).unwrap());
    let observer = Observer::start(folder.path(), watch::channel(None).1);
    let view = observer.view(&desired(), ViewScope::EVERYTHING).await.unwrap();
    assert_eq!(view.peers[0].state, SessionState::Established);
    assert_eq!(view.peers[0].advertised.len(), 2);
    assert_eq!(view.faults, Vec::<String>::new());

    daemon.abort();
    let _ = daemon.await;
    std::fs::remove_file(&socket).unwrap();
    let daemon = serve(UnixListener::bind(&socket).unwrap());
    let view = observer.view(&desired(), ViewScope::SESSIONS).await.unwrap();
    assert_eq!(view.peers[0].state, SessionState::Established, "{:?}", view.faults);

    let key = view.peers[0].config.key;
    observer.clear(&desired(), key, Clear::SoftIn).await.unwrap();
    let last = asked.lock().unwrap().iter().rev().find(|it| it.starts_with("clear")).cloned();
    assert_eq!(last.as_deref(), Some("clear bgp ipv4 unicast 10.1.1.2 soft in"));
    daemon.abort();
}

#[tokio::test]
async fn whoever_waits_hears_of_frr_going_and_of_what_was_applied() {
    let folder = tempfile::tempdir().unwrap();
    let observer = Observer::start(folder.path(), watch::channel(None).1);
    let first = observer.changed(0).await;
    let patience = Duration::from_secs(10);
    observer.applied();
    let second = tokio::time::timeout(patience, observer.changed(first)).await.unwrap();
    assert!(second > first);
    // The daemon starts to answer.
    let listener = UnixListener::bind(folder.path().join(BGPD)).unwrap();
    let asked = Arc::default();
    let daemon = tokio::spawn(async move {
        let mut conversations = tokio::task::JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            conversations.spawn(answer(stream, Arc::clone(&asked)));
        }
    });
    tokio::time::timeout(patience, observer.changed(second)).await.unwrap();
    daemon.abort();
}

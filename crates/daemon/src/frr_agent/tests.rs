//! An agent between clients and mock daemons.

use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tempfile::TempDir;

use super::*;

struct Stage {
    root: TempDir,
    agent: Agent,
}

impl Stage {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let agent = Agent::new(Options {
            frr_socket_dir: root.path().join("frr"),
            socket_dir: root.path().join("shared"),
            socket_mode: SocketMode::Group,
        });
        Self { root, agent }
    }

    fn daemon(&self, name: &str) -> StdListener {
        let folder = self.root.path().join("frr");
        fs::create_dir_all(&folder).unwrap();
        StdListener::bind(folder.join(name)).unwrap()
    }

    fn shared(&self, name: &str) -> PathBuf {
        self.root.path().join("shared").join(name)
    }

    fn client(&self, name: &str) -> StdStream {
        let client = StdStream::connect(self.shared(name)).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        client
    }
}

/// Both ends, one of them in a thread of its own, while the agent runs beside them.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

fn accepted(daemon: &StdListener) -> StdStream {
    let (stream, _) = daemon.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

fn all_of(mut stream: impl Read) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    all
}

#[tokio::test]
async fn what_is_said_arrives_both_ways_and_the_end_does_too() {
    let mut stage = Stage::new();
    let daemon = stage.daemon("bgpd.vty");
    stage.agent.look().unwrap();
    let mut client = stage.client("bgpd.vty");
    // Larger than a buffer, so that it is sent in parts.
    let long = vec![b'x'; 300_000];
    let expected = long.clone();
    beside(move || {
        let mut far = accepted(&daemon);
        client.write_all(b"show version\0").unwrap();
        let mut command = [0; 13];
        far.read_exact(&mut command).unwrap();
        assert_eq!(&command, b"show version\0");
        let answering = std::thread::spawn(move || far.write_all(&long).map(|()| drop(far)));
        assert_eq!(all_of(client), expected);
        answering.join().unwrap().unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_client_that_has_asked_its_last_question_still_hears_the_answer() {
    let mut stage = Stage::new();
    let daemon = stage.daemon("bgpd.vty");
    stage.agent.look().unwrap();
    let mut client = stage.client("bgpd.vty");
    beside(move || {
        let far = accepted(&daemon);
        client.write_all(b"quit\0").unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(all_of(&far), b"quit\0");
        (&far).write_all(b"bye").unwrap();
        drop(far);
        assert_eq!(all_of(client), b"bye");
    })
    .await;
}

#[tokio::test]
async fn a_descriptor_is_passed_on_with_its_bytes() {
    let mut stage = Stage::new();
    let daemon = stage.daemon("zebra.vty");
    stage.agent.look().unwrap();
    let client = stage.client("zebra.vty");
    beside(move || {
        let far = accepted(&daemon);
        let (mut log, theirs) = StdStream::pair().unwrap();
        let passed = [theirs.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&passed)));
        let parts = [IoSlice::new(b"\0\0\0\0")];
        assert_eq!(sendmsg(far.as_fd(), &parts, &mut control, SendFlags::empty()), Ok(4));
        drop(theirs);

        let mut bytes = [0; 16];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let got = recvmsg(client.as_fd(), &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC);
        assert_eq!(got.unwrap().bytes, 4);
        let mut descriptors = control.drain().filter_map(|it| match it {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let descriptor = descriptors.next().unwrap().next().unwrap();
        log.write_all(b"a line of the log").unwrap();
        // There is no other copy, so closing it is noticed.
        drop(log);
        assert_eq!(all_of(StdStream::from(descriptor)), b"a line of the log");
    })
    .await;
}

#[tokio::test]
async fn where_no_daemon_answers_the_client_is_hung_up_on() {
    let mut stage = Stage::new();
    let daemon = stage.daemon("bgpd.vty");
    stage.agent.look().unwrap();
    // As a killed daemon leaves it behind.
    drop(daemon);
    let client = stage.client("bgpd.vty");
    assert_eq!(beside(move || all_of(client)).await, b"");

    fs::remove_file(stage.root.path().join("frr/bgpd.vty")).unwrap();
    let daemon = stage.daemon("bgpd.vty");
    stage.agent.look().unwrap();
    let client = stage.client("bgpd.vty");
    beside(move || {
        accepted(&daemon).write_all(b"back").unwrap();
        assert_eq!(all_of(client), b"back");
    })
    .await;
}

#[tokio::test]
async fn sockets_come_and_go_with_those_of_frr() {
    let mut stage = Stage::new();
    stage.agent.look().unwrap();
    assert!(!stage.shared("bgpd.vty").exists(), "FRR is not there yet");
    let _bgpd = stage.daemon("bgpd.vty");
    let _other = stage.daemon("zserv.api");
    fs::write(stage.root.path().join("frr/notes.vty"), "no socket").unwrap();
    // Left behind by an agent that was killed.
    fs::create_dir(stage.root.path().join("shared")).unwrap();
    drop(StdListener::bind(stage.shared("bgpd.vty")).unwrap());
    stage.agent.look().unwrap();
    let names = sockets(&stage.root.path().join("shared")).unwrap();
    assert_eq!(names, BTreeSet::from(["bgpd.vty".to_owned()]));
    assert!(!stage.shared("zserv.api").exists());
    fs::remove_file(stage.root.path().join("frr/bgpd.vty")).unwrap();
    stage.agent.look().unwrap();
    assert!(!stage.shared("bgpd.vty").exists());
}

#[tokio::test]
async fn who_opens_too_many_connections_waits_and_others_go_on() {
    let mut stage = Stage::new();
    let (bgpd, bfdd) = (stage.daemon("bgpd.vty"), stage.daemon("bfdd.vty"));
    stage.agent.look().unwrap();
    let mut clients: Vec<_> = (0..=CONNECTIONS_MAX).map(|_| stage.client("bgpd.vty")).collect();
    let other = stage.client("bfdd.vty");
    beside(move || {
        let mut far: Vec<_> = (0..CONNECTIONS_MAX).map(|_| accepted(&bgpd)).collect();
        accepted(&bfdd).write_all(b"here").unwrap();
        assert_eq!(all_of(other), b"here");
        bgpd.set_nonblocking(true).unwrap();
        assert!(bgpd.accept().is_err(), "one more than may be");
        bgpd.set_nonblocking(false).unwrap();
        // It is served once another one ends.
        far.clear();
        drop(accepted(&bgpd));
        assert_eq!(all_of(clients.pop().unwrap()), b"");
    })
    .await;
}

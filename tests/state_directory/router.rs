//! A router with graceful restart that writes down what it hears. Its bytes are written by hand, so
//! that a fault of our codec cannot agree with itself.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::PATIENCE;

const OPEN: u8 = 1;
const UPDATE: u8 = 2;
const NOTIFICATION: u8 = 3;
const KEEPALIVE: u8 = 4;

/// AS 65002, hold time 90 s, 192.0.2.2; IPv4 unicast, four octets of AS, and graceful restart with N
/// and 120 s, without routes of its own.
const CAPABILITIES: [u8; 16] = [1, 4, 0, 1, 0, 1, 65, 4, 0, 0, 0xFD, 0xEA, 64, 2, 0x40, 120];

/// What ended a session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The stream ended, and nothing was said.
    Quiet,
    /// Code and subcode.
    Notification(u8, u8),
}

/// A listening router.
pub(crate) struct Router {
    listener: TcpListener,
}

/// One session, and what was heard in it.
pub(crate) struct Session {
    stream: TcpStream,
    /// Flags of the graceful restart capability: R is 0x80, N is 0x40.
    pub(crate) restart_flags: u8,
    /// Flags of its first family: F is 0x80.
    pub(crate) family_flags: u8,
    /// UPDATEs, the empty one being End-of-RIB of IPv4.
    updates: Vec<Vec<u8>>,
}

impl Router {
    pub(crate) fn listen() -> Self {
        // One below those that the system gives to others; see `port` of the resources.
        let address = |port| SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), port));
        let first = 6_000 + u16::try_from(std::process::id() % 6_000).unwrap();
        let listener = (first..16_000).find_map(|port| TcpListener::bind(address(port)).ok());
        Self { listener: listener.unwrap() }
    }

    pub(crate) fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    /// The next session that comes up.
    pub(crate) fn session(&self) -> Session {
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut session =
            Session { stream, restart_flags: 0, family_flags: 0, updates: Vec::new() };
        let (kind, open) = session.message().expect("an OPEN");
        assert_eq!(kind, OPEN);
        let position = open.windows(2).position(|it| it[0] == 64 && it[1] >= 6);
        let position = position.expect("graceful restart is offered");
        (session.restart_flags, session.family_flags) = (open[position + 2], open[position + 7]);
        let mut body = vec![4, 0xFD, 0xEA, 0, 90, 192, 0, 2, 2];
        body.extend([u8::try_from(CAPABILITIES.len()).unwrap() + 2, 2]);
        body.push(u8::try_from(CAPABILITIES.len()).unwrap());
        body.extend(CAPABILITIES);
        session.say(OPEN, &body);
        session.say(KEEPALIVE, &[]);
        session
    }
}

impl Session {
    fn say(&mut self, kind: u8, body: &[u8]) {
        let length = u16::try_from(19 + body.len()).unwrap().to_be_bytes();
        let message = [&[0xFF; 16][..], &length, &[kind], body].concat();
        self.stream.write_all(&message).unwrap();
    }

    /// `None` at the end of the stream.
    fn message(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut header = [0; 19];
        self.stream.read_exact(&mut header).ok()?;
        let length = usize::from(u16::from_be_bytes([header[16], header[17]]));
        let mut body = vec![0; length - 19];
        self.stream.read_exact(&mut body).unwrap();
        Some((header[18], body))
    }

    /// Waits until the host route to `address` was announced, and says whether End-of-RIB came
    /// before it.
    pub(crate) fn wait_for_route(&mut self, address: [u8; 4]) -> bool {
        let announces = |update: &Vec<u8>| host_routes(update).any(|it| it == address);
        self.wait_until(|updates| updates.iter().any(announces));
        let marker = self.updates.iter().position(|it| is_marker(it));
        marker.is_some_and(|marker| Some(marker) < self.updates.iter().position(announces))
    }

    /// Waits for End-of-RIB.
    pub(crate) fn wait_for_end_of_rib(&mut self) {
        self.wait_until(|updates| updates.iter().any(|it| is_marker(it)));
    }

    /// Whether End-of-RIB was not sent for `time` from now.
    #[allow(clippy::disallowed_methods, reason = "a real daemon lives in real time")]
    pub(crate) fn misses_end_of_rib(&mut self, time: Duration) -> bool {
        let start = Instant::now();
        while start.elapsed() < time {
            let left = time.saturating_sub(start.elapsed()).max(Duration::from_millis(1));
            self.stream.set_read_timeout(Some(left)).unwrap();
            // Nothing is under way on loopback but whole messages.
            if let Some((UPDATE, body)) = self.message() {
                self.updates.push(body);
            }
        }
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        !self.updates.iter().any(|it| is_marker(it))
    }

    #[allow(clippy::disallowed_methods, reason = "a real daemon lives in real time")]
    fn wait_until(&mut self, done: impl Fn(&[Vec<u8>]) -> bool) {
        let start = Instant::now();
        while !done(&self.updates) {
            assert!(start.elapsed() < PATIENCE, "heard only {:?}", self.updates);
            match self.message() {
                Some((UPDATE, body)) => self.updates.push(body),
                Some((KEEPALIVE, _)) => {}
                other => panic!("expected an UPDATE, got {other:?} after {:?}", self.updates),
            }
        }
    }

    /// Hears the session out.
    pub(crate) fn end(mut self) -> End {
        loop {
            match self.message() {
                None => return End::Quiet,
                Some((NOTIFICATION, body)) => return End::Notification(body[0], body[1]),
                Some(_) => {}
            }
        }
    }
}

fn is_marker(update: &[u8]) -> bool {
    update == [0; 4]
}

/// The host routes that an UPDATE of IPv4 announces, which has no others.
fn host_routes(update: &[u8]) -> impl Iterator<Item = &[u8]> {
    let length = |at: usize| usize::from(u16::from_be_bytes([update[at], update[at + 1]]));
    let withdrawn = length(0);
    let routes = &update[4 + withdrawn + length(2 + withdrawn)..];
    routes.chunks_exact(5).map(|route| &route[1..])
}

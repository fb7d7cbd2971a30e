//! Long connections and a stream of datagrams, which notice every loss.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::node::LIMIT;
use lab::namespace::Namespace;
use lab::wait::now;

/// Between two datagrams.
const PACE: Duration = Duration::from_millis(50);

/// See the module.
pub(super) struct Flows {
    connections: Vec<TcpStream>,
    stream: Option<JoinHandle<()>>,
    ends: Arc<AtomicBool>,
    /// The longest time without an answer.
    gap: Arc<Mutex<Duration>>,
}

impl Flows {
    /// Opens so many connections to an echo server, and a stream of datagrams.
    pub(super) fn open(from: &Namespace, count: usize, tcp: &str, udp: &str) -> Result<Self> {
        let (tcp, udp): (SocketAddr, SocketAddr) = (tcp.parse()?, udp.parse()?);
        let mut connections = Vec::new();
        let socket = from.enter(|| {
            for _ in 0..count {
                let stream = TcpStream::connect_timeout(&tcp, LIMIT)?;
                stream.set_read_timeout(Some(LIMIT))?;
                stream.set_nodelay(true)?;
                connections.push(stream);
            }
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            socket.connect(udp)?;
            socket.set_read_timeout(Some(PACE))?;
            Ok(socket)
        })?;
        let (ends, gap) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Duration>>::default());
        let (told_to_end, longest) = (Arc::clone(&ends), Arc::clone(&gap));
        let stream = std::thread::spawn(move || {
            let mut answered_at = now();
            let mut buffer = [0; 64];
            while !told_to_end.load(Ordering::Relaxed) {
                let _ = socket.send(b"?");
                if socket.recv(&mut buffer).is_ok() {
                    let mut longest = longest.lock().unwrap_or_else(PoisonError::into_inner);
                    *longest = answered_at.elapsed().max(*longest);
                    answered_at = now();
                    drop(longest);
                    std::thread::park_timeout(PACE);
                }
            }
        });
        Ok(Self { connections, stream: Some(stream), ends, gap })
    }

    /// Every connection still echoes.
    pub(super) fn check(&mut self, when: &str) -> Result<()> {
        let count = self.connections.len();
        for (connection, number) in self.connections.iter_mut().zip(1..) {
            let mut echo = || {
                connection.write_all(b"echo")?;
                let mut buffer = [0; 4];
                connection.read_exact(&mut buffer)?;
                Ok::<_, std::io::Error>(buffer)
            };
            let echoed =
                echo().with_context(|| format!("{when}: connection {number} of {count}"))?;
            ensure!(&echoed == b"echo", "{when}: connection {number} echoes {echoed:?}");
        }
        Ok(())
    }

    /// The longest time without an answer to a datagram since the last call.
    pub(super) fn take_gap(&self) -> Duration {
        std::mem::take(&mut *self.gap.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Flows {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(stream) = self.stream.take() {
            let _ = stream.join();
        }
    }
}

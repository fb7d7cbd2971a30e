//! The neighbours of FRR: listeners with addresses of their own that accept a session, keep it alive and count the
//! routes that they receive. They announce nothing and look at no attribute. Their bytes are written by hand, so that
//! the codec of Fairway is no part of the measurement. Called by [`crate::starts`].

use std::collections::HashSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use lab::namespace::Namespace;

/// The AS of all neighbours.
pub(crate) const ASN: u16 = 65_010;

const PORT: u16 = 179;
const HOLD_TIME_SECONDS: u16 = 90;
const HEADER_BYTES: usize = 19;

const OPEN: u8 = 1;
const UPDATE: u8 = 2;
const NOTIFICATION: u8 = 3;
const KEEPALIVE: u8 = 4;

/// What happened to the session of a neighbour.
pub(crate) enum Event {
    /// FRR's first KEEPALIVE was received.
    Established,
    /// As many prefixes as expected were received.
    Complete,
    /// An established session has ended, with the reason.
    Lost(String),
}

/// The listening neighbours. They end with this value.
pub(crate) struct Sink {
    /// When it happened, and to which neighbour.
    pub(crate) events: Receiver<(Instant, usize, Event)>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Sink {
    /// Listens on each of the addresses; `routes` is the number of prefixes that each should receive.
    pub(crate) fn start(
        namespace: &Namespace,
        addresses: Vec<Ipv4Addr>,
        routes: usize,
    ) -> Result<Self> {
        let listen = || addresses.into_iter().map(listener).collect::<Result<Vec<_>>>();
        let listeners = namespace.enter(listen)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (sender, events) = channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                for (number, (address, listener)) in listeners.into_iter().enumerate() {
                    let events = sender.clone();
                    let neighbour = Neighbour { number, address, routes, events };
                    tokio::spawn(async move {
                        if let Err(error) = neighbour.accept(listener).await {
                            eprintln!("warning: {address} accepts nothing more: {error:#}");
                        }
                    });
                }
                // An error, too, is the end of the sink.
                let _ = stopped.await;
            });
        });
        Ok(Self { events, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

fn listener(address: Ipv4Addr) -> Result<(Ipv4Addr, TcpListener)> {
    let listener = TcpListener::bind((address, PORT));
    let listener = listener.with_context(|| format!("listening on {address}"))?;
    listener.set_nonblocking(true)?;
    Ok((address, listener))
}

#[derive(Clone)]
struct Neighbour {
    number: usize,
    address: Ipv4Addr,
    routes: usize,
    events: Sender<(Instant, usize, Event)>,
}

impl Neighbour {
    async fn accept(self, listener: TcpListener) -> Result<()> {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(self.clone().serve(stream));
        }
    }

    async fn serve(self, stream: TcpStream) {
        let mut is_established = false;
        let end = self.converse(stream, &mut is_established).await;
        if let Err(reason) = end
            && is_established
        {
            self.tell(Event::Lost(format!("{reason:#}")));
        }
    }

    /// Ends with the connection.
    async fn converse(&self, stream: TcpStream, is_established: &mut bool) -> Result<()> {
        let mut stream = BufReader::new(stream);
        let mut prefixes: HashSet<u64> = HashSet::new();
        let mut is_complete = false;
        loop {
            let (kind, body) = read(&mut stream).await?;
            match kind {
                OPEN => {
                    let answer = [open(self.address)?, message(KEEPALIVE, &[])?].concat();
                    stream.write_all(&answer).await?;
                }
                KEEPALIVE => {
                    if !*is_established {
                        *is_established = true;
                        self.tell(Event::Established);
                    }
                    stream.write_all(&message(KEEPALIVE, &[])?).await?;
                }
                UPDATE => {
                    update(&body, &mut prefixes)?;
                    if !is_complete && prefixes.len() >= self.routes {
                        is_complete = true;
                        self.tell(Event::Complete);
                    }
                }
                NOTIFICATION => bail!("NOTIFICATION, code and subcode {:?}", body.get(..2)),
                _ => {}
            }
        }
    }

    fn tell(&self, event: Event) {
        // At the end of a run nobody listens any more.
        let _ = self.events.send((Instant::now(), self.number, event));
    }
}

/// The type of the next message, and what follows its header.
async fn read(stream: &mut BufReader<TcpStream>) -> Result<(u8, Vec<u8>)> {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header).await.context("the connection has ended")?;
    let [.., high, low, kind] = header;
    let length = usize::from(u16::from_be_bytes([high, low]));
    let mut body = vec![0; length.checked_sub(HEADER_BYTES).context("a length below 19")?];
    stream.read_exact(&mut body).await.context("the connection has ended in a message")?;
    Ok((kind, body))
}

/// An OPEN with the capabilities IPv4 unicast, route refresh and four octets of AS.
fn open(router_id: Ipv4Addr) -> Result<Vec<u8>> {
    let mut capabilities = vec![1, 4, 0, 1, 0, 1, 2, 0, 65, 4];
    capabilities.extend(u32::from(ASN).to_be_bytes());
    let length = u8::try_from(capabilities.len()).context("many capabilities")?;
    let mut body = vec![4];
    body.extend(ASN.to_be_bytes());
    body.extend(HOLD_TIME_SECONDS.to_be_bytes());
    body.extend(router_id.octets());
    body.extend([length + 2, 2, length]);
    body.extend(capabilities);
    message(OPEN, &body)
}

fn message(kind: u8, body: &[u8]) -> Result<Vec<u8>> {
    let length = u16::try_from(HEADER_BYTES + body.len()).context("a long message")?;
    Ok([&[0xFF; 16][..], &length.to_be_bytes(), &[kind], body].concat())
}

/// Adds what an UPDATE announces, and takes away what it withdraws.
fn update(body: &[u8], prefixes: &mut HashSet<u64>) -> Result<()> {
    let (withdrawn, rest) = counted(body)?;
    let (_attributes, announced) = counted(rest)?;
    for prefix in prefixes_in(withdrawn)? {
        prefixes.remove(&prefix);
    }
    prefixes.extend(prefixes_in(announced)?);
    Ok(())
}

/// The octets that a length of two octets counts, and those behind them.
fn counted(octets: &[u8]) -> Result<(&[u8], &[u8])> {
    let (length, rest) = octets.split_first_chunk::<2>().context("an UPDATE without a length")?;
    let length = usize::from(u16::from_be_bytes(*length));
    rest.split_at_checked(length).context("an UPDATE that is cut short")
}

/// Each prefix as a number: its length, then its octets.
fn prefixes_in(mut octets: &[u8]) -> Result<Vec<u64>> {
    let mut prefixes = Vec::new();
    while let Some((length, rest)) = octets.split_first() {
        ensure!(*length <= 32, "an IPv4 prefix of length {length}");
        let (prefix, rest) = rest
            .split_at_checked(usize::from(length.div_ceil(8)))
            .context("a prefix that is cut short")?;
        let number = |number: u64, octet: &u8| (number << 8) | u64::from(*octet);
        prefixes.push(prefix.iter().fold(u64::from(*length), number));
        octets = rest;
    }
    Ok(prefixes)
}

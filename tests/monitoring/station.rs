//! A BMP station: it reads what it is sent, message by message, or nothing at all.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::{Context, Result};
use bgpkit_parser::models::BgpMessage;
use bgpkit_parser::parse_bmp_msg;
use bgpkit_parser::parser::bmp::messages::{
    BmpMessage, BmpMessageBody, BmpPeerType, PerPeerFlags, RouteMonitoring, TerminationTlvValue,
};
use lab::namespace::Namespace;

/// What one connection said, in words, and whether it has ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heard {
    pub(crate) lines: Vec<String>,
    pub(crate) has_ended: bool,
}

type Connections = Arc<Mutex<Vec<(Heard, TcpStream)>>>;

/// One that listens.
pub(crate) struct Station {
    pub(crate) port: u16,
    connections: Connections,
}

impl Station {
    /// A station that reads.
    pub(crate) fn start(node: &Namespace) -> Result<Self> {
        Self::listen(node, |connections, number, mut stream| {
            let read = read(&mut stream, connections, number);
            let mut connections = connections.lock().unwrap();
            if let Err(error) = read {
                connections[number].0.lines.push(format!("unreadable: {error:#}"));
            }
            connections[number].0.has_ended = true;
        })
    }

    /// A station that accepts connections and reads nothing.
    pub(crate) fn deaf(node: &Namespace) -> Result<Self> {
        Self::listen(node, |_, _, stream| {
            // Open, and unread, until the test ends.
            let _open = stream;
            loop {
                thread::park();
            }
        })
    }

    fn listen(node: &Namespace, serve: fn(&Connections, usize, TcpStream)) -> Result<Self> {
        let listener = node.enter(|| TcpListener::bind("127.0.0.1:0").context("a port"))?;
        let port = listener.local_addr()?.port();
        let connections = Connections::default();
        let known = Arc::clone(&connections);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Ok(copy) = stream.try_clone() else { continue };
                let number = {
                    let mut all = known.lock().unwrap();
                    all.push((Heard::default(), copy));
                    all.len() - 1
                };
                let known = Arc::clone(&known);
                thread::spawn(move || serve(&known, number, stream));
            }
        });
        Ok(Self { port, connections })
    }

    /// How many connections there were, and what the last one said.
    pub(crate) fn heard(&self) -> (usize, Heard) {
        let connections = self.connections.lock().unwrap();
        let last = connections.last().map(|(heard, _)| heard.clone());
        (connections.len(), last.unwrap_or_default())
    }

    /// Ends the present connection.
    pub(crate) fn hang_up(&self) -> Result<()> {
        let connections = self.connections.lock().unwrap();
        let (_, stream) = connections.last().context("no connection")?;
        stream.shutdown(std::net::Shutdown::Both).context("shutdown")
    }
}

fn read(stream: &mut TcpStream, connections: &Connections, number: usize) -> Result<()> {
    loop {
        let mut message = vec![0; 6];
        if stream.read(&mut message[..1])? == 0 {
            return Ok(());
        }
        stream.read_exact(&mut message[1..])?;
        let length = u32::from_be_bytes(message[1..5].try_into()?);
        message.resize(length.try_into()?, 0);
        stream.read_exact(&mut message[6..])?;
        let parsed = parse_bmp_msg(&mut message.into()).context("no message of BMP")?;
        let lines = words(&parsed);
        connections.lock().unwrap()[number].0.lines.extend(lines);
    }
}

/// A message in words: a line for each route.
fn words(message: &BmpMessage) -> Vec<String> {
    let peer = message.per_peer_header.as_ref();
    let table = peer.map_or("", |it| match (it.peer_type, it.peer_flags) {
        (BmpPeerType::LocalRib, _) => "loc-rib",
        (_, PerPeerFlags::PeerFlags(it)) if it.is_adj_rib_out() => "out",
        (_, PerPeerFlags::PeerFlags(it)) if it.is_post_policy() => "post",
        _ => "pre",
    });
    let from = peer.map_or(String::new(), |it| format!("{} AS {}", it.peer_ip, it.peer_asn));
    match &message.message_body {
        BmpMessageBody::InitiationMessage(it) => {
            let texts: Vec<_> = it.tlvs.iter().map(|it| it.info.as_str()).collect();
            vec![format!("initiation {}", texts.join(", "))]
        }
        BmpMessageBody::TerminationMessage(it) => it
            .tlvs
            .iter()
            .map(|it| match &it.info_value {
                TerminationTlvValue::Reason(reason) => format!("termination {reason:?}"),
                TerminationTlvValue::String(text) => format!("termination {text}"),
            })
            .collect(),
        BmpMessageBody::PeerUpNotification(it) => {
            let is_open = |message: &BgpMessage| matches!(message, BgpMessage::Open(_));
            let opens = is_open(&it.sent_open) && is_open(&it.received_open);
            let kind = if table == "loc-rib" { "loc-rib" } else { "peer" };
            vec![format!("{kind} up {from} at {} with both OPENs: {opens}", it.local_addr)]
        }
        BmpMessageBody::PeerDownNotification(it) => {
            vec![format!("peer down {from} {:?}", it.reason)]
        }
        BmpMessageBody::StatsReport(it) => {
            let all = it.counters.iter().map(|it| format!("{:?} {:?}", it.stat_type, it.stat_data));
            vec![format!("statistics {from} {}", all.collect::<Vec<_>>().join(", "))]
        }
        BmpMessageBody::RouteMonitoring(RouteMonitoring { bgp_message }) => {
            routes(table, bgp_message)
        }
        other => vec![format!("{other:?}")],
    }
}

fn routes(table: &str, message: &BgpMessage) -> Vec<String> {
    let BgpMessage::Update(update) = message else { return vec![format!("{message:?}")] };
    if update.is_end_of_rib() {
        return vec![format!("{table} end")];
    }
    let path = update.attributes.as_path().map(ToString::to_string).unwrap_or_default();
    let announced = update.announced_prefixes.iter().map(|it| format!("{table} {it} by [{path}]"));
    let withdrawn = update.withdrawn_prefixes.iter().map(|it| format!("{table} {it} withdrawn"));
    announced.chain(withdrawn).collect()
}

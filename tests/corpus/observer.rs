//! What does the second peer receive? It keeps it, and checks every attribute: what it gets has to be sane,
//! whatever the first peer has sent. Used by the trials.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

use crate::bytes::{
    EXTENDED, Open, PARTIAL, SEQUENCE, TRANSITIVE, WELL_KNOWN, four_octet_as, kind, multiprotocol,
    refreshes,
};
use crate::entry::{OBSERVER_AS, OUR_AS, hex};
use crate::speaker::{Heard, Speaker};

/// The attributes of a route as they came: type code, flags, value.
type Attributes = BTreeMap<u8, (u8, Vec<u8>)>;

/// The second peer.
#[derive(Debug)]
pub(crate) struct Observer {
    speaker: Speaker,
    routes: BTreeMap<String, Attributes>,
    next_hop: [u8; 4],
}

impl Observer {
    /// Brings its session up, as the speaker at `address`. It is external, and new; `next_hop` is the only one
    /// that it may receive.
    pub(crate) fn establish(
        mut speaker: Speaker,
        address: [u8; 4],
        next_hop: [u8; 4],
    ) -> Result<Self> {
        let families = [multiprotocol(1, 1), multiprotocol(2, 1)].concat();
        let capabilities = [refreshes(), families, four_octet_as(OBSERVER_AS.into())];
        let open = Open::new(OBSERVER_AS, address, &capabilities);
        speaker.establish(&open).context("the session of the second peer")?;
        Ok(Self { speaker, routes: BTreeMap::new(), next_hop })
    }

    /// The attributes that it knows `prefix` by.
    pub(crate) fn route(&self, prefix: &str) -> Option<&Attributes> {
        self.routes.get(prefix)
    }

    /// Reads until its routes satisfy `wanted`.
    pub(crate) fn wait_until(
        &mut self,
        expected: &str,
        wanted: impl Fn(&BTreeMap<String, Attributes>) -> bool,
    ) -> Result<()> {
        if wanted(&self.routes) {
            return Ok(());
        }
        let Self { speaker, routes, next_hop } = self;
        let outcome = speaker.listen_until(expected, |heard| {
            hear(routes, *next_hop, heard)?;
            Ok(wanted(routes).then_some(()))
        });
        outcome.with_context(|| format!("the second peer knows {:?}", self.routes.keys()))
    }

    /// Reads until the speaker under test has left.
    pub(crate) fn listen_to_the_end(&mut self) -> Result<()> {
        let Self { speaker, routes, next_hop } = self;
        speaker.listen_until("the end of the second session", |heard| {
            if *heard == Heard::End {
                return Ok(Some(()));
            }
            hear(routes, *next_hop, heard)?;
            Ok(None)
        })
    }
}

fn hear(routes: &mut BTreeMap<String, Attributes>, next_hop: [u8; 4], heard: &Heard) -> Result<()> {
    match heard {
        Heard::Message(kind::UPDATE, body) => update(routes, next_hop, body)
            .with_context(|| format!("the second peer was sent an UPDATE of {}", hex(body))),
        _ => Ok(()),
    }
}

/// Processes an UPDATE, and fails at everything that is not as it must be.
fn update(routes: &mut BTreeMap<String, Attributes>, next_hop: [u8; 4], body: &[u8]) -> Result<()> {
    let (withdrawn, rest) = counted(body).context("withdrawn routes")?;
    let (list, nlri) = counted(rest).context("attributes")?;
    for prefix in prefixes(withdrawn)? {
        routes.remove(&prefix);
    }
    let attributes = attributes(list)?;
    let announced = prefixes(nlri)?;
    if !announced.is_empty() {
        check(&attributes, next_hop)?;
    }
    for prefix in announced {
        routes.insert(prefix, attributes.clone());
    }
    Ok(())
}

/// A slice behind a length of two octets, and what follows it.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_at_checked(2)?;
    rest.split_at_checked(usize::from(u16::from_be_bytes([length[0], length[1]])))
}

fn prefixes(mut bytes: &[u8]) -> Result<Vec<String>> {
    let mut prefixes = Vec::new();
    while let [length, rest @ ..] = bytes {
        ensure!(*length <= 32, "a prefix of {length} bits");
        let octets = usize::from(length.div_ceil(8));
        let (front, rest) = rest.split_at_checked(octets).context("a prefix that is cut short")?;
        let mut address = [0; 4];
        address[..octets].copy_from_slice(front);
        prefixes.push(format!("{}/{length}", std::net::Ipv4Addr::from(address)));
        bytes = rest;
    }
    Ok(prefixes)
}

fn attributes(mut list: &[u8]) -> Result<Attributes> {
    let mut attributes = Attributes::new();
    while let [flags, code, rest @ ..] = list {
        let (value, behind) = match (flags & EXTENDED != 0, rest) {
            (true, rest) => counted(rest),
            (false, [length, rest @ ..]) => rest.split_at_checked(usize::from(*length)),
            (false, []) => None,
        }
        .with_context(|| format!("attribute {code} is cut short"))?;
        let before = attributes.insert(*code, (*flags, value.to_vec()));
        ensure!(before.is_none(), "attribute {code} came twice");
        list = behind;
    }
    ensure!(list.is_empty(), "a stray octet behind the attributes");
    Ok(attributes)
}

/// What an external peer may receive (RFC 4271 §5): nothing that is only for our own AS, nothing
/// malformed, and of unknown attributes only transitive ones, marked as such.
fn check(attributes: &Attributes, next_hop: [u8; 4]) -> Result<()> {
    for (code, (flags, value)) in attributes {
        let kind = flags & TRANSITIVE;
        let length = value.len();
        let sane = match code {
            1 => kind == WELL_KNOWN && matches!(value[..], [0..=2]),
            2 => kind == WELL_KNOWN && is_path(value),
            3 => kind == WELL_KNOWN && *value == next_hop,
            6 => kind == WELL_KNOWN && length == 0,
            7 => kind == TRANSITIVE && length == 8 && value[..4] != [0; 4],
            8 => kind == TRANSITIVE && length > 0 && length % 4 == 0,
            16 => kind == TRANSITIVE && length > 0 && length % 8 == 0,
            32 => kind == TRANSITIVE && length > 0 && length % 12 == 0,
            4 | 5 | 9 | 10 | 14 | 15 | 17 | 18 => false,
            _ => kind == TRANSITIVE && flags & PARTIAL != 0,
        };
        ensure!(sane, "attribute {code} (flags {flags:#04x}) is not for it: {}", hex(value));
    }
    for code in [1, 2, 3] {
        if !attributes.contains_key(&code) {
            bail!("attribute {code} is missing");
        }
    }
    Ok(())
}

/// Sequences of four-octet AS numbers, ours in front.
fn is_path(mut value: &[u8]) -> bool {
    let ours = u32::from(OUR_AS).to_be_bytes();
    if value.get(2..6) != Some(&ours) {
        return false;
    }
    while let [kind, count, rest @ ..] = value {
        let Some((asns, behind)) = rest.split_at_checked(4 * usize::from(*count)) else {
            return false;
        };
        if *kind != SEQUENCE || *count == 0 || asns.chunks(4).any(|asn| asn == [0; 4]) {
            return false;
        }
        value = behind;
    }
    value.is_empty()
}

//! The content of a heartbeat: bytes to values and back.
//!
//! The first byte is the version. What a later version adds stands behind what this one knows, so that members
//! of both understand each other during an upgrade. Knows no key and no clock.

use sha2::{Digest, Sha256};

use fairway_ground::{Abstention, MacAddress};

const VERSION: u8 = 1;
/// Octets of the name of a node: the limit of Kubernetes.
pub const NAME_LENGTH_BYTES_MAX: usize = 253;
/// Hardware addresses of one member that are told: a machine answers on few interfaces.
pub const MACS_MAX: usize = 16;
/// Members that a heartbeat tells of: so many fit into a frame of Ethernet beside the longest name.
const HEARD_MAX: usize = 40;
/// Abstentions that a heartbeat tells of. A member with more of them owns nothing.
pub const ABSTENTIONS_MAX: usize = 64;
/// Octets of one member that is told of, and of one abstention.
const HEARD_LENGTH_BYTES: usize = 25;
const ABSTENTION_LENGTH_BYTES: usize = 4;

/// Members that a heartbeat with so many abstentions tells of: they take the place of members.
pub fn heard_max(abstentions: usize) -> usize {
    let taken = abstentions.min(ABSTENTIONS_MAX).saturating_mul(ABSTENTION_LENGTH_BYTES);
    HEARD_MAX.saturating_sub(taken.div_ceil(HEARD_LENGTH_BYTES))
}

/// A member, by its name: the first octets of its SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberId(pub u64);

impl MemberId {
    /// The member of this name.
    pub fn of(name: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(name.as_bytes()).into();
        let [a, b, c, d, e, f, g, h, ..] = digest;
        Self(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }
}

/// What a member does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It has just started, or was stopped for a while, and owns nothing.
    Joining,
    /// It owns what is its own.
    Active,
    /// It is about to end, or is drained: others own what was its own, and it answers until they do.
    Leaving,
}

impl Standing {
    const fn code(self) -> u8 {
        match self {
            Self::Joining => 0,
            Self::Active => 1,
            Self::Leaving => 2,
        }
    }

    /// A later version may know more; such a member owns nothing to us.
    const fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Active,
            2 => Self::Leaving,
            _ => Self::Joining,
        }
    }
}

/// What a member says of another one that it has heard itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// The other one.
    pub member: MemberId,
    /// Its process.
    pub incarnation: u64,
    /// Its last heartbeat.
    pub sequence: u32,
    /// Milliseconds since it was heard.
    pub age_milliseconds: u16,
    /// What it said of itself.
    pub standing: Standing,
    /// How often it became an owner to the sender, which was one already and may have announced what the other one
    /// owns; counts on from 0 after the highest number.
    pub revivals: u16,
}

/// A heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// The name of the sender: that of its node.
    pub name: String,
    /// The process of the sender; a later one has a higher number.
    pub incarnation: u64,
    /// Counts the heartbeats of the process.
    pub sequence: u32,
    /// Random: another process with the same name has another one.
    pub instance: u64,
    /// Milliseconds until the next heartbeat.
    pub interval_milliseconds: u16,
    /// What the sender does.
    pub standing: Standing,
    /// The hardware addresses with which it answers.
    pub macs: Vec<MacAddress>,
    /// Those that it has heard.
    pub heard: Vec<Heard>,
    /// What it is no candidate for. A version before this field tells of none.
    pub abstentions: Vec<Abstention>,
}

impl Heartbeat {
    /// Its bytes. Of too many hardware addresses, members and abstentions the first ones are told.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION, self.standing.code()];
        bytes.extend(self.incarnation.to_be_bytes());
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.instance.to_be_bytes());
        bytes.extend(self.interval_milliseconds.to_be_bytes());
        let name = self.name.as_bytes();
        let name = name.get(..name.len().min(NAME_LENGTH_BYTES_MAX)).unwrap_or_default();
        bytes.push(u8::try_from(name.len()).unwrap_or(0));
        bytes.extend(name);
        let macs = self.macs.get(..self.macs.len().min(MACS_MAX)).unwrap_or_default();
        bytes.push(u8::try_from(macs.len()).unwrap_or(0));
        macs.iter().for_each(|mac| bytes.extend(mac.0));
        let abstentions = self.abstentions.len().min(ABSTENTIONS_MAX);
        let heard_count = self.heard.len().min(heard_max(abstentions));
        let heard = self.heard.get(..heard_count).unwrap_or_default();
        bytes.push(u8::try_from(heard.len()).unwrap_or(0));
        for it in heard {
            bytes.extend(it.member.0.to_be_bytes());
            bytes.extend(it.incarnation.to_be_bytes());
            bytes.extend(it.sequence.to_be_bytes());
            bytes.extend(it.age_milliseconds.to_be_bytes());
            bytes.push(it.standing.code());
            bytes.extend(it.revivals.to_be_bytes());
        }
        let abstentions = self.abstentions.get(..abstentions).unwrap_or_default();
        bytes.push(u8::try_from(abstentions.len()).unwrap_or(0));
        abstentions.iter().for_each(|it| bytes.extend(it.0.to_be_bytes()));
        bytes
    }

    /// Reads one; `None` for what is cut off, and for a version before the first. What stands behind it is
    /// of a later version.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let [version, standing] = take(&mut rest)?;
        if version < VERSION {
            return None;
        }
        let incarnation = u64::from_be_bytes(take(&mut rest)?);
        let sequence = u32::from_be_bytes(take(&mut rest)?);
        let instance = u64::from_be_bytes(take(&mut rest)?);
        let interval_milliseconds = u16::from_be_bytes(take(&mut rest)?);
        let [name_length] = take(&mut rest)?;
        let (name, behind) = rest.split_at_checked(name_length.into())?;
        let name = std::str::from_utf8(name).ok().filter(|it| !it.is_empty())?;
        rest = behind;
        let [mac_count] = take(&mut rest)?;
        let mut macs = Vec::new();
        for _ in 0..mac_count {
            macs.push(MacAddress(take(&mut rest)?));
        }
        let [heard_count] = take(&mut rest)?;
        let mut heard = Vec::new();
        for _ in 0..heard_count {
            let member = MemberId(u64::from_be_bytes(take(&mut rest)?));
            let incarnation = u64::from_be_bytes(take(&mut rest)?);
            let sequence = u32::from_be_bytes(take(&mut rest)?);
            let age_milliseconds = u16::from_be_bytes(take(&mut rest)?);
            let [standing] = take(&mut rest)?;
            let standing = Standing::from_code(standing);
            let revivals = u16::from_be_bytes(take(&mut rest)?);
            heard.push(Heard {
                member,
                incarnation,
                sequence,
                age_milliseconds,
                standing,
                revivals,
            });
        }
        let mut abstentions = Vec::new();
        if !rest.is_empty() {
            let [count] = take(&mut rest)?;
            for _ in 0..count {
                abstentions.push(Abstention(u32::from_be_bytes(take(&mut rest)?)));
            }
        }
        Some(Self {
            name: name.to_owned(),
            incarnation,
            sequence,
            instance,
            interval_milliseconds,
            standing: Standing::from_code(standing),
            macs,
            heard,
            abstentions,
        })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (field, behind) = rest.split_first_chunk::<N>()?;
    *rest = behind;
    Some(*field)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heartbeat(members: usize) -> Heartbeat {
        let heard = |number: usize| Heard {
            member: MemberId::of(&format!("node-{number}")),
            incarnation: 7,
            sequence: 70,
            age_milliseconds: 100,
            standing: Standing::Active,
            revivals: 2,
        };
        Heartbeat {
            name: "n".repeat(NAME_LENGTH_BYTES_MAX),
            incarnation: 1_795_192_683_000,
            sequence: 12,
            instance: 5,
            interval_milliseconds: 100,
            standing: Standing::Leaving,
            macs: vec![MacAddress([2, 0, 0, 0, 0, 1]); MACS_MAX],
            heard: (0..members).map(heard).collect(),
            abstentions: Vec::new(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let sent = heartbeat(HEARD_MAX);
        let bytes = sent.encode();
        assert_eq!(Heartbeat::decode(&bytes), Some(sent));
        // IPv6, UDP and the seal around it.
        assert!(bytes.len() + 40 + 8 + 36 <= 1_500, "{} bytes", bytes.len());
        let later: Vec<u8> = [bytes.as_slice(), b"more of version 2"].concat();
        assert!(Heartbeat::decode(&later).is_some());
        let abstentions = (0..).map(Abstention).take(ABSTENTIONS_MAX).collect();
        let heard = heartbeat(heard_max(ABSTENTIONS_MAX)).heard;
        let abstaining = Heartbeat { abstentions, heard, ..heartbeat(0) };
        let bytes = abstaining.encode();
        assert_eq!(Heartbeat::decode(&bytes), Some(abstaining));
        assert!(bytes.len() + 40 + 8 + 36 <= 1_500, "{} bytes", bytes.len());
        let many = Heartbeat::decode(&heartbeat(200).encode()).unwrap();
        assert_eq!(many.heard.len(), HEARD_MAX);
    }

    #[test]
    fn what_is_cut_off_is_nothing() {
        let abstentions = vec![Abstention(7), Abstention(8)];
        let bytes = Heartbeat { abstentions, ..heartbeat(3) }.encode();
        // One count, and two numbers.
        let of_version_before = bytes.len() - 9;
        for length in 0..bytes.len() {
            let decoded = Heartbeat::decode(&bytes[..length]);
            let expected = (length == of_version_before).then(|| heartbeat(3));
            assert_eq!(decoded, expected, "{length} bytes");
        }
        let older = [&[0], &bytes[1..]].concat();
        assert_eq!(Heartbeat::decode(&older), None);
    }
}

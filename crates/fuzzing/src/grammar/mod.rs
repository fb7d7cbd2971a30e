//! Valid messages, drawn from a seed.
//!
//! A correct neighbour could send these messages; [`crate::mutation`] corrupts them. A [`Draft`] records the
//! positions of its length fields, since wrong lengths are the most common problem for parsers.

pub mod attribute;
pub mod open;
pub mod prefix;
pub mod router_discovery;
pub mod update;

/// A length or a count inside a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LengthField {
    /// The offset of its first octet.
    pub at: usize,
    /// Whether it has two octets.
    pub wide: bool,
}

/// Bytes with the positions of their length fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Their length fields.
    pub lengths: Vec<LengthField>,
}

impl From<Vec<u8>> for Draft {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, lengths: Vec::new() }
    }
}

impl Draft {
    /// Appends bytes.
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a length octet.
    pub fn put_length_u8(&mut self, length: usize) {
        self.lengths.push(LengthField { at: self.bytes.len(), wide: false });
        self.bytes.push(u8::try_from(length).unwrap_or(u8::MAX));
    }

    /// Appends a length of two octets.
    pub fn put_length_u16(&mut self, length: usize) {
        self.lengths.push(LengthField { at: self.bytes.len(), wide: true });
        self.put(&u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
    }

    /// Appends another draft, including its length fields.
    pub fn put_draft(&mut self, other: &Self) {
        let start = self.bytes.len();
        let moved =
            other.lengths.iter().map(|field| LengthField { at: field.at + start, ..*field });
        self.lengths.extend(moved);
        self.put(&other.bytes);
    }

    /// Appends a length octet and the value.
    pub fn put_counted_u8(&mut self, value: &Self) {
        self.put_length_u8(value.bytes.len());
        self.put_draft(value);
    }

    /// Appends a length of two octets and the value.
    pub fn put_counted_u16(&mut self, value: &Self) {
        self.put_length_u16(value.bytes.len());
        self.put_draft(value);
    }

    /// Truncates it to this number of bytes.
    #[must_use]
    pub fn at_most(mut self, count: usize) -> Self {
        self.bytes.truncate(count);
        self.lengths.retain(|field| field.at + 1 < count);
        self
    }
}

//! Reads from the front of a slice without panics: the end of the input is a value.

/// The rest of a slice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The next `count` bytes; `None`, and nothing is consumed, if there are fewer.
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*front)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// A slice with a one-octet length.
    pub(super) fn counted_u8(&mut self) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let length = ahead.u8()?;
        let slice = ahead.take(usize::from(length))?;
        *self = ahead;
        Some(slice)
    }

    /// A slice with a two-octet length.
    pub(super) fn counted_u16(&mut self) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let length = ahead.u16()?;
        let slice = ahead.take(usize::from(length))?;
        *self = ahead;
        Some(slice)
    }
}

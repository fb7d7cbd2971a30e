//! Random choices from a seed: the same seed gives the same message, on every machine.

use fairway_ground::Rng;

/// A source of choices.
#[derive(Debug, Clone)]
pub struct Dice(Rng);

impl Dice {
    /// The same seed gives the same choices.
    pub fn seeded(seed: u64) -> Self {
        Self(Rng::seeded(seed))
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Four bytes.
    pub fn u32(&mut self) -> u32 {
        let [a, b, c, d, ..] = self.u64().to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    /// Two bytes.
    pub fn u16(&mut self) -> u16 {
        let [a, b, ..] = self.u64().to_le_bytes();
        u16::from_le_bytes([a, b])
    }

    /// One byte.
    pub fn u8(&mut self) -> u8 {
        let [byte, ..] = self.u64().to_le_bytes();
        byte
    }

    /// A number below `end`, 0 when that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        usize::try_from(self.u64().checked_rem(end).unwrap_or(0)).unwrap_or(0)
    }

    /// True this many times out of a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of `choices`.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count.next_multiple_of(8));
        while bytes.len() < count {
            bytes.extend_from_slice(&self.u64().to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }
}

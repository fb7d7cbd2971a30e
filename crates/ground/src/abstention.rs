//! What a machine is no candidate for, as members tell each other.

/// A number that stands for one thing, of which a machine that abstains from it owns nothing. `plan` makes it from
/// a name; two things with one number are both abstained from, by all members alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Abstention(pub u32);

//! The name of a network interface.

use std::fmt;
use std::str::FromStr;

use super::ParseError;

/// What the kernel allows (`IFNAMSIZ` without its NUL).
const LENGTH_BYTES_MAX: usize = 15;

/// The name of an interface, or of a VRF, which is one: 1 to 15 bytes, no blanks, no slash or colon. Small
/// enough to be `Copy`, so that keys of neighbours are, too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceName {
    /// Padded with zeros, which no name contains: the order is that of the text.
    bytes: [u8; LENGTH_BYTES_MAX],
}

impl InterfaceName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        let text = self.bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        // It was text when it was created.
        std::str::from_utf8(text).unwrap_or_default()
    }
}

impl FromStr for InterfaceName {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let is_allowed = |it: char| !it.is_whitespace() && !it.is_control() && !"/:".contains(it);
        let mut bytes = [0; LENGTH_BYTES_MAX];
        match bytes.get_mut(..text.len()) {
            Some(place) if !["", ".", ".."].contains(&text) && text.chars().all(is_allowed) => {
                place.copy_from_slice(text.as_bytes());
                Ok(Self { bytes })
            }
            _ => Err(ParseError {
                text: text.to_owned(),
                expected: "the name of an interface: 1 to 15 bytes without blanks, / and :",
            }),
        }
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_the_kernel_takes() {
        for name in ["lo", "eth0.100", "enp3s0f1np1", "fifteen-letters", "tür"] {
            assert_eq!(name.parse::<InterfaceName>().unwrap().as_str(), name);
        }
        for text in ["", ".", "..", "a b", "a/b", "eth0:1", "sixteen-letters-", "tab\t"] {
            assert!(text.parse::<InterfaceName>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn names_are_ordered_as_text() {
        let name = |text: &str| text.parse::<InterfaceName>().unwrap();
        assert!(name("eth") < name("eth0") && name("eth0") < name("eth1"));
        assert_eq!(format!("{:?} {}", name("lo"), name("lo")), "\"lo\" lo");
    }
}

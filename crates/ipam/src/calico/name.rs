//! The names of objects. Both Calico's nodes and ours find an object by its name, so that it must be the same.

use fairway_ground::Prefix;

use crate::block::Owner;
use crate::store::Key;

/// Longer ones are cut by Calico, in a way that is not documented.
const NAME_BYTES_MAX: usize = 252;

/// A name that Kubernetes does not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name {0:?} is too long for an object: {NAME_BYTES_MAX} bytes are allowed")]
pub struct NameError(pub String);

/// The name of an object.
///
/// # Errors
/// `Ours:` it is too long. Calico cuts the name of an affinity and adds a part of a hash; no node name that clouds or
/// installers give comes near that length.
pub fn name(key: &Key) -> Result<String, NameError> {
    let name = match key {
        Key::Block(prefix) => of_prefix(*prefix),
        Key::Affinity(Owner::Host(node) | Owner::Virtual(node), prefix) => {
            format!("{node}-{}", of_prefix(*prefix))
        }
        Key::Handle(id) => id.to_lowercase(),
    };
    if name.len() > NAME_BYTES_MAX { Err(NameError(name)) } else { Ok(name) }
}

/// `10.0.0.64/26` is `10-0-0-64-26`.
fn of_prefix(prefix: Prefix) -> String {
    prefix.to_string().replace(['.', ':', '/'], "-")
}

//! What makes dials meet? A gate in the cable: it can hold back the SYNs of either side, and the data on
//! connections that are up. Held packets are lost, and TCP sends them again; so both dials are under way
//! when the gate opens, and both connections are up before either OPEN arrives, in whatever order the
//! kernels' timers give. No kernel module is needed.

use anyhow::Result;

use lab::Lab;
use lab::namespace::Namespace;

/// What does not pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) dials_of_node: bool,
    pub(crate) dials_of_router: bool,
    /// Bytes and ends of connections, in both directions.
    pub(crate) words: bool,
}

impl Hold {
    pub(crate) const NOTHING: Self =
        Self { dials_of_node: false, dials_of_router: false, words: false };

    /// Puts it into force, each namespace in one step.
    pub(crate) fn apply(self, lab: &Lab) -> Result<()> {
        set(&lab.router.namespace, self.dials_of_node, self.words)?;
        set(&lab.node, self.dials_of_router, self.words)
    }
}

/// What `namespace` drops as it arrives.
fn set(namespace: &Namespace, dials: bool, words: bool) -> Result<()> {
    let mut rules = "add table inet gate; delete table inet gate; add table inet gate; \
                     add chain inet gate input { type filter hook input priority 0; }; "
        .to_owned();
    if dials {
        rules += "add rule inet gate input tcp dport 179 tcp flags & (syn | ack) == syn drop; ";
    }
    if words {
        for port in ["sport", "dport"] {
            rules += &format!(
                "add rule inet gate input tcp {port} 179 tcp flags & (psh | fin | rst) != 0 drop; "
            );
        }
    }
    namespace.run("nft", &[&rules]).map(drop)
}

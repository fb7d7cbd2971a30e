//! How is a cable cut? Silently, as in the field: packets are dropped as they arrive, at one end or at
//! both, and no link goes down. Used by the cases about BFD.

use anyhow::Result;

use super::Lab;
use super::namespace::Namespace;

/// Which way nothing passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    TowardsNode,
    TowardsRouter,
    Both,
}

impl Cut {
    /// Each direction goes in one step; of two, that to the router goes first.
    pub fn apply(self, lab: &Lab) -> Result<()> {
        if self != Self::TowardsNode {
            set(&lab.router.namespace, "add rule inet cut input iifname != lo drop")?;
        }
        if self != Self::TowardsRouter {
            set(&lab.node, "add rule inet cut input iifname != lo drop")?;
        }
        Ok(())
    }

    /// Packets that match this rule do not reach the node.
    pub fn of_packets(lab: &Lab, rule: &str) -> Result<()> {
        set(&lab.node, &format!("add rule inet cut input {rule} drop"))
    }

    /// Everything passes again.
    pub fn heal(lab: &Lab) -> Result<()> {
        set(&lab.node, "")?;
        set(&lab.router.namespace, "")
    }
}

fn set(namespace: &Namespace, rule: &str) -> Result<()> {
    let script = format!(
        "add table inet cut; delete table inet cut; add table inet cut; \
         add chain inet cut input {{ type filter hook input priority 0; }}; {rule}"
    );
    namespace.run("nft", &[script.trim_end_matches("; ")]).map(drop)
}

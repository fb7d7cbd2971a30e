//! The members in the loop of a node: who is alive goes to the source, which plans, and to the responder; what
//! this node does goes to the members.
//!
//! Decides nothing. Does nothing where there are no members.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fairway_layer2::Reach;
use fairway_node::drain::Moment;
use fairway_seam::DrainState;
use tokio::sync::watch;

use super::{Announcing, NodeError, Source};
use crate::members::{Members, MembersState};
use crate::options::HostOptions;

/// How long the end of this process waits for the others.
const LEAVE_LIMIT: Duration = Duration::from_millis(1_200);

/// See the module.
pub(super) struct Joined(Option<Member>);

struct Member {
    members: Arc<Members>,
    states: watch::Receiver<MembersState>,
    /// The port of the others is ours.
    port: u16,
    heals: u64,
    /// All that this node owns is to be announced again, once it is planned what that is.
    is_healed: bool,
    is_leaving: bool,
    told_addresses: BTreeSet<IpAddr>,
    /// What the source knows of the interfaces that can be answered on.
    interfaces: Option<BTreeSet<String>>,
    /// With what the responder can answer; `None` where it could not be started.
    reach: Option<watch::Receiver<Reach>>,
}

impl Member {
    fn leave(&self, node: &Announcing) {
        node.layer2().iter().for_each(|edge| edge.hand_over(true));
        self.members.leave();
    }

    fn come_back(&self, node: &Announcing) {
        node.layer2().iter().for_each(|edge| edge.hand_over(false));
        self.members.come_back();
    }
}

impl Joined {
    /// Joins the members, if the options name any.
    pub(super) fn start(options: &HostOptions, node: &mut Announcing) -> Result<Self, NodeError> {
        let Some(members) = options.members.clone() else { return Ok(Self(None)) };
        let port = members.listen.port();
        let members = node.join(&options.node, members)?;
        Ok(Self(Some(Member {
            states: members.states(),
            members,
            port,
            heals: 0,
            is_healed: false,
            is_leaving: false,
            told_addresses: BTreeSet::new(),
            interfaces: None,
            reach: node.layer2().map(|edge| edge.reach()),
        })))
    }

    /// Waits until others are alive, or this machine can answer with other interfaces; for ever where there are no
    /// members. Cancel-safe.
    pub(super) async fn changed(&mut self) {
        let Some(member) = &mut self.0 else { return std::future::pending().await };
        let reach = async {
            match &mut member.reach {
                Some(reach) => reach.changed().await,
                None => std::future::pending().await,
            }
        };
        // The tasks end with the process.
        tokio::select! {
            Ok(()) = member.states.changed() => {}
            Ok(()) = reach => {}
            else => std::future::pending().await,
        }
    }

    /// Hands on who is alive now.
    pub(super) fn tell(&mut self, now: Moment, source: &mut impl Source, node: &mut Announcing) {
        let Some(member) = &mut self.0 else { return };
        let state = member.states.borrow_and_update().clone();
        if let Some(reach) = &mut member.reach {
            let interfaces = reach.borrow_and_update().interfaces.clone();
            if member.interfaces.as_ref() != Some(&interfaces) {
                source.follow_interfaces(now, &interfaces, node);
                member.interfaces = Some(interfaces);
            }
        }
        source.follow_members(now, &state.owners.unwrap_or_default(), node);
        if let Some(edge) = node.layer2() {
            edge.know_members(&state.others);
        }
        member.is_healed |= state.heals != member.heals;
        member.heals = state.heals;
    }

    /// Tells the members what this node does. `can_deliver`: it is known what it delivers.
    pub(super) fn follow(&mut self, source: &impl Source, node: &Announcing, can_deliver: bool) {
        let Some(member) = &mut self.0 else { return };
        let is_leaving = node.drain_status().state() != DrainState::InService;
        if is_leaving != member.is_leaving {
            member.is_leaving = is_leaving;
            if is_leaving { member.leave(node) } else { member.come_back(node) }
        }
        if let Some(addresses) = source.member_addresses()
            && *addresses != member.told_addresses
        {
            member.told_addresses.clone_from(addresses);
            let reached = addresses.iter().map(|it| SocketAddr::new(*it, member.port));
            member.members.reach(reached.collect());
        }
        let reach = member.reach.as_ref().map(|it| it.borrow().clone());
        let Reach { macs, can_answer, .. } = reach.unwrap_or_default();
        member.members.abstain(source.abstentions());
        member.members.answer_with(macs, can_answer && can_deliver && source.has_plan(node));
        if std::mem::take(&mut member.is_healed) {
            node.layer2().iter().for_each(|edge| edge.announce_again());
        }
    }

    /// Answers until the others own what is this node's, for a while at most.
    pub(super) async fn leave(&self, node: &Announcing) {
        let Some(member) = &self.0 else { return };
        member.leave(node);
        // Those that do not answer find out by themselves.
        drop(tokio::time::timeout(LEAVE_LIMIT, member.members.left()).await);
    }
}

//! The state of the loop, for readers.
//!
//! There may be ten thousand Services, and few readers: nothing is copied before a reader asks, and each
//! reader gets the state between two changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_allocator::Outcomes;
use fairway_ground::RouterId;
use fairway_layer2::Edge;
use fairway_model::{ClusterIndex, Node, ObjectName};
use fairway_node::drain::DrainStatus;
use fairway_node::history::History;
use fairway_plan::NodePlan;
use fairway_resources::{Finding, StaleObject};
use fairway_show::Outage;
use tokio::sync::{mpsc, oneshot};

use crate::members::Members;

/// One state of the daemon.
#[derive(Debug, Clone)]
pub struct Published {
    /// This node.
    pub node: Node,
    /// Its BGP identifier, where a peer has none of its own.
    pub router_id: RouterId,
    /// The facts in force.
    pub index: Arc<ClusterIndex>,
    /// Which Service has which address.
    pub outcomes: Outcomes,
    /// What is announced.
    pub plan: NodePlan,
    /// The last change of each Service.
    pub history: Arc<History>,
    /// Faults and warnings of the resources.
    pub findings: Vec<Finding>,
    /// Objects with their last good version in force.
    pub stale: Vec<StaleObject>,
    /// The files and folders that are read.
    pub sources: Vec<String>,
    /// What has not been read, if anything.
    pub outage: Option<Outage>,
    /// Answers for addresses on the local segment; `None` where it never had to.
    pub layer2: Option<Arc<Edge>>,
    /// The machines that share layer 2 addresses with this one, if there are any.
    pub(crate) members: Option<Arc<Members>>,
    /// The Services with a health check, and whether this machine serves them.
    pub health: BTreeMap<ObjectName, bool>,
    /// Whether files are read: not while one of their folders hangs in the kernel. What was read is in force all the
    /// same, so this is no reason to restart.
    pub is_reading: bool,
    /// Whether the node is in service.
    pub drain: DrainStatus,
}

/// How many requests may be queued; later readers wait to send theirs.
const ENQUIRIES_MAX: usize = 16;

/// The loop's end of the channel, which answers.
pub(crate) type Enquiries = mpsc::Receiver<oneshot::Sender<Arc<Published>>>;

/// Asks the loop for its state. Cheap to clone, one for each reader.
#[derive(Debug, Clone)]
pub struct Enquirer(mpsc::Sender<oneshot::Sender<Arc<Published>>>);

impl Enquirer {
    /// Both ends of the channel.
    pub(crate) fn new() -> (Self, Enquiries) {
        let (ask, enquiries) = mpsc::channel(ENQUIRIES_MAX);
        (Self(ask), enquiries)
    }

    /// The state of the loop; `None` when it has ended.
    pub async fn ask(&self) -> Option<Arc<Published>> {
        let (question, answer) = oneshot::channel();
        self.0.send(question).await.ok()?;
        answer.await.ok()
    }

    /// Asks no loop, and always returns this state. Must be called inside a tokio runtime.
    #[cfg(test)]
    pub(crate) fn hearing(published: Published) -> Self {
        let (enquirer, mut enquiries) = Self::new();
        let published = Arc::new(published);
        tokio::spawn(async move {
            while let Some(question) = enquiries.recv().await {
                let _ = question.send(Arc::clone(&published));
            }
        });
        enquirer
    }
}

//! What the loop has decided, for others to look at.
//!
//! There may be ten thousand Services, and hardly anybody looks: so nothing is copied before
//! somebody asks, and whoever asks gets the state between two changes.

use std::sync::Arc;

use fairway_allocator::Outcomes;
use fairway_ground::RouterId;
use fairway_model::{ClusterIndex, Node};
use fairway_node::drain::DrainStatus;
use fairway_node::history::History;
use fairway_plan::NodePlan;
use fairway_resources::{Finding, StaleObject};
use tokio::sync::{mpsc, oneshot};

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
    /// What changed last of each Service.
    pub history: Arc<History>,
    /// What is wrong or odd in the files.
    pub findings: Vec<Finding>,
    /// Objects whose last good version is in force.
    pub stale: Vec<StaleObject>,
    /// The files and folders that are read.
    pub sources: Vec<String>,
    /// Whether the node is in service.
    pub drain: DrainStatus,
}

/// How many may wait for an answer; who comes later waits to ask.
const ENQUIRIES_MAX: usize = 16;

/// The end of the loop, which answers.
pub(crate) type Enquiries = mpsc::Receiver<oneshot::Sender<Arc<Published>>>;

/// Asks the loop how it is. Cheap to clone, one for each that asks.
#[derive(Debug, Clone)]
pub struct Enquirer(mpsc::Sender<oneshot::Sender<Arc<Published>>>);

impl Enquirer {
    /// Both ends.
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

    /// Asks nobody, and always hears this. Must be called inside a tokio runtime.
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

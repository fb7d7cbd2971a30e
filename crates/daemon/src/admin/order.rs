//! Orders of a client for the loop.

use fairway_node::drain::{DrainOrder, DrainStep};
use tokio::sync::oneshot;

/// Orders that may wait for the loop: at most one per client.
pub const ORDERS_MAX: usize = 16;

/// An order for the loop.
#[derive(Debug)]
pub enum Order {
    /// `fairway drain`. The answer is the step, and whether it is on disk.
    Drain(Ordered<DrainOrder, (DrainStep, bool)>),
    /// `fairway reload`. The answer is what is done, or why nothing is.
    Reload(Ordered<ReloadOrder, Result<String, String>>),
}

/// What is ordered, and the channel for the answer.
#[derive(Debug)]
pub struct Ordered<What, Done> {
    /// The order.
    pub what: What,
    pub(super) answer: oneshot::Sender<Done>,
}

/// What is to be read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReloadOrder {
    /// Folders without files are taken for empty, although they had some.
    pub accepts_empty: bool,
}

impl<What, Done> Ordered<What, Done> {
    /// Reports that the order is carried out.
    pub fn done(self, done: Done) {
        // The client may have disconnected; the order stands.
        let _ = self.answer.send(done);
    }
}

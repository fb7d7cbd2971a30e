//! `fairway reload`: the loop reads its files again.

use tokio::sync::{mpsc, oneshot};

use super::Answer;
use super::order::{Order, Ordered, ReloadOrder};

/// Passes the request on to the loop.
pub(super) async fn reload(accepts_empty: bool, orders: &mpsc::Sender<Order>) -> Answer {
    let (answer, done) = oneshot::channel();
    let order = Order::Reload(Ordered { what: ReloadOrder { accepts_empty }, answer });
    if orders.send(order).await.is_err() {
        return Answer::Error("the daemon is stopping".to_owned());
    }
    match done.await {
        Ok(Ok(text)) => Answer::Output(text + "\n"),
        Ok(Err(why)) => Answer::Error(why),
        Err(_) => Answer::Error("the daemon is stopping".to_owned()),
    }
}

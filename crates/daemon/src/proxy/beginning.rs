//! May the proxy begin, or does another one serve the node?

use std::time::Duration;

use tokio::time::timeout;

use super::options::{ProxyOptions, ServiceSource};
use super::socket::{Asked, ProxySocket};
use super::telling::Telling;
use super::{ProxyError, earlier_proxy, take_over};

/// How long a start that is refused tells those who announce: they ask each second.
const REFUSED_TELLING: Duration = Duration::from_secs(3);

/// Waits until no other proxy has this node, if it is to be taken over. Those who announce its addresses are told that
/// there is one, unless the addresses are those that this process assigns, which the other one does not know.
pub(super) async fn may_begin(
    options: &ProxyOptions,
    socket: &mut ProxySocket,
    telling: &mut Telling,
) -> Result<(), ProxyError> {
    let Some(other) = (match options.takes_over {
        true => earlier_proxy::running(),
        false => earlier_proxy::running().or_else(earlier_proxy::left),
    }) else {
        return Ok(());
    };
    let serves_own = matches!(options.services, ServiceSource::Files(_, Some(_)));
    if !serves_own {
        telling.leave_to_another();
    }
    let words = format!("{other}; nothing is served yet\n");
    let telling_all = async {
        loop {
            match socket.asked().await {
                Asked::View(_, answer) => drop(answer.send(words.clone())),
                Asked::Deliveries(follower) => telling.add(follower),
            }
        }
    };
    if options.takes_over {
        tokio::select! {
            () = take_over::wait_for_its_end() => return Ok(()),
            () = telling_all => {}
        }
    } else if !serves_own {
        let _ = timeout(REFUSED_TELLING, telling_all).await;
    }
    Err(ProxyError::AnotherProxy(other))
}

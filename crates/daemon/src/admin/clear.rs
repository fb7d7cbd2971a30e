//! `fairway clear bgp`: which sessions the name stands for, and the outcome of each.

use std::fmt::Write;

use fairway_seam::{Backend, BgpView, Clear, PeerView, ViewScope};
use fairway_show::neighbors_called;

use super::Answer;

/// All neighbours, as `clear bgp *` means them on a router.
const EVERYBODY: &str = "*";

/// Clears the sessions that `wanted` names, and reports each in a line.
pub(super) async fn clear(backend: &dyn Backend, wanted: &str, how: Clear) -> Answer {
    let view = match backend.view(ViewScope::SESSIONS).await {
        Ok(view) => view,
        Err(error) => return Answer::Error(error.to_string()),
    };
    let peers = called(&view, wanted);
    if peers.is_empty() {
        let known: Vec<_> = view.peers.iter().map(|it| it.config.key.to_string()).collect();
        let known = if known.is_empty() { "there are none".to_owned() } else { known.join(", ") };
        return Answer::Error(format!("% No such neighbor: {wanted}; known: {known}"));
    }
    let (mut done, mut failed) = (String::new(), String::new());
    for PeerView { config, .. } in peers {
        let (key, name) = (config.key, &config.name);
        let _ = match backend.clear(key, how).await {
            Ok(()) => writeln!(done, "{key} ({name}): {}", outcome(how)),
            Err(error) => writeln!(failed, "{key} ({name}): {error}"),
        };
    }
    // If some of several are down, the command still succeeds for the others.
    match (done.is_empty(), failed.is_empty()) {
        (true, _) => Answer::Error(failed.trim_end().to_owned()),
        (false, _) => Answer::Output(done + &failed),
    }
}

fn called<'a>(view: &'a BgpView, wanted: &str) -> Vec<&'a PeerView> {
    neighbors_called(view, Some(wanted).filter(|wanted| *wanted != EVERYBODY))
}

fn outcome(how: Clear) -> &'static str {
    match how {
        Clear::Hard => "session reset",
        Clear::SoftIn => "asked for all routes again",
        Clear::SoftOut => "sending all routes again",
        Clear::Soft => "asked for all routes again, sending all routes again",
    }
}

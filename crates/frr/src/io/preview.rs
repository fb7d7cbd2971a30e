//! Which lines would FRR be sent? Reads its configuration and changes nothing.
//!
//! Called by `fairway plan --against-frr`.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use fairway_seam::Desired;

use super::daemons::{Daemons, Look};
use super::rendering::Rendering;
use crate::application::{Application, Now, Orders};
use crate::configuration::{leads_into_context, without_secrets};
use crate::daemon::Daemon;
use crate::difference::{Purpose, Step};
use crate::owner::Owner;

/// What would be sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Preview {
    /// The lines of each daemon, in the order in which they are sent, with their contexts and without secrets.
    pub text: String,
    /// Their number.
    pub lines: usize,
    /// What would not be configured, and why.
    pub faults: Vec<String>,
}

/// FRR cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("FRR's bgpd is unreachable: {0}")]
pub struct PreviewError(String);

/// The lines that would turn the FRR whose sockets are in `socket_dir` into what `desired` needs.
pub async fn preview(
    socket_dir: &Path,
    desired: &Desired,
    owner: Owner,
) -> Result<Preview, PreviewError> {
    let mut daemons = Daemons::new(socket_dir);
    let Look { running, new } = daemons.look().await;
    if let Some(why) = running.away.get(&Daemon::Bgpd) {
        return Err(PreviewError(why.clone()));
    }
    let mut application = Application::new(owner, Now::ZERO);
    new.into_iter().for_each(|daemon| application.connected(daemon));
    application.read(Now::ZERO, running);
    let mut rendering = Rendering::new(owner);
    rendering.is_outdated(&application, daemons.version());
    rendering.want(desired, &mut application, daemons.version());
    let orders = application.preview();
    let (text, lines) = text(&orders);
    let faults = [application.faults(), rendering.faults().to_vec()].concat();
    Ok(Preview { text, lines, faults })
}

fn text(orders: &Orders) -> (String, usize) {
    let (mut text, mut lines) = (String::new(), 0_usize);
    let additions = orders.batches.iter().map(|(daemon, batch)| (*daemon, &batch.additions));
    let removals = orders.batches.iter().rev().map(|(daemon, batch)| (*daemon, &batch.removals));
    for (daemon, steps) in additions.chain(removals).filter(|(_, steps)| !steps.is_empty()) {
        let _ = writeln!(text, "! {}", daemon.name());
        let mut context: Vec<Arc<str>> = Vec::new();
        for step in steps {
            write_step(&mut text, step, &context);
            context = step.context.to_vec();
            if step.purpose == Purpose::Add && leads_into_context(&context, &step.line) {
                context.push(step.line.clone());
            }
            lines = lines.saturating_add(1);
        }
    }
    (text, lines)
}

fn write_step(text: &mut String, step: &Step, before: &[Arc<str>]) {
    let mut line = |depth: usize, line: &str| {
        let _ = writeln!(text, "{}{}", " ".repeat(depth), without_secrets(line));
    };
    let is_open = |depth: usize| before.get(..=depth) == step.context.get(..=depth);
    for (depth, opener) in step.context.iter().enumerate() {
        if !is_open(depth) {
            line(depth, opener);
        }
    }
    line(step.context.len(), &step.line);
}

//! `fairway proxy cleanup`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use fairway_dataplane::{Cleaned, INTERFACE, clean_up};
use fairway_ground::printable;

use crate::cli::ask::RUN_DIR;
use crate::cli::output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway proxy cleanup                      Services are not served on this node any more
  fairway proxy cleanup --hand-over          after kube-proxy was started in place of Fairway

It removes the interface, the tables, the virtual servers of the record, and sets settings of the
kernel back that Fairway has changed. What it did not make stays. Stop fairway proxy first.
Exit code 0: done. 1: done, but something stays; it is on stderr.")]
pub(super) struct CleanupArguments {
    /// Leave virtual servers, with their connections, and settings of the kernel to another proxy
    #[arg(long)]
    hand_over: bool,

    /// The folder of the records of what is Fairway's in the kernel
    #[arg(long, value_name = "PATH", default_value = RUN_DIR, env = "FAIRWAY_RUN_DIR")]
    run_dir: PathBuf,
}

pub(super) fn run(arguments: &CleanupArguments) -> Result<ExitCode> {
    let cleaned = clean_up(&arguments.run_dir, arguments.hand_over)?;
    output::print(&text(&cleaned))?;
    cleaned.left.iter().for_each(|it| output::say(&printable(it)));
    Ok(if cleaned.left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(cleaned: &Cleaned) -> String {
    let Cleaned { servers, handed_over, interface, tables, settings, settings_left, left: _ } =
        cleaned;
    let mut lines = Vec::new();
    if *interface {
        lines.push(format!("interface {INTERFACE} and its addresses are removed"));
    }
    if *servers > 0 {
        lines.push(format!("virtual servers removed: {servers}"));
    }
    if *handed_over > 0 {
        lines.push(format!("virtual servers left to another proxy: {handed_over}"));
    }
    if *tables > 0 {
        lines.push(format!("tables of the packet filter removed: {tables}"));
    }
    let restored = settings.iter().map(|(name, value)| format!("{name} is {value} again"));
    lines.extend(restored);
    let kept = settings_left.iter().map(|(name, before)| {
        format!("{name} stays, since other programs may need it; it was {before}")
    });
    lines.extend(kept);
    if lines.is_empty() {
        lines.push("nothing of Fairway's service proxy is on this node".to_owned());
    }
    lines.iter().map(|it| format!("{it}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_a_line_and_nothing_is_one_too() {
        assert!(text(&Cleaned::default()).starts_with("nothing of Fairway's"));
        let cleaned = Cleaned {
            interface: true,
            servers: 3,
            settings: vec![("net.ipv4.ip_forward".to_owned(), "0".to_owned())],
            ..Cleaned::default()
        };
        let expected = "interface fairway-ipvs0 and its addresses are removed\nvirtual servers removed: 3\n\
                        net.ipv4.ip_forward is 0 again\n";
        assert_eq!(text(&cleaned), expected);
    }
}

//! `fairway-cni`: the CNI plugin of type `ipam`. A container runtime starts it; see docs/ipam.md.

use std::env;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use fairway_cni::plugin::{Ending, answer};
use fairway_cni::{SOCKET, SPOOL};
use fairway_ipam::cni::{CALL_BYTES_MAX, Invocation};

const HELP: &str = "\
fairway-cni: addresses for Pods, as a CNI plugin of type ipam

A container runtime starts it with the environment and the configuration that the CNI specification
defines. It asks the Fairway daemon of this node, which runs with --ipam.

Environment:
  FAIRWAY_CNI_SOCKET   the socket of the daemon [default: /run/fairway-cni/cni.sock]
  FAIRWAY_CNI_SPOOL    the folder in which the deletion of a container waits while there is no daemon
                       [default: /var/lib/cni/fairway]

Example:
  echo '{\"cniVersion\": \"1.1.0\", \"name\": \"net\"}' | CNI_COMMAND=VERSION fairway-cni
";

fn main() -> ExitCode {
    match env::args().nth(1).as_deref() {
        Some("--version" | "-V") => return print(env!("CARGO_PKG_VERSION").as_bytes(), 0),
        Some("--help" | "-h") => return print(HELP.as_bytes(), 0),
        Some(other) => {
            eprintln!("fairway-cni: unknown argument {other:?}; expected --help or --version");
            return ExitCode::from(2);
        }
        None => {}
    }
    let mut stdin = Vec::new();
    let limit = u64::try_from(CALL_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    if let Err(error) = io::stdin().take(limit).read_to_end(&mut stdin) {
        eprintln!("fairway-cni: cannot read the configuration from stdin: {error}");
        return ExitCode::from(1);
    }
    let variable = |name: &str| env::var_os(name).map(|it| it.to_string_lossy().into_owned());
    let folder = |name: &str, default: &str| {
        let set = env::var_os(name).filter(|it| !it.is_empty());
        set.map_or_else(|| PathBuf::from(default), PathBuf::from)
    };
    let (socket, spool) =
        (folder("FAIRWAY_CNI_SOCKET", SOCKET), folder("FAIRWAY_CNI_SPOOL", SPOOL));
    let Ending { exit, stdout } =
        answer(&Invocation::of_environment(variable, &stdin), &socket, &spool);
    print(&stdout, exit)
}

fn print(text: &[u8], exit: u8) -> ExitCode {
    // A runtime that has gone does not read it.
    let _ = io::stdout().write_all(text);
    ExitCode::from(exit)
}

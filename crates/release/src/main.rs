//! Writes the parts of a release that no tool of every machine writes.
//!
//! The same input gives the same bytes. Refuses to know how binaries are built and where a release goes:
//! `scripts/dist.sh` calls it.

mod bill_of_materials;
mod capabilities;
mod digest;
mod image;
mod linked;
mod time;

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};

use image::Architecture;

/// Writes parts of a release.
#[derive(Parser)]
#[command(name = "fairway-release")]
#[command(after_help = "Examples:
  fairway-release image --architecture amd64 --programs target/release --output image.tar
  fairway-release bill-of-materials --target x86_64-unknown-linux-gnu --output fairway.cdx.json")]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// The time of the release, in seconds since 1970: of all files, and in all documents
    #[arg(long, global = true, env = "SOURCE_DATE_EPOCH", default_value_t = 0)]
    seconds: u64,
}

#[derive(Subcommand)]
enum Command {
    /// The container image of statically linked programs, as an OCI layout in a tar archive, for `docker load`, too
    Image(ImageArguments),
    /// Which crates are linked into the programs, as CycloneDX JSON
    BillOfMaterials(BillArguments),
}

#[derive(Args)]
struct ImageArguments {
    /// What the programs run on
    #[arg(long, value_enum)]
    architecture: Architecture,

    /// The folder of `fairway` and `fairway-cni`
    #[arg(long, value_name = "DIR")]
    programs: PathBuf,

    /// The archive
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Args)]
struct BillArguments {
    /// What the programs are compiled for; for several, all crates of any of them are listed
    #[arg(long, value_name = "TARGET", required = true)]
    target: Vec<String>,

    /// The bill
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

/// The release, which is that of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn main() -> Result<()> {
    let Cli { command, seconds } = Cli::parse();
    match command {
        Command::Image(arguments) => {
            let read = |name| {
                let path = arguments.programs.join(name);
                std::fs::read(&path).with_context(|| path.display().to_string())
            };
            let image = image::Image {
                architecture: arguments.architecture,
                version: VERSION,
                seconds,
                daemon: &read("fairway")?,
                plugin: &read("fairway-cni")?,
            };
            let path = &arguments.output;
            let written = File::create(path).map_err(Into::into).and_then(|file| image.write(file));
            written.with_context(|| path.display().to_string())
        }
        Command::BillOfMaterials(arguments) => {
            let linked = linked::crates(&arguments.target)?;
            let bill = bill_of_materials::bill(&linked, VERSION, seconds)?;
            let text = serde_json::to_string_pretty(&bill)? + "\n";
            let path = &arguments.output;
            std::fs::write(path, text).with_context(|| path.display().to_string())
        }
    }
}

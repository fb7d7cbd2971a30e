//! What does README.md print under "First route"? The commands, FRR's configuration, and what both name. Used by main.

use anyhow::{Context, Result, ensure};

/// The section of README.md.
const HEADING: &str = "\n### First route\n";

/// The section, read.
pub(crate) struct FirstRoute {
    /// For a shell.
    pub(crate) commands: String,
    /// The file that the first command unpacks.
    pub(crate) archive: String,
    /// FRR's lines.
    pub(crate) frr: String,
    /// The address of the machine that the commands are typed on, as FRR knows it.
    pub(crate) node: String,
    /// The address of the router, as the BGPPeer has it.
    pub(crate) router: String,
    /// What the page says that FRR has then.
    pub(crate) route: String,
}

/// The page of this checkout.
pub(crate) fn readme() -> Result<FirstRoute> {
    let path = lab::checkout().join("README.md");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    parse(&text).with_context(|| format!("{}: ### First route", path.display()))
}

fn parse(text: &str) -> Result<FirstRoute> {
    let (_, section) = text.split_once(HEADING).context("no such section")?;
    let section = section.split("\n### ").next().unwrap_or(section);
    let block = |language: &str| {
        let (_, rest) = section.split_once(&format!("```{language}\n"))?;
        Some(rest.split_once("```")?.0.to_owned())
    };
    let commands = block("sh").context("no commands")?;
    let frr = block("text").context("no configuration of FRR")?;
    let after = |text: &str, word: &str| {
        let (_, rest) = text.split_once(word)?;
        Some(rest.split([' ', '\n', '}']).next()?.to_owned())
    };
    let archive = after(&commands, "tar -xzf ").context("no archive")?;
    let router = after(&commands, "peerAddress: ").context("no peerAddress")?;
    let node = after(&frr, " neighbor ").context("no neighbor")?;
    let route = section.split('`').find(|word| word.ends_with("/32")).context("no route")?;
    // What is typed, without the lines of the file in between.
    let file = commands.split_once("<<'EOT'\n").and_then(|(_, rest)| rest.split_once("\nEOT\n"));
    let (file, _) = file.context("no file between the lines EOT")?;
    let typed = commands.lines().count() - file.lines().count() - 1;
    ensure!(typed == 3, "{typed} commands, and the page promises three");
    Ok(FirstRoute { archive, frr, node, router, route: route.to_owned(), commands })
}

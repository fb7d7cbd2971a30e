//! What does the page ask a reader to do? Its sections, each with the configurations and the prompts
//! that stand in its fenced blocks. Used by main; knows no router.
//!
//! A block is what its info string says: `yaml fairway`, `frr`, `bird` are configurations, `console`
//! is a dialogue. Blocks in front of the first `##` belong to every section. A comment
//! `<!-- walk: WORD... -->` in a section says what it needs: `hop` puts a router in the middle,
//! `bare` leaves the link without addresses, `vrf` puts the node's end of the cable into a VRF, `ao` is
//! TCP-AO, which takes BIRD 3. Not every kernel is made for the last two.

use anyhow::{Context, Result, bail, ensure};

use crate::stage::RouterKind;

/// The page.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// What all sections share.
    pub(crate) shared: Configurations,
    pub(crate) sections: Vec<Section>,
}

/// Blocks of one section, of each kind the text of all.
#[derive(Debug, Default)]
pub(crate) struct Configurations {
    pub(crate) fairway: Vec<String>,
    pub(crate) frr: String,
    pub(crate) bird: String,
}

/// One kind of peer.
#[derive(Debug, Default)]
pub(crate) struct Section {
    pub(crate) heading: String,
    pub(crate) configurations: Configurations,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) has_middle_hop: bool,
    pub(crate) is_bare: bool,
    pub(crate) in_vrf: bool,
    pub(crate) has_tcp_ao: bool,
}

/// A command, where it is typed, and what the reader sees.
#[derive(Debug)]
pub(crate) struct Prompt {
    /// `node`, `frr`, `bird` or `router`, which is either.
    pub(crate) place: String,
    pub(crate) command: String,
    pub(crate) answer: Vec<String>,
}

impl Prompt {
    /// Whether it is part of the walk when the router is this one.
    pub(crate) fn is_for(&self, router: RouterKind) -> bool {
        ["node", "router", &router.to_string()].contains(&self.place.as_str())
    }
}

impl Section {
    /// Whether the kernel of every machine will do.
    pub(crate) fn needs_vm(&self) -> bool {
        self.in_vrf || self.has_tcp_ao
    }

    /// Whether it shows a configuration of this router.
    pub(crate) fn mentions(&self, router: RouterKind) -> bool {
        !match router {
            RouterKind::Frr => &self.configurations.frr,
            RouterKind::Bird => &self.configurations.bird,
        }
        .is_empty()
    }
}

impl Walk {
    /// Reads the page. A block without a use, and a section with a configuration and no dialogue, are faults:
    /// they would not be tested.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut walk = Self::default();
        let mut lines = text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            if let Some(heading) = line.strip_prefix("## ") {
                walk.sections.push(Section { heading: heading.to_owned(), ..Section::default() });
            } else if let Some(words) = line.strip_prefix("<!-- walk:") {
                let words = words.trim_end_matches("-->").split_whitespace();
                let section = walk.sections.last_mut().context("walk: needs a section")?;
                for word in words {
                    match word {
                        "hop" => section.has_middle_hop = true,
                        "bare" => section.is_bare = true,
                        "vrf" => section.in_vrf = true,
                        "ao" => section.has_tcp_ao = true,
                        other => bail!(
                            "line {}: walk: {other}: expected hop, bare, vrf or ao",
                            number + 1
                        ),
                    }
                }
            } else if let Some(kind) = line.strip_prefix("```") {
                let block: Vec<&str> = lines
                    .by_ref()
                    .map(|(_, line)| line)
                    .take_while(|line| *line != "```")
                    .collect();
                walk.take(kind, &block).with_context(|| format!("line {}", number + 1))?;
            }
        }
        for section in &walk.sections {
            let is_silent = section.prompts.is_empty();
            let has_router = RouterKind::ALL.iter().any(|router| section.mentions(*router));
            ensure!(!(has_router && is_silent), "{}: nothing is checked", section.heading);
        }
        Ok(walk)
    }

    fn take(&mut self, kind: &str, block: &[&str]) -> Result<()> {
        let configurations = match self.sections.last_mut() {
            Some(section) => &mut section.configurations,
            None => &mut self.shared,
        };
        let text = block.join("\n") + "\n";
        match kind {
            "yaml fairway" => configurations.fairway.push(text),
            "frr" => configurations.frr += &text,
            "bird" => configurations.bird += &text,
            "console" => {
                let section = self.sections.last_mut().context("a dialogue outside a section")?;
                section.prompts.extend(dialogue(block)?);
            }
            // The resources of other blocks are checked by tests/book, as commands are.
            "text" | "yaml" | "sh" => {}
            other => bail!(
                "a block of {other:?}: expected yaml fairway, frr, bird, console, yaml, sh, text"
            ),
        }
        Ok(())
    }
}

/// Lines like `frr# COMMAND`, each followed by its output.
fn dialogue(block: &[&str]) -> Result<Vec<Prompt>> {
    let mut prompts: Vec<Prompt> = Vec::new();
    for line in block {
        let prompt = line
            .split_once("# ")
            .filter(|(place, _)| ["node", "router", "frr", "bird"].contains(place));
        match (prompt, prompts.last_mut()) {
            (Some((place, command)), _) => prompts.push(Prompt {
                place: place.to_owned(),
                command: command.to_owned(),
                answer: Vec::new(),
            }),
            (None, Some(prompt)) => prompt.answer.push((*line).to_owned()),
            (None, None) => bail!("{line:?} answers nothing"),
        }
    }
    Ok(prompts)
}

//! What does the tutorial ask the reader to do? Blocks of `sh` are typed, blocks of `yaml` are saved in the file that their first
//! line names, and lines with `# ` in blocks of `console` are typed and followed by what is seen. Used by main; runs nothing.

use anyhow::{Context, Result, bail, ensure};

/// The page, in its order.
pub(crate) struct Lesson {
    pub(crate) steps: Vec<Step>,
}

/// One thing to do, and the line of the page that says so.
pub(crate) enum Step {
    Type { line: usize, text: String },
    Save { line: usize, path: String, text: String },
    See { line: usize, command: String, answer: Vec<String> },
}

impl Lesson {
    /// A block without a use would not be tested: it is a fault.
    pub(crate) fn parse(page: &str) -> Result<Self> {
        let mut steps = Vec::new();
        let mut lines = page.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let Some(kind) = line.strip_prefix("```") else { continue };
            let block: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            let line = number + 1;
            match kind {
                "sh" => steps.push(Step::Type { line, text: block.join("\n") }),
                "yaml" => steps.push(saved(line, &block)?),
                "console" => steps.extend(seen(line, &block)?),
                "text" => {}
                other => {
                    bail!("line {line}: a block of {other:?}: expected sh, yaml, console, text")
                }
            }
        }
        ensure!(steps.len() > 20, "only {} steps are found", steps.len());
        Ok(Self { steps })
    }
}

fn saved(line: usize, block: &[&str]) -> Result<Step> {
    let path = block.first().and_then(|first| first.strip_prefix("# "));
    let path = path.with_context(|| format!("line {line}: expected the file's name"))?.to_owned();
    Ok(Step::Save { line, path, text: block.join("\n") + "\n" })
}

fn seen(line: usize, block: &[&str]) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    for (offset, text) in block.iter().enumerate() {
        match (text.strip_prefix("# "), steps.last_mut()) {
            (Some(command), _) => steps.push(Step::See {
                line: line + 1 + offset,
                command: command.to_owned(),
                answer: Vec::new(),
            }),
            (None, Some(Step::See { answer, .. })) => answer.push((*text).to_owned()),
            (None, _) => bail!("line {line}: {text:?} answers nothing"),
        }
    }
    Ok(steps)
}

//! What is on a page? Its anchors, links, blocks and pieces of code, as mdBook reads them. Knows nothing of Fairway. Used by the
//! cases.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// The folders with pages, and whether those below them count.
const FOLDERS: [(&str, bool); 2] = [("", false), ("docs", true)];

/// One page.
pub(crate) struct Page {
    /// From the checkout on: `docs/bfd.md`.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) anchors: Vec<String>,
    pub(crate) links: Vec<String>,
    pub(crate) blocks: Vec<Block>,
    /// Code within a line.
    pub(crate) inline: Vec<String>,
}

/// A block of code.
pub(crate) struct Block {
    /// What stands behind its fence; of an indented one nothing.
    pub(crate) kind: String,
    pub(crate) text: String,
}

impl Page {
    /// All pages that users and developers read, in the order of their paths.
    pub(crate) fn all() -> Result<Vec<Self>> {
        let mut paths = Vec::new();
        for (folder, is_deep) in FOLDERS {
            collect(Path::new(folder), is_deep, &mut paths)?;
        }
        paths.sort();
        paths.into_iter().map(Self::read).collect()
    }

    /// Those of the book.
    pub(crate) fn of_book() -> Result<Vec<Self>> {
        let pages = Self::all()?;
        Ok(pages.into_iter().filter(|page| page.path.starts_with("docs")).collect())
    }

    fn read(path: PathBuf) -> Result<Self> {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let mut page = Self {
            path,
            text: String::new(),
            anchors: Vec::new(),
            links: Vec::new(),
            blocks: Vec::new(),
            inline: Vec::new(),
        };
        let mut uses: BTreeMap<String, usize> = BTreeMap::new();
        let mut heading: Option<String> = None;
        let mut block: Option<Block> = None;
        for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let anchor = anchor_of(&heading.take().unwrap_or_default());
                    let earlier = uses.entry(anchor.clone()).or_default();
                    page.anchors.push(match *earlier {
                        0 => anchor,
                        number => format!("{anchor}-{number}"),
                    });
                    *earlier += 1;
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    let kind = match kind {
                        CodeBlockKind::Fenced(kind) => kind.into_string(),
                        CodeBlockKind::Indented => String::new(),
                    };
                    block = Some(Block { kind, text: String::new() });
                }
                Event::End(TagEnd::CodeBlock) => page.blocks.extend(block.take()),
                Event::Text(part) => {
                    if let Some(block) = &mut block {
                        block.text += &part;
                    }
                    if let Some(heading) = &mut heading {
                        *heading += &part;
                    }
                }
                Event::Code(code) => {
                    if let Some(heading) = &mut heading {
                        *heading += &code;
                    }
                    page.inline.push(code.into_string());
                }
                _ => {}
            }
        }
        page.text = text;
        Ok(page)
    }
}

/// The name that mdBook and GitHub give a heading.
fn anchor_of(heading: &str) -> String {
    let letters = heading.trim().chars().filter_map(|letter| match letter {
        _ if letter.is_alphanumeric() || letter == '_' || letter == '-' => {
            Some(letter.to_ascii_lowercase())
        }
        _ if letter.is_whitespace() => Some('-'),
        _ => None,
    });
    letters.collect()
}

fn collect(folder: &Path, is_deep: bool, paths: &mut Vec<PathBuf>) -> Result<()> {
    let place = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    for entry in fs::read_dir(place).with_context(|| place.display().to_string())? {
        let name = entry?.file_name();
        let path = folder.join(name);
        if path.is_dir() && is_deep {
            collect(&path, is_deep, paths)?;
        } else if path.extension().is_some_and(|it| it == "md") {
            paths.push(path);
        }
    }
    Ok(())
}

//! From parser events to a tree, within bounds.
//!
//! Resolves anchors, aliases and merge keys, and refuses what a hostile file could use to exhaust
//! memory: depth, nodes and bytes are counted after aliases are expanded. Knows no kinds; `yaml`
//! feeds it one document at a time.

use std::borrow::Cow;
use std::collections::BTreeMap;

use saphyr_parser::{Event, ScalarStyle, Tag};

use super::node::{Entry, Node, Value};
use super::scalar::{self, ScalarKind};
use crate::field_path::{FieldPath, Segment};

/// The maximum nesting depth of mappings and lists.
pub(super) const DEPTH_MAX: usize = 64;
/// Nodes of one document, aliases expanded; about 10,000 large objects in one `List`.
pub(super) const NODES_MAX: usize = 1_000_000;
/// Bytes of text of one document, aliases expanded.
pub(super) const TEXT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Why a document is unusable although its YAML grammar is valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TreeError {
    #[error("mappings and lists are more than {DEPTH_MAX} levels deep")]
    Depth,
    #[error("the document has more than {NODES_MAX} values once its aliases are expanded")]
    Nodes,
    #[error("the document has more than 64 MiB of text once its aliases are expanded")]
    Text,
    #[error("an alias refers to a value that contains it")]
    Cycle,
    #[error("a key of a mapping is a mapping or a list itself; expected text")]
    Key,
    #[error("the merge key << needs a mapping or a list of mappings")]
    Merge,
    // Not the tag itself: a password that begins with ! is one, unless it is in quotes.
    #[error(
        "a tag (!...) is not supported, or does not fit its value; put a value that begins with ! in quotes"
    )]
    Tag,
}

/// A duplicate key of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DuplicateKey {
    pub(super) path: FieldPath,
    pub(super) line: usize,
    pub(super) line_first: usize,
}

enum Frame {
    Sequence { line: usize, anchor: usize, elements: Vec<Node> },
    Mapping(MappingFrame),
}

struct MappingFrame {
    line: usize,
    anchor: usize,
    entries: Vec<Entry>,
    /// Lines of the keys so far.
    seen: BTreeMap<Box<str>, usize>,
    /// The key of the next value.
    key: Option<Key>,
    /// Values of merge keys, applied when all own keys are known.
    merged: Vec<Node>,
}

struct Key {
    text: Box<str>,
    line: usize,
    is_merge: bool,
    is_duplicate: bool,
}

struct Anchored {
    node: Node,
    size: Size,
}

#[derive(Clone, Copy, Default)]
struct Size {
    nodes: usize,
    text_bytes: usize,
    depth: usize,
}

/// Builds the tree of one document.
#[derive(Default)]
pub(super) struct TreeBuilder {
    frames: Vec<Frame>,
    anchors: BTreeMap<usize, Anchored>,
    size: Size,
    root: Option<Node>,
    pub(super) duplicates: Vec<DuplicateKey>,
}

impl TreeBuilder {
    /// Takes the next event of the document; `line` is where it begins in the file.
    pub(super) fn event(&mut self, event: Event<'_>, line: usize) -> Result<(), TreeError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => self.scalar(text, style, anchor, tag, line),
            Event::Alias(anchor) => self.alias(anchor, line),
            Event::SequenceStart(anchor, tag) => {
                require_tag(tag.as_deref(), "seq")?;
                self.open(Frame::Sequence { line, anchor, elements: Vec::new() })
            }
            Event::MappingStart(anchor, tag) => {
                require_tag(tag.as_deref(), "map")?;
                self.open(Frame::Mapping(MappingFrame {
                    line,
                    anchor,
                    entries: Vec::new(),
                    seen: BTreeMap::new(),
                    key: None,
                    merged: Vec::new(),
                }))
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            _ => Ok(()),
        }
    }

    /// The tree; what there is of it when the document ends prematurely.
    pub(super) fn finish(mut self) -> (Option<Node>, Vec<DuplicateKey>) {
        while !self.frames.is_empty() {
            // An incomplete document is only read for the object's name.
            if self.close().is_err() {
                break;
            }
        }
        (self.root, self.duplicates)
    }

    fn open(&mut self, frame: Frame) -> Result<(), TreeError> {
        if self.frames.len() >= DEPTH_MAX {
            return Err(TreeError::Depth);
        }
        if let Some(Frame::Mapping(MappingFrame { key: None, .. })) = self.frames.last() {
            return Err(TreeError::Key);
        }
        self.grow(Size { nodes: 1, ..Size::default() })?;
        self.frames.push(frame);
        Ok(())
    }

    fn close(&mut self) -> Result<(), TreeError> {
        let (line, anchor, value) = match self.frames.pop() {
            Some(Frame::Sequence { line, anchor, elements }) => {
                (line, anchor, Value::Sequence(elements))
            }
            Some(Frame::Mapping(mut frame)) => {
                merge(&mut frame)?;
                (frame.line, frame.anchor, Value::Mapping(frame.entries))
            }
            None => return Ok(()),
        };
        self.place(Node { line, value }, anchor)
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<Cow<'_, Tag>>,
        line: usize,
    ) -> Result<(), TreeError> {
        let kind = scalar_kind(&text, style, tag.as_deref())?;
        self.grow(Size { nodes: 1, text_bytes: text.len(), depth: 0 })?;
        if let Some(Frame::Mapping(frame)) = self.frames.last_mut()
            && frame.key.is_none()
        {
            let is_merge = style == ScalarStyle::Plain && text == "<<";
            let key = Key { text: text.into(), line, is_merge, is_duplicate: false };
            return self.take_key(key);
        }
        self.place(Node { line, value: Value::Scalar(text.into(), kind) }, anchor)
    }

    /// Remembers a key, unless the mapping has it already: then the first one counts.
    fn take_key(&mut self, mut key: Key) -> Result<(), TreeError> {
        let path = self.path().key(&key.text);
        let Some(Frame::Mapping(frame)) = self.frames.last_mut() else { return Ok(()) };
        match frame.seen.get(&key.text) {
            Some(&line_first) => {
                key.is_duplicate = true;
                self.duplicates.push(DuplicateKey { path, line: key.line, line_first });
            }
            None => {
                frame.seen.insert(key.text.clone(), key.line);
            }
        }
        frame.key = Some(key);
        Ok(())
    }

    fn alias(&mut self, anchor: usize, line: usize) -> Result<(), TreeError> {
        if let Some(Frame::Mapping(MappingFrame { key: None, .. })) = self.frames.last() {
            return Err(TreeError::Key);
        }
        // The parser knows every anchor; one that is not here yet is still open.
        let anchored = self.anchors.get(&anchor).ok_or(TreeError::Cycle)?;
        let size = anchored.size;
        if self.frames.len() + size.depth > DEPTH_MAX {
            return Err(TreeError::Depth);
        }
        self.grow(size)?;
        let node = self.anchors.get(&anchor).map(|anchored| anchored.node.clone());
        match node {
            // The line of the alias: that is where the user has to look.
            Some(node) => self.place(Node { line, value: node.value }, 0),
            None => Ok(()),
        }
    }

    /// Puts a complete value where it belongs.
    fn place(&mut self, node: Node, anchor: usize) -> Result<(), TreeError> {
        if anchor != 0 {
            let size = measure(&node);
            // The copy counts too; otherwise nested anchors would multiply a document by its depth.
            self.grow(size)?;
            self.anchors.insert(anchor, Anchored { node: node.clone(), size });
        }
        match self.frames.last_mut() {
            None => self.root = Some(node),
            Some(Frame::Sequence { elements, .. }) => elements.push(node),
            Some(Frame::Mapping(frame)) => match frame.key.take() {
                Some(key) if key.is_duplicate => {}
                Some(key) if key.is_merge => frame.merged.push(node),
                Some(key) => {
                    frame.entries.push(Entry { key: key.text, line: key.line, value: node });
                }
                None => return Err(TreeError::Key),
            },
        }
        Ok(())
    }

    fn grow(&mut self, by: Size) -> Result<(), TreeError> {
        self.size.nodes = self.size.nodes.saturating_add(by.nodes);
        self.size.text_bytes = self.size.text_bytes.saturating_add(by.text_bytes);
        if self.size.nodes > NODES_MAX {
            return Err(TreeError::Nodes);
        }
        if self.size.text_bytes > TEXT_BYTES_MAX {
            return Err(TreeError::Text);
        }
        Ok(())
    }

    /// Where the next value goes.
    fn path(&self) -> FieldPath {
        let step = |frame: &Frame| match frame {
            Frame::Sequence { elements, .. } => Some(Segment::Index(elements.len())),
            Frame::Mapping(frame) => {
                frame.key.as_ref().map(|key| Segment::Key(key.text.clone().into()))
            }
        };
        FieldPath::from_segments(self.frames.iter().filter_map(step).collect())
    }
}

/// Adds the fields of merge keys; a mapping's own fields take precedence, then the first merged one.
fn merge(frame: &mut MappingFrame) -> Result<(), TreeError> {
    for node in std::mem::take(&mut frame.merged) {
        let sources = match node.value {
            Value::Sequence(elements) => elements,
            _ => vec![node],
        };
        for source in sources {
            let Value::Mapping(entries) = source.value else { return Err(TreeError::Merge) };
            for entry in entries {
                if !frame.seen.contains_key(&entry.key) {
                    frame.seen.insert(entry.key.clone(), entry.line);
                    frame.entries.push(entry);
                }
            }
        }
    }
    Ok(())
}

fn measure(node: &Node) -> Size {
    let inner: Box<dyn Iterator<Item = Size>> = match &node.value {
        Value::Scalar(text, _) => {
            return Size { nodes: 1, text_bytes: text.len(), depth: 0 };
        }
        Value::Removed => return Size { nodes: 1, ..Size::default() },
        Value::Sequence(elements) => Box::new(elements.iter().map(measure)),
        Value::Mapping(entries) => Box::new(entries.iter().map(|entry| {
            let mut size = measure(&entry.value);
            size.nodes += 1;
            size.text_bytes += entry.key.len();
            size
        })),
    };
    inner.fold(Size { nodes: 1, text_bytes: 0, depth: 1 }, |sum, size| Size {
        nodes: sum.nodes + size.nodes,
        text_bytes: sum.text_bytes + size.text_bytes,
        depth: sum.depth.max(size.depth + 1),
    })
}

fn scalar_kind(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<ScalarKind, TreeError> {
    let plain = scalar::plain_kind(text);
    let kind = match tag {
        None if style == ScalarStyle::Plain => plain,
        None => ScalarKind::Text,
        Some(tag) if tag.is_yaml_core_schema() => match (tag.suffix.as_str(), plain) {
            ("str", _) => ScalarKind::Text,
            ("int", ScalarKind::Integer) => ScalarKind::Integer,
            ("float", ScalarKind::Integer | ScalarKind::Float) => ScalarKind::Float,
            ("bool", ScalarKind::Boolean) => ScalarKind::Boolean,
            ("null", ScalarKind::Null) => ScalarKind::Null,
            _ => return Err(TreeError::Tag),
        },
        // `!` alone means text.
        Some(tag) if tag.handle.is_empty() && tag.suffix == "!" => ScalarKind::Text,
        Some(_) => return Err(TreeError::Tag),
    };
    Ok(kind)
}

fn require_tag(tag: Option<&Tag>, suffix: &str) -> Result<(), TreeError> {
    match tag {
        Some(tag) if !tag.is_yaml_core_schema() || tag.suffix != suffix => Err(TreeError::Tag),
        _ => Ok(()),
    }
}

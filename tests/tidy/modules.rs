//! Which top-level modules of a crate import which, read from the source.

use std::collections::{BTreeMap, BTreeSet};

use std::path::Path;

use super::{code_of, is_test, rust_files};

/// The modules of one crate, each with those that it names.
pub(super) struct Modules(BTreeMap<String, BTreeSet<String>>);

impl Modules {
    /// Reads the source below `folder`, where `lib.rs` or `main.rs` is.
    pub(super) fn of(folder: &Path) -> Self {
        let files = rust_files(folder);
        let files = files.iter().filter(|path| !is_test(path));
        let named: Vec<(Vec<String>, String)> = files
            .map(|path| (module_path(path.strip_prefix(folder).unwrap()), code_of(path)))
            .collect();
        let tops = named.iter().filter_map(|(path, _)| path.first().cloned()).collect();
        let root = named.iter().filter(|(path, _)| path.is_empty());
        let exported = root.flat_map(|(_, code)| exports(code, &tops)).collect();
        let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (path, code) in &named {
            let Some(top) = path.first() else { continue };
            let found = imports(path, code).into_iter();
            let found = found.filter_map(|name| resolve(&name, &tops, &exported));
            edges.entry(top.clone()).or_default().extend(found.filter(|it| it != top));
        }
        Self(edges)
    }

    /// The shortest way from each module back to itself, each circle once.
    pub(super) fn circles(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let mut circles = Vec::new();
        for start in self.0.keys() {
            let Some(way) = self.way_back(start) else { continue };
            if seen.insert(way.iter().cloned().collect::<BTreeSet<_>>()) {
                circles.push(format!("{} -> {start}", way.join(" -> ")));
            }
        }
        circles
    }

    fn way_back(&self, start: &str) -> Option<Vec<String>> {
        let mut ways = vec![vec![start.to_owned()]];
        let mut reached = BTreeSet::new();
        while !ways.is_empty() {
            let mut longer = Vec::new();
            for way in ways {
                for next in self.0.get(way.last()?).into_iter().flatten() {
                    if next == start {
                        return Some(way);
                    }
                    if reached.insert(next.clone()) {
                        longer.push([way.clone(), vec![next.clone()]].concat());
                    }
                }
            }
            ways = longer;
        }
        None
    }
}

/// `a/b/mod.rs` and `a/b.rs` are `a::b`; the root of the crate has no path.
fn module_path(file: &Path) -> Vec<String> {
    let text = file.with_extension("").to_str().unwrap().to_owned();
    let parts = text.split('/').map(str::to_owned);
    parts.filter(|part| !["mod", "lib", "main"].contains(&part.as_str())).collect()
}

/// The names that the root of the crate takes from its modules, with the module of each.
fn exports(code: &str, tops: &BTreeSet<String>) -> Vec<(String, String)> {
    let paths = use_trees(code).into_iter().flat_map(|tree| leaves(&tree));
    let from_modules = paths.filter_map(|path| {
        let start = usize::from(matches!(path.first()?.as_str(), "crate" | "self"));
        let module = path.get(start)?;
        (tops.contains(module) && path.len() > start + 1)
            .then(|| (path.last().cloned().unwrap_or_default(), module.clone()))
    });
    from_modules.collect()
}

/// What a module at `path` imports from the root of its crate: the first word of each such path.
fn imports(path: &[String], code: &str) -> BTreeSet<String> {
    let trees = use_trees(code).into_iter().flat_map(|tree| leaves(&tree));
    let inline = words(code).into_iter();
    trees.chain(inline).filter_map(|named| from_root(path, &named)).collect()
}

fn from_root(path: &[String], named: &[String]) -> Option<String> {
    match named.first()?.as_str() {
        "crate" => named.get(1).cloned(),
        "super" => {
            let ups = named.iter().take_while(|word| *word == "super").count();
            if ups == path.len() { named.get(ups).cloned() } else { None }
        }
        _ => None,
    }
}

fn resolve(
    name: &str,
    tops: &BTreeSet<String>,
    exported: &BTreeMap<String, String>,
) -> Option<String> {
    tops.get(name).or_else(|| exported.get(name)).cloned()
}

/// The text between each `use` and its semicolon.
fn use_trees(code: &str) -> Vec<String> {
    let starts = code.match_indices("use ").filter(|(at, _)| {
        let before = code.get(..*at).unwrap_or_default();
        before.chars().next_back().is_none_or(|it| it.is_whitespace() || it == ')')
    });
    let trees = starts.filter_map(|(at, it)| code.get(at + it.len()..)?.split(';').next());
    trees.map(str::to_owned).collect()
}

/// The paths in a tree of a `use`, without their aliases.
fn leaves(tree: &str) -> Vec<Vec<String>> {
    let tree = tree.trim();
    let Some((prefix, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return vec![path.split("::").map(|word| word.trim().to_owned()).collect()];
    };
    let prefix: Vec<String> = prefix
        .split("::")
        .map(|word| word.trim().to_owned())
        .filter(|word| !word.is_empty())
        .collect();
    let inside = rest.rsplit_once('}').map_or(rest, |(inside, _)| inside);
    let below = split_top(inside).into_iter().flat_map(|part| leaves(&part));
    below.map(|path| [prefix.clone(), path].concat()).collect()
}

/// The parts between the commas that are in no braces.
fn split_top(text: &str) -> Vec<String> {
    let (mut parts, mut depth, mut part) = (Vec::new(), 0_i32, String::new());
    for character in text.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if character == ',' && depth == 0 {
            parts.push(std::mem::take(&mut part));
        } else {
            part.push(character);
        }
    }
    parts.push(part);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Paths that stand in the code itself.
fn words(code: &str) -> Vec<Vec<String>> {
    let is_part = |it: char| it.is_alphanumeric() || it == '_' || it == ':';
    let paths = code.split(|it| !is_part(it)).filter(|word| word.contains("::"));
    paths.map(|path| path.split("::").map(str::to_owned).collect()).collect()
}

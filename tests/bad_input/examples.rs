//! The folders under `examples`: what we show to others has nothing wrong and nothing odd.

use std::fs;
use std::path::{Path, PathBuf};

use fairway::resources::Catalog;

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut entries: Vec<PathBuf> = entries.collect();
    entries.sort();
    entries
}

#[test]
fn every_example_passes_the_check() {
    let examples = entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples"));
    let names: Vec<_> = examples.iter().filter_map(|it| it.file_name()?.to_str()).collect();
    assert_eq!(names, ["compose", "quickstart", "transit"]);
    for folder in examples {
        let mut catalog = Catalog::new();
        for file in entries(&folder) {
            let text = fs::read_to_string(&file).unwrap();
            catalog.file_read(file.to_str().unwrap(), &text);
        }
        let resolution = catalog.resolve();
        assert_eq!(resolution.findings, [], "{}", folder.display());
        assert!(resolution.objects.len() >= 4, "{}", folder.display());
    }
}

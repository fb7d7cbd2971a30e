//! What a container engine would read of an image.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::Value;

use super::{Architecture, Image, digest};

const SECONDS: u64 = 1_700_000_000;

fn image(architecture: Architecture) -> Vec<u8> {
    let image = Image {
        architecture,
        version: "1.2.3",
        seconds: SECONDS,
        daemon: b"the daemon",
        plugin: b"the plugin",
    };
    let mut archive = Vec::new();
    image.write(&mut archive).unwrap();
    archive
}

/// The files of the archive.
fn files(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(archive).entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        files.insert(path, content);
    }
    files
}

/// The blob that a descriptor names, which has its size and digest.
fn blob(files: &BTreeMap<String, Vec<u8>>, descriptor: &Value) -> Vec<u8> {
    let digest = descriptor["digest"].as_str().unwrap();
    let hexadecimal = digest.strip_prefix("sha256:").unwrap();
    let content = &files[&format!("blobs/sha256/{hexadecimal}")];
    assert_eq!(descriptor["size"], content.len());
    assert_eq!(digest::hexadecimal(content), hexadecimal);
    content.clone()
}

fn uncompressed(bytes: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut content).unwrap();
    content
}

#[test]
fn an_engine_finds_manifest_configuration_and_layer_by_their_digests() {
    let files = files(&image(Architecture::Arm64));
    assert_eq!(files["oci-layout"], br#"{"imageLayoutVersion":"1.0.0"}"#);
    let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
    let entry = &index["manifests"][0];
    assert_eq!(entry["platform"]["architecture"], "arm64");
    assert_eq!(entry["annotations"]["org.opencontainers.image.ref.name"], "1.2.3");
    let manifest: Value = serde_json::from_slice(&blob(&files, entry)).unwrap();
    let configuration: Value = serde_json::from_slice(&blob(&files, &manifest["config"])).unwrap();
    assert_eq!(configuration["architecture"], "arm64");
    assert_eq!(configuration["created"], "2023-11-14T22:13:20Z");
    assert_eq!(configuration["config"]["User"], "65532:65532");
    let layer = uncompressed(&blob(&files, &manifest["layers"][0]));
    let identity = format!("sha256:{}", digest::hexadecimal(&layer));
    assert_eq!(configuration["rootfs"]["diff_ids"], serde_json::json!([identity]));
}

#[test]
fn an_older_docker_finds_the_same_files() {
    let files = files(&image(Architecture::Amd64));
    let listed: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
    assert_eq!(listed[0]["RepoTags"], serde_json::json!(["fairway:1.2.3"]));
    let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
    let manifest: Value = serde_json::from_slice(&blob(&files, &index["manifests"][0])).unwrap();
    for (path, descriptor) in [
        (&listed[0]["Config"], &manifest["config"]),
        (&listed[0]["Layers"][0], &manifest["layers"][0]),
    ] {
        assert_eq!(files[path.as_str().unwrap()], blob(&files, descriptor));
    }
}

#[test]
fn the_layer_has_both_programs_of_root_and_the_capabilities_of_the_daemon() {
    let files = files(&image(Architecture::Amd64));
    let listed: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
    let layer = uncompressed(&files[listed[0]["Layers"][0].as_str().unwrap()]);
    let mut programs = BTreeMap::new();
    for entry in tar::Archive::new(&*layer).entries().unwrap() {
        let mut entry = entry.unwrap();
        let header = entry.header().clone();
        assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
        assert_eq!((header.mtime().unwrap(), header.mode().unwrap()), (SECONDS, 0o755));
        let extensions = entry.pax_extensions().unwrap();
        let attributes =
            extensions.into_iter().flatten().map(|it| it.unwrap().value_bytes().to_vec());
        let attributes: Vec<_> = attributes.collect();
        let path = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut content = String::new();
        entry.read_to_string(&mut content).unwrap();
        if header.entry_type().is_file() {
            programs.insert(path, (content, attributes));
        }
    }
    let of_daemon = vec![crate::capabilities::attribute()];
    let expected = BTreeMap::from([
        ("usr/lib/cni/fairway-cni".to_owned(), ("the plugin".to_owned(), vec![])),
        ("usr/local/bin/fairway".to_owned(), ("the daemon".to_owned(), of_daemon)),
    ]);
    assert_eq!(programs, expected);
}

#[test]
fn the_same_programs_give_the_same_bytes() {
    assert_eq!(image(Architecture::Amd64), image(Architecture::Amd64));
    assert_ne!(image(Architecture::Amd64), image(Architecture::Arm64));
}

//! The container image for clusters: what `docker/kubernetes` builds, without an engine.
//!
//! One layer with the two programs, which need nothing else. Refuses to know registries and files on disk;
//! `main` calls it. The format is that of OCI's image layout 1.0.0 in a tar archive; `manifest.json` is there
//! for versions of `docker load` that read no OCI layout.

use std::io::Write;

use anyhow::Result;
use clap::ValueEnum;
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

use crate::time::timestamp;
use crate::{capabilities, digest};

/// Names as containers have them.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Architecture {
    /// x86-64.
    Amd64,
    /// AArch64.
    Arm64,
}

impl Architecture {
    fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }
}

/// What an image is made of.
pub(crate) struct Image<'a> {
    /// What the programs run on.
    pub(crate) architecture: Architecture,
    /// The tag.
    pub(crate) version: &'a str,
    /// The time of everything, in seconds since 1970.
    pub(crate) seconds: u64,
    /// `fairway`.
    pub(crate) daemon: &'a [u8],
    /// `fairway-cni`.
    pub(crate) plugin: &'a [u8],
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIGURATION: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Nobody, to the programs: a number, so that an image without /etc/passwd has it.
const USER: &str = "65532:65532";

impl Image<'_> {
    /// The archive.
    pub(crate) fn write(&self, to: impl Write) -> Result<()> {
        let layer = self.layer()?;
        let compressed = compressed(&layer)?;
        let configuration = serde_json::to_vec(&self.configuration(&layer)?)?;
        let manifest = serde_json::to_vec(&json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": descriptor(CONFIGURATION, &configuration),
            "layers": [descriptor(LAYER, &compressed)],
        }))?;
        let name = format!("fairway:{}", self.version);
        let mut entry = descriptor(MANIFEST, &manifest);
        if let Some(entry) = entry.as_object_mut() {
            let platform = json!({"architecture": self.architecture.name(), "os": "linux"});
            entry.insert("platform".to_owned(), platform);
            let names = json!({
                "org.opencontainers.image.ref.name": self.version,
                // What containerd calls it.
                "io.containerd.image.name": format!("docker.io/library/{name}"),
            });
            entry.insert("annotations".to_owned(), names);
        }
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]});
        let for_docker = json!([{
            "Config": path_of_blob(&configuration),
            "RepoTags": [name],
            "Layers": [path_of_blob(&compressed)],
        }]);
        let mut blobs = [&configuration, &manifest, &compressed].map(|it| (path_of_blob(it), it));
        blobs.sort();
        let mut archive = Builder::new(to);
        self.add_folder(&mut archive, "blobs/")?;
        self.add_folder(&mut archive, "blobs/sha256/")?;
        for (path, content) in blobs {
            self.add_file(&mut archive, &path, content, 0o644)?;
        }
        self.add_file(&mut archive, "index.json", &serde_json::to_vec(&index)?, 0o644)?;
        self.add_file(&mut archive, "manifest.json", &serde_json::to_vec(&for_docker)?, 0o644)?;
        self.add_file(&mut archive, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#, 0o644)?;
        archive.into_inner()?.flush()?;
        Ok(())
    }

    /// The files of a container.
    fn layer(&self) -> Result<Vec<u8>> {
        let mut layer = Builder::new(Vec::new());
        for folder in ["usr/", "usr/lib/", "usr/lib/cni/"] {
            self.add_folder(&mut layer, folder)?;
        }
        self.add_file(&mut layer, "usr/lib/cni/fairway-cni", self.plugin, 0o755)?;
        for folder in ["usr/local/", "usr/local/bin/"] {
            self.add_folder(&mut layer, folder)?;
        }
        let capabilities = capabilities::attribute();
        layer.append_pax_extensions([("SCHILY.xattr.security.capability", &*capabilities)])?;
        self.add_file(&mut layer, "usr/local/bin/fairway", self.daemon, 0o755)?;
        Ok(layer.into_inner()?)
    }

    /// How it is started, and the uncompressed layer that it is made of.
    fn configuration(&self, layer: &[u8]) -> Result<Value> {
        let created = timestamp(self.seconds)?;
        Ok(json!({
            "created": created,
            "architecture": self.architecture.name(),
            "os": "linux",
            "config": {
                "User": USER,
                "Env": ["PATH=/usr/local/bin"],
                "Entrypoint": ["fairway"],
                "Labels": {
                    "org.opencontainers.image.title": "fairway",
                    "org.opencontainers.image.description":
                        "A BGP-first load balancer for bare-metal Kubernetes",
                    "org.opencontainers.image.licenses": "Apache-2.0",
                    "org.opencontainers.image.version": self.version,
                },
            },
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", digest::hexadecimal(layer))]},
            "history": [{"created": created, "created_by": "make dist"}],
        }))
    }

    fn add_folder<W: Write>(&self, to: &mut Builder<W>, path: &str) -> Result<()> {
        let mut header = self.header(0o755);
        header.set_entry_type(EntryType::Directory);
        Ok(to.append_data(&mut header, path, &[] as &[u8])?)
    }

    fn add_file<W: Write>(
        &self,
        to: &mut Builder<W>,
        path: &str,
        content: &[u8],
        mode: u32,
    ) -> Result<()> {
        let mut header = self.header(mode);
        header.set_entry_type(EntryType::Regular);
        header.set_size(u64::try_from(content.len())?);
        Ok(to.append_data(&mut header, path, content)?)
    }

    /// Of root, at the time of the release.
    fn header(&self, mode: u32) -> Header {
        let mut header = Header::new_ustar();
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(0);
        header.set_mtime(self.seconds);
        header
    }
}

fn compressed(bytes: &[u8]) -> Result<Vec<u8>> {
    // Without the time and the name of a file.
    let mut gzip = GzBuilder::new().write(Vec::new(), Compression::best());
    gzip.write_all(bytes)?;
    Ok(gzip.finish()?)
}

fn path_of_blob(content: &[u8]) -> String {
    format!("blobs/sha256/{}", digest::hexadecimal(content))
}

fn descriptor(media_type: &str, content: &[u8]) -> Value {
    let digest = format!("sha256:{}", digest::hexadecimal(content));
    json!({"mediaType": media_type, "digest": digest, "size": content.len()})
}

#[cfg(test)]
mod tests;

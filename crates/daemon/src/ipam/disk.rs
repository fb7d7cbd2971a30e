//! A store on the disk of one machine: a file for each block, as Calico's object.
//!
//! A block says whose it is and which handle has which address, so that affinities and handles are made from the blocks at
//! the start, and cost no write. A write is on disk before it is believed: a file beside, flushed, renamed, and the folder
//! flushed. Such files were chosen over a database since people, `fairway ipam show` and `check` can read them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fairway_ground::Prefix;
use fairway_ipam::calico::{self, Cluster};
use fairway_ipam::{
    Affinity, AffinityState, Block, Handle, Key, MemoryStore, Object, Owner, Selection, Store,
    StoreError, Version, Versioned, is_for_no_pod,
};
use fairway_node::document::FormatError;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use super::announced::NodeStore;
use crate::host::state_file::{StateError, StateFile};

/// The folder of blocks in the state directory.
const FOLDER: &str = "ipam-blocks";
/// How the file of a block ends.
const ENDING: &str = "json";

/// Why blocks cannot be read at the start.
#[derive(Debug, thiserror::Error)]
pub(super) enum DiskError {
    /// The folder.
    #[error("cannot read {}: {error}", path.display())]
    Folder {
        /// Where it is.
        path: PathBuf,
        /// The system's answer.
        error: io::Error,
    },
    /// A file.
    #[error(transparent)]
    File(#[from] StateError),
    /// A file whose content is no block, or another one than its name says.
    #[error("{}: {fault}; repair or remove the file: Pods may have addresses of its block", path.display())]
    Block {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: String,
    },
}

/// See the module.
pub(super) struct DiskStore {
    folder: PathBuf,
    memory: MemoryStore,
    /// Writes follow one another: what is believed of a block is what its file says.
    writing: Mutex<()>,
}

impl DiskStore {
    /// Reads all blocks; those without an owner named are this node's.
    pub(super) fn open(state_dir: &Path, node: &str) -> Result<Self, DiskError> {
        let folder = state_dir.join(FOLDER);
        let mut objects = Vec::new();
        let mut handles: Vec<Handle> = Vec::new();
        for path in
            files(&folder).map_err(|error| DiskError::Folder { path: folder.clone(), error })?
        {
            let block = read(&folder, &path)?;
            if let Some(owner) = block.owner() {
                let (owner, prefix) = (owner.clone(), block.prefix());
                let state = AffinityState::Confirmed;
                objects.push(Object::Affinity(Affinity { owner, prefix, state }));
            }
            count_handles(&block, &mut handles);
            objects.push(Object::Block(block));
        }
        objects.extend(handles.into_iter().map(Object::Handle));
        check_owners(&folder, &objects, node)?;
        Ok(Self { folder, memory: MemoryStore::new(objects), writing: Mutex::new(()) })
    }

    /// How many blocks there are.
    pub(super) fn block_count(&self) -> usize {
        self.memory.objects().iter().filter(|it| matches!(it, Object::Block(_))).count()
    }

    async fn save(&self, block: &Block) -> Result<(), StoreError> {
        let object = Object::Block(block.clone());
        let written = calico::write(&object, None).map_err(unavailable)?;
        let file = StateFile::new(&self.folder, file_name(block.prefix())?);
        let text = format!("{written:#}\n");
        spawn_blocking(move || file.save(&text)).await.map_err(unavailable)?.map_err(unavailable)
    }

    async fn remove(&self, prefix: Prefix) -> Result<(), StoreError> {
        let (folder, name) = (self.folder.clone(), file_name(prefix)?);
        let remove = move || {
            match fs::remove_file(folder.join(name)) {
                // An earlier attempt has removed it, or somebody else has.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                outcome => outcome?,
            }
            fs::File::open(folder)?.sync_all()
        };
        spawn_blocking(remove).await.map_err(unavailable)?.map_err(unavailable)
    }

    async fn is(&self, key: &Key, expected: Option<&Version>) -> Result<(), StoreError> {
        let found = self.memory.get(key).await?;
        match found.as_ref().map(|it| &it.version) == expected {
            true => Ok(()),
            false => Err(StoreError::Conflict),
        }
    }
}

fn unavailable(error: impl ToString) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

fn file_name(prefix: Prefix) -> Result<String, StoreError> {
    let name = calico::name(&Key::Block(prefix)).map_err(unavailable)?;
    Ok(format!("{name}.{ENDING}"))
}

/// The files of blocks; none without a folder.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == ENDING) {
            paths.push(path);
        }
    }
    paths.sort_unstable();
    Ok(paths)
}

fn read(folder: &Path, path: &Path) -> Result<Block, DiskError> {
    let fault = |fault: String| DiskError::Block { path: path.to_owned(), fault };
    let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
    let decode = |text: &str| serde_json::from_str::<Value>(text).map_err(|it| it.to_string());
    let decoded = StateFile::new(folder, name).load(|text| Ok::<_, FormatError>(decode(text)))?;
    let document = decoded.unwrap_or_else(|| Err("the file is gone".to_owned())).map_err(fault)?;
    let mut cluster = Cluster::default();
    cluster.read(&document);
    if let Some(found) = cluster.faults.first() {
        return Err(fault(found.to_string()));
    }
    let block = cluster.blocks.into_values().next();
    let block = block.ok_or_else(|| fault("it has no IPAMBlock".to_owned()))?;
    match file_name(block.prefix()) {
        Ok(it) if it == name => Ok(block),
        _ => Err(fault(format!("it has block {}", block.prefix()))),
    }
}

fn count_handles(block: &Block, handles: &mut Vec<Handle>) {
    for (_, attributes) in block.taken() {
        let handle = attributes.handle.clone().filter(|it| !is_for_no_pod(it));
        let Some(id) = handle else { continue };
        let index = match handles.binary_search_by(|it| it.id.cmp(&id)) {
            Ok(index) => index,
            Err(index) => {
                handles.insert(index, Handle { id, counts: Default::default() });
                index
            }
        };
        if let Some(handle) = handles.get_mut(index) {
            let count = handle.counts.entry(block.prefix()).or_default();
            *count = count.saturating_add(1);
        }
    }
}

/// Blocks of another node's name would lie idle, with addresses that Pods here may have.
fn check_owners(folder: &Path, objects: &[Object], node: &str) -> Result<(), DiskError> {
    let mut owners = objects.iter().filter_map(|it| match it {
        Object::Affinity(Affinity { owner: Owner::Host(host), prefix, .. }) => Some((host, prefix)),
        _ => None,
    });
    match owners.find(|(host, _)| *host != node) {
        None => Ok(()),
        Some((host, prefix)) => Err(DiskError::Block {
            path: folder.to_owned(),
            fault: format!("block {prefix} is of node {host:?}, and this is {node:?}: set --node"),
        }),
    }
}

impl NodeStore for DiskStore {
    fn own(&self) -> Option<(Vec<Block>, Vec<Affinity>)> {
        let (mut blocks, mut affinities) = (Vec::new(), Vec::new());
        for object in self.memory.objects() {
            match object {
                Object::Block(it) => blocks.push(it),
                Object::Affinity(it) => affinities.push(it),
                Object::Handle(_) => {}
            }
        }
        Some((blocks, affinities))
    }

    async fn refresh(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn settle(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Store for DiskStore {
    async fn get(&self, key: &Key) -> Result<Option<Versioned<Object>>, StoreError> {
        self.memory.get(key).await
    }

    async fn list(&self, selection: &Selection) -> Result<Vec<Versioned<Object>>, StoreError> {
        self.memory.list(selection).await
    }

    async fn write(
        &self,
        object: Object,
        expected: Option<&Version>,
    ) -> Result<Version, StoreError> {
        if let Object::Block(block) = &object {
            let _turn = self.writing.lock().await;
            self.is(&object.key(), expected).await?;
            self.save(block).await?;
            return self.memory.write(object, expected).await;
        }
        self.memory.write(object, expected).await
    }

    async fn delete(&self, key: &Key, expected: &Version) -> Result<(), StoreError> {
        if let Key::Block(prefix) = key {
            let _turn = self.writing.lock().await;
            self.is(key, Some(expected)).await?;
            self.remove(*prefix).await?;
            return self.memory.delete(key, expected).await;
        }
        self.memory.delete(key, expected).await
    }
}

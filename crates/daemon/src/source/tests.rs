//! The file source with real files and the real kernel, as people and Kubernetes change files.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

use super::disk::Target;
use super::tracker::{Occurrence, Tracker};
use super::{FileBatch, FileChange, FileSource, read_all};

/// Far more than any step takes.
const DEADLINE: Duration = Duration::from_secs(20);

struct Bench {
    folder: TempDir,
    source: FileSource,
    batches: Receiver<FileBatch>,
}

impl Bench {
    /// Watches a folder that holds these files.
    async fn new(files: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("watched")).unwrap();
        for (name, text) in files {
            fs::write(folder.path().join("watched").join(name), text).unwrap();
        }
        let watched = folder.path().join("watched");
        let (source, mut batches) = FileSource::start(&[watched], BTreeSet::new()).unwrap();
        let first = next_of(&mut batches).await.unwrap();
        assert_eq!(first.len(), files.len());
        Self { folder, source, batches }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("watched").join(name)
    }

    /// The next batch, its paths cut down to file names.
    async fn next(&mut self) -> Vec<FileChange> {
        let batch = next_of(&mut self.batches).await.unwrap();
        batch.into_iter().map(by_name).collect()
    }

    /// Expects that nothing arrives before the effect of `mark`.
    async fn expect_nothing_but(&mut self, mark: &str) {
        fs::write(self.path("mark.tmp"), mark).unwrap();
        fs::rename(self.path("mark.tmp"), self.path("mark.yaml")).unwrap();
        assert_eq!(self.next().await, [read("mark.yaml", mark)]);
    }
}

/// The next batch; `None` at the end of the stream.
async fn next_of(batches: &mut Receiver<FileBatch>) -> Option<Vec<FileChange>> {
    let batch = timeout(DEADLINE, batches.recv()).await.expect("no batch")?;
    Some(batch.changes)
}

fn name(path: &str) -> String {
    Path::new(path).file_name().unwrap().to_str().unwrap().to_owned()
}

fn by_name(change: FileChange) -> FileChange {
    match change {
        FileChange::Read { path, text } => FileChange::Read { path: name(&path), text },
        FileChange::Gone { path } => FileChange::Gone { path: name(&path) },
        FileChange::Unreadable { path, why } => FileChange::Unreadable { path: name(&path), why },
        FileChange::Ignored { path, why } => FileChange::Ignored { path: name(&path), why },
        FileChange::Readable { path } => FileChange::Readable { path: name(&path) },
    }
}

fn read(path: &str, text: &str) -> FileChange {
    FileChange::Read { path: path.to_owned(), text: text.to_owned() }
}

fn ignored(path: &str, why: &str) -> FileChange {
    FileChange::Ignored { path: path.to_owned(), why: format!("{why}; it is ignored") }
}

fn gone(path: &str) -> FileChange {
    FileChange::Gone { path: path.to_owned() }
}

#[tokio::test]
async fn the_first_batch_is_all_there_is() {
    let folder = TempDir::new().unwrap();
    for file in ["b.yaml", "a.yml", "c.json", ".hidden.yaml", "d.txt", "e.yaml~"] {
        fs::write(folder.path().join(file), file).unwrap();
    }
    fs::create_dir(folder.path().join("below")).unwrap();
    fs::write(folder.path().join("below/f.yaml"), "f").unwrap();
    let paths = [folder.path().to_owned()];
    let (_source, mut batches) = FileSource::start(&paths, BTreeSet::new()).unwrap();
    let first = next_of(&mut batches).await.unwrap();
    assert_eq!(first, read_all(&paths).unwrap());
    let names: Vec<_> = first.into_iter().map(by_name).collect();
    let expected = ["a.yml", "b.yaml", "c.json"].map(|name| read(name, name));
    assert_eq!(names, expected);
}

#[tokio::test]
async fn a_path_that_does_not_exist_is_named() {
    let paths = [PathBuf::from("/nowhere/at/all.yaml")];
    for error in
        [FileSource::start(&paths, BTreeSet::new()).map(|_| ()), read_all(&paths).map(|_| ())]
    {
        // As the command line prints it.
        let text = format!("{:#}", anyhow::Error::from(error.unwrap_err()));
        assert_eq!(text, "/nowhere/at/all.yaml: No such file or directory (os error 2)");
    }
}

#[tokio::test]
async fn writing_and_moving_over_are_one_read_each() {
    let mut bench = Bench::new(&[("a.yaml", "1")]).await;
    fs::write(bench.path("a.yaml"), "2").unwrap();
    assert_eq!(bench.next().await, [read("a.yaml", "2")]);
    fs::write(bench.path("a.tmp"), "3").unwrap();
    fs::rename(bench.path("a.tmp"), bench.path("a.yaml")).unwrap();
    assert_eq!(bench.next().await, [read("a.yaml", "3")]);
    // The same content again is not a change.
    fs::write(bench.path("a.yaml"), "3").unwrap();
    bench.expect_nothing_but("x").await;
}

#[tokio::test]
async fn removing_and_moving_away_withdraw() {
    let mut bench = Bench::new(&[("a.yaml", "1"), ("b.yaml", "1")]).await;
    fs::remove_file(bench.path("a.yaml")).unwrap();
    assert_eq!(bench.next().await, [gone("a.yaml")]);
    fs::rename(bench.path("b.yaml"), bench.path("b.off")).unwrap();
    assert_eq!(bench.next().await, [gone("b.yaml")]);
}

#[test]
fn a_file_that_is_removed_and_written_anew_is_never_gone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.yaml");
    fs::write(&path, "1").unwrap();
    let mut tracker = Tracker::new(vec![Target::new(folder.path()).unwrap()], BTreeSet::new());
    assert_eq!(tracker.rescan_all().len(), 1);
    // As git does, and as editors do that keep a backup.
    fs::rename(&path, folder.path().join("a.yaml~")).unwrap();
    assert_eq!(tracker.occurred(&path, Occurrence::Vanished), []);
    let doubtful = tracker.doubtful().clone();
    fs::write(&path, "2").unwrap();
    assert_eq!(tracker.occurred(&path, Occurrence::Created), []);
    assert_eq!(tracker.settle(&doubtful), []);
    let changes = tracker.occurred(&path, Occurrence::Content);
    assert_eq!(changes.into_iter().map(by_name).collect::<Vec<_>>(), [read("a.yaml", "2")]);
    // The same, but it stays removed.
    fs::remove_file(&path).unwrap();
    tracker.occurred(&path, Occurrence::Vanished);
    let doubtful = tracker.doubtful().clone();
    let changes = tracker.settle(&doubtful);
    assert_eq!(changes.into_iter().map(by_name).collect::<Vec<_>>(), [gone("a.yaml")]);
    assert!(tracker.doubtful().is_empty());
}

#[tokio::test]
async fn links_count_when_they_appear() {
    let mut bench = Bench::new(&[("a.yaml", "1")]).await;
    symlink("a.yaml", bench.path("b.yaml")).unwrap();
    assert_eq!(bench.next().await, [read("b.yaml", "1")]);
    fs::hard_link(bench.path("a.yaml"), bench.path("c.yaml")).unwrap();
    assert_eq!(bench.next().await, [read("c.yaml", "1")]);
}

/// Writes a version of a mounted ConfigMap and swaps it in, as the kubelet does.
fn swap_in(folder: &Path, version: &str, files: &[&str]) {
    fs::create_dir(folder.join(version)).unwrap();
    for file in files {
        fs::write(folder.join(version).join(file), format!("{version} {file}")).unwrap();
    }
    symlink(version, folder.join("..data_tmp")).unwrap();
    fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
}

/// Watches a ConfigMap that holds a.yaml and b.yaml.
async fn config_map() -> Bench {
    let bench = Bench::new(&[]).await;
    let folder = bench.path("");
    drop(bench.source);
    swap_in(&folder, "..1", &["a.yaml", "b.yaml"]);
    for file in ["a.yaml", "b.yaml"] {
        symlink(format!("..data/{file}"), folder.join(file)).unwrap();
    }
    let (source, mut batches) = FileSource::start(&[folder], BTreeSet::new()).unwrap();
    next_of(&mut batches).await.unwrap();
    Bench { folder: bench.folder, source, batches }
}

#[tokio::test]
async fn a_config_map_update_is_one_batch() {
    let mut bench = config_map().await;
    swap_in(&bench.path(""), "..2", &["a.yaml", "b.yaml"]);
    fs::remove_dir_all(bench.path("..1")).unwrap();
    assert_eq!(bench.next().await, [read("a.yaml", "..2 a.yaml"), read("b.yaml", "..2 b.yaml")]);
}

#[tokio::test]
async fn a_file_that_a_config_map_loses_is_gone_and_nothing_else() {
    let mut bench = config_map().await;
    swap_in(&bench.path(""), "..2", &["a.yaml"]);
    assert_eq!(bench.next().await, [read("a.yaml", "..2 a.yaml")]);
    fs::remove_file(bench.path("b.yaml")).unwrap();
    assert_eq!(bench.next().await, [gone("b.yaml")]);
    bench.expect_nothing_but("after").await;
}

#[tokio::test]
async fn a_link_to_nothing_counts_as_gone_until_it_leads_somewhere() {
    let mut bench = Bench::new(&[("a.yaml", "1")]).await;
    let target = bench.folder.path().join("target");
    let nothing = ignored("b.yaml", "is a symbolic link to nothing");
    symlink(&target, bench.path("b.yaml")).unwrap();
    assert_eq!(bench.next().await, std::slice::from_ref(&nothing));
    fs::write(&target, "2").unwrap();
    assert_eq!(bench.next().await, [read("b.yaml", "2")]);
    fs::remove_file(&target).unwrap();
    assert_eq!(bench.next().await, [nothing]);
    fs::remove_file(bench.path("b.yaml")).unwrap();
    assert_eq!(bench.next().await, [gone("b.yaml")]);
}

#[tokio::test]
async fn what_a_link_leads_to_is_read_when_it_changes() {
    let mut bench = Bench::new(&[]).await;
    let outside = |name: &str| bench.folder.path().join(name);
    let (target, middle) = (outside("target"), outside("middle"));
    fs::write(&target, "1").unwrap();
    symlink("target", &middle).unwrap();
    symlink("../middle", bench.path("a.yaml")).unwrap();
    let (_source, mut single) =
        FileSource::start(std::slice::from_ref(&middle), BTreeSet::new()).unwrap();
    timeout(DEADLINE, single.recv()).await.unwrap().unwrap();
    assert_eq!(bench.next().await, [read("a.yaml", "1")]);
    let other = bench.folder.path().join("other");
    let rewrite = |text: &str| fs::write(&target, text).unwrap();
    let replace = |text: &str| {
        fs::write(&other, text).unwrap();
        fs::rename(&other, &target).unwrap();
    };
    for text in ["22", "333"] {
        if text == "22" {
            rewrite(text)
        } else {
            replace(text)
        }
        assert_eq!(bench.next().await, [read("a.yaml", text)]);
        let batch = timeout(DEADLINE, single.recv()).await.unwrap().unwrap();
        assert_eq!(
            batch.changes.into_iter().map(by_name).collect::<Vec<_>>(),
            [read("middle", text)]
        );
    }
}

#[test]
fn what_a_link_leads_to_is_read_only_when_it_rests() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("watched")).unwrap();
    let target = folder.path().join("target");
    fs::write(&target, "1").unwrap();
    symlink("../target", folder.path().join("watched/a.yaml")).unwrap();
    let watched = Target::new(&folder.path().join("watched")).unwrap();
    let mut tracker = Tracker::new(vec![watched], BTreeSet::new());
    assert_eq!(tracker.rescan_all().len(), 1);
    let check = |tracker: &mut Tracker| -> Vec<_> {
        tracker.check_links().into_iter().map(by_name).collect()
    };
    for text in ["", "12", "123"] {
        fs::write(&target, text).unwrap();
        assert_eq!(check(&mut tracker), []);
        assert!(tracker.has_restless_link());
    }
    assert_eq!(check(&mut tracker), [read("a.yaml", "123")]);
    assert!(!tracker.has_restless_link());
    assert_eq!(check(&mut tracker), []);
}

#[tokio::test]
async fn what_is_no_file_is_ignored_by_all_commands_alike() {
    let mut bench = Bench::new(&[("a.yaml", "1")]).await;
    let folder = ignored("b.yaml", "is a folder, not a regular file");
    fs::create_dir(bench.path("b.yaml")).unwrap();
    assert_eq!(bench.next().await, std::slice::from_ref(&folder));
    let checked = read_all(&[bench.path("")]).unwrap();
    let checked: Vec<_> = checked.into_iter().map(by_name).collect();
    assert_eq!(checked, [read("a.yaml", "1"), folder]);
    fs::remove_dir(bench.path("b.yaml")).unwrap();
    assert_eq!(bench.next().await, [gone("b.yaml")]);
    let socket = std::os::unix::net::UnixListener::bind(bench.path("c.yaml")).unwrap();
    assert_eq!(bench.next().await, [ignored("c.yaml", "is a special file, not a regular file")]);
    drop(socket);
}

#[tokio::test]
async fn a_folder_that_may_not_be_read_any_more_is_noticed_and_read_again() {
    let mut bench = Bench::new(&[("a.yaml", "1"), ("b.yaml", "1")]).await;
    let watched = bench.path("");
    let set_mode = |mode| fs::set_permissions(&watched, fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o000);
    if fs::read_dir(&watched).is_ok() {
        // root may read everything.
        set_mode(0o755);
        return;
    }
    let batch = next_of(&mut bench.batches).await.unwrap();
    assert!(matches!(batch.as_slice(), [FileChange::Unreadable { .. }]), "{batch:?}");
    set_mode(0o755);
    assert_eq!(bench.next().await, [FileChange::Readable { path: "watched".to_owned() }]);
    bench.expect_nothing_but("watched again").await;
    set_mode(0o444);
    let batch = next_of(&mut bench.batches).await.unwrap();
    assert_eq!(batch.len(), 3, "{batch:?}");
    set_mode(0o755);
    assert_eq!(bench.next().await.len(), 3);
    fs::remove_file(bench.path("a.yaml")).unwrap();
    assert_eq!(bench.next().await, [gone("a.yaml")]);
}

#[tokio::test]
async fn a_file_that_is_no_text_changes_nothing_but_is_told() {
    let mut bench = Bench::new(&[("a.yaml", "1")]).await;
    fs::write(bench.path("a.yaml"), b"ok\n\xff").unwrap();
    let batch = bench.next().await;
    let [FileChange::Unreadable { path, why }] = batch.as_slice() else { panic!("{batch:?}") };
    assert_eq!(path, "a.yaml");
    assert!(why.contains("line 2 is not UTF-8"), "{why}");
    // The earlier content is a change now.
    fs::write(bench.path("a.yaml"), "1").unwrap();
    assert_eq!(bench.next().await, [read("a.yaml", "1")]);
}

#[tokio::test]
async fn a_folder_that_moves_away_withdraws_nothing_and_is_found_again() {
    let mut bench = Bench::new(&[("a.yaml", "1"), ("b.yaml", "1")]).await;
    let (watched, aside) = (bench.path(""), bench.folder.path().join("aside"));
    fs::rename(&watched, &aside).unwrap();
    let batch = bench.next().await;
    assert!(matches!(batch.as_slice(), [FileChange::Unreadable { .. }]), "{batch:?}");
    // Events of the moved folder are ignored.
    fs::remove_file(aside.join("a.yaml")).unwrap();
    let fresh = bench.folder.path().join("fresh");
    fs::create_dir(&fresh).unwrap();
    fs::write(fresh.join("b.yaml"), "2").unwrap();
    fs::rename(&fresh, &watched).unwrap();
    let batch = bench.next().await;
    let expected =
        [FileChange::Readable { path: "watched".to_owned() }, read("b.yaml", "2"), gone("a.yaml")];
    assert_eq!(batch, expected);
    bench.expect_nothing_but("watched again").await;
}

#[tokio::test]
async fn a_link_that_is_pointed_at_another_folder_is_noticed() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    for version in ["1", "2"] {
        fs::create_dir(at(version)).unwrap();
        fs::write(at(version).join("a.yaml"), version).unwrap();
    }
    symlink("1", at("current")).unwrap();
    let (_source, mut batches) = FileSource::start(&[at("current")], BTreeSet::new()).unwrap();
    next_of(&mut batches).await.unwrap();
    symlink("2", at("next")).unwrap();
    fs::rename(at("next"), at("current")).unwrap();
    let batch = next_of(&mut batches).await.unwrap();
    assert_eq!(batch.into_iter().map(by_name).collect::<Vec<_>>(), [read("a.yaml", "2")]);
}

#[tokio::test]
async fn a_single_file_is_watched_through_its_folder() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("fairway.conf");
    fs::write(&path, "1").unwrap();
    let (_source, mut batches) =
        FileSource::start(std::slice::from_ref(&path), BTreeSet::new()).unwrap();
    next_of(&mut batches).await.unwrap();
    fs::write(folder.path().join("other.yaml"), "x").unwrap();
    fs::write(folder.path().join("tmp"), "2").unwrap();
    fs::rename(folder.path().join("tmp"), &path).unwrap();
    let batch = next_of(&mut batches).await.unwrap();
    assert_eq!(batch, [read(path.to_str().unwrap(), "2")]);
    fs::remove_file(&path).unwrap();
    let batch = next_of(&mut batches).await.unwrap();
    assert_eq!(batch, [gone(path.to_str().unwrap())]);
}

#[tokio::test]
async fn rereading_finds_what_no_event_told() {
    let folder = TempDir::new().unwrap();
    let elsewhere = TempDir::new().unwrap();
    fs::write(elsewhere.path().join("a"), "1").unwrap();
    symlink(elsewhere.path().join("a"), folder.path().join("a.yaml")).unwrap();
    let (source, mut batches) =
        FileSource::start(&[folder.path().to_owned()], BTreeSet::new()).unwrap();
    next_of(&mut batches).await.unwrap();
    fs::write(elsewhere.path().join("a"), "2").unwrap();
    source.reread();
    let batch = next_of(&mut batches).await.unwrap();
    assert_eq!(batch.into_iter().map(by_name).collect::<Vec<_>>(), [read("a.yaml", "2")]);
    // There is nothing else.
    assert_eq!(next_of(&mut batches).await.unwrap(), []);
}

#[tokio::test]
async fn the_stream_ends_with_its_source() {
    let mut bench = Bench::new(&[]).await;
    drop(bench.source);
    assert_eq!(next_of(&mut bench.batches).await, None);
}

/// What a lost mount looks like: the path means another folder, without files.
#[tokio::test]
async fn a_folder_that_became_an_empty_one_is_held_until_somebody_says_it_is_meant() {
    let mut bench = Bench::new(&[("a.yaml", "one"), ("b.yaml", "two")]).await;
    let (watched, kept) = (bench.path(""), bench.folder.path().join("kept"));
    let lose = || {
        fs::rename(&watched, &kept).unwrap();
        fs::create_dir(&watched).unwrap();
    };
    lose();
    let held = next_matching(&mut bench.batches, "has no files any more").await;
    assert!(held.iter().all(|it| !matches!(it, FileChange::Gone { .. })), "{held:?}");
    // It comes back with what it had.
    fs::remove_dir(&watched).unwrap();
    fs::rename(&kept, &watched).unwrap();
    let back = next_of(&mut bench.batches).await.unwrap();
    assert!(matches!(back.as_slice(), [FileChange::Readable { .. }]), "{back:?}");
    lose();
    next_matching(&mut bench.batches, "has no files any more").await;
    bench.source.accept_empty();
    let gone: Vec<_> = next_of(&mut bench.batches).await.unwrap();
    let count = gone.iter().filter(|it| matches!(it, FileChange::Gone { .. })).count();
    assert_eq!(count, 2, "{gone:?}");
}

/// Somebody copies a backup into the folder that is there now.
#[tokio::test]
async fn files_that_come_back_one_by_one_take_no_other_along() {
    let mut bench = Bench::new(&[("a.yaml", "one"), ("b.yaml", "two")]).await;
    let watched = bench.path("");
    fs::rename(&watched, bench.folder.path().join("lost")).unwrap();
    fs::create_dir(&watched).unwrap();
    next_matching(&mut bench.batches, "has no files any more").await;
    fs::write(bench.path("a.yaml"), "one").unwrap();
    let soon = timeout(Duration::from_millis(700), bench.batches.recv()).await;
    assert!(soon.is_err(), "{soon:?}");
    fs::write(bench.path("b.yaml"), "two").unwrap();
    let back = next_of(&mut bench.batches).await.unwrap();
    assert!(matches!(back.as_slice(), [FileChange::Readable { .. }]), "{back:?}");
    // Those that do not come back are gone after a while.
    fs::rename(&watched, bench.folder.path().join("lost again")).unwrap();
    fs::create_dir(&watched).unwrap();
    next_matching(&mut bench.batches, "has no files any more").await;
    fs::write(bench.path("a.yaml"), "one").unwrap();
    let changes = next_of(&mut bench.batches).await.unwrap();
    assert!(changes.iter().any(|it| matches!(it, FileChange::Gone { .. })), "{changes:?}");
}

#[tokio::test]
async fn the_last_file_that_is_deleted_goes() {
    let mut bench = Bench::new(&[("a.yaml", "one")]).await;
    fs::remove_file(bench.path("a.yaml")).unwrap();
    assert_eq!(bench.next().await, [gone("a.yaml")]);
}

/// Releases are flipped by a link.
#[tokio::test]
async fn another_folder_with_files_is_read_as_usual() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (release, file) in [("one", "a.yaml"), ("two", "b.yaml")] {
        fs::create_dir(at(release)).unwrap();
        fs::write(at(release).join(file), release).unwrap();
    }
    symlink("one", at("current")).unwrap();
    let paths = [at("current")];
    let (_source, mut batches) = FileSource::start(&paths, BTreeSet::new()).unwrap();
    next_of(&mut batches).await.unwrap();
    symlink("two", at("next")).unwrap();
    fs::rename(at("next"), at("current")).unwrap();
    let changes: Vec<_> = next_of(&mut batches).await.unwrap().into_iter().map(by_name).collect();
    assert!(changes.contains(&gone("a.yaml")), "{changes:?}");
    assert!(changes.contains(&read("b.yaml", "two")), "{changes:?}");
}

#[tokio::test]
async fn a_start_on_an_empty_folder_holds_what_the_previous_run_had() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("a.yaml");
    let expected = BTreeSet::from([file.display().to_string()]);
    let paths = [folder.path().to_owned()];
    let (source, mut batches) = FileSource::start(&paths, expected).unwrap();
    next_matching(&mut batches, "has no files any more").await;
    fs::write(&file, "one").unwrap();
    let changes = next_of(&mut batches).await.unwrap();
    assert!(changes.iter().any(|it| matches!(it, FileChange::Read { .. })), "{changes:?}");
    drop((source, batches));
    fs::remove_file(&file).unwrap();
    // Nothing is expected of the first start.
    let (_source, mut batches) = FileSource::start(&paths, BTreeSet::new()).unwrap();
    assert_eq!(next_of(&mut batches).await.unwrap(), []);
}

/// A pipe takes the name of a file between two looks at it: nobody waits for its writer.
#[tokio::test]
async fn a_pipe_in_place_of_a_file_holds_up_no_other() {
    let mut bench = Bench::new(&[("a.yaml", "one")]).await;
    let pipe = bench.folder.path().join("pipe");
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
    for round in 0..20 {
        fs::write(bench.path("new"), "text").unwrap();
        fs::rename(bench.path("new"), bench.path("a.yaml")).unwrap();
        fs::hard_link(&pipe, bench.path("new")).unwrap();
        fs::rename(bench.path("new"), bench.path("a.yaml")).unwrap();
        fs::write(bench.path("new"), format!("{round}")).unwrap();
        fs::rename(bench.path("new"), bench.path("b.yaml")).unwrap();
        loop {
            if bench.next().await.contains(&read("b.yaml", &format!("{round}"))) {
                break;
            }
        }
    }
}

/// The first batch with these words.
async fn next_matching(batches: &mut Receiver<FileBatch>, words: &str) -> Vec<FileChange> {
    loop {
        let batch = next_of(batches).await.unwrap();
        let has = |it: &FileChange| matches!(it, FileChange::Unreadable { why, .. } if why.contains(words));
        if batch.iter().any(has) {
            return batch;
        }
    }
}

//! What is tried with the files that Fairway reads? Used by the field.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::Trial;
use crate::scene::{QUICK, Scene, service_text};
use lab::make_directory;
use lab::usage::Usage;

/// The Service whose file is spoiled.
const SPOILED: usize = 3;

/// How often what is fast is repeated.
const MANY: usize = 300;

/// What a file may cost.
const MEMORY_MAX_MEBIBYTES: f64 = 128.0;

const STALE: &str = "`show config`; `metallb_k8s_client_config_stale_bool`";
const FINDING: &str = "`show config`; `fairway_config_findings`";
const STAYS: &str = "the last good version stays in force, the file is named";
const IGNORED: &str = "it is named and ignored, all other files are read";

pub(super) const TRIALS: &[Trial] = &[
    Trial::new("a Service's file turns into bytes that are not UTF-8", STAYS, STALE, |scene| {
        spoil(scene, b"kind: \xFF\xFE\n", &["is not UTF-8"])
    }),
    Trial::new(
        "a Service's file turns into NUL bytes, as after a lost write",
        STAYS,
        STALE,
        |scene| spoil(scene, &[0; 4096], &["is not valid YAML"]),
    ),
    Trial::new("a Service's file ends in the middle, as on a full disk", STAYS, STALE, |scene| {
        let text = service_text(SPOILED);
        let half = text.as_bytes().get(..text.len() / 2).context("half of the file")?;
        spoil(scene, half, &[])
    }),
    Trial::new("a Service's file grows to 1 GiB", STAYS, STALE, |scene| {
        let grow = |path: &Path| File::create(path)?.set_len(1 << 30).context("growing it");
        spoil_by(scene, grow, &["is larger than 16 MiB"])?;
        // It is not read to its end.
        Usage::of(scene.fairway.process_id()?)?.expect_peak_below(MEMORY_MAX_MEBIBYTES)
    }),
    Trial::new("a Service's file has 100,000 nested lists", STAYS, STALE, |scene| {
        spoil(scene, "[".repeat(100_000).as_bytes(), &["levels deep"])
    }),
    Trial::new("YAML aliases that expand to a billion values", STAYS, STALE, |scene| {
        spoil(scene, many_aliases().as_bytes(), &["once its aliases are expanded"])
    }),
    Trial::new(
        "escape sequences and a right-to-left override in a name",
        "they are printed as `\\u{1b}`, never as they are",
        FINDING,
        escape_sequences,
    ),
    Trial::new(
        "a password that YAML reads as a tag",
        "the Secret has a fault, nothing prints the password",
        FINDING,
        password_as_tag,
    ),
    Trial::new(
        "a second file defines a Service in force",
        "the first definition stays in force, the second one is named",
        FINDING,
        |scene| {
            with_another(
                scene,
                |path| fs::write(path, service_text(SPOILED)).context("writing it"),
                &["is defined already"],
            )
        },
    ),
    Trial::new("a folder with the name of a resource file", IGNORED, FINDING, |scene| {
        with_another(scene, make_directory, &["is a folder"])
    }),
    Trial::new("a symbolic link to itself", IGNORED, FINDING, |scene| {
        with_another(scene, |path| link("another.yaml", path), &["symbolic links"])
    }),
    Trial::new("a symbolic link to nothing", IGNORED, FINDING, |scene| {
        with_another(scene, |path| link("nowhere", path), &["is a symbolic link to nothing"])
    }),
    Trial::new("a symbolic link to /dev/zero, which never ends", IGNORED, FINDING, |scene| {
        with_another(scene, |path| link("/dev/zero", path), &["is a special file"])
    }),
    Trial::new("a socket with the name of a resource file", IGNORED, FINDING, |scene| {
        let bind = |path: &Path| UnixListener::bind(path).map(drop).context("binding it");
        with_another(scene, bind, &["is a special file"])
    }),
    Trial::new(
        "a Service's file is written in place, empty for an instant, 300 times",
        "no route goes",
        "`fairway_event_to_update_seconds`",
        written_in_place,
    ),
    Trial::new(
        "5,000 files that are no resources appear, and go",
        "nothing changes",
        "`show config`",
        other_files,
    ),
    Trial::new(
        "SIGHUP 300 times, as fast as it can be sent",
        "all files are read again, nothing changes",
        "log: `reading all files again`",
        |scene| (0..MANY).try_for_each(|_| scene.signal(nix::sys::signal::Signal::SIGHUP)),
    ),
];

/// Puts this in the place of a file whose object is in force, waits for the fault, and puts the file back.
fn spoil(scene: &mut Scene, bytes: &[u8], words: &[&str]) -> Result<()> {
    spoil_by(scene, |path| fs::write(path, bytes).context("writing it"), words)
}

/// The same with a file that is made so.
fn spoil_by(scene: &mut Scene, make: impl Fn(&Path) -> Result<()>, words: &[&str]) -> Result<()> {
    let name = format!("service-{SPOILED}");
    let staged = scene.in_folder(".spoiled");
    make(&staged)?;
    fs::rename(&staged, scene.fairway.resource(&name)).context("moving it in place")?;
    scene.fault_is_shown(&[&[name.as_str()], words].concat(), QUICK)?;
    scene.is_stale(true)?;
    scene.expect_all_routes()?;
    scene.apply(&name, &service_text(SPOILED))
}

/// Makes one more entry of the folder, waits for the finding, and removes it.
fn with_another(
    scene: &mut Scene,
    make: impl Fn(&Path) -> Result<()>,
    words: &[&str],
) -> Result<()> {
    // The last one in the order of names.
    let path = scene.in_folder("zz-another.yaml");
    make(&path)?;
    let found = scene.fault_is_shown(&[&["zz-another.yaml"], words].concat(), QUICK);
    let removed = if path.is_dir() { fs::remove_dir(&path) } else { fs::remove_file(&path) };
    removed.context("removing it")?;
    found
}

fn link(target: &str, path: &Path) -> Result<()> {
    let target = if target == "another.yaml" { path.to_owned() } else { target.into() };
    symlink(target, path).context("making the link")
}

/// Nine of nine of nine, to the ninth power.
fn many_aliases() -> String {
    let mut text = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (before, name) in ('a'..='h').zip('b'..='i') {
        let aliases = vec![format!("*{before}"); 9].join(", ");
        text += &format!("{name}: &{name} [{aliases}]\n");
    }
    text
}

fn escape_sequences(scene: &mut Scene) -> Result<()> {
    let text = "apiVersion: v1\nkind: Service\nmetadata: {name: \"a\\e[2J\\u202E\"}\n";
    with_another(
        scene,
        |path| fs::write(path, text).context("writing it"),
        &["\\u{1b}[2J\\u{202e}"],
    )?;
    let log = scene.log()?;
    ensure!(!log.contains(['\u{1b}', '\u{202e}']), "the log has them");
    Ok(())
}

fn password_as_tag(scene: &mut Scene) -> Result<()> {
    const PASSWORD: &str = "hunter2-of-the-rack";
    let text = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: rack}}\nstringData:\n  password: !{PASSWORD}\n"
    );
    let path = scene.in_folder("zz-another.yaml");
    fs::write(&path, text).context("writing it")?;
    let found = scene.fault_is_shown(&["zz-another.yaml"], QUICK);
    let shown = scene.fairway.show_text(&["config"])?;
    fs::remove_file(&path).context("removing it")?;
    found?;
    ensure!(!shown.contains(PASSWORD), "show config prints it");
    ensure!(!scene.log()?.contains(PASSWORD), "the log has it");
    Ok(())
}

/// As `cp` does it: the file is truncated, then written.
fn written_in_place(scene: &mut Scene) -> Result<()> {
    let path = scene.fairway.resource(&format!("service-{SPOILED}"));
    let text = service_text(SPOILED);
    (0..MANY).try_for_each(|_| fs::write(&path, &text).context("writing it in place"))
}

fn other_files(scene: &mut Scene) -> Result<()> {
    let name = |number: usize| scene.in_folder(&format!("note-{number}.txt"));
    for number in 0..5_000 {
        fs::write(name(number), "kind: Service\n").context("writing a note")?;
    }
    (0..5_000).try_for_each(|number| fs::remove_file(name(number)).context("removing a note"))?;
    Ok(())
}

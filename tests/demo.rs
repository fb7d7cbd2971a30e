//! Do the commands that `fairway demo` prints work as they are pasted into another terminal? No root, loopback
//! only.

#![allow(clippy::panic, clippy::unwrap_used)] // What fails here fails the test.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs};

use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fairway");

/// A demo that has shown everything and goes on.
struct Demo {
    process: Child,
    /// What it says is to be asked.
    commands: Vec<String>,
}

impl Demo {
    /// Starts it as `program` in `folder`, where PATH is `path`, and waits for its commands.
    fn start(program: &Path, folder: &Path, path: &OsString) -> Self {
        let mut process = Command::new(program)
            .arg("demo")
            .current_dir(folder)
            .env("PATH", path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        // It fails by itself when a step takes too long, and then there are no more lines.
        let after = lines.skip_while(|line| !line.contains("or ask")).skip(1);
        let commands = after.take_while(|line| !line.is_empty()).collect();
        Self { process, commands }
    }

    /// Runs its commands with this PATH in another folder, and returns what they print.
    fn paste(&self, path: &OsString) -> Vec<String> {
        let run = |line: &String| {
            let mut shell = Command::new("/bin/sh");
            let output = shell.args(["-c", line]).current_dir("/").env("PATH", path).output();
            let output = output.unwrap();
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        self.commands.iter().map(run).collect()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let interrupt = format!("kill -INT {}", self.process.id());
        let _ = Command::new("/bin/sh").args(["-c", &interrupt]).status();
        let _ = self.process.wait();
    }
}

/// A PATH with these folders first, and without any other `fairway`.
fn path_with(folders: &[&Path]) -> OsString {
    let path = env::var_os("PATH").unwrap();
    let rest = env::split_paths(&path).filter(|it| !it.join("fairway").exists());
    env::join_paths(folders.iter().map(PathBuf::from).chain(rest)).unwrap()
}

/// The first word of each command is `program`, and they answer.
fn assert_answers(demo: &Demo, program: &str, path: &OsString) {
    assert_eq!(demo.commands.len(), 2, "{:?}", demo.commands);
    for command in &demo.commands {
        assert!(command.trim_start().starts_with(&format!("{program} show ")), "{command}");
    }
    let answers = demo.paste(path);
    assert!(answers.iter().any(|it| it.contains("127.0.0.2")), "the session: {answers:?}");
    assert!(answers.iter().any(|it| it.contains("198.51.100.")), "the services: {answers:?}");
}

#[test]
fn commands_of_the_demo_work_as_pasted_wherever_the_program_is() {
    let place = TempDir::new().unwrap();
    // A folder whose name a shell would take for two words, and a path as `make run` uses it.
    let folder = place.path().canonicalize().unwrap().join("of releases");
    fs::create_dir(&folder).unwrap();
    symlink(PROGRAM, folder.join("fairway")).unwrap();
    let path = path_with(&[]);
    let demo = Demo::start(Path::new("./fairway"), &folder, &path);
    assert_answers(&demo, &format!("'{}/fairway'", folder.display()), &path);
}

#[test]
fn commands_of_the_demo_name_the_program_alone_if_the_shell_finds_this_one() {
    let place = TempDir::new().unwrap();
    symlink(PROGRAM, place.path().join("fairway")).unwrap();
    let path = path_with(&[place.path()]);
    let demo = Demo::start(Path::new(PROGRAM), Path::new("/"), &path);
    assert_answers(&demo, "fairway", &path);
}

#[test]
fn commands_of_the_demo_avoid_another_program_of_that_name() {
    let place = TempDir::new().unwrap();
    symlink("/bin/false", place.path().join("fairway")).unwrap();
    let path = path_with(&[place.path()]);
    let demo = Demo::start(Path::new(PROGRAM), Path::new("/"), &path);
    assert_answers(&demo, PROGRAM, &path);
}

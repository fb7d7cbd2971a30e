//! What does a program do with a terminal? It runs on a pseudo-terminal: keys go in, and what it writes can be read as it was
//! written, or as a screen shows it.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, Result, ensure};
use nix::pty::{Winsize, openpty};

use crate::wait::{PATIENCE, wait_until};

/// A program on a terminal of its own.
pub struct Terminal {
    keys: File,
    shown: Arc<Mutex<Shown>>,
    child: Child,
}

struct Shown {
    written: Vec<u8>,
    screen: vt100::Parser,
}

impl Terminal {
    /// With so many rows and columns.
    pub fn start(command: &mut Command, (rows, columns): (u16, u16)) -> Result<Self> {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(Some(&size), None).context("a pseudo-terminal")?;
        let far = File::from(pair.slave);
        command.stdin(Stdio::from(far.try_clone().context("the terminal")?));
        command.stdout(Stdio::from(far.try_clone().context("the terminal")?));
        let child = command.stderr(Stdio::from(far)).spawn().context("a program on a terminal")?;
        // The command has copies of the far end: without them the terminal ends with the program.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let keys = File::from(pair.master);
        let mut reader = keys.try_clone().context("the terminal")?;
        let sizes = NonZero::new(rows).zip(NonZero::new(columns));
        let (rows, columns) = sizes.context("a terminal has rows and columns")?;
        let screen = vt100::Parser::new(rows, columns, 0);
        let shown = Arc::new(Mutex::new(Shown { written: Vec::new(), screen }));
        let into = Arc::clone(&shown);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                let read = buffer.get(..length).unwrap_or_default();
                let mut into = into.lock().unwrap_or_else(PoisonError::into_inner);
                into.written.extend_from_slice(read);
                into.screen.process(read);
            }
        });
        Ok(Self { keys, shown, child })
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was written; the screen stays.
    pub fn wipe(&self) {
        self.shown().written.clear();
    }

    /// What was written, with its escape sequences and without carriage returns and bells.
    pub fn written(&self) -> String {
        String::from_utf8_lossy(&self.shown().written).replace(['\r', '\u{7}'], "")
    }

    /// What the screen shows.
    pub fn screen(&self) -> String {
        self.shown().screen.screen().contents()
    }

    /// Whether the program has the screen for itself, and the one before comes back when it ends.
    pub fn is_taken(&self) -> bool {
        self.shown().screen.screen().alternate_screen()
    }

    /// Types `keys`.
    pub fn press(&mut self, keys: &str) -> Result<()> {
        self.keys.write_all(keys.as_bytes()).with_context(|| format!("typing {keys:?}"))
    }

    /// Waits until all of `parts` were written.
    pub fn wait_for(&self, what: &str, parts: &[&str]) -> Result<()> {
        wait_until(what, PATIENCE, || has(&self.written(), parts))
    }

    /// Waits until the screen shows all of `parts`.
    pub fn wait_for_screen(&self, what: &str, parts: &[&str]) -> Result<()> {
        wait_until(what, PATIENCE, || has(&self.screen(), parts))
    }

    /// Waits until the program has ended by itself.
    pub fn wait_for_end(&mut self) -> Result<ExitStatus> {
        wait_until("the end of the program", PATIENCE, || {
            self.child.try_wait().context("waiting")?.context("it still runs")
        })
    }

    /// The process.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }
}

fn has(text: &str, parts: &[&str]) -> Result<()> {
    for part in parts {
        ensure!(text.contains(part), "no {part:?} in:\n{text}");
    }
    Ok(())
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

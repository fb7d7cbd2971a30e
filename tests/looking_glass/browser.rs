//! How is a page loaded, looked at and typed at in a browser without a screen? Chromium's own protocol over two pipes, so that
//! nothing else can reach it. Knows nothing of our page. Used by `readers` and `pictures`.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use lab::namespace::Namespace;
use lab::process::{Process, bounded, output_of};
use lab::wait::{PATIENCE, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = "/usr/bin/chromium";

/// What the browser prefers, and lets pages do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Preferences {
    pub(crate) is_dark: bool,
    pub(crate) runs_scripts: bool,
    /// Of the window, in pixels.
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Preferences {
    /// A screen on a desk, in the daytime.
    pub(crate) const USUAL: Self =
        Self { is_dark: false, runs_scripts: true, width: 1440, height: 1300 };
}

/// A running browser with one page.
pub(crate) struct Browser {
    // Ends before its files go.
    _process: Process,
    _profile: TempDir,
    orders: File,
    messages: Receiver<Value>,
    next_id: u64,
    session: Option<String>,
}

impl Browser {
    /// Starts it in the namespace of `node`, with files in `folder`.
    pub(crate) fn start(node: &Namespace, folder: &Path, preferences: Preferences) -> Result<Self> {
        ensure!(Path::new(PROGRAM).exists(), "{PROGRAM} is missing; run scripts/setup.sh browser");
        // Not in `folder`: its logs are no use to those who read ours.
        let profile = tempfile::tempdir()?;
        let (orders, answers) = (profile.path().join("orders"), profile.path().join("answers"));
        output_of(bounded("mkfifo").args([&orders, &answers]))?;
        // The protocol is spoken on descriptors 3 and 4. Open at both ends here, so that no side waits for the other.
        let both = |path: &Path| OpenOptions::new().read(true).write(true).open(path);
        let (ours, theirs) = (both(&orders)?, both(&answers)?);
        let script =
            format!("exec \"$0\" \"$@\" 3<'{}' 4>'{}'", orders.display(), answers.display());
        let Preferences { width, height, .. } = preferences;
        let arguments = [
            "-c",
            &script,
            PROGRAM,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--force-device-scale-factor=1",
            "--remote-debugging-pipe",
            &format!("--user-data-dir={}", profile.path().display()),
            &format!("--window-size={width},{height}"),
            "about:blank",
        ]
        .map(str::to_owned);
        let log = folder.join("chromium.log");
        let process = Process::spawn(node, Path::new("/bin/sh"), &arguments, &log)?;
        let messages = read(theirs);
        let mut browser = Self {
            _process: process,
            _profile: profile,
            orders: ours,
            messages,
            next_id: 1,
            session: None,
        };
        browser.attach()?;
        browser.prefer(preferences)?;
        Ok(browser)
    }

    fn attach(&mut self) -> Result<()> {
        let target = wait_until("the browser has a page", PATIENCE, || {
            let targets = self.order("Target.getTargets", &json!({}))?;
            let mut targets = targets["targetInfos"].as_array().into_iter().flatten();
            let page = targets.find(|it| it["type"] == "page").context("no page")?;
            Ok(page["targetId"].clone())
        })?;
        let attached = json!({"targetId": target, "flatten": true});
        let session = self.order("Target.attachToTarget", &attached)?;
        self.session = session["sessionId"].as_str().map(str::to_owned);
        ensure!(self.session.is_some(), "no session: {session}");
        Ok(())
    }

    /// From now on.
    pub(crate) fn prefer(&mut self, preferences: Preferences) -> Result<()> {
        let scheme = if preferences.is_dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.order("Emulation.setEmulatedMedia", &features)?;
        let disabled = json!({"value": !preferences.runs_scripts});
        self.order("Emulation.setScriptExecutionDisabled", &disabled)?;
        let screen = json!({
            "width": preferences.width, "height": preferences.height, "deviceScaleFactor": 1, "mobile": false
        });
        self.order("Emulation.setDeviceMetricsOverride", &screen)?;
        Ok(())
    }

    /// Loads a page, and waits until it is complete.
    pub(crate) fn load(&mut self, address: &str) -> Result<()> {
        let loaded = self.order("Page.navigate", &json!({"url": address}))?;
        ensure!(loaded["errorText"].is_null(), "{address}: {loaded}");
        self.wait_for(&format!(
            "document.URL === {} && document.readyState === 'complete'",
            json!(address)
        ))
    }

    /// The value of an expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Result<Value> {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.order("Runtime.evaluate", &asked)?;
        ensure!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        Ok(answer["result"]["value"].clone())
    }

    /// Waits until an expression is true.
    pub(crate) fn wait_for(&mut self, expression: &str) -> Result<()> {
        wait_until(expression, 4 * PATIENCE, || {
            let value = self.value(expression)?;
            ensure!(value == true, "it is {value}");
            Ok(())
        })
    }

    /// Presses and releases a key.
    pub(crate) fn press(&mut self, key: Key) -> Result<()> {
        let (name, text, code) = match key {
            Key::Text(text) => (text, text, 0),
            Key::Tab => ("Tab", "", 9),
            Key::Enter => ("Enter", "\r", 13),
            Key::Escape => ("Escape", "", 27),
        };
        let kind = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        let event = |kind: &str, text: &str| json!({"type": kind, "key": name, "text": text, "windowsVirtualKeyCode": code});
        self.order("Input.dispatchKeyEvent", &event(kind, text))?;
        self.order("Input.dispatchKeyEvent", &event("keyUp", ""))?;
        Ok(())
    }

    /// Types a text, key by key.
    pub(crate) fn write(&mut self, text: &'static str) -> Result<()> {
        let keys = text.split("").filter(|it| !it.is_empty());
        keys.map(Key::Text).try_for_each(|key| self.press(key))
    }

    /// A picture of what the window shows.
    pub(crate) fn photograph(&mut self, file: &Path) -> Result<()> {
        let picture = self.order("Page.captureScreenshot", &json!({"format": "png"}))?;
        let text = picture["data"].as_str().context("no picture")?;
        fs::write(file, data_encoding::BASE64.decode(text.as_bytes())?)?;
        Ok(())
    }

    /// Gives an order of the protocol, and waits for its result.
    fn order(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        let id = self.next_id;
        self.next_id += 1;
        let mut order = json!({"id": id, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            order["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&order)?;
        bytes.push(0);
        self.orders.write_all(&bytes)?;
        loop {
            let message = match self.messages.recv_timeout(2 * PATIENCE) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => bail!("the browser does not answer {method}"),
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("the browser has ended before {method}")
                }
            };
            if message["id"] == id {
                ensure!(message["error"].is_null(), "{method}: {}", message["error"]);
                return Ok(message["result"].clone());
            }
        }
    }
}

/// A key of the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// One that writes this.
    Text(&'static str),
    Tab,
    Enter,
    Escape,
}

/// Messages as they come, each ended by a zero.
fn read(pipe: File) -> Receiver<Value> {
    let (tell, messages) = channel();
    thread::spawn(move || {
        for message in BufReader::new(pipe).split(0) {
            let message = message.ok().and_then(|it| serde_json::from_slice(&it).ok());
            // The browser is not wanted any more.
            let Some(Ok(())) = message.map(|it: Value| tell.send(it)) else { return };
        }
    });
    messages
}

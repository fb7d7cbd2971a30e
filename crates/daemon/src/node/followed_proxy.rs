//! The service proxy of this machine in the loop of a node: what it delivers goes to the source, which plans.
//!
//! Decides nothing. What it said last stands while it does not answer, and is kept on disk for the next start: what it put
//! into the kernel is there until the machine starts again. Does nothing where no proxy is followed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fairway_model::DeliveryUpdate;
use fairway_node::document::{FormatError, decode_document, encode_document};
use fairway_seam::EarlierRun;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::{error, info, warn};

use crate::admin::{DeliveryLine, Request};
use crate::host::boot_id;
use crate::host::state_file::{StateError, StateFile};
use crate::options::HostOptions;

/// The file with what it said last.
const STATE_FILE: &str = "deliveries.json";
const STATE_VERSION: u64 = 1;
/// Until it is asked again that does not answer.
const RETRY_WAIT: Duration = Duration::from_secs(1);
/// How long it may be silent, as over a restart, until that is said.
const SILENCE: Duration = Duration::from_secs(5);
/// The longest line: all addresses of a hundred thousand Services are shorter.
const LINE_BYTES_MAX: u64 = 64 << 20;
/// Updates on their way to the loop, which takes them one after the other.
const UPDATES_MAX: usize = 16;
/// How long a start waits for the first answer of a proxy that runs: what was kept may be some seconds old, and routers that
/// keep routes over a restart must not lose them meanwhile.
const FIRST_ANSWER_WAIT: Duration = Duration::from_secs(2);
/// How often the file is written at most.
const SAVE_INTERVAL: Duration = Duration::from_secs(5);
/// How long the end of this process waits for the file.
const FINISH_LIMIT: Duration = Duration::from_secs(2);

/// See the module.
pub(super) struct FollowedProxy(Option<Followed>);

struct Followed {
    updates: mpsc::Receiver<DeliveryUpdate>,
    /// It was taken from the channel, and cannot be joined with those before it.
    next: Option<DeliveryUpdate>,
    is_known: bool,
    task: JoinHandle<()>,
    /// Dropping it ends the task, which writes the file before.
    stop: oneshot::Sender<()>,
}

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    /// Of which start of which machine it is.
    kernel: Option<String>,
    said: DeliveryLine,
}

impl FollowedProxy {
    /// Follows the proxy that the options name, if they do. Returns what is known of it, too, the latest last.
    pub(super) async fn start(
        options: &HostOptions,
        earlier: Option<&EarlierRun>,
    ) -> (Self, Vec<DeliveryUpdate>) {
        let announced = earlier.is_some_and(|it| it.forwarding);
        Self::at(options.proxy_socket.as_deref(), &options.state_dir, announced).await
    }

    /// `announced`: an earlier run has announced addresses since the machine started.
    async fn at(
        socket: Option<&Path>,
        state_dir: &Path,
        announced: bool,
    ) -> (Self, Vec<DeliveryUpdate>) {
        let Some(socket) = socket else { return (Self(None), Vec::new()) };
        let file = StateFile::new(state_dir, STATE_FILE);
        // Without an answer of this proxy that run had no condition, and this one has none before the first.
        let other = announced.then_some(DeliveryUpdate::OfAnotherProxy);
        let kept = kept(&file).or(other);
        info!(
            socket = %socket.display(),
            "an address is announced only while the service proxy delivers packets to it"
        );
        let (tell, mut updates) = mpsc::channel(UPDATES_MAX);
        let (stop, stopped) = oneshot::channel();
        let asking = Asking {
            socket: socket.to_owned(),
            tell,
            said: kept.clone(),
            file,
            saving: None,
            save_at: None,
            may_save_at: Instant::now(),
            silent_since: None,
            is_silent: false,
        };
        let runs = UnixStream::connect(socket).await.is_ok();
        let task = tokio::spawn(asking.run(stopped));
        let answer = match runs {
            true => timeout(FIRST_ANSWER_WAIT, updates.recv()).await.ok().flatten(),
            false => None,
        };
        let is_known = kept.is_some() || answer.is_some();
        let known = [Some(kept.unwrap_or(DeliveryUpdate::Awaited)), answer];
        let followed = Followed { updates, next: None, is_known, task, stop };
        (Self(Some(followed)), known.into_iter().flatten().collect())
    }

    /// The next answer, joined with those that follow it; for ever where no proxy is followed. Cancel-safe.
    pub(super) async fn said(&mut self) -> DeliveryUpdate {
        let Some(followed) = &mut self.0 else { return std::future::pending().await };
        let next = match followed.next.take() {
            Some(next) => Some(next),
            None => followed.updates.recv().await,
        };
        let Some(mut update) = next else { return std::future::pending().await };
        followed.is_known |= update != DeliveryUpdate::Silent;
        while let DeliveryUpdate::Changed(changed) = &mut update
            && let Ok(next) = followed.updates.try_recv()
        {
            match next {
                DeliveryUpdate::Changed(more) => changed.extend(more),
                other => {
                    followed.next = Some(other);
                    break;
                }
            }
        }
        update
    }

    /// Whether it is known what this machine delivers, if that matters.
    pub(super) fn is_known(&self) -> bool {
        self.0.as_ref().is_none_or(|it| it.is_known)
    }

    /// Waits until what it said last is on disk.
    pub(super) async fn finish(self) {
        let Some(Followed { task, stop, .. }) = self.0 else { return };
        drop(stop);
        let _ = timeout(FINISH_LIMIT, task).await;
    }
}

/// Which start of which machine this is. A node that is a container has the boot ID of its host, and a kernel's view of its
/// own.
fn kernel() -> Option<String> {
    let network = std::fs::read_link("/proc/self/ns/net").ok()?;
    Some(format!("{} {}", boot_id()?, network.display()))
}

/// What it said last, if the kernel still has it.
fn kept(file: &StateFile) -> Option<DeliveryUpdate> {
    let decode = |text: &str| -> Result<Kept, FormatError> {
        Ok(serde_json::from_value(decode_document(text, STATE_VERSION)?)?)
    };
    let kept = file.load(decode).unwrap_or_else(|error| {
        error!("{error}; addresses are announced once the service proxy has answered");
        None
    })?;
    let is_same = kept.kernel.is_some() && kept.kernel == kernel();
    is_same.then(|| DeliveryUpdate::from(kept.said))
}

/// The task that asks.
struct Asking {
    socket: PathBuf,
    tell: mpsc::Sender<DeliveryUpdate>,
    /// All that it has said.
    said: Option<DeliveryUpdate>,
    file: StateFile,
    saving: Option<JoinHandle<Result<(), StateError>>>,
    save_at: Option<Instant>,
    /// The earliest time of the next write.
    may_save_at: Instant,
    silent_since: Option<Instant>,
    /// That it does not answer was said.
    is_silent: bool,
}

impl Asking {
    /// Asks until it is to stop.
    async fn run(mut self, stopped: oneshot::Receiver<()>) {
        tokio::select! {
            () = self.ask_again_and_again() => {}
            _ = stopped => {}
        }
        if let Some(saving) = self.saving.take() {
            let _ = saving.await;
        }
        if self.save_at.is_some() {
            self.save();
        }
        if let Some(saving) = self.saving.take()
            && let Ok(Err(error)) = saving.await
        {
            warn!("{error}");
        }
    }

    async fn ask_again_and_again(&mut self) {
        loop {
            let error = match self.listen().await {
                Ok(()) => return,
                Err(error) => error,
            };
            let since = *self.silent_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= SILENCE && !std::mem::replace(&mut self.is_silent, true) {
                warn!(
                    socket = %self.socket.display(),
                    "the service proxy does not answer: {error}; what it said last stands"
                );
                if self.tell.send(DeliveryUpdate::Silent).await.is_err() {
                    return;
                }
            }
            self.save_if_due().await;
            sleep(RETRY_WAIT).await;
        }
    }

    /// Follows it for as long as it answers. Ends well with the loop.
    async fn listen(&mut self) -> std::io::Result<()> {
        let mut stream = UnixStream::connect(&self.socket).await?;
        let mut request = serde_json::to_string(&Request::Deliveries)?;
        request.push('\n');
        stream.write_all(request.as_bytes()).await?;
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        loop {
            let mut bounded = (&mut reader).take(LINE_BYTES_MAX);
            let reading = bounded.read_until(b'\n', &mut line);
            match self.save_at {
                Some(at) => match timeout_at(at, reading).await {
                    Ok(read) => drop(read?),
                    // What was read of the line stays in it.
                    Err(_) => {
                        self.save_if_due().await;
                        continue;
                    }
                },
                None => drop(reading.await?),
            }
            let is_too_long = u64::try_from(line.len()).is_ok_and(|it| it > LINE_BYTES_MAX);
            if is_too_long || line.last() != Some(&b'\n') {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let update = DeliveryUpdate::from(serde_json::from_slice::<DeliveryLine>(&line)?);
            line.clear();
            self.silent_since = None;
            if std::mem::take(&mut self.is_silent) {
                info!("the service proxy answers");
            }
            self.note(&update);
            if self.tell.send(update).await.is_err() {
                return Ok(());
            }
            self.save_if_due().await;
        }
    }

    fn note(&mut self, update: &DeliveryUpdate) {
        use DeliveryUpdate::{All, Changed, OfAnotherProxy, Some as Delivered};
        self.said = Some(match (self.said.take(), update) {
            (Some(OfAnotherProxy), Delivered(_)) => OfAnotherProxy,
            (None, Delivered(delivered)) => All(delivered.clone()),
            (Some(All(mut all)), Delivered(delivered)) => {
                for (address, services) in delivered {
                    all.entry(*address).or_default().extend(services.clone());
                }
                All(all)
            }
            (Some(All(mut all)), Changed(changed)) => {
                for (address, services) in changed {
                    match services.is_empty() {
                        true => all.remove(address),
                        false => all.insert(*address, services.clone()),
                    };
                }
                All(all)
            }
            (_, update) => update.clone(),
        });
        self.save_at.get_or_insert(self.may_save_at);
    }

    /// Writes the file if it is time; a slow disk holds nothing up.
    async fn save_if_due(&mut self) {
        if self.saving.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(saving) = self.saving.take()
            && let Ok(Err(error)) = saving.await
        {
            warn!("{error}; trying again in {} s", SAVE_INTERVAL.as_secs());
            self.save_at.get_or_insert(self.may_save_at);
        }
        let now = Instant::now();
        if self.save_at.is_none_or(|at| at > now) {
            return;
        }
        match self.saving {
            Some(_) => self.save_at = Some(now + SAVE_INTERVAL),
            None => self.save(),
        }
        self.may_save_at = now + SAVE_INTERVAL;
    }

    fn save(&mut self) {
        self.save_at = None;
        let Some(said) = self.said.clone().and_then(DeliveryLine::of) else { return };
        let kept = Kept { kernel: kernel(), said };
        let file = self.file.clone();
        self.saving = Some(spawn_blocking(move || {
            let body = match serde_json::to_value(&kept) {
                Ok(Value::Object(body)) => body,
                _ => Map::new(),
            };
            file.save(&encode_document(STATE_VERSION, body))
        }));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fairway_model::{Deliveries, Delivery, ObjectName};
    use tokio::net::UnixListener;

    use super::*;

    fn of(last: u8) -> Deliveries {
        let of_address = BTreeMap::from([(ObjectName::new("shop", "web"), Delivery::Delivered)]);
        BTreeMap::from([(std::net::Ipv4Addr::new(198, 18, 0, last).into(), of_address)])
    }

    /// The next one who asks; one that only looks whether somebody is there does not.
    async fn asked(proxy: &UnixListener) -> UnixStream {
        loop {
            let (stream, _) = proxy.accept().await.unwrap();
            let mut reader = BufReader::new(stream);
            let mut line = String::new();
            reader.read_line(&mut line).await.unwrap();
            if !line.is_empty() {
                assert_eq!(line, "\"deliveries\"\n");
                return reader.into_inner();
            }
        }
    }

    async fn say(stream: &mut UnixStream, update: &DeliveryUpdate) {
        let line = serde_json::to_string(&DeliveryLine::of(update.clone())).unwrap();
        stream.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    #[tokio::test]
    async fn what_the_proxy_says_is_heard_in_whatever_parts_it_comes() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("proxy.sock");
        let (mut followed, known) = FollowedProxy::at(Some(&socket), folder.path(), false).await;
        assert_eq!(known, [DeliveryUpdate::Awaited], "nothing is delivered yet");
        assert!(!followed.is_known());
        let proxy = UnixListener::bind(&socket).unwrap();
        let mut stream = asked(&proxy).await;
        let all = DeliveryUpdate::All(of(1));
        say(&mut stream, &all).await;
        assert_eq!(followed.said().await, all);
        assert!(followed.is_known());
        let line = DeliveryLine::of(DeliveryUpdate::Changed(of(2)));
        let line = serde_json::to_string(&line).unwrap();
        let (begin, end) = line.split_at(9);
        stream.write_all(begin.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        tokio::task::yield_now().await;
        stream.write_all(format!("{end}\n").as_bytes()).await.unwrap();
        assert_eq!(followed.said().await, DeliveryUpdate::Changed(of(2)));

        // It ends, and another one does not speak our language.
        drop(stream);
        let mut stream = asked(&proxy).await;
        stream.write_all(b"{\"error\": \"malformed request\"}\n").await.unwrap();
        let mut stream = asked(&proxy).await;
        say(&mut stream, &DeliveryUpdate::OfAnotherProxy).await;
        assert_eq!(followed.said().await, DeliveryUpdate::OfAnotherProxy);
    }

    #[tokio::test]
    async fn the_next_start_continues_from_what_was_said_last() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("proxy.sock");
        let (mut followed, _) = FollowedProxy::at(Some(&socket), folder.path(), false).await;
        let proxy = UnixListener::bind(&socket).unwrap();
        let mut stream = asked(&proxy).await;
        for update in [
            DeliveryUpdate::Some(of(1)),
            DeliveryUpdate::All(of(2)),
            DeliveryUpdate::Changed(of(3)),
            DeliveryUpdate::Some(of(4)),
        ] {
            say(&mut stream, &update).await;
            assert_eq!(followed.said().await, update);
        }
        followed.finish().await;
        drop((stream, proxy));
        let (followed, known) = FollowedProxy::at(Some(&socket), folder.path(), true).await;
        let all = [2, 3, 4].map(of).into_iter().flatten().collect();
        assert_eq!(known, [DeliveryUpdate::All(all)]);
        assert!(followed.is_known());
        drop(followed);

        // The machine has started again: its kernel is empty.
        let file = StateFile::new(folder.path(), STATE_FILE).path();
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace(&boot_id().unwrap(), "another")).unwrap();
        let (_, known) = FollowedProxy::at(Some(&socket), folder.path(), false).await;
        assert_eq!(known, [DeliveryUpdate::Awaited]);
    }

    /// The speaker is new, or its proxy is, and the kernel has all that was announced.
    #[tokio::test]
    async fn a_run_after_one_without_a_condition_has_none_before_the_first_answer() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("proxy.sock");
        let (followed, known) = FollowedProxy::at(Some(&socket), folder.path(), true).await;
        assert_eq!(known, [DeliveryUpdate::OfAnotherProxy]);
        assert!(followed.is_known());
    }

    #[tokio::test]
    async fn a_proxy_that_runs_is_heard_before_anything_is_announced() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("proxy.sock");
        let proxy = UnixListener::bind(&socket).unwrap();
        let answering = async {
            let mut stream = asked(&proxy).await;
            say(&mut stream, &DeliveryUpdate::All(of(1))).await;
            stream
        };
        let start = FollowedProxy::at(Some(&socket), folder.path(), false);
        let ((_followed, known), _stream) = tokio::join!(start, answering);
        assert_eq!(known, [DeliveryUpdate::Awaited, DeliveryUpdate::All(of(1))]);
    }

    #[tokio::test]
    async fn without_a_proxy_nothing_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        let (followed, known) = FollowedProxy::at(None, folder.path(), true).await;
        assert_eq!(known, []);
        assert!(followed.is_known());
    }
}

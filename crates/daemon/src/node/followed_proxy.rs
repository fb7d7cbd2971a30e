//! The service proxy of this machine in the loop of a node: what it delivers goes to the source, which plans.
//!
//! Decides nothing. What it said last stands while it does not answer, and is kept on disk for the next start: what it put
//! into the kernel is there until the machine starts again. Does nothing where no proxy is followed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fairway_model::{Deliveries, DeliveryUpdate};
use fairway_node::document::{FormatError, decode_document, encode_document};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::{error, info, warn};

use crate::admin::{DeliveryLine, Request};
use crate::host::boot_id;
use crate::host::state_file::StateFile;
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
/// How long a start without any earlier answer waits for the first one: routers that keep routes over a restart must not
/// lose them meanwhile.
const FIRST_ANSWER_WAIT: Duration = Duration::from_secs(2);
/// How often the file is written at most.
const SAVE_INTERVAL: Duration = Duration::from_secs(5);

/// See the module.
pub(super) struct FollowedProxy(Option<Followed>);

struct Followed {
    updates: mpsc::Receiver<DeliveryUpdate>,
    has_answered: bool,
    task: AbortHandle,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    boot_id: Option<String>,
    said: DeliveryLine,
}

impl FollowedProxy {
    /// Follows the proxy that the options name, if they do. Returns what is known of it, too; `waits`: for a while, if that
    /// is nothing yet.
    pub(super) async fn start(
        options: &HostOptions,
        waits: bool,
    ) -> (Self, Option<DeliveryUpdate>) {
        Self::at(options.proxy_socket.as_deref(), &options.state_dir, waits).await
    }

    async fn at(
        socket: Option<&Path>,
        state_dir: &Path,
        waits: bool,
    ) -> (Self, Option<DeliveryUpdate>) {
        let Some(socket) = socket else { return (Self(None), None) };
        let file = StateFile::new(state_dir, STATE_FILE);
        let kept = kept(&file);
        info!(
            socket = %socket.display(),
            "addresses are announced while the service proxy delivers packets to them"
        );
        let (tell, mut updates) = mpsc::channel(UPDATES_MAX);
        let asking = Asking {
            socket: socket.to_owned(),
            tell,
            said: kept.clone(),
            file,
            save_at: None,
            may_save_at: Instant::now(),
            silent_since: None,
            is_silent: false,
        };
        let task = tokio::spawn(asking.run()).abort_handle();
        let first = match kept {
            Some(kept) => Some(kept),
            None if !waits => None,
            None => timeout(FIRST_ANSWER_WAIT, updates.recv()).await.ok().flatten(),
        };
        let has_answered = first.is_some();
        let nothing = DeliveryUpdate::Changed(Deliveries::new());
        (Self(Some(Followed { updates, has_answered, task })), Some(first.unwrap_or(nothing)))
    }

    /// The next answer; for ever where no proxy is followed. Cancel-safe.
    pub(super) async fn said(&mut self) -> DeliveryUpdate {
        if let Some(followed) = &mut self.0
            && let Some(update) = followed.updates.recv().await
        {
            followed.has_answered = true;
            return update;
        }
        std::future::pending().await
    }

    /// Whether it is known what this machine delivers, if that matters.
    pub(super) fn is_known(&self) -> bool {
        self.0.as_ref().is_none_or(|it| it.has_answered)
    }
}

/// What it said last, if the kernel still has it.
fn kept(file: &StateFile) -> Option<DeliveryUpdate> {
    let decode = |text: &str| -> Result<Kept, FormatError> {
        Ok(serde_json::from_value(decode_document(text, STATE_VERSION)?)?)
    };
    let kept = file.load(decode).unwrap_or_else(|error| {
        error!("{error}; the service proxy is asked");
        None
    })?;
    let is_same_boot = kept.boot_id.is_some() && kept.boot_id == boot_id();
    is_same_boot.then(|| DeliveryUpdate::from(kept.said))
}

/// The task that asks.
struct Asking {
    socket: PathBuf,
    tell: mpsc::Sender<DeliveryUpdate>,
    /// All that it has said.
    said: Option<DeliveryUpdate>,
    file: StateFile,
    save_at: Option<Instant>,
    /// The earliest time of the next write.
    may_save_at: Instant,
    silent_since: Option<Instant>,
    /// That it does not answer was said.
    is_silent: bool,
}

impl Asking {
    /// Asks again and again, until the loop ends.
    async fn run(mut self) {
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
            }
            self.save_if_due(Instant::now()).await;
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
                        self.save_if_due(Instant::now()).await;
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
            self.save_if_due(Instant::now()).await;
        }
    }

    fn note(&mut self, update: &DeliveryUpdate) {
        self.said = Some(match (self.said.take(), update) {
            (Some(DeliveryUpdate::All(mut all)), DeliveryUpdate::Changed(changed)) => {
                for (address, services) in changed {
                    match services.is_empty() {
                        true => all.remove(address),
                        false => all.insert(*address, services.clone()),
                    };
                }
                DeliveryUpdate::All(all)
            }
            (_, update) => update.clone(),
        });
        self.save_at.get_or_insert(self.may_save_at);
    }

    /// Writes the file if it is time, beside the loop.
    async fn save_if_due(&mut self, now: Instant) {
        if self.save_at.is_none_or(|at| at > now) {
            return;
        }
        let Some(said) = self.said.clone() else { return };
        let kept = Kept { boot_id: boot_id(), said: DeliveryLine::from(said) };
        let file = self.file.clone();
        let saving = spawn_blocking(move || {
            let body = match serde_json::to_value(&kept) {
                Ok(Value::Object(body)) => body,
                _ => Map::new(),
            };
            file.save(&encode_document(STATE_VERSION, body))
        });
        self.may_save_at = now + SAVE_INTERVAL;
        self.save_at = None;
        if let Ok(Err(error)) = saving.await {
            warn!("{error}; trying again in {} s", SAVE_INTERVAL.as_secs());
            self.save_at = Some(self.may_save_at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fairway_model::{Delivery, ObjectName};
    use tokio::net::UnixListener;

    use super::*;

    fn of(last: u8) -> Deliveries {
        let of_address = BTreeMap::from([(ObjectName::new("shop", "web"), Delivery::Delivered)]);
        BTreeMap::from([(std::net::Ipv4Addr::new(198, 18, 0, last).into(), of_address)])
    }

    /// The next one who asks.
    async fn asked(proxy: &UnixListener) -> UnixStream {
        let (stream, _) = proxy.accept().await.unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).await.unwrap();
        assert_eq!(line, "\"deliveries\"\n");
        reader.into_inner()
    }

    async fn say(stream: &mut UnixStream, update: &DeliveryUpdate) {
        let line = serde_json::to_string(&DeliveryLine::from(update.clone())).unwrap();
        stream.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    #[tokio::test]
    async fn what_the_proxy_says_is_heard_and_stands_for_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("proxy.sock");
        let proxy = UnixListener::bind(&socket).unwrap();
        let (mut followed, first) = FollowedProxy::at(Some(&socket), folder.path(), false).await;
        assert_eq!(
            first,
            Some(DeliveryUpdate::Changed(Deliveries::new())),
            "nothing is delivered yet"
        );
        assert!(!followed.is_known());
        let mut stream = asked(&proxy).await;
        let all = DeliveryUpdate::All(of(1));
        say(&mut stream, &all).await;
        assert_eq!(followed.said().await, all);
        assert!(followed.is_known());
        // A line may come in parts.
        let line =
            serde_json::to_string(&DeliveryLine::from(DeliveryUpdate::Changed(of(2)))).unwrap();
        let (begin, end) = line.split_at(9);
        stream.write_all(begin.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        tokio::task::yield_now().await;
        stream.write_all(format!("{end}\n").as_bytes()).await.unwrap();
        assert_eq!(followed.said().await, DeliveryUpdate::Changed(of(2)));

        // It ends, and another one does not speak our language.
        drop(stream);
        let mut stream = asked(&proxy).await;
        stream.write_all(b"{\"version\": 9}\n").await.unwrap();
        let mut stream = asked(&proxy).await;
        say(&mut stream, &DeliveryUpdate::OfAnotherProxy).await;
        assert_eq!(followed.said().await, DeliveryUpdate::OfAnotherProxy);
        say(&mut stream, &DeliveryUpdate::All(of(3))).await;
        followed.said().await;
        say(&mut stream, &DeliveryUpdate::Changed(of(4))).await;
        followed.said().await;
        drop((followed, stream, proxy));
    }

    #[tokio::test]
    async fn the_next_start_continues_from_what_was_said_last() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("proxy.sock");
        let proxy = UnixListener::bind(&socket).unwrap();
        let (mut followed, _) = FollowedProxy::at(Some(&socket), folder.path(), false).await;
        let mut stream = asked(&proxy).await;
        say(&mut stream, &DeliveryUpdate::All(of(1))).await;
        followed.said().await;
        let file = StateFile::new(folder.path(), STATE_FILE);
        let is_written = async {
            while !file.path().exists() {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(10), is_written).await.unwrap();
        drop((followed, stream, proxy));
        let (followed, first) = FollowedProxy::at(Some(&socket), folder.path(), true).await;
        assert_eq!(first, Some(DeliveryUpdate::All(of(1))));
        assert!(followed.is_known());
        drop(followed);

        // The machine has started again: its kernel is empty.
        let text = std::fs::read_to_string(file.path()).unwrap();
        let boot = boot_id().unwrap();
        std::fs::write(file.path(), text.replace(&boot, "another")).unwrap();
        let (_, first) = FollowedProxy::at(Some(&socket), folder.path(), false).await;
        assert_eq!(first, Some(DeliveryUpdate::Changed(Deliveries::new())));
    }

    #[tokio::test]
    async fn without_a_proxy_nothing_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        let (followed, first) = FollowedProxy::at(None, folder.path(), true).await;
        assert_eq!(first, None);
        assert!(followed.is_known());
    }
}

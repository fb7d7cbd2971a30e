//! The connection to one BMP station. Moves bytes; what they mean is [`fairway_bmp::Station`]'s.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::named_host::connect;
use crate::sockopt;

/// How long the last message may take.
const FAREWELL_WAIT: Duration = Duration::from_millis(500);

/// A host and a port.
pub(super) type Place = (Arc<str>, u16);

/// What happens to a connection.
#[derive(Debug)]
pub(super) enum Happened {
    /// It is there.
    Connected,
    /// The last bytes were written.
    Written,
    /// It has ended, or did not come about, for this reason. The last one.
    Closed(String),
}

/// Which connection to which station: a late event of an earlier one is dropped.
pub(super) type Name = (Place, u64);

/// The task of a connection. It ends when this is dropped, whatever waits to be written.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) number: u64,
    writes: mpsc::Sender<Bytes>,
    task: Option<JoinHandle<()>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Connection {
    /// Connects; `tell` gets what happens.
    pub(super) fn open(name: Name, tell: mpsc::Sender<(Name, Happened)>) -> Self {
        // The next bytes are handed over when these are written, and the farewell beside them.
        let (writes, to_write) = mpsc::channel(2);
        let number = name.1;
        let task = tokio::spawn(async move {
            let why = match run(&name, &tell, to_write).await {
                Ok(()) => "the station closed the connection".to_owned(),
                Err(error) => error.to_string(),
            };
            // Nobody waits for it if the thread ends.
            let _ = tell.send((name, Happened::Closed(why))).await;
        });
        Self { number, writes, task: Some(task) }
    }

    /// Writes `bytes`; [`Happened::Written`] follows.
    pub(super) fn write(&self, bytes: Bytes) {
        let _ = self.writes.try_send(bytes);
    }

    /// Writes what is on its way and these last bytes, if the station takes them soon, and ends the connection.
    pub(super) fn farewell(mut self, bytes: Bytes) -> JoinHandle<()> {
        self.write(bytes);
        let task = self.task.take();
        let (closed, _) = mpsc::channel(1);
        // Without a sender the task ends when all is written.
        drop(std::mem::replace(&mut self.writes, closed));
        tokio::spawn(async move {
            let Some(mut task) = task else { return };
            if tokio::time::timeout(FAREWELL_WAIT, &mut task).await.is_err() {
                task.abort();
            }
        })
    }
}

/// Returns when one side has closed it.
async fn run(
    name: &Name,
    tell: &mpsc::Sender<(Name, Happened)>,
    mut to_write: mpsc::Receiver<Bytes>,
) -> io::Result<()> {
    let mut stream = connect(&name.0.0, name.0.1).await?;
    // A station that is gone without a word is noticed; without the option, when it takes nothing.
    let _ = sockopt::set_keepalive(&stream);
    if tell.send((name.clone(), Happened::Connected)).await.is_err() {
        return Ok(());
    }
    // A station says nothing (RFC 7854 §3.3): what it sends all the same is not kept.
    let mut ignored = [0; 1024];
    loop {
        tokio::select! {
            read = stream.read(&mut ignored) => {
                if read? == 0 {
                    return Ok(());
                }
            }
            bytes = to_write.recv() => match bytes {
                Some(bytes) => {
                    stream.write_all(&bytes).await?;
                    if tell.send((name.clone(), Happened::Written)).await.is_err() {
                        return Ok(());
                    }
                }
                None => return stream.shutdown().await,
            },
        }
    }
}

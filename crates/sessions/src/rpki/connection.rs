//! The connection to one RPKI cache. Moves bytes; what they mean is [`fairway_rpki::Cache`]'s.

use std::io;

use bytes::{Bytes, BytesMut};
use fairway_ground::RpkiServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

use crate::named_host::connect;
use crate::sockopt;

/// Bytes of one read.
const READ_LENGTH_BYTES: usize = 64 << 10;
/// Messages that may wait to be written: a cache is sent its next one when it has answered.
const WRITES_MAX: usize = 4;

/// What happens to a connection.
#[derive(Debug)]
pub(super) enum Happened {
    /// It is there.
    Connected,
    /// Bytes were received.
    Received(Bytes),
    /// It has ended, or did not come about, for this reason. The last one.
    Closed(String),
}

/// Which connection to which cache: a late event of an earlier one is dropped.
pub(super) type Name = (RpkiServer, u64);

/// The task of a connection. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) number: u64,
    writes: mpsc::Sender<Vec<u8>>,
}

impl Connection {
    /// Connects; `tell` gets what happens.
    pub(super) fn open(name: Name, tell: mpsc::Sender<(Name, Happened)>) -> Self {
        let (writes, to_write) = mpsc::channel(WRITES_MAX);
        let number = name.1;
        tokio::spawn(async move {
            let why = match run(&name, &tell, to_write).await {
                Ok(()) => "the connection was closed".to_owned(),
                Err(error) => error.to_string(),
            };
            // Nobody waits for it if the thread ends.
            let _ = tell.send((name, Happened::Closed(why))).await;
        });
        Self { number, writes }
    }

    /// Sends `bytes`. Those that find no room are of a cache that answers nothing, which has an end of its own.
    pub(super) fn send(&self, bytes: Vec<u8>) {
        let _ = self.writes.try_send(bytes);
    }
}

/// Returns when one side has closed it.
async fn run(
    name: &Name,
    tell: &mpsc::Sender<(Name, Happened)>,
    mut to_write: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    let mut stream = tokio::select! {
        stream = connect(&name.0.host, name.0.port) => stream?,
        // It is not wanted any more.
        () = closed(&mut to_write) => return Ok(()),
    };
    // A cache that is gone without a word is noticed; without the option, by its silence.
    let _ = sockopt::set_keepalive(&stream);
    if tell.send((name.clone(), Happened::Connected)).await.is_err() {
        return Ok(());
    }
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(READ_LENGTH_BYTES);
        tokio::select! {
            read = stream.read_buf(&mut buffer) => {
                if read? == 0 {
                    return Ok(());
                }
                let received = Happened::Received(buffer.split().freeze());
                if tell.send((name.clone(), received)).await.is_err() {
                    return Ok(());
                }
            }
            bytes = to_write.recv() => match bytes {
                Some(bytes) => stream.write_all(&bytes).await?,
                None => return Ok(()),
            },
        }
    }
}

/// Waits until there is nothing to write any more, ever.
async fn closed(to_write: &mut mpsc::Receiver<Vec<u8>>) {
    while to_write.recv().await.is_some() {}
}

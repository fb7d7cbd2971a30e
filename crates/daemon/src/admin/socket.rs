//! The server side of the admin socket.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::Bound;
use fairway_seam::ViewScope;
use fairway_show::language::complete;
use fairway_show::{Query, Snapshot};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use tracing::{debug, warn};

use super::clear::clear;
use super::drain::drain;
use super::dump::{RibDump, dump};
use super::listen::{self, SocketError, SocketFile, SocketMode};
use super::observer::Observer;
use super::order::Order;
use super::overview::overview;
use super::reload::reload;
use super::table::{Bounded, Table};
use super::{ANSWER_BYTES_MAX, Answer, REQUEST_LENGTH_BYTES_MAX, Request};
use crate::host::{ClientLimits, Clients, Work};

/// People and scrapers, not a load. A client that has not asked makes room at once.
const LIMITS: ClientLimits =
    ClientLimits { clients_max: 64, silence: Duration::ZERO, bound: Bound::AdminClient };
/// Answers that are made at the same time: one may be a large table.
const ANSWERS_MAX: usize = 16;
/// Large tables that are written at the same time; further ones wait. Each holds a copy of its routes until the client has
/// read it.
const TABLES_MAX: usize = 4;
/// Clients that read all routes at the same time: each holds a copy of the tables until it has read the last piece.
const DUMPS_MAX: usize = 2;
/// How long a client may wait before it sends a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take to read its answer, so that one that is stopped does not hold its slot.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Opens the admin socket at `path`.
pub fn listen(path: &Path, mode: SocketMode) -> Result<(UnixListener, SocketFile), SocketError> {
    listen::listen(path, mode, "--socket")
}

/// Serves clients until it is aborted. Each has its own task and sees the state at the time of its request. One that sends
/// no request keeps nobody waiting: where there are too many, the oldest of these goes.
pub async fn serve(listener: UnixListener, observer: Observer, orders: mpsc::Sender<Order>) {
    let answers = Arc::new(Semaphore::new(ANSWERS_MAX));
    let tables = Arc::new(Semaphore::new(TABLES_MAX));
    let dumps = Arc::new(Semaphore::new(DUMPS_MAX));
    let mut clients = Clients::new(LIMITS);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                clients.make_room().await;
                let (observer, orders) = (observer.clone(), orders.clone());
                let [answers, tables, dumps] = [&answers, &tables, &dumps].map(Arc::clone);
                clients.serve(|work| async move {
                    let served = Served { observer, orders, answers, tables, dumps, work };
                    if let Err(error) = served.converse(stream).await {
                        debug!(%error, "an admin client disconnected");
                    }
                });
            }
            Err(error) => {
                // Most likely out of descriptors: wait until others are closed.
                warn!(%error, "cannot accept an admin client");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// What a client is served with.
struct Served {
    observer: Observer,
    orders: mpsc::Sender<Order>,
    answers: Arc<Semaphore>,
    tables: Arc<Semaphore>,
    dumps: Arc<Semaphore>,
    work: Work,
}

impl Served {
    /// Reads requests line by line until the client closes the connection.
    async fn converse(&self, stream: UnixStream) -> io::Result<()> {
        let (read, mut write) = stream.into_split();
        let mut read = BufReader::new(read);
        loop {
            let mut line = Vec::new();
            let limit = u64::try_from(REQUEST_LENGTH_BYTES_MAX).unwrap_or(u64::MAX);
            let mut bounded = (&mut read).take(limit);
            let count = timeout(REQUEST_TIMEOUT, bounded.read_until(b'\n', &mut line)).await??;
            if count == 0 {
                return Ok(());
            }
            self.work.begins();
            match serde_json::from_slice::<Request>(&line) {
                Ok(Request::DumpRib { format }) => {
                    self.send_routes(&format, &mut write).await?;
                }
                Ok(Request::Show(query)) => self.show(query, &mut write).await?,
                Ok(request) => {
                    let answers = self.answers.acquire().await;
                    let answer = answer(&request, &self.observer, &self.orders).await;
                    drop(answers);
                    send_answer(&mut write, &answer).await?;
                }
                Err(error) => {
                    let answer = Answer::Error(format!("malformed request: {error}"));
                    send_answer(&mut write, &answer).await?;
                }
            }
            self.work.ends();
        }
    }

    /// One that does not fit into a piece makes room for the answers to others.
    async fn show(&self, query: Query, client: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let turn = self.answers.acquire().await;
        let state = match self.observer.state(query.scope()).await {
            Ok(state) => state,
            Err(error) => return send_answer(client, &Answer::Error(error.to_string())).await,
        };
        let mut table = Table::write(query, state);
        if let Some(first) = table.next().await {
            drop(turn);
            let _table = self.tables.acquire().await;
            send_answer(client, &first).await?;
            while let Some(piece) = table.next().await {
                send_answer(client, &piece).await?;
            }
        }
        send_answer(client, &table.end().await).await
    }

    /// A table is large, so each piece of it is made when the client has the one before.
    async fn send_routes(
        &self,
        format: &str,
        client: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        let Ok(_dump) = self.dumps.try_acquire() else {
            let why = format!(
                "{DUMPS_MAX} clients are reading all routes, which is the most at a time; try again when one has finished"
            );
            return send_answer(client, &Answer::Error(why)).await;
        };
        let dump = match RibDump::take(self.observer.backend(), format).await {
            Ok(dump) => dump,
            Err(why) => return send_answer(client, &Answer::Error(why)).await,
        };
        for answer in dump.answers() {
            send_answer(client, &answer).await?;
        }
        Ok(())
    }
}

async fn send_answer(client: &mut (impl AsyncWrite + Unpin), answer: &Answer) -> io::Result<()> {
    let mut reply = serde_json::to_string(answer)?;
    reply.push('\n');
    send(client, reply.as_bytes(), ANSWER_TIMEOUT).await
}

/// Sends a client its answer, unless it does not read in time.
async fn send(
    client: &mut (impl AsyncWrite + Unpin),
    reply: &[u8],
    patience: Duration,
) -> io::Result<()> {
    timeout(patience, client.write_all(reply)).await?
}

/// The answer to one request, as a whole.
pub(crate) async fn answer(
    request: &Request,
    observer: &Observer,
    orders: &mpsc::Sender<Order>,
) -> Answer {
    let query = match request {
        Request::Show(query) => query,
        Request::Complete(completed) => {
            let values = |snapshot: &Snapshot<'_>| complete(completed, snapshot);
            return match observer.look(ViewScope::SESSIONS, values).await {
                Ok(values) => Answer::Output(values.join("\n")),
                Err(error) => Answer::Error(error.to_string()),
            };
        }
        Request::Drain(request) => return drain(*request, orders, observer).await,
        Request::Reload { accepts_empty } => return reload(*accepts_empty, orders).await,
        Request::Dump(request) => return dump(observer.backend(), request).await,
        Request::Overview { rows_max } => return overview(*rows_max, observer).await,
        Request::Clear(order) => return clear(observer.backend(), order).await,
        Request::DumpRib { .. } => {
            let why = "routes are dumped at the socket of the daemon only".to_owned();
            return Answer::Error(why);
        }
        Request::Proxy(_) | Request::Deliveries => {
            let why = "the service proxy has a socket of its own, proxy.sock in its --run-dir";
            return Answer::Error(why.to_owned());
        }
    };
    let mut out = Bounded { text: String::new(), bytes_max: ANSWER_BYTES_MAX };
    match observer.look(query.scope(), |snapshot| query.write(snapshot, &mut out)).await {
        Ok(Ok(Ok(()))) => Answer::Output(out.text),
        Ok(Ok(Err(_))) => {
            let mebibytes = ANSWER_BYTES_MAX >> 20;
            Answer::Error(format!("the answer is larger than {mebibytes} MiB: ask for less"))
        }
        Ok(Err(error)) => Answer::Error(error.to_string()),
        Err(error) => Answer::Error(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_that_does_not_read_loses_its_slot() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let table = vec![b'x'; 16 * 1024 * 1024];
        let sent = send(&mut near, &table, Duration::from_millis(50));
        let outcome = timeout(REQUEST_TIMEOUT, sent).await.expect("it is not waited for");
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(far);
    }
}

//! A connection to one of FRR's daemons that is re-established when it is lost.
//!
//! A caller that gives up an answer loses the connection, and the next command opens another one. Knows no
//! command but the one that starts each connection. The observer has one for each daemon that it queries.

use std::path::PathBuf;
use std::time::Duration;

use super::vty::{Connection, Reply, VtyError};

/// A daemon.
#[derive(Debug)]
pub(super) struct Daemon {
    path: PathBuf,
    answer_timeout: Duration,
    connection: Option<Connection>,
}

impl Daemon {
    /// The daemon that listens at `path`, with a timeout for each answer.
    pub(super) fn new(path: PathBuf, answer_timeout: Duration) -> Self {
        Self { path, answer_timeout, connection: None }
    }

    /// Sends a command, and repeats it once on a new connection if the old one turns out to be closed:
    /// daemons are restarted.
    pub(super) async fn ask(&mut self, question: &str) -> Result<Reply, VtyError> {
        if let Some(connection) = self.connection.take() {
            match self.ask_in(connection, question).await {
                Err(VtyError::Lost { .. }) => {}
                answer => return answer,
            }
        }
        let mut connection =
            Connection::connect_with_timeout(&self.path, self.answer_timeout).await?;
        connection.command("enable").await?;
        self.ask_in(connection, question).await
    }

    /// Keeps the connection if there was an answer.
    async fn ask_in(
        &mut self,
        mut connection: Connection,
        question: &str,
    ) -> Result<Reply, VtyError> {
        let reply = connection.command(question).await?;
        self.connection = Some(connection);
        Ok(reply)
    }
}

//! One of FRR's daemons, and a conversation with it that begins anew where it ended.
//!
//! Who gives up an answer loses the conversation, and the next question has another one. Knows the one
//! command that begins each, and no other. The observer has one for each daemon that it asks.

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
    /// The one that listens at `path`, and may take so long for each answer.
    pub(super) fn new(path: PathBuf, answer_timeout: Duration) -> Self {
        Self { path, answer_timeout, connection: None }
    }

    /// Asks, and asks once more in a new conversation where the old one turns out to be over: daemons
    /// are restarted.
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

    /// Keeps the conversation where there was an answer.
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

//! One question to all speakers at once, and their answers as they come.
//!
//! Answers are handed on one by one, as the items of a list, so that those of a thousand nodes are never all in memory. A
//! node without an answer is an item as well.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hyper::body::Bytes;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{GROUP, VERSION};
use crate::admin::Answer;
use crate::node_api::{Answered, Budget, NodeQuestion, Speakers, Unanswered};

/// What is asked, and of which nodes.
pub(super) struct FanOut {
    pub(super) speakers: Speakers,
    pub(super) budget: Arc<Budget>,
    pub(super) question: NodeQuestion,
    /// Nodes without an address are named by the client, and have no speaker.
    pub(super) nodes: BTreeMap<String, Option<SocketAddr>>,
}

impl FanOut {
    /// Writes a list with an item for each node. Ends early if nobody reads any more.
    pub(super) async fn write(self, to: mpsc::Sender<Bytes>) {
        let head = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "AnswerList", "metadata": {},
        });
        // The head without its closing brace: the items follow in the same object.
        let head = head.to_string();
        let head = format!("{},\"items\":[", head.strip_suffix('}').unwrap_or(&head));
        if to.send(head.into()).await.is_err() {
            return;
        }
        let mut answers: FuturesUnordered<_> = self.nodes.iter().map(|it| self.item(it)).collect();
        let mut is_first = true;
        while let Some(Item { text, _answered }) = answers.next().await {
            let separator = if is_first { "\n" } else { ",\n" };
            is_first = false;
            if to.send(format!("{separator}{text}").into()).await.is_err() {
                return;
            }
        }
        // A client that has left does not miss it.
        let _ = to.send("\n]}\n".into()).await;
    }

    async fn item(&self, (node, address): (&String, &Option<SocketAddr>)) -> Item<'_> {
        let answered = match address {
            Some(address) => self.speakers.ask(*address, &self.question, &self.budget).await,
            None => Err(Unanswered::NoSpeaker),
        };
        let (text, answered) = match answered {
            Ok(answered) => (item(node, &answered.answer), Some(answered)),
            Err(Unanswered::Refused(why)) => (refused(node, &why), None),
            Err(error) => {
                let value =
                    json!({ "metadata": { "name": node }, "unanswered": error.to_string() });
                (value.to_string(), None)
            }
        };
        Item { text, _answered: answered }
    }
}

/// An item of the list, with the room in memory that it takes.
struct Item<'a> {
    text: String,
    _answered: Option<Answered<'a>>,
}

fn item(node: &str, answer: &Answer) -> String {
    let Answer::Output(output) = answer else { return refused(node, "an unexpected answer") };
    // JSON is handed on as it is, if it is whole; text becomes a text of JSON.
    let answer = match serde_json::from_str::<IgnoredAny>(output) {
        Ok(_) => output.trim_end().to_owned(),
        Err(_) => Value::from(output.as_str()).to_string(),
    };
    let metadata = json!({ "name": node });
    format!("{{\"metadata\":{metadata},\"answer\":{answer}}}")
}

fn refused(node: &str, why: &str) -> String {
    json!({ "metadata": { "name": node }, "error": why }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_holds_json_or_text() {
        let of = |output: &str| -> Value {
            let text = item("a", &Answer::Output(output.to_owned()));
            serde_json::from_str(&text).unwrap()
        };
        assert_eq!(
            of("{\"b\": [1]}\n"),
            json!({ "metadata": { "name": "a" }, "answer": { "b": [1] } })
        );
        let text = "{\"b\": 1} and \"more\"";
        assert_eq!(of(text), json!({ "metadata": { "name": "a" }, "answer": text }));
    }
}

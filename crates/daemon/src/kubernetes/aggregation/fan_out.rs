//! One question to all speakers at once, and their answers as they come.
//!
//! Answers are handed on one by one, as the items of a list, so that those of a thousand nodes are never all in memory. A
//! node without an answer is an item as well. Each question has a task of its own: a client that reads slowly delays no
//! answer, and one that does not read at all is left.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use hyper::body::Bytes;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::seats::Seat;
use super::{GROUP, VERSION};
use crate::node_api::{Answered, NodeQuestion, Speakers, Unanswered};

/// Questions at the same time, with the answers that are not handed on yet: a hundred nodes are asked within a second, and
/// unreachable ones, which take a second each, leave room.
const QUESTIONS_MAX: usize = 32;
/// How long a client may take for a part.
const READER_TIMEOUT: Duration =
    if cfg!(test) { Duration::from_millis(100) } else { Duration::from_secs(10) };

/// Where the speaker of a node is.
pub(super) type Endpoint = Result<SocketAddr, Unanswered>;

/// What is asked, and of which nodes.
pub(super) struct FanOut {
    pub(super) speakers: Speakers,
    pub(super) question: NodeQuestion,
    /// The answers are text, not JSON.
    pub(super) is_text: bool,
    pub(super) nodes: BTreeMap<String, Endpoint>,
    /// Its place among the questions of all users.
    pub(super) seat: Seat,
}

/// A part of the list, with the place of its answer among the large ones, until it is sent.
pub(super) struct Part {
    pub(super) bytes: Bytes,
    pub(super) place: Option<OwnedSemaphorePermit>,
}

impl FanOut {
    /// Writes a list with an item for each node. Ends early if nobody reads any more.
    pub(super) async fn write(self, to: mpsc::Sender<Part>) {
        let Self { speakers, question, is_text, nodes, seat: _seat } = self;
        let head = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "AnswerList", "metadata": {},
        });
        // The head without its closing brace: the items follow in the same object.
        let head = head.to_string();
        let head = format!("{},\"items\":[", head.strip_suffix('}').unwrap_or(&head));
        if !hand_on(&to, head, None).await {
            return;
        }
        let (mut nodes, mut asked, mut separator) = (nodes.into_iter(), JoinSet::new(), "\n");
        loop {
            while asked.len() < QUESTIONS_MAX
                && let Some((node, endpoint)) = nodes.next()
            {
                let (speakers, question) = (speakers.clone(), question.clone());
                asked.spawn(async move {
                    let answered = match endpoint {
                        Ok(address) => speakers.ask(address, &question).await,
                        Err(error) => Err(error),
                    };
                    item(&node, answered, is_text)
                });
            }
            let Some(done) = asked.join_next().await else { break };
            let Ok(Item { start, answer, place }) = done else { continue };
            let is_taken = hand_on(&to, format!("{separator}{start}"), None).await
                && hand_on(&to, answer, place).await
                && hand_on(&to, "}".to_owned(), None).await;
            if !is_taken {
                return;
            }
            separator = ",\n";
        }
        // A client that has left does not miss it.
        hand_on(&to, "\n]}\n".to_owned(), None).await;
    }
}

/// Whether the client takes a part.
async fn hand_on(
    to: &mpsc::Sender<Part>,
    text: String,
    place: Option<OwnedSemaphorePermit>,
) -> bool {
    let part = Part { bytes: text.into(), place };
    matches!(timeout(READER_TIMEOUT, to.send(part)).await, Ok(Ok(())))
}

/// An item of the list: the answer as it came, behind the start of an object.
struct Item {
    start: String,
    answer: String,
    place: Option<OwnedSemaphorePermit>,
}

fn item(node: &str, answered: Result<Answered, Unanswered>, is_text: bool) -> Item {
    let metadata = json!({ "name": node });
    let without = |key: &str, why: String| Item {
        start: format!("{{\"metadata\":{metadata},\"{key}\":"),
        answer: Value::from(why).to_string(),
        place: None,
    };
    let Answered { text, place } = match answered {
        Ok(answered) => answered,
        Err(Unanswered::Refused(why)) => return without("error", why),
        Err(error) => return without("unanswered", error.to_string()),
    };
    // JSON is handed on as it is, if it is whole; text becomes a text of JSON.
    let answer = match is_text {
        true => Value::from(text).to_string(),
        false if serde_json::from_str::<IgnoredAny>(&text).is_ok() => text,
        false => return without("error", "the answer is not JSON".to_owned()),
    };
    let start = format!("{{\"metadata\":{metadata},\"answer\":");
    Item { start, answer, place }
}

#[cfg(test)]
mod tests {
    use super::super::seats::Seats;
    use super::*;
    use crate::kubernetes::serving::{Identity, Profile, issue, stored};
    use crate::node_api::LargeAnswers;

    /// A question to three nodes without a speaker.
    fn asked(seats: &Seats) -> FanOut {
        let profile = Profile { name: "it", hosts: vec!["it".to_owned()], is_client: true };
        let identity = issue(&profile, None, crate::host::epoch_seconds()).unwrap();
        let identity = Identity::of(&stored(&identity)).unwrap();
        let large = LargeAnswers::default();
        FanOut {
            speakers: Speakers::new(identity.roots().unwrap(), identity.pair(), large).unwrap(),
            question: NodeQuestion::Words(Vec::new()),
            is_text: false,
            nodes: ["a", "b", "c"].map(|it| (it.to_owned(), Err(Unanswered::NoSpeaker))).into(),
            seat: seats.take("jane").unwrap(),
        }
    }

    #[tokio::test]
    async fn the_parts_are_a_list() {
        let (to, mut parts) = mpsc::channel(1);
        let writing = tokio::spawn(asked(&Seats::default()).write(to));
        let mut text = Vec::new();
        while let Some(part) = parts.recv().await {
            text.extend_from_slice(&part.bytes);
        }
        writing.await.unwrap();
        let list: Value = serde_json::from_slice(&text).unwrap();
        let names = list["items"].as_array().unwrap().iter().map(|it| &it["metadata"]["name"]);
        let mut names: Vec<_> = names.filter_map(Value::as_str).collect();
        names.sort_unstable();
        assert_eq!((&list["kind"], &*names), (&json!("AnswerList"), &["a", "b", "c"][..]));
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_is_left_and_gives_its_seat_back() {
        let seats = Seats::default();
        let _other = seats.take("jane").unwrap();
        let (to, _parts) = mpsc::channel(1);
        let writing = asked(&seats).write(to);
        assert!(seats.take("jane").is_none());
        timeout(Duration::from_secs(10), writing).await.expect("it waits for the client");
        assert!(seats.take("jane").is_some());
    }

    fn read(answered: Result<Answered, Unanswered>, is_text: bool) -> Value {
        let Item { start, answer, .. } = item("a", answered, is_text);
        serde_json::from_str(&format!("{start}{answer}}}")).unwrap()
    }

    #[test]
    fn an_item_holds_json_or_text_or_the_reason() {
        let answered = |text: &str| Ok(Answered { text: text.to_owned(), place: None });
        let metadata = || json!({ "name": "a" });
        let json = read(answered("{\"b\": [1]}\n"), false);
        assert_eq!(json, json!({ "metadata": metadata(), "answer": { "b": [1] } }));
        let text = read(answered("\"quoted\"\n"), true);
        assert_eq!(text, json!({ "metadata": metadata(), "answer": "\"quoted\"\n" }));
        let broken = read(answered("{\"b\": 1} and more"), false);
        assert_eq!(broken, json!({ "metadata": metadata(), "error": "the answer is not JSON" }));
        let refused = read(Err(Unanswered::Refused("% No \"tor\"".to_owned())), false);
        assert_eq!(refused, json!({ "metadata": metadata(), "error": "% No \"tor\"" }));
        let silent = read(Err(Unanswered::NoSpeaker), false);
        assert_eq!(silent["unanswered"], "no speaker runs on this node");
    }
}

//! The body of a request, within bounds: anybody in the cluster may send one.
//!
//! Bytes, values and the number of bodies in memory are bounded together, so that all of them are some 30 MiB at most,
//! beside what the allocator keeps of those before.
//! Knows no verdict. Called by [`super::server`].

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Bytes};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// The API server accepts no larger object, and a review holds two of them; few reach a thousandth of it.
pub(super) const BYTES_MAX: usize = 3 << 20;
/// Bytes that are read without a permit.
const SMALL_BYTES_MAX: usize = 64 << 10;
/// Larger bodies that are read at the same time.
const LARGE_MAX: usize = 2;
/// How long the rest of a large body may take.
const LARGE_TIMEOUT: Duration = Duration::from_secs(2);
/// Values in a body: a pool of ten thousand ranges in both of its versions has half as many. A value of one byte takes
/// 32 bytes and more in memory.
const VALUES_MAX: usize = 50_000;

/// Why there is no body.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("the body is larger than 3 MiB")]
    TooLarge,
    #[error("the rest of a large body did not arrive within 2 s")]
    Late,
    #[error("the body is not JSON, is nested too deeply, or has more than {VALUES_MAX} values")]
    Malformed,
}

/// How many large bodies are read at the same time.
#[derive(Debug)]
pub(super) struct Bodies(Semaphore);

impl Default for Bodies {
    fn default() -> Self {
        Self(Semaphore::new(LARGE_MAX))
    }
}

impl Bodies {
    /// All of a body, which counts as long as it is kept.
    pub(super) async fn read<B>(&self, body: B) -> Result<Kept<'_>, BodyError>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut body = Limited::new(body, BYTES_MAX);
        let mut bytes = Vec::new();
        while let Some(data) = next(&mut body).await? {
            bytes.extend_from_slice(&data);
            if bytes.len() > SMALL_BYTES_MAX {
                let permit = self.0.acquire().await.ok();
                // One that sends slowly keeps no other waiting.
                timeout(LARGE_TIMEOUT, rest(&mut body, &mut bytes))
                    .await
                    .map_err(|_| BodyError::Late)??;
                return Ok(Kept { bytes, _permit: permit });
            }
        }
        Ok(Kept { bytes, _permit: None })
    }
}

/// A body that was read.
#[derive(Debug)]
pub(super) struct Kept<'a> {
    pub(super) bytes: Vec<u8>,
    _permit: Option<SemaphorePermit<'a>>,
}

async fn next<B>(body: &mut Limited<B>) -> Result<Option<Bytes>, BodyError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    loop {
        let Some(frame) = body.frame().await else { return Ok(None) };
        if let Ok(data) = frame.map_err(|_| BodyError::TooLarge)?.into_data() {
            return Ok(Some(data));
        }
    }
}

async fn rest<B>(body: &mut Limited<B>, bytes: &mut Vec<u8>) -> Result<(), BodyError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    while let Some(data) = next(body).await? {
        bytes.extend_from_slice(&data);
    }
    Ok(())
}

/// The JSON of a body.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, BodyError> {
    let left = Cell::new(VALUES_MAX);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Bounded(&left).deserialize(&mut reader).map_err(|_| BodyError::Malformed)?;
    reader.end().map_err(|_| BodyError::Malformed)?;
    Ok(value)
}

/// Builds a value as long as there are some left.
#[derive(Clone, Copy)]
struct Bounded<'a>(&'a Cell<usize>);

impl Bounded<'_> {
    fn take<E: Error>(self, value: Value) -> Result<Value, E> {
        let left = self.0.get().checked_sub(1).ok_or_else(|| E::custom("too many values"))?;
        self.0.set(left);
        Ok(value)
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.take(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.take(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.take(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.take(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.take(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.take(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            values.push(value);
        }
        self.take(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            fields.insert(key, map.next_value_seed(self)?);
        }
        self.take(fields.into())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::Frame;

    use super::*;

    #[test]
    fn a_body_is_what_serde_makes_of_it() {
        let text = r#"{"a": [1, -2, 2.5, true, null, "x", {"b": {}}], "c": "d"}"#;
        let expected: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(parse(text.as_bytes()).expect("a body"), expected);
        assert!(parse(b"{} {}").is_err() && parse(b"{").is_err());
    }

    #[test]
    fn values_and_depth_are_bounded() {
        let list = |count: usize| format!("[{}0]", "0,".repeat(count - 1));
        assert!(parse(list(VALUES_MAX - 1).as_bytes()).is_ok());
        assert!(parse(list(VALUES_MAX).as_bytes()).is_err());
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_is_refused() {
        let bodies = Bodies::default();
        let full = |length: usize| http_body_util::Full::new(Bytes::from(vec![b' '; length]));
        assert_eq!(bodies.read(full(BYTES_MAX)).await.expect("a body").bytes.len(), BYTES_MAX);
        assert!(matches!(bodies.read(full(BYTES_MAX + 1)).await, Err(BodyError::TooLarge)));
    }

    /// A body whose rest never arrives.
    struct Unfinished(Option<Bytes>);

    impl Body for Unfinished {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.take().map_or(Poll::Pending, |it| Poll::Ready(Some(Ok(Frame::data(it)))))
        }
    }

    #[tokio::test]
    async fn large_bodies_are_few_and_one_that_never_ends_makes_room() {
        let bodies = Bodies::default();
        let large = || Bytes::from(vec![b' '; SMALL_BYTES_MAX + 1]);
        let endless = || bodies.read(Unfinished(Some(large())));
        let begin = tokio::time::Instant::now();
        // The last one to be polled.
        let another = async {
            let read = bodies.read(http_body_util::Full::new(large())).await;
            (read, begin.elapsed())
        };
        let all = async { tokio::join!(endless(), endless(), another) };
        let all = timeout(2 * LARGE_TIMEOUT, all).await.expect("an answer in time");
        let (late, _, (read, waited)) = all;
        assert!(matches!(late, Err(BodyError::Late)) && read.is_ok());
        assert!(waited >= LARGE_TIMEOUT, "it was read after {waited:?}, beside the others");
    }
}

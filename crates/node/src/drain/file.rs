//! The file that stores a drain, so that neither an upgrade nor a boot attracts traffic again.

use super::DrainRecord;
use crate::document::{FormatError, decode_document, encode_document};

/// The file name in the state directory.
pub const DRAIN_FILE: &str = "drain.json";
/// The format that this build reads and writes. It increases only when an older build would misread
/// the file; `mark` needed no new version.
const DRAIN_VERSION: u64 = 1;

/// The text of the file.
pub fn encode(record: DrainRecord) -> String {
    // A record consists of words and numbers only, which have a JSON form.
    let body = serde_json::to_value(record).ok().and_then(|it| it.as_object().cloned());
    encode_document(DRAIN_VERSION, body.unwrap_or_default())
}

/// Reads the output of [`encode`].
pub fn decode(text: &str) -> Result<DrainRecord, FormatError> {
    Ok(serde_json::from_value(decode_document(text, DRAIN_VERSION)?)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::drain::DrainStatus::{self, Drained, Draining, InService};

    const DRAINING: DrainStatus =
        Draining { since_epoch_seconds: 1_795_192_684, until_epoch_seconds: 1_795_192_714 };
    const DRAINED: DrainStatus = Drained { since_epoch_seconds: 1_795_192_714 };

    #[test]
    fn what_is_written_is_read_again() {
        for command in [InService, DRAINING, DRAINED] {
            for mark in [InService, DRAINING, DRAINED] {
                let record = DrainRecord { command, mark };
                assert_eq!(decode(&encode(record)).unwrap(), record);
            }
        }
    }

    #[test]
    fn the_file_holds_what_programs_are_shown() {
        let draining = json!({
            "version": 1,
            "state": "draining",
            "sinceEpochSeconds": 1_795_192_684,
            "untilEpochSeconds": 1_795_192_714,
        });
        let value = |record| serde_json::from_str::<serde_json::Value>(&encode(record)).unwrap();
        assert_eq!(value(DrainRecord { command: DRAINING, mark: InService }), draining);
        let mark = json!({
            "version": 1,
            "state": "inService",
            "mark": { "state": "drained", "sinceEpochSeconds": 1_795_192_714 },
        });
        assert_eq!(value(DrainRecord { command: InService, mark: DRAINED }), mark);
    }

    #[test]
    fn other_texts_are_refused() {
        for bad in [
            "",
            r#"{"state":"drained","sinceEpochSeconds":1}"#,
            r#"{"version":2,"state":"drained","sinceEpochSeconds":1}"#,
            r#"{"version":1,"state":"gone"}"#,
            r#"{"version":1,"state":"draining","sinceEpochSeconds":1}"#,
            r#"{"version":1,"state":"inService","mark":{"state":"gone"}}"#,
        ] {
            assert!(decode(bad).is_err(), "{bad}");
        }
    }
}

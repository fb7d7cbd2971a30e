//! Answers that FRR never gives, and some that it does.

use fairway_ground::AddressFamily;
use fairway_seam::{SessionState, ViewScope};

use super::{RELEASES, Recording, desired, find, key};
use crate::status::{
    ANSWER_BYTES_MAX, AnswerError, Digest, NEIGHBORS, Picture, SUMMARY, Sessions, bfd,
};

#[test]
fn what_is_cut_off_anywhere_is_an_error_and_no_view() {
    let recording = Recording::of("8.4", "steady");
    let neighbors = recording.answer(NEIGHBORS);
    for length in (0..neighbors.trim_end().len()).step_by(97) {
        let cut = neighbors.get(..length).unwrap();
        let error = Sessions::parse("{}", cut).unwrap_err();
        assert!(matches!(error, AnswerError::NotJson { .. }), "{length}: {error}");
    }
}

#[test]
fn an_error_names_the_question_and_what_came() {
    let error = Sessions::parse("{}", "% Unknown command: show bgp").unwrap_err().to_string();
    assert!(error.contains(NEIGHBORS) && error.contains("% Unknown command"), "{error}");
    let error = Sessions::parse("[]", "{}").unwrap_err().to_string();
    assert!(error.contains("expected an object") && error.contains(SUMMARY), "{error}");
    let error = bfd::sessions("{}", "[]").unwrap_err().to_string();
    assert!(error.contains("expected a list"), "{error}");
    let error = Digest::of("{\"warning\":\"Default BGP instance not found\"}").unwrap_err();
    assert!(error.to_string().ends_with("Default BGP instance not found"), "{error}");
}

#[test]
fn an_answer_without_end_is_refused() {
    let endless = " ".repeat(ANSWER_BYTES_MAX + 1);
    let error = Sessions::parse(&endless, "{}").unwrap_err();
    assert!(matches!(error, AnswerError::TooLong { .. }), "{error}");
}

#[test]
fn nesting_without_end_is_refused() {
    let deep = "[".repeat(1_000_000);
    assert!(Sessions::parse("{}", &deep).is_err());
}

/// Each value of the answer becomes each of these in turn; whatever the result, nothing panics.
#[test]
fn a_field_of_another_type_is_a_field_that_is_not_there() {
    for release in RELEASES {
        for scene in ["steady", "restarting"] {
            let recording = Recording::of(release, scene);
            for wrong in ["-1", "1e300", "null", "[]", "\"\"", "{\"a\":{}}", "18446744073709551615"]
            {
                let bent = bend_numbers(&recording.0, wrong);
                let bent = bent.replace(":true", &format!(":{wrong}"));
                let view = Recording(bent).view(&desired());
                assert_eq!(find(&view, "10.1.1.96").state, SessionState::Idle);
            }
        }
    }
}

/// Replaces every number in a field.
fn bend_numbers(text: &str, wrong: &str) -> String {
    let mut bent = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\":") {
        let (head, tail) = rest.split_at(at + 2);
        bent.push_str(head);
        let digits = tail.find(|it: char| !it.is_ascii_digit()).unwrap_or(tail.len());
        if digits > 0 {
            bent.push_str(wrong);
        }
        rest = tail.get(digits..).unwrap();
    }
    bent + rest
}

#[test]
fn other_words_than_those_of_frr_mean_nothing() {
    let neighbors = r#"{"default":{"10.1.1.2":{"bgpState":"Enlightened","hostLocal":7,"lastResetCode":255,
        "lastErrorCodeSubcode":"ZZ","gracefulRestartInfo":[],"peerBfdInfo":{"status":"Sideways",
        "lastUpdate":"9999999999999999999:1:1:1"}}}}"#;
    let sessions = Sessions::parse("{\"default\":[]}", neighbors).unwrap();
    let desired = desired();
    let mut picture = Picture::new(&desired, ViewScope::EVERYTHING, &sessions);
    let bad =
        r#"{"routes":{"300.1.2.3/99":[],"10.0.0.0/8":{"paths":[{},7,{"peer":{"peerId":"x"}}]}}}"#;
    picture.table(None, AddressFamily::Ipv4Unicast, bad).unwrap();
    let bad = r#"{"advertisedRoutes":{"10.0.0.0/8":{},"x":{"nextHop":"1.2.3.4"}}}"#;
    picture.advertised(key("10.1.1.2"), AddressFamily::Ipv4Unicast, bad).unwrap();
    let view = picture.finish();
    let peer = find(&view, "10.1.1.2");
    assert_eq!((peer.state, peer.session.is_some()), (SessionState::Idle, false));
    assert!(view.learned.is_empty() && peer.advertised.is_empty());
}

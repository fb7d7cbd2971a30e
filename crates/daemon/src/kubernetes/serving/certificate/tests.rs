//! Certificates over the years, and Secrets that another author has written.

use super::*;

/// 2026-11-22.
const NOW: u64 = 1_795_305_600;

/// What the API server stores for `stringData`.
pub(in crate::kubernetes) fn stored(string_data: &Map<String, Value>) -> Value {
    let fields = string_data.iter();
    let encoded = fields.map(|(key, value)| {
        (key.clone(), json!(ByteString(value.as_str().unwrap().as_bytes().to_vec())))
    });
    json!({ "data": encoded.collect::<Map<_, _>>() })
}

fn hosts() -> Vec<String> {
    vec!["fairway-webhook.metallb-system.svc".to_owned(), "192.0.2.1".to_owned()]
}

fn profile() -> Profile {
    Profile { name: "Fairway webhook", hosts: hosts(), is_client: false }
}

fn made(former: Option<&Identity>, now: u64) -> Identity {
    Identity::of(&stored(&issue(&profile(), former, now).unwrap())).unwrap()
}

fn days(days: u64) -> u64 {
    days * DAY.as_secs()
}

#[test]
fn a_certificate_is_replaced_a_month_before_its_end() {
    let identity = made(None, NOW);
    assert!(!identity.is_to_be_replaced(&hosts(), NOW));
    assert!(!identity.is_to_be_replaced(&hosts(), NOW + days(335) - 1));
    assert!(identity.is_to_be_replaced(&hosts(), NOW + days(335)));
    assert!(identity.is_to_be_replaced(&hosts(), NOW + days(500)));
}

#[test]
fn a_certificate_for_others_is_replaced() {
    let identity = made(None, NOW);
    assert!(identity.is_to_be_replaced(&hosts()[..1], NOW));
}

/// Controllers change one after the other; the API server knows both.
#[test]
fn the_former_authority_is_trusted_and_the_one_before_it_is_not() {
    let first = made(None, NOW);
    let second = made(Some(&first), NOW + days(335));
    let third = made(Some(&second), NOW + days(670));
    let trusted = |identity: &Identity| {
        let pem: ByteString = serde_json::from_value(json!(identity.ca_bundle)).unwrap();
        String::from_utf8(pem.0).unwrap()
    };
    assert_eq!(trusted(&first), first.authority);
    assert_eq!(trusted(&second), format!("{}{}", second.authority, first.authority));
    assert_eq!(trusted(&third), format!("{}{}", third.authority, second.authority));
    assert_ne!(first.authority, second.authority);
}

#[test]
fn a_secret_that_is_none_of_ours_says_what_it_lacks() {
    let why = |secret: &Value| Identity::of(secret).unwrap_err().to_string();
    assert_eq!(why(&json!({})), "it has no tls.crt");
    assert_eq!(why(&json!({ "data": { "tls.crt": "" } })), "it has no tls.crt");
    assert_eq!(why(&json!({ "data": { "tls.crt": "?" } })), "its tls.crt is not base64 text");
    let mut texts = issue(&profile(), None, NOW).unwrap();
    texts["tls.key"] = json!("key");
    assert!(why(&stored(&texts)).starts_with("its tls.key is not PEM"));
    // The key of another certificate.
    texts["tls.key"] = issue(&profile(), None, NOW).unwrap()["tls.key"].clone();
    assert!(why(&stored(&texts)).starts_with("its certificate cannot be used"));
}

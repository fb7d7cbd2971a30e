//! What does fairway show of its tables and of the router? Its own `show` commands, and waiting until
//! they show what is expected. Used by the cases.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::scene::{Scene, expect_equal};
use lab::Family;
use lab::routers::Notification;
use lab::wait::PATIENCE;

/// The whole table of `family`, as `show bgp ipv4|ipv6 unicast` prints it.
pub(super) fn table(scene: &Scene, family: Family) -> Result<BTreeSet<String>> {
    let table = scene.fairway.show(&["bgp", family.word(), "unicast"])?;
    keys(&table, "/routes")
}

pub(super) fn keys(value: &Value, pointer: &str) -> Result<BTreeSet<String>> {
    let object = value.pointer(pointer).and_then(Value::as_object);
    let object = object.with_context(|| format!("expected an object at {pointer} of {value}"))?;
    Ok(object.keys().cloned().collect())
}

pub(super) fn set(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

pub(super) fn table_becomes(scene: &mut Scene, family: Family, expected: &[&str]) -> Result<()> {
    let expected = set(expected);
    scene.wait(&format!("fairway's {} table is {expected:?}", family.word()), PATIENCE, |scene| {
        let found = table(scene, family)?;
        if found != expected {
            let neighbour = neighbour(scene)?;
            let of = |key| neighbour.get(key).unwrap_or(&Value::Null);
            let (refused, malformed) = (of("refusedPrefixes"), of("lastMalformedUpdate"));
            bail!("it is {found:?}; refused: {refused}, malformed: {malformed}");
        }
        Ok(())
    })
}

/// The router as `show bgp neighbors` shows it.
pub(super) fn neighbour(scene: &Scene) -> Result<Value> {
    let name = scene.neighbour.as_str();
    let mut answer = scene.fairway.show(&["bgp", "neighbors", name])?;
    let neighbour = answer.get_mut(name).map(Value::take);
    neighbour.with_context(|| format!("expected {name} in {answer}"))
}

pub(super) fn expect_at(value: &Value, pointer: &str, expected: &Value) -> Result<()> {
    let found = value.pointer(pointer).unwrap_or(&Value::Null);
    ensure!(found == expected, "{pointer}: expected {expected}, got {found} in {value:#}");
    Ok(())
}

pub(super) fn number_at(value: &Value, pointer: &str) -> Result<u64> {
    let number = value.pointer(pointer).and_then(Value::as_u64);
    number.with_context(|| format!("expected a number at {pointer} of {value}"))
}

pub(super) fn notified(scene: &mut Scene, code: u8, subcode: u8) -> Result<()> {
    scene.wait(&format!("the router receives {code}/{subcode}"), PATIENCE, |scene| {
        let expected = Some(Notification { code, subcode });
        expect_equal("last notification", &scene.router.last_notification()?, &expected)
    })
}

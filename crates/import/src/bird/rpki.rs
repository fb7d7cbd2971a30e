//! `protocol rpki`: caches that say which AS may announce a prefix.
//!
//! Answers the caches, and the tables that they fill. Knows no filter.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::text::Statement;
use super::translated_each;
use crate::outcome::Outcome;

/// The port for connections that are not encrypted (RFC 8210 §13).
const PORT: u16 = 323;

/// All caches of a text.
#[derive(Debug, Default)]
pub(super) struct Caches {
    servers: Vec<(String, u16)>,
    /// Which caches fill each table; one that is not asked here has no server.
    tables: BTreeMap<String, BTreeSet<Option<(String, u16)>>>,
}

impl Caches {
    /// Reads a protocol.
    pub(super) fn read(&mut self, statements: &[Statement], outcome: &mut Outcome) {
        let mut server = None;
        let mut tables = BTreeSet::new();
        let mut is_plain = true;
        translated_each(statements, outcome, |words, statement, _| {
            match words {
                ["roa4" | "roa6"] => {
                    for inner in statement.block.iter().flatten() {
                        if let ["table", name] = inner.words().as_slice() {
                            tables.insert((*name).to_owned());
                        }
                    }
                }
                ["remote", host] => server = Some(((*host).to_owned(), PORT)),
                ["remote", host, "port", port] => {
                    let port = port.parse().map_err(|_| "the port is not a number")?;
                    server = Some(((*host).to_owned(), port));
                }
                ["port", port] => {
                    let port = port.parse().map_err(|_| "the port is not a number")?;
                    server = server.take().map(|(host, _)| (host, port));
                }
                // The cache says how often it is asked.
                ["retry" | "refresh" | "expire" | "description" | "debug", ..]
                | ["transport", "tcp"] => {}
                ["transport", ..] => {
                    is_plain = false;
                    return Err("only caches over TCP are asked");
                }
                _ => return Err("has no equal in a BGPConfiguration"),
            }
            Ok(())
        });
        let server = server.filter(|_| is_plain);
        for table in tables {
            self.tables.entry(table).or_default().insert(server.clone());
        }
        if let Some(server) = server
            && !self.servers.contains(&server)
        {
            self.servers.push(server);
        }
    }

    /// The tables that are here what they are in BIRD: there is one for all caches, so each of them must fill it, and no other.
    pub(super) fn known_tables(&self) -> BTreeSet<String> {
        let all: BTreeSet<_> = self.servers.iter().cloned().map(Some).collect();
        let known = self.tables.iter().filter(|it| *it.1 == all);
        known.map(|it| it.0.clone()).collect()
    }

    /// As in a BGPConfiguration, if there are any.
    pub(super) fn servers(&self) -> Option<Vec<Value>> {
        let server = |(address, port): &(String, u16)| json!({"address": address, "port": port});
        (!self.servers.is_empty()).then(|| self.servers.iter().map(server).collect())
    }
}

//! A command with its format and its VRF. FRR runs an instance in each VRF and shows one at a time; a query without a
//! VRF shows all neighbours together, each with the name of its own.
//!
//! Pure: divides the view and renders each part.

use std::borrow::Cow;
use std::fmt::{self, Write};

use fairway_seam::{BgpView, ViewScope};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::document::{self, Document};

use crate::{
    Format, ShowCommand, ShowError, Snapshot, VRF_DEFAULT, json as json_of, text as text_of, vrf,
};

/// What to show, how, and of which VRF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Query {
    /// The command.
    pub what: ShowCommand,
    /// Text or JSON.
    pub format: Format,
    /// Which part of the view.
    pub vrf: VrfSelection,
}

/// Which VRFs an answer covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum VrfSelection {
    /// All of them, as one.
    Undivided,
    /// `vrf all`: answers are keyed by name.
    All,
    /// `vrf NAME`, which may not exist; the main one is called `default`.
    Named(String),
}

impl Query {
    /// Which lists of routes the snapshot must have.
    pub fn scope(&self) -> ViewScope {
        self.what.scope()
    }

    /// The answer, to be printed unchanged.
    pub fn render(&self, snapshot: &Snapshot<'_>) -> Result<String, ShowError> {
        let mut text = String::new();
        // A String takes everything.
        let _ = self.write(snapshot, &mut text)?;
        Ok(text)
    }

    /// The same, written while it is made: an answer may be larger than memory. The result is that of `out`; why there is
    /// no answer is known before anything is written.
    pub fn write(
        &self,
        snapshot: &Snapshot<'_>,
        out: &mut dyn Write,
    ) -> Result<fmt::Result, ShowError> {
        if matches!(self.what, ShowCommand::BfdPeers { .. } | ShowCommand::BfdPeer { .. }) {
            let bgp = match &self.vrf {
                VrfSelection::Named(name) => Cow::Owned(vrf::watched(snapshot.bgp, name)),
                // Without a name FRR shows those of all VRFs.
                VrfSelection::Undivided | VrfSelection::All => Cow::Borrowed(snapshot.bgp),
            };
            return self.of_one(&Snapshot { bgp: &bgp, ..*snapshot }, out);
        }
        match &self.vrf {
            VrfSelection::Undivided => self.of_one(snapshot, out),
            VrfSelection::All if self.is_of_one_vrf() => Err(ShowError::OneVrfAtATime),
            VrfSelection::All => self.of_all(&vrf::instances(snapshot.bgp), snapshot, out),
            VrfSelection::Named(name) => {
                let instances = vrf::instances(snapshot.bgp);
                let Some((vrf_name, bgp)) = instances.iter().find(|(it, _)| it == name) else {
                    return Err(ShowError::UnknownVrf(name.clone()));
                };
                self.of_one(&Snapshot { vrf_name, bgp, ..*snapshot }, out)
            }
        }
    }

    fn of_one(
        &self,
        snapshot: &Snapshot<'_>,
        out: &mut dyn Write,
    ) -> Result<fmt::Result, ShowError> {
        Ok(match self.format {
            Format::Text => text_of(&self.what, snapshot)?.write(out),
            Format::Json => json_of(&self.what, snapshot)?.write(out),
        })
    }

    /// The answers of all VRFs, each by its name.
    fn of_all(
        &self,
        instances: &[(String, Cow<'_, BgpView>)],
        snapshot: &Snapshot<'_>,
        out: &mut dyn Write,
    ) -> Result<fmt::Result, ShowError> {
        let snapshots = instances.iter().map(|(name, bgp)| {
            let vrf_name = name.as_str();
            Snapshot { vrf_name, bgp, ..*snapshot }
        });
        match self.format {
            Format::Json => {
                let keyed = snapshots
                    .map(|it| Ok((it.vrf_name, self.with_head(json_of(&self.what, &it)?, &it))));
                let keyed: Vec<_> = keyed.collect::<Result<_, ShowError>>()?;
                Ok(document::write_keyed(&keyed, out))
            }
            Format::Text => {
                let texts = snapshots.map(|it| Ok((it.vrf_name, text_of(&self.what, &it)?)));
                let texts: Vec<_> = texts.collect::<Result<_, ShowError>>()?;
                let has_names = !matches!(self.what, ShowCommand::BgpSummary { .. });
                Ok(texts.into_iter().try_for_each(|(name, text)| {
                    if has_names {
                        writeln!(out, "\nInstance {name}:")?;
                    }
                    text.write(out)
                }))
            }
        }
    }

    /// FRR looks up a prefix in one VRF at a time.
    fn is_of_one_vrf(&self) -> bool {
        matches!(self.what, ShowCommand::BgpUnicast { prefix: Some(_), .. })
    }

    /// Neighbours are keyed beside the name of their VRF.
    fn with_head<'a>(&self, document: Document<'a>, snapshot: &Snapshot<'_>) -> Document<'a> {
        match (&self.what, document) {
            (ShowCommand::BgpNeighbors { .. }, Document::Whole(Value::Object(peers))) => {
                let id = (snapshot.vrf_name == VRF_DEFAULT).then(|| ("vrfId".to_owned(), json!(0)));
                let name = ("vrfName".to_owned(), json!(snapshot.vrf_name));
                let fields = id.into_iter().chain([name]).chain(peers);
                Document::Whole(Value::Object(fields.collect()))
            }
            (_, document) => document,
        }
    }
}

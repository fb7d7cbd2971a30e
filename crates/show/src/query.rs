//! A command with its format and its VRF. FRR runs an instance in each VRF and shows one at a time; a query without a
//! VRF shows all neighbours together, each with the name of its own.
//!
//! Pure: divides the view and renders each part.

use std::borrow::Cow;

use fairway_seam::{BgpView, ViewScope};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

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
        if matches!(self.what, ShowCommand::BfdPeers { .. } | ShowCommand::BfdPeer { .. }) {
            let bgp = match &self.vrf {
                VrfSelection::Named(name) => Cow::Owned(vrf::watched(snapshot.bgp, name)),
                // Without a name FRR shows those of all VRFs.
                VrfSelection::Undivided | VrfSelection::All => Cow::Borrowed(snapshot.bgp),
            };
            return self.of_one(&Snapshot { bgp: &bgp, ..*snapshot });
        }
        match &self.vrf {
            VrfSelection::Undivided => self.of_one(snapshot),
            VrfSelection::All if self.is_of_one_vrf() => Err(ShowError::OneVrfAtATime),
            VrfSelection::All => self.of_all(&vrf::instances(snapshot.bgp), snapshot),
            VrfSelection::Named(name) => {
                let instances = vrf::instances(snapshot.bgp);
                let Some((vrf_name, bgp)) = instances.iter().find(|(it, _)| it == name) else {
                    return Err(ShowError::UnknownVrf(name.clone()));
                };
                self.of_one(&Snapshot { vrf_name, bgp, ..*snapshot })
            }
        }
    }

    fn of_one(&self, snapshot: &Snapshot<'_>) -> Result<String, ShowError> {
        match self.format {
            Format::Text => text_of(&self.what, snapshot),
            Format::Json => json_of(&self.what, snapshot).map(|value| format!("{value:#}\n")),
        }
    }

    /// The answers of all VRFs, each by its name.
    fn of_all(
        &self,
        instances: &[(String, Cow<'_, BgpView>)],
        snapshot: &Snapshot<'_>,
    ) -> Result<String, ShowError> {
        let (mut keyed, mut texts) = (Map::new(), String::new());
        for (name, bgp) in instances {
            let snapshot = Snapshot { vrf_name: name, bgp, ..*snapshot };
            match self.format {
                Format::Json => {
                    let value = json_of(&self.what, &snapshot)?;
                    keyed.insert(name.clone(), self.with_head(value, &snapshot));
                }
                Format::Text => {
                    if !matches!(self.what, ShowCommand::BgpSummary { .. }) {
                        texts.push_str(&format!("\nInstance {name}:\n"));
                    }
                    texts.push_str(&text_of(&self.what, &snapshot)?);
                }
            }
        }
        Ok(match self.format {
            Format::Json => format!("{:#}\n", Value::Object(keyed)),
            Format::Text => texts,
        })
    }

    /// FRR looks up a prefix in one VRF at a time.
    fn is_of_one_vrf(&self) -> bool {
        matches!(self.what, ShowCommand::BgpUnicast { prefix: Some(_), .. })
    }

    /// Neighbours are keyed beside the name of their VRF.
    fn with_head(&self, value: Value, snapshot: &Snapshot<'_>) -> Value {
        match (&self.what, value) {
            (ShowCommand::BgpNeighbors { .. }, Value::Object(peers)) => {
                let id = (snapshot.vrf_name == VRF_DEFAULT).then(|| ("vrfId".to_owned(), json!(0)));
                let name = ("vrfName".to_owned(), json!(snapshot.vrf_name));
                Value::Object(id.into_iter().chain([name]).chain(peers).collect())
            }
            (_, value) => value,
        }
    }
}

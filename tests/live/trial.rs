//! A trial: a line of the table of changes, the files before and after, and what the router
//! must have observed if the line is true.

use fairway_model::Kind;
use fairway_resources::change::{Change, Effect, Part};
use fairway_seam::ChangeEffect;
use serde_json::{Value, json};

use crate::cache::REFUSED_PREFIX;
use crate::scene;
use crate::stage::{SESSIONS, Scene, Session, Stage, View};

/// A line of the table, and files that show it.
#[derive(Clone)]
pub(crate) struct Trial {
    pub(crate) kind: Kind,
    pub(crate) part: Part,
    pub(crate) when: &'static str,
    before: Scene,
    after: Scene,
    /// The new name of the file, if that is the only change.
    renamed: bool,
    needs_tcp_ao: bool,
    /// What the router must have received over the session before, since it takes a while.
    awaited: Option<&'static str>,
}

impl Trial {
    /// The line about `part` of `kind`, in the scene that all trials share.
    pub(crate) fn of(kind: Kind, part: Part) -> Self {
        let scene = scene::common();
        Self {
            kind,
            part,
            when: "",
            before: scene.clone(),
            after: scene,
            renamed: false,
            needs_tcp_ao: false,
            awaited: None,
        }
    }

    /// A field changes from one value to another; null means without it.
    pub(crate) fn field(kind: Kind, path: &'static str, before: Value, after: Value) -> Self {
        Self::of(kind, Part::Field(path)).set(file_of(kind), path, before, after)
    }

    /// A label or annotation changes.
    pub(crate) fn key(
        kind: Kind,
        map: &'static str,
        key: &'static str,
        before: Value,
        after: Value,
    ) -> Self {
        let mut trial = Self::of(kind, Part::Key(map, key));
        for (scene, value) in [(&mut trial.before, before), (&mut trial.after, after)] {
            let mut labels = scene[file_of(kind)].clone();
            labels = at(&mut labels, map).take();
            let mut labels = if labels.is_null() { json!({}) } else { labels };
            labels[key] = value;
            if labels[key].is_null() {
                labels.as_object_mut().unwrap().remove(key);
            }
            set(scene, file_of(kind), map, labels);
        }
        trial
    }

    /// The line for these conditions.
    pub(crate) fn when(mut self, when: &'static str) -> Self {
        self.when = when;
        self
    }

    /// Another field changes together with it.
    pub(crate) fn set(mut self, file: &str, path: &str, before: Value, after: Value) -> Self {
        set(&mut self.before, file, path, before);
        set(&mut self.after, file, path, after);
        self
    }

    /// A value that differs from the common scene, before and after.
    pub(crate) fn with(self, file: &str, path: &str, value: Value) -> Self {
        self.set(file, path, value.clone(), value)
    }

    /// A value that differs in whichever of the two has the object.
    pub(crate) fn set_where_it_is(mut self, file: &str, path: &str, value: Value) -> Self {
        for scene in [&mut self.before, &mut self.after] {
            if scene.contains_key(file) {
                set(scene, file, path, value.clone());
            }
        }
        self
    }

    /// A value that differs after only, and is as in the common scene before.
    pub(crate) fn change(mut self, file: &str, path: &str, value: Value) -> Self {
        set(&mut self.after, file, path, value);
        self
    }

    /// It shows this line of the table, and not the one of the part that it changes.
    pub(crate) fn line_of(mut self, path: &'static str) -> Self {
        self.part = Part::Field(path);
        self
    }

    /// Another object exists before, after, or both.
    pub(crate) fn object(
        mut self,
        file: &str,
        before: Option<Value>,
        after: Option<Value>,
    ) -> Self {
        for (scene, object) in [(&mut self.before, before), (&mut self.after, after)] {
            match object {
                Some(object) => scene.insert(file.to_owned(), object),
                None => scene.remove(file),
            };
        }
        self
    }

    /// The object of its kind appears.
    pub(crate) fn appears(mut self) -> Self {
        self.before.remove(file_of(self.kind));
        self
    }

    /// The object of its kind is deleted.
    pub(crate) fn vanishes(mut self) -> Self {
        self.after.remove(file_of(self.kind));
        self
    }

    /// The file of its object gets another name.
    pub(crate) fn moves(mut self) -> Self {
        self.renamed = true;
        self
    }

    /// The router receives this prefix over the session before, and not at once.
    pub(crate) fn awaits(mut self, prefix: &'static str) -> Self {
        self.awaited = Some(prefix);
        self
    }

    /// Only on a kernel with TCP-AO: `make vm` has one.
    pub(crate) fn needs_tcp_ao(mut self) -> Self {
        self.needs_tcp_ao = true;
        self
    }

    /// Whether this machine supports it.
    pub(crate) fn can_run(&self) -> bool {
        !self.needs_tcp_ao || std::env::var_os("FAIRWAY_TCP_AO").is_some()
    }

    fn line(&self) -> &'static Change {
        let mut lines = Change::all(self.kind).iter();
        let found = lines.find(|it| it.part == self.part && it.when == self.when);
        found.unwrap_or_else(|| panic!("no line for {}", self.name()))
    }

    /// Its name in failures.
    pub(crate) fn name(&self) -> String {
        format!("{} {:?} {:?}", self.kind, self.part, self.when)
    }

    /// Makes the change and reverts it, and compares what the router observed with the line. Returns
    /// what was wrong.
    pub(crate) fn run(&self, stage: &mut Stage) -> Result<(), String> {
        let effect = self.line().effect;
        let what = self.name();
        let sessions: Vec<&str> = SESSIONS
            .into_iter()
            .filter(|it| *it != "trial" || has_trial_session(&self.before))
            .collect();
        if is_silent(&self.before) {
            // Its other differences must have arrived before announcements stop.
            let mut audible = self.before.clone();
            audible.insert("node".to_owned(), scene::common()["node"].clone());
            stage.put_all(&audible);
            stage.barrier(&format!("{what}, before"), &sessions);
        }
        if self.awaited.is_some() {
            // What a cache said counts until the next one has answered.
            let mut without_caches = self.before.clone();
            without_caches.remove(file_of(Kind::BgpConfiguration));
            stage.put_all(&without_caches);
        }
        stage.put_all(&self.before);
        if let Some(prefix) = self.awaited {
            stage.wait(&what, |view| view["trial"].routes.contains_key(prefix));
        }
        let silence = |stage: &Stage| {
            let view = stage.wait(&what, |view| view.values().all(|it| it.routes.is_empty()));
            (view, 0)
        };
        let (before, _) = if is_silent(&self.before) {
            silence(stage)
        } else {
            stage.barrier(&format!("{what}, before"), &sessions)
        };
        let faults = stage.faults();
        if !faults.is_empty() && !self.when.contains("waits") {
            return Err(format!("faults before: {faults:?}"));
        }
        if self.renamed {
            stage.rename(file_of(self.kind), "moved");
        } else {
            stage.put_all(&self.after);
        }
        let (after, rounds) = if is_silent(&self.after) {
            silence(stage)
        } else {
            stage.wait(&what, |view| is_done(effect, &before["trial"], &view["trial"]));
            stage.barrier(&what, &survivors(effect, &sessions))
        };
        // Sessions that received nothing before received everything.
        let rounds = if is_silent(&self.before) { 0 } else { rounds };
        let farewells = stage.farewells("trial", before["trial"].dropped, after["trial"].dropped);
        let mut faults = stage.faults();
        // What the machine lacks is no fault of the object.
        faults.retain(|it| !it.contains("default route"));
        let is_fault = effect == Effect::Kept;
        if is_fault == faults.is_empty() {
            return Err(format!("expected {effect:?}; faults: {faults:?}"));
        }
        judge(effect, &before, &after, &farewells, rounds).map_err(|why| {
            format!("expected {effect:?}, but {why}\nbefore: {before:#?}\nafter: {after:#?}")
        })?;
        if self.renamed {
            stage.rename("moved", file_of(self.kind));
        }
        Ok(())
    }
}

/// The file of the object that trials of a kind change.
pub(crate) fn file_of(kind: Kind) -> &'static str {
    match kind {
        Kind::BgpPeer => "peer",
        Kind::BfdProfile => "bfd-profile",
        Kind::IpAddressPool => "pool",
        Kind::BgpAdvertisement => "advertisement",
        Kind::Layer2Advertisement => "layer2",
        Kind::Community => "community",
        Kind::BgpConfiguration => "bgp-configuration",
        Kind::Service => "service",
        Kind::EndpointSlice => "slice",
        Kind::Node => "node",
        Kind::Namespace => "namespace",
        Kind::Secret => "secret",
        Kind::ConfigMap => "extras",
    }
}

/// The value at `path`, which is created if it is missing.
fn at<'a>(object: &'a mut Value, path: &str) -> &'a mut Value {
    path.split('.').fold(object, |value, step| match step.strip_suffix("[]") {
        Some(list) => {
            let list = &mut value[list];
            if !list.is_array() {
                *list = json!([{}]);
            }
            &mut list[0]
        }
        None => &mut value[step],
    })
}

fn set(scene: &mut Scene, file: &str, path: &str, value: Value) {
    let object = scene.get_mut(file).unwrap_or_else(|| panic!("no {file}"));
    if !value.is_null() {
        *at(object, path) = value;
        return;
    }
    let (outer, last) = path.rsplit_once('.').unwrap_or(("", path));
    let outer = if outer.is_empty() { object } else { at(object, outer) };
    if let Some(outer) = outer.as_object_mut() {
        outer.remove(last);
    }
}

/// Whether nothing is announced in it, not even the marker.
fn is_silent(scene: &Scene) -> bool {
    let Some(node) = scene.get("node") else { return false };
    let excluded = &node["metadata"]["labels"][scene::EXCLUDED];
    let condition = &node["status"]["conditions"][0];
    let taint = &node["spec"]["taints"][0];
    let marks = ["labels", "annotations"].map(|it| &node["metadata"][it][scene::DRAIN]);
    let is_drained = marks.iter().any(|it| !it.is_null())
        || (taint["key"] == scene::DRAIN && taint["value"] != "false");
    node["metadata"]["name"] == "node-a"
        && (!excluded.is_null()
            || is_drained
            || (condition["type"] == "NetworkUnavailable" && condition["status"] == "True"))
}

fn has_trial_session(scene: &Scene) -> bool {
    let secret = scene.get("peer").map(|peer| &peer["spec"]["passwordSecret"]["name"]);
    if secret.is_some_and(|name| !name.is_null()) && !scene.contains_key("secret") {
        return false;
    }
    let labels = scene.get("node").map(|node| node["metadata"]["labels"].to_string());
    scene.get("peer").is_some_and(|peer| {
        let selector = peer["spec"]["nodeSelectors"][0]["matchLabels"]["rack"].as_str();
        selector.is_none_or(|rack| labels.is_some_and(|it| it.contains(rack)))
    })
}

/// The sessions that survive a trial with this effect.
fn survivors<'a>(effect: Effect, sessions: &[&'a str]) -> Vec<&'a str> {
    let is_ended = match effect {
        Effect::Session(effect) => !matches!(
            effect,
            ChangeEffect::ExchangesKeys
                | ChangeEffect::AsksAgain
                | ChangeEffect::SaysAgain
                | ChangeEffect::Nothing
        ),
        Effect::PeerComesOrGoes | Effect::TooManyPrefixes => true,
        _ => false,
    };
    sessions.iter().copied().filter(|it| !is_ended || *it != "trial").collect()
}

/// Whether the trial's session reached the state of the effect, as far as that must be awaited.
fn is_done(effect: Effect, before: &Session, after: &Session) -> bool {
    match effect {
        Effect::Session(
            ChangeEffect::OtherPeer
            | ChangeEffect::NewSession
            | ChangeEffect::NewExternalSession
            | ChangeEffect::Down,
        )
        | Effect::TooManyPrefixes => after.dropped > before.dropped,
        Effect::PeerComesOrGoes => after.is_up != before.is_up,
        Effect::Caches => !after.routes.contains_key(REFUSED_PREFIX),
        Effect::Session(ChangeEffect::AsksAgain) => after.refreshes > before.refreshes,
        _ => true,
    }
}

/// What is wrong with the observations, if `effect` should have happened.
fn judge(
    effect: Effect,
    before: &View,
    after: &View,
    farewells: &[String],
    rounds: u64,
) -> Result<(), String> {
    let mut has_changed = false;
    for name in SESSIONS {
        let (before, after) = (&before[name], &after[name]);
        let of_session = |it: Effect| {
            matches!(it, Effect::Session(_) | Effect::PeerComesOrGoes | Effect::TooManyPrefixes)
        };
        if name == "trial" && of_session(effect) {
            session(effect, before, after, farewells)?;
            continue;
        }
        if (before.established, before.dropped) != (after.established, after.dropped) {
            return Err(format!("the session {name} was touched"));
        }
        if of_session(effect) && name != "trial" {
            unchanged(name, before, after, rounds)?;
            continue;
        }
        if before.routes == after.routes {
            unchanged(name, before, after, rounds)?;
            if effect == Effect::AttributesInside && name == "inside" {
                return Err("the internal neighbor noticed nothing".to_owned());
            }
            if effect == Effect::AttributesOutside && name != "inside" {
                return Err(format!("{name} noticed nothing"));
            }
            continue;
        }
        has_changed = true;
        routes(effect, name, before, after, rounds)?;
    }
    let is_silent = matches!(
        effect,
        Effect::Nothing
            | Effect::Kept
            | Effect::LaterAddresses
            | Effect::ExchangesBfdKeys
            | Effect::HearsLess
            // No station is reached here, so that nobody is asked for routes.
            | Effect::Stations
            // The native backend is in use here.
            | Effect::FrrLines
    );
    let is_free = is_silent || matches!(effect, Effect::Session(_) | Effect::OtherObject);
    if !has_changed
        && !is_free
        && !matches!(effect, Effect::PeerComesOrGoes | Effect::TooManyPrefixes)
    {
        return Err("no neighbor noticed anything".to_owned());
    }
    Ok(())
}

fn unchanged(name: &str, before: &Session, after: &Session, rounds: u64) -> Result<(), String> {
    if before.routes != after.routes {
        return Err(format!("{name} has other routes"));
    }
    let updates = after.updates - before.updates;
    if rounds > 0 && updates != rounds {
        return Err(format!("{name} got {} UPDATEs without changes", updates - rounds));
    }
    if after.refreshes != before.refreshes {
        return Err(format!("{name} was asked again"));
    }
    Ok(())
}

/// What the neighbour with the changed peer must have observed.
fn session(
    effect: Effect,
    before: &Session,
    after: &Session,
    farewells: &[String],
) -> Result<(), String> {
    let is_same = (before.established, before.dropped) == (after.established, after.dropped);
    let ended_with = |number: &str| match farewells {
        [first, ..] if first.contains(number) => Ok(()),
        _ => Err(format!("it did not end with {number}: {farewells:?}")),
    };
    match effect {
        Effect::Session(ChangeEffect::OtherPeer) => ended_with("(6/3)"),
        Effect::Session(ChangeEffect::NewSession | ChangeEffect::NewExternalSession) => {
            ended_with("(6/6)")
        }
        Effect::Session(ChangeEffect::Down) => ended_with("(6/2)"),
        Effect::TooManyPrefixes => ended_with("(6/1)"),
        Effect::PeerComesOrGoes if before.is_up => ended_with("(6/3)"),
        Effect::PeerComesOrGoes if after.dropped == before.dropped => Ok(()),
        Effect::Session(ChangeEffect::ExchangesKeys) if is_same => Ok(()),
        Effect::Session(ChangeEffect::AsksAgain) if is_same => Ok(()),
        Effect::Session(ChangeEffect::SaysAgain) if is_same && before.routes != after.routes => {
            Ok(())
        }
        _ => Err("something else happened to the session".to_owned()),
    }
}

/// What a neighbour with changed routes must have observed.
fn routes(
    effect: Effect,
    name: &str,
    before: &Session,
    after: &Session,
    rounds: u64,
) -> Result<(), String> {
    let missing = |from: &Session, to: &Session| {
        from.routes.keys().filter(|it| !to.routes.contains_key(*it)).cloned().collect::<Vec<_>>()
    };
    let (gone, new) = (missing(before, after), missing(after, before));
    let both = before
        .routes
        .iter()
        .filter_map(|(prefix, it)| Some((prefix, it, after.routes.get(prefix)?)));
    let other: Vec<_> = both.filter(|(_, before, after)| before != after).map(|it| it.0).collect();
    let updates = after.updates - before.updates;
    let fits = match effect {
        Effect::Routes | Effect::Caches => other.is_empty() && (gone.is_empty() || new.is_empty()),
        Effect::AllRoutes => before.routes.is_empty() || after.routes.is_empty(),
        Effect::Prefixes => other.is_empty() && !gone.is_empty() && !new.is_empty(),
        Effect::Addresses | Effect::OtherObject => other.is_empty(),
        Effect::Attributes | Effect::Choice => gone.is_empty() && new.is_empty(),
        Effect::AttributesInside => gone.is_empty() && new.is_empty() && name == "inside",
        Effect::AttributesOutside => gone.is_empty() && new.is_empty() && name != "inside",
        _ => false,
    };
    if !fits {
        return Err(format!("{name}: withdrawn {gone:?}, announced {new:?}, otherwise {other:?}"));
    }
    // One for withdrawals, and one for each set of attributes that is announced.
    let most = u64::from(!gone.is_empty()) + (new.len() + other.len()) as u64;
    if rounds > 0 && updates - rounds > most {
        return Err(format!("{name} got {} UPDATEs where {most} would do", updates - rounds));
    }
    Ok(())
}

//! Other daemons' configuration as Fairway's resources.
//!
//! Answers which objects say the same as a file of FRR, BIRD or keepalived, or as objects of Cilium, Calico or frr-k8s, and
//! names each line that has no equal. Pure: text in, text out. Knows no files and no running daemon. Called by
//! `fairway import`.
//!
//! ```text
//!  text ─► Program ─► frr │ bird │ keepalived │ kubernetes ─► Outcome: objects, untranslated lines, notes ─► YAML
//! ```
//!
//! What cannot be translated never lets more through: a rule of which a part has no equal rejects what the rest of it
//! matches, and the line is named.

mod bird;
mod frr;
mod keepalived;
mod kubernetes;
mod object;
mod outcome;
mod policy;
mod program;

#[cfg(test)]
mod tests;

pub use outcome::{Outcome, Remark, faults};
pub use program::Program;

/// Translates the text of one file, which messages call `name`. Without `program`, the text tells what it is; `None` where it
/// does not.
pub fn import(name: &str, text: &str, program: Option<Program>) -> Option<Outcome> {
    let program = program.or_else(|| Program::of(text))?;
    let mut outcome = Outcome::new(name);
    match program {
        Program::Bird => bird::import(text, &mut outcome),
        Program::Frr => frr::import(text, &mut outcome),
        Program::Keepalived => keepalived::import(text, &mut outcome),
        Program::Kubernetes => kubernetes::import(text, &mut outcome),
    }
    Some(outcome)
}

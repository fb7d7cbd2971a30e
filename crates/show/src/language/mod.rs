//! What do the words of a command mean, and which words may follow? One language for `fairway show`, `clear` and
//! `explain`, and for FRR's vtysh.
//!
//! ```text
//!  words ─► understand ─► commands (grammar) ─► Question
//!        └► next_words ─► completion in shells, `?`
//! ```
//!
//! Pure, and knows no daemon: questions are answered from a snapshot by `render` and by `vty`.

mod commands;
mod completion;
mod grammar;
mod words;

use std::sync::LazyLock;

use fairway_ground::AddressFamily;
use fairway_seam::Clear;
use serde::{Deserialize, Serialize};

use crate::{Query, VrfSelection};
use commands::Command;
pub use completion::{Completed, Form, complete};
pub use grammar::{Misread, ValueName};
use grammar::{Next, Pattern};

/// Who is asked, and so which commands there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vocabulary {
    /// FRR's bgpd.
    Bgpd,
    /// FRR's bfdd.
    Bfdd,
    /// FRR's zebra.
    Zebra,
    /// `fairway show`, `fairway clear` and `fairway explain`.
    CommandLine,
}

/// The meaning of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// `show` and `explain`.
    Show(Query),
    /// `clear bgp`.
    Clear(ClearOrder),
    /// What a word may be completed to.
    Complete(Completed),
    /// Accepted without effect: `enable`, `terminal length 0`.
    Nothing,
    /// Closes the connection.
    Exit,
}

/// Which sessions to clear, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClearOrder {
    /// An address, the name of a BGPPeer, an AS number, `external`, or `*` for all.
    pub wanted: String,
    /// Hard, or soft in which direction.
    pub how: Clear,
    /// Only neighbours of this VRF.
    pub vrf: VrfSelection,
    /// Only neighbours that are configured for it.
    pub family: Option<AddressFamily>,
}

/// The commands of a vocabulary, with their patterns read.
struct Table {
    answered: Vec<(Pattern, Command)>,
    unanswered: Vec<Pattern>,
}

impl Table {
    fn new(answered: &[&[Command]], unanswered: &[&[&'static str]]) -> Self {
        let answered = answered.iter().copied().flatten();
        let unanswered = unanswered.iter().copied().flatten();
        Self {
            answered: answered.map(|it| (Pattern::new(it.pattern), *it)).collect(),
            unanswered: unanswered.map(|pattern| Pattern::new(pattern)).collect(),
        }
    }

    fn of(vocabulary: Vocabulary) -> &'static Self {
        use commands as all;
        static TABLES: LazyLock<[Table; 4]> = LazyLock::new(|| {
            let daemon = |own: &[Command], more: &[Command], unanswered: &[&'static str]| {
                Table::new(
                    &[&all::SESSION, &all::COMMON, own, more],
                    &[&all::UNANSWERED_BY_ALL, unanswered],
                )
            };
            [
                daemon(&all::BGP, &all::RPKI, &all::UNANSWERED_BY_BGPD),
                daemon(&all::BFD, &[], &all::UNANSWERED_BY_BFDD),
                daemon(&all::ZEBRA, &[], &all::UNANSWERED_BY_ZEBRA),
                Table::new(
                    &[
                        &all::COMMON,
                        &all::BGP,
                        &all::RPKI,
                        &all::BFD,
                        &all::ZEBRA,
                        &all::OURS,
                        &all::EXPLAIN,
                        &all::CLEAR,
                    ],
                    &[],
                ),
            ]
        });
        let [bgpd, bfdd, zebra, command_line] = &*TABLES;
        match vocabulary {
            Vocabulary::Bgpd => bgpd,
            Vocabulary::Bfdd => bfdd,
            Vocabulary::Zebra => zebra,
            Vocabulary::CommandLine => command_line,
        }
    }
}

/// The question that `words` are.
pub fn understand(vocabulary: Vocabulary, words: &[&str]) -> Result<Question, Misread> {
    let table = Table::of(vocabulary);
    let answered = table.answered.iter().map(|(pattern, _)| pattern);
    let (position, words) = grammar::find(answered.chain(&table.unanswered), words)?;
    let command = table.answered.get(position).map(|(_, command)| command);
    command.and_then(|command| (command.read)(&words)).ok_or(Misread::NoMatch)
}

/// What may follow some words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NextWords {
    /// Words, each with what it means.
    pub words: Vec<(&'static str, &'static str)>,
    /// Values.
    pub values: Vec<ValueName>,
    /// The words are a command already.
    pub is_command: bool,
}

/// What may follow `words`.
pub fn next_words(vocabulary: Vocabulary, words: &[&str]) -> NextWords {
    let mut following = NextWords::default();
    let answered = Table::of(vocabulary).answered.iter().map(|(pattern, _)| pattern);
    for next in grammar::next(answered, words) {
        match next {
            Next::Word(word) => following.words.push((word, words::meaning(word))),
            Next::Value(value) => following.values.push(value),
            Next::End => following.is_command = true,
        }
    }
    following
}

/// The commands of the command line that begin with `verb`, each with what it does.
pub fn commands_of(verb: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = Table::of(Vocabulary::CommandLine).answered.iter().map(|(_, command)| command);
    let is_wanted = move |it: &&Command| it.pattern.split(' ').next() == Some(verb);
    all.filter(is_wanted).map(|it| (it.pattern, it.help))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each word that may be typed, found by walking the language word by word.
    fn all_words(vocabulary: Vocabulary) -> Vec<&'static str> {
        let (mut found, mut ahead) = (Vec::new(), vec![Vec::new()]);
        while let Some(line) = ahead.pop() {
            for (word, _) in next_words(vocabulary, &line).words {
                if !found.contains(&word) {
                    found.push(word);
                    ahead.push([line.as_slice(), &[word]].concat());
                }
            }
        }
        found
    }

    #[test]
    fn each_word_has_a_meaning() {
        let words = all_words(Vocabulary::CommandLine);
        assert!(words.len() > 30, "{words:?}");
        let bare: Vec<_> = words.iter().filter(|word| words::meaning(word).is_empty()).collect();
        assert!(bare.is_empty(), "{bare:?}");
    }

    #[test]
    fn the_command_line_takes_what_the_daemons_take() {
        for line in [
            "show bgp summary json",
            "sh ip bgp",
            "sh bgp sum",
            "show bfd peers brief",
            "show ip route summary",
            "show running-config",
            "show version",
            "show services",
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let question = understand(Vocabulary::CommandLine, &words);
            assert!(matches!(question, Ok(Question::Show(_))), "{line}: {question:?}");
        }
        for line in
            ["enable", "configure terminal", "write terminal", "autocomplete 3 A.B.C.D neighbor"]
        {
            let words: Vec<&str> = line.split(' ').collect();
            let question = understand(Vocabulary::CommandLine, &words);
            assert_eq!(question, Err(Misread::NoMatch), "{line}");
        }
    }

    #[test]
    fn clear_takes_the_words_of_frr() {
        let order = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            match understand(Vocabulary::CommandLine, &words) {
                Ok(Question::Clear(order)) => order,
                other => panic!("{line}: {other:?}"),
            }
        };
        let plain = |wanted: &str, how| ClearOrder {
            wanted: wanted.to_owned(),
            how,
            vrf: VrfSelection::Undivided,
            family: None,
        };
        for (line, expected) in [
            ("clear bgp *", plain("*", Clear::Hard)),
            ("clear bgp 192.0.2.1 soft", plain("192.0.2.1", Clear::Soft)),
            ("cle bgp tor-1 so i", plain("tor-1", Clear::SoftIn)),
            ("clear bgp 65010 out", plain("65010", Clear::SoftOut)),
            ("clear bgp external", plain("external", Clear::Hard)),
        ] {
            assert_eq!(order(line), expected, "{line}");
        }
        let ip = order("clear ip bgp vrf red 192.0.2.1 in");
        let family = Some(AddressFamily::Ipv4Unicast);
        let vrf = VrfSelection::Named("red".to_owned());
        assert_eq!(ip, ClearOrder { vrf, family, ..plain("192.0.2.1", Clear::SoftIn) });
        let words = ["clear", "bgp", "*", "soft", "both"];
        assert_eq!(understand(Vocabulary::CommandLine, &words), Err(Misread::NoMatch));
    }
}

//! What is on the command line of every suite? What that of `cargo test` has, with any number of words; a
//! suite adds options of its own beside it. Used by `main` of every suite.

use clap::Parser;
use libtest_mimic::Arguments;

/// The part of the command line that all suites have: a suite flattens it into its own options.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Options {
    #[command(flatten)]
    arguments: Arguments,
    /// More words
    #[arg(value_name = "WORD")]
    more: Vec<String>,
}

/// Parses the command line; prints help or what is wrong with it, and exits, where there is no more to do.
pub fn parse<O: Parser>(suite: &'static str) -> O {
    // The harness has a template of its own, without the description of the suite.
    let template = "{about-with-newline}\n{usage-heading} {usage}\n\n{all-args}{after-help}";
    let command = O::command().name(suite).bin_name(suite);
    let command = command.help_template(template).after_help(
        "The program under test is FAIRWAY_BIN, else the one that cargo has built beside this test.",
    );
    let command = command
        .mut_arg("filter", |it| {
            it.value_name("WORD")
                .help("Chooses cases: see above")
                .long_help("Chooses cases: see above")
        })
        .mut_arg("more", |it| it.hide(true));
    let matches = command.get_matches();
    O::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

impl Options {
    /// The words that choose cases, in small letters.
    pub fn words(&self) -> Vec<String> {
        let words = self.arguments.filter.iter().chain(&self.more);
        words.map(|word| word.to_lowercase()).collect()
    }

    /// Whether the whole name of a case has to be given.
    pub(super) fn is_exact(&self) -> bool {
        self.arguments.exact
    }

    /// Cases with one of these words in their title are left out.
    pub(super) fn skipped(&self) -> Vec<String> {
        self.arguments.skip.iter().map(|word| word.to_lowercase()).collect()
    }

    /// Whether only a list of the cases is wanted.
    pub fn is_list(&self) -> bool {
        self.arguments.list
    }

    /// Whether `--bench` was given: its meaning is up to the suite.
    pub fn is_bench(&self) -> bool {
        self.arguments.bench
    }

    /// Whether it leaves out cases.
    pub(super) fn chooses(&self) -> bool {
        !self.words().is_empty() || !self.arguments.skip.is_empty()
    }

    /// The arguments of the harness: the cases are chosen already.
    pub(super) fn harness(&self) -> Arguments {
        Arguments { filter: None, skip: Vec::new(), bench: false, ..self.arguments.clone() }
    }
}

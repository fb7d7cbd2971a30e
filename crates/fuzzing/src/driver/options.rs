//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use fairway_fuzzing::targets::target;
use fairway_fuzzing::{TARGETS, Target};

pub(crate) const USAGE: &str = "\
usage: fairway-fuzzing [--target NAME]... [--inputs N] [--seconds N] [--first-seed N] [--threads N]
       fairway-fuzzing --target NAME --seed N
       fairway-fuzzing --target NAME --file FILE
       fairway-fuzzing --write-corpus FOLDER

Without --inputs and --seconds: 10000000 inputs. With both, it fails if the time is up first.
--seed and --file replay one input; --file - reads it from standard input.
--write-corpus writes a folder of initial inputs for each target, for libFuzzer.";

/// Default number of inputs.
const INPUTS_DEFAULT: u64 = 10_000_000;

/// The parsed options.
#[derive(Debug)]
pub(crate) struct Options {
    /// The targets to run.
    pub(crate) targets: Vec<&'static Target>,
    pub(crate) task: Task,
}

#[derive(Debug)]
pub(crate) enum Task {
    Help,
    Run(Limits),
    Replay { target: &'static Target, input: Input },
    WriteCorpus(PathBuf),
}

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) inputs: Option<u64>,
    pub(crate) time: Option<Duration>,
    pub(crate) first_seed: u64,
    pub(crate) threads: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Seed(u64),
    File(PathBuf),
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut targets = Vec::new();
        let (mut inputs, mut time, mut first_seed, mut threads) = (None, None, 1, None);
        let (mut input, mut corpus) = (None, None);
        while let Some(word) = words.next() {
            if word == "--help" || word == "-h" {
                return Ok(Self { targets, task: Task::Help });
            }
            let value = words.next().ok_or(format!("{word} needs a value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("{value:?} is not a number"));
            match word.as_str() {
                "--target" => {
                    let names = || TARGETS.iter().map(|it| it.name).collect::<Vec<_>>().join(" ");
                    let known = target(&value);
                    targets.push(known.ok_or_else(|| format!("no {value:?}; try {}", names()))?);
                }
                "--inputs" => inputs = Some(number()?),
                "--seconds" => time = Some(Duration::from_secs(number()?)),
                "--first-seed" => first_seed = number()?,
                "--threads" => threads = usize::try_from(number()?).ok().filter(|it| *it > 0),
                "--seed" => input = Some(Input::Seed(number()?)),
                "--file" => input = Some(Input::File(value.into())),
                "--write-corpus" => corpus = Some(PathBuf::from(value)),
                _ => return Err(format!("{word:?} is not an option")),
            }
        }
        if targets.is_empty() {
            targets.extend(TARGETS);
        }
        let task = match (input, corpus, targets.as_slice()) {
            (Some(input), None, [target]) => Task::Replay { target, input },
            (Some(_), ..) => return Err("--seed and --file need one --target".to_owned()),
            (None, Some(folder), _) => Task::WriteCorpus(folder),
            (None, None, _) => {
                if inputs.is_none() && time.is_none() {
                    inputs = Some(INPUTS_DEFAULT);
                }
                let cores = || std::thread::available_parallelism().map_or(1, Into::into);
                let threads = threads.unwrap_or_else(cores);
                Task::Run(Limits { inputs, time, first_seed, threads })
            }
        };
        Ok(Self { targets, task })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(ToOwned::to_owned))
    }

    #[test]
    fn a_run_without_limits_has_ten_million_inputs() {
        let Task::Run(limits) = parse("").unwrap().task else { panic!("a run") };
        assert_eq!((limits.inputs, limits.time), (Some(10_000_000), None));
        let Task::Run(limits) = parse("--seconds 3").unwrap().task else { panic!("a run") };
        assert_eq!((limits.inputs, limits.time), (None, Some(Duration::from_secs(3))));
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for line in ["--seed 1", "--target nobody", "--inputs", "--inputs many", "--fast 1"] {
            assert!(parse(line).is_err(), "{line}");
        }
        assert!(matches!(parse("--target open --seed 1").unwrap().task, Task::Replay { .. }));
    }
}

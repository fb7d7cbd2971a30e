//! Which cases do the words of a command line choose? Words that name places choose among places, all
//! others among names; what the short form leaves out is never chosen. Pure. Used by `Suite`.

use super::case::Case;
use super::options::Options;

/// What several words that name no place mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Several {
    /// A name has to have all of them.
    All,
    /// A name has to have one of them.
    Any,
}

/// The chosen cases, each with its number among all.
pub(super) fn select(
    cases: Vec<Case>,
    options: &Options,
    several: Several,
    is_chain: bool,
) -> Vec<Case> {
    let words = options.words();
    let names_place = |word: &&String| cases.iter().any(|case| case.places.contains(*word));
    let (places, words): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| !options.is_exact() && names_place(word));
    let skipped = options.skipped();
    let is_chosen = |case: &Case| {
        let title = case.title().to_lowercase();
        let name = case.name.to_lowercase();
        let source = case.source.to_lowercase();
        let has = |word: &&String| match options.is_exact() {
            true => title == **word || name == **word,
            false => title.contains(*word) || name.contains(*word) || source.contains(*word),
        };
        let has_words = match several {
            _ if words.is_empty() => true,
            Several::All if !options.is_exact() => words.iter().all(has),
            Several::All | Several::Any => words.iter().any(has),
        };
        let is_there = places.is_empty() || places.iter().any(|place| case.places.contains(*place));
        !case.left_out
            && has_words
            && is_there
            && !skipped.iter().any(|word| title.contains(word.as_str()))
    };
    let last = cases.iter().rposition(is_chosen);
    let is_wanted: Vec<bool> = cases
        .iter()
        .enumerate()
        .map(|(place, case)| is_chosen(case) || (is_chain && Some(place) < last))
        .collect();
    let numbered = cases.into_iter().enumerate().zip(is_wanted).filter(|(_, is_wanted)| *is_wanted);
    numbered.map(|((number, case), _)| Case { number, ..case }).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        suite: Options,
    }

    fn chosen(words: &str, several: Several, is_chain: bool) -> Vec<usize> {
        let line = Line::parse_from(["suite"].into_iter().chain(words.split_whitespace()));
        let case = |name: &str, places: &[&str]| Case::new(name, |_| Ok(())).at(places);
        let cases = vec![
            case("routes come", &["frr8", "frr"]),
            case("routes go", &["frr8", "frr"]),
            case("routes come", &["bird2", "bird"]),
            case("Keys change", &["bird2", "bird"]).from_source("RFC 5925"),
        ];
        select(cases, &line.suite, several, is_chain).iter().map(|case| case.number).collect()
    }

    #[test]
    fn no_word_chooses_all() {
        assert_eq!(chosen("", Several::All, false), [0, 1, 2, 3]);
    }

    #[test]
    fn words_for_places_choose_places_and_the_others_names() {
        assert_eq!(chosen("frr routes", Several::All, false), [0, 1]);
        assert_eq!(chosen("frr bird come", Several::All, false), [0, 2]);
        assert_eq!(chosen("bird2", Several::Any, false), [2, 3]);
    }

    #[test]
    fn several_words_mean_all_of_them_or_any() {
        assert_eq!(chosen("routes go", Several::All, false), [1]);
        assert_eq!(chosen("go keys", Several::Any, false), [1, 3]);
        assert_eq!(chosen("go keys", Several::All, false), [] as [usize; 0]);
    }

    #[test]
    fn a_word_of_the_source_chooses_and_one_to_skip_leaves_out() {
        assert_eq!(chosen("5925", Several::All, false), [3]);
        assert_eq!(chosen("--skip routes", Several::All, false), [3]);
    }

    #[test]
    fn what_is_left_out_is_not_chosen_and_keeps_its_number() {
        let suite = Line::parse_from(["suite"]).suite;
        let case = |name: &str| Case::new(name, |_| Ok(()));
        let cases = vec![case("routes come").left_out(true), case("routes go")];
        let chosen = select(cases, &suite, Several::All, false);
        assert_eq!(chosen.iter().map(|case| case.number).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn exact_means_the_whole_title_or_the_whole_name() {
        let line = ["suite", "--exact", "frr8: routes go"];
        let suite = Line::parse_from(line).suite;
        let case = |name: &str| Case::new(name, |_| Ok(())).at(&["frr8"]);
        let chosen =
            select(vec![case("routes go"), case("routes go on")], &suite, Several::All, false);
        assert_eq!(chosen.len(), 1);
    }

    #[test]
    fn a_chain_runs_what_comes_before_the_chosen() {
        assert_eq!(chosen("go", Several::All, true), [0, 1]);
    }
}

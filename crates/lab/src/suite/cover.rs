//! What covers a case that the short form of its suite leaves out? A case that is not left out, or a stage of
//! `make test`. Pure. Used by `Suite`.

use super::case::Case;

/// What is wrong with the covers of these cases, one sentence each. `stages` are those of `make test`.
pub(super) fn faults(cases: &[Case], stages: &[&str]) -> Vec<String> {
    let runs = |name: &str| {
        let mut others = cases.iter().filter(|case| !case.left_out);
        others.any(|case| {
            case.not_applicable.is_none() && [&case.name, &case.title()].contains(&&name.to_owned())
        })
    };
    let fault = |case: &Case| match &case.covered_by {
        None if case.left_out && case.not_applicable.is_none() => {
            Some(format!("{}: is left out, and has no `covered_by`", case.title()))
        }
        Some(cover) if !runs(cover) && !stages.contains(&cover.as_str()) => Some(format!(
            "{}: covered by {cover}: there is no such case that runs, nor such a stage",
            case.title()
        )),
        _ => None,
    };
    cases.iter().filter_map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str, place: &str) -> Case {
        Case::new(name, |_| Ok(())).at(&[place])
    }

    #[test]
    fn a_case_that_is_left_out_names_a_case_that_runs_or_a_stage() {
        let left_out = |cover: &str| case("keys", "bird").left_out(true).covered_by(Some(cover));
        let with = |cover: &str| {
            faults(&[case("routes", "frr"), case("keys", "frr"), left_out(cover)], &["unit"])
        };
        for good in ["routes", "frr: routes", "keys", "unit"] {
            assert_eq!(with(good), [""; 0], "{good}");
        }
        for bad in ["bird: keys", "soak"] {
            let sentence =
                format!("covered by {bad}: there is no such case that runs, nor such a stage");
            assert_eq!(with(bad), [format!("bird: keys: {sentence}")]);
        }
    }

    #[test]
    fn a_case_that_is_left_out_without_a_cover_is_reported() {
        let cases = [case("routes", "frr"), case("keys", "frr").left_out(true)];
        assert_eq!(faults(&cases, &[]), ["frr: keys: is left out, and has no `covered_by`"]);
    }

    #[test]
    fn what_does_not_apply_covers_nothing_and_needs_no_cover() {
        let absent = case("keys", "frr").not_applicable(Some("no keys here"));
        let cases = [absent, case("keys", "bird").left_out(true).covered_by(Some("keys"))];
        assert_eq!(faults(&cases, &[]).len(), 1);
        let absent = case("keys", "frr").not_applicable(Some("no keys here")).left_out(true);
        assert_eq!(faults(&[absent], &[]), [""; 0]);
    }

    #[test]
    fn a_cover_is_checked_where_nothing_is_left_out() {
        let cases = [case("routes", "frr").covered_by(Some("no such thing"))];
        assert_eq!(faults(&cases, &[]).len(), 1);
    }
}

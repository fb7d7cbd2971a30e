//! Variables of filters and functions that have one value.
//!
//! Answers the same steps with the values in place of the names, and what a function returns. A variable that is set inside of
//! a condition has no value here: the step that sets it stays, and has no equal.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::code::{Does, Expression, Step, Value};

/// Types that begin a declaration.
pub(super) const TYPES: &[&str] = &[
    "int", "bool", "ip", "prefix", "pair", "quad", "ec", "lc", "rd", "string", "bgpmask",
    "bgppath", "clist", "eclist", "lclist", "enum",
];
/// Conditions of a function that are followed.
const CONDITIONS_MAX: usize = 200;

/// The values of names.
pub(super) type Variables = BTreeMap<String, Value>;

/// The steps with values in place of names.
pub(super) fn bound(steps: &[Step], variables: &Variables) -> Vec<Step> {
    let mut known = variables.clone();
    let mut all = Vec::new();
    for step in steps {
        let does = match &step.does {
            Does::Assign(name, value) => {
                let value = of_value(value, &known);
                if is_attribute(name) {
                    Does::Assign(name.clone(), value)
                } else if is_fixed(&value) {
                    known.insert(name.clone(), value);
                    continue;
                } else {
                    known.remove(name);
                    Does::Unknown
                }
            }
            Does::If { condition, then, otherwise } => Does::If {
                condition: of_expression(condition, &known),
                then: inside(then, &known),
                otherwise: inside(otherwise, &known),
            },
            Does::Call(name, values) => {
                Does::Call(name.clone(), values.iter().map(|it| of_value(it, &known)).collect())
            }
            Does::Return(expression) => Does::Return(of_expression(expression, &known)),
            Does::Accept | Does::Reject | Does::Unknown => step.does.clone(),
        };
        all.push(Step { does, ..step.clone() });
    }
    all
}

/// The same inside of a condition, where nothing may be set but attributes.
fn inside(steps: &[Step], known: &Variables) -> Vec<Step> {
    let sets = |it: &Step| matches!(&it.does, Does::Assign(name, _) if !is_attribute(name));
    let unknown =
        |it: &Step| if sets(it) { Step { does: Does::Unknown, ..it.clone() } } else { it.clone() };
    bound(&steps.iter().map(unknown).collect::<Vec<_>>(), known)
}

fn is_attribute(name: &str) -> bool {
    let prefixes = ["bgp_", "krt_", "ospf_", "rip_", "babel_", "ra_", "igp_"];
    let names = [
        "preference",
        "gw",
        "dest",
        "from",
        "scope",
        "ifname",
        "ifindex",
        "onlink",
        "weight",
        "gw_mpls",
    ];
    prefixes.iter().any(|it| name.starts_with(it)) || names.contains(&name)
}

/// Whether a value is the same wherever it stands in a filter: no attribute, which the filter may change, and no call, which may
/// reject.
pub(super) fn is_fixed(value: &Value) -> bool {
    let each = |parts: &[String]| parts.iter().all(|it| is_fixed_word(it));
    match value {
        Value::Plain(word) => is_fixed_word(word),
        Value::Tuple(parts) | Value::Mask(parts) => each(parts),
        Value::Set(parts) => parts.iter().all(|it| each(it)),
        Value::Quoted(_) | Value::Empty => true,
        Value::Call(..) => false,
    }
}

/// Numbers, addresses, prefixes, operators, and names of what no filter changes.
fn is_fixed_word(word: &str) -> bool {
    let is_name = word.starts_with(|it: char| it.is_alphabetic() || it == '_');
    let is_address = || word.parse::<IpAddr>().is_ok() || word.parse::<IpNet>().is_ok();
    let is_constant = || !word.contains(|it: char| it.is_lowercase() || it == '.');
    let is_known = || {
        ["true", "false", "net", "proto", "source", "rt", "ro"].contains(&word)
            || word.starts_with("net.")
    };
    !is_name || is_constant() || is_known() || is_address()
}

/// Whether steps change a route or call something.
pub(super) fn act(steps: &[Step]) -> bool {
    steps.iter().any(|it| match &it.does {
        Does::Assign(..) | Does::Call(..) => true,
        Does::If { then, otherwise, .. } => act(then) || act(otherwise),
        Does::Accept | Does::Reject | Does::Return(_) | Does::Unknown => false,
    })
}

/// Whether a function is called in a value.
pub(super) fn calls(value: &Value) -> bool {
    matches!(value, Value::Call(..))
}

fn of_expression(expression: &Expression, known: &Variables) -> Expression {
    let each = |parts: &[Expression]| parts.iter().map(|it| of_expression(it, known)).collect();
    match expression {
        Expression::Any(parts) => Expression::Any(each(parts)),
        Expression::All(parts) => Expression::All(each(parts)),
        Expression::Not(inner) => Expression::Not(Box::new(of_expression(inner, known))),
        Expression::Compare(left, operator, right) => {
            Expression::Compare(of_value(left, known), operator.clone(), of_value(right, known))
        }
        Expression::Alone(value) => Expression::Alone(of_value(value, known)),
        Expression::Unknown => Expression::Unknown,
    }
}

fn of_value(value: &Value, known: &Variables) -> Value {
    let word = |word: &String| match known.get(word) {
        Some(Value::Plain(value)) => value.clone(),
        _ => word.clone(),
    };
    match value {
        Value::Plain(name) => known.get(name).unwrap_or(value).clone(),
        Value::Tuple(parts) => Value::Tuple(parts.iter().map(word).collect()),
        Value::Mask(parts) => Value::Mask(parts.iter().map(word).collect()),
        Value::Set(parts) => {
            Value::Set(parts.iter().map(|it| it.iter().map(word).collect()).collect())
        }
        Value::Call(name, values) => {
            Value::Call(name.clone(), values.iter().map(|it| of_value(it, known)).collect())
        }
        Value::Quoted(_) | Value::Empty => value.clone(),
    }
}

/// What steps that only look at the route return.
pub(super) fn returned(steps: &[Step], count: &mut usize) -> Option<Expression> {
    *count = count.saturating_add(1);
    if *count > CONDITIONS_MAX {
        return None;
    }
    let (first, rest) = steps.split_first()?;
    match &first.does {
        Does::Return(expression) => Some(expression.clone()),
        Does::If { condition, then, otherwise } => {
            let mut after = |branch: &[Step]| {
                let steps: Vec<Step> = branch.iter().chain(rest).cloned().collect();
                returned(&steps, count)
            };
            let (then, otherwise) = (after(then)?, after(otherwise)?);
            let not = Expression::Not(Box::new(condition.clone()));
            Some(Expression::Any(vec![
                Expression::All(vec![condition.clone(), then]),
                Expression::All(vec![not, otherwise]),
            ]))
        }
        _ => None,
    }
}

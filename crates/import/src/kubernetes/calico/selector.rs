//! Calico's language of selectors: `has(rack) && zone in {'a', 'b'}`.
//!
//! Answers label selectors of which any has to match. Knows no kind; refuses what they cannot say.

use std::collections::BTreeSet;

use crate::kubernetes::selector::{Condition, Operator, Selector};

/// More selectors than this are not worth reading.
const SELECTORS_MAX: usize = 16;
/// More conditions than this in one of them, neither.
const CONDITIONS_MAX: usize = 64;
/// How deep parentheses may be.
const DEPTH_MAX: usize = 16;

/// The selectors that `text` stands for; the error says which part has no equal.
pub(super) fn selectors(text: &str) -> Result<Vec<Selector>, String> {
    let mut reader = Reader { words: words(text)?, position: 0 };
    let selectors = reader.any(0)?;
    match reader.next() {
        None => Ok(selectors),
        Some(word) => Err(format!("{word:?} is not expected there")),
    }
}

/// Text in quotes has a quote in front.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            _ if letter.is_whitespace() => {}
            '\'' | '"' => {
                let mut word = String::from('\'');
                loop {
                    match letters.next() {
                        Some(it) if it == letter => break,
                        Some(it) => word.push(it),
                        None => return Err("a quote is not closed".to_owned()),
                    }
                }
                words.push(word);
            }
            '&' | '|' | '=' | '!' => {
                let second = if letter == '!' { '=' } else { letter };
                let mut word = String::from(letter);
                word.extend(letters.next_if_eq(&second));
                words.push(word);
            }
            '(' | ')' | '{' | '}' | ',' => words.push(letter.to_string()),
            _ => {
                let mut word = String::from(letter);
                let is_part = |it: &char| it.is_ascii_alphanumeric() || "-_./".contains(*it);
                while let Some(it) = letters.next_if(is_part) {
                    word.push(it);
                }
                words.push(word);
            }
        }
    }
    Ok(words)
}

struct Reader {
    words: Vec<String>,
    position: usize,
}

impl Reader {
    fn next(&mut self) -> Option<String> {
        let word = self.words.get(self.position).cloned();
        self.position += 1;
        word
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.position).is_some_and(|it| it == word);
        self.position += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        if self.takes(word) { Ok(()) } else { Err(format!("{word:?} is missing")) }
    }

    fn any(&mut self, depth: usize) -> Result<Vec<Selector>, String> {
        let mut selectors = bounded(self.all(depth)?)?;
        while self.takes("||") {
            selectors.extend(self.all(depth)?);
            selectors = bounded(selectors)?;
        }
        Ok(selectors)
    }

    fn all(&mut self, depth: usize) -> Result<Vec<Selector>, String> {
        let mut selectors = self.one(depth)?;
        while self.takes("&&") {
            let others = self.one(depth)?;
            let both =
                |it: &Selector| others.iter().map(|other| and(it, other)).collect::<Vec<_>>();
            selectors = bounded(selectors.iter().flat_map(both).collect())?;
        }
        Ok(selectors)
    }

    fn one(&mut self, depth: usize) -> Result<Vec<Selector>, String> {
        if depth > DEPTH_MAX {
            return Err("it has too many parentheses".to_owned());
        }
        if self.takes("(") {
            let selectors = self.any(depth + 1)?;
            self.expect(")")?;
            return Ok(selectors);
        }
        let is_negated = self.takes("!");
        let word = self.next().unwrap_or_default();
        if is_negated && word != "has" {
            return Err("! stands in front of something else than has()".to_owned());
        }
        match word.as_str() {
            "all" => {
                self.expect("(")?;
                self.expect(")")?;
                Ok(vec![Selector::default()])
            }
            "has" => {
                self.expect("(")?;
                let key = self.next().unwrap_or_default();
                self.expect(")")?;
                let operator = if is_negated { Operator::DoesNotExist } else { Operator::Exists };
                condition(key, operator, Vec::new())
            }
            "" | "global" => Err(format!("{word}() is no selector of labels")),
            _ => self.comparison(word),
        }
    }

    fn comparison(&mut self, key: String) -> Result<Vec<Selector>, String> {
        let operator = self.next().unwrap_or_default();
        match operator.as_str() {
            "==" | "!=" => {
                let value = self.quoted()?;
                if operator == "!=" {
                    return condition(key, Operator::NotIn, vec![value]);
                }
                check(&key)?;
                let mut selector = Selector::default();
                selector.labels.insert(key, value);
                Ok(vec![selector])
            }
            "in" => {
                let values = self.set()?;
                condition(key, Operator::In, values)
            }
            "not" if self.takes("in") => {
                let values = self.set()?;
                condition(key, Operator::NotIn, values)
            }
            _ => Err(format!("{operator:?} is no comparison of label selectors")),
        }
    }

    fn quoted(&mut self) -> Result<String, String> {
        let word = self.next().unwrap_or_default();
        let text = word.strip_prefix('\'').map(str::to_owned);
        text.ok_or_else(|| format!("{word:?} is not in quotes"))
    }

    fn set(&mut self) -> Result<Vec<String>, String> {
        self.expect("{")?;
        let (mut values, mut known) = (Vec::new(), BTreeSet::new());
        loop {
            let value = self.quoted()?;
            if known.insert(value.clone()) {
                values.push(value);
            }
            if !self.takes(",") {
                break;
            }
        }
        self.expect("}")?;
        Ok(values)
    }
}

fn condition(
    key: String,
    operator: Operator,
    values: Vec<String>,
) -> Result<Vec<Selector>, String> {
    check(&key)?;
    let conditions = vec![Condition { key, operator, values }];
    Ok(vec![Selector { conditions, ..Selector::default() }])
}

fn check(key: &str) -> Result<(), String> {
    let is_key = key.starts_with(|it: char| it.is_ascii_alphanumeric());
    if is_key { Ok(()) } else { Err(format!("{key:?} is not the name of a label")) }
}

/// What both select. A label that has two values stays a condition, and selects nothing.
fn and(a: &Selector, b: &Selector) -> Selector {
    let mut both = a.clone();
    for (key, value) in &b.labels {
        match both.labels.get(key) {
            Some(other) if other != value => {
                let (key, values) = (key.clone(), vec![value.clone()]);
                both.conditions.push(Condition { key, operator: Operator::In, values });
            }
            _ => {
                both.labels.insert(key.clone(), value.clone());
            }
        }
    }
    for it in &b.conditions {
        if !both.conditions.contains(it) {
            both.conditions.push(it.clone());
        }
    }
    both
}

fn bounded(selectors: Vec<Selector>) -> Result<Vec<Selector>, String> {
    let mut each: Vec<Selector> = Vec::new();
    for it in selectors {
        if it.labels.len() + it.conditions.len() > CONDITIONS_MAX {
            return Err("it has too many conditions".to_owned());
        }
        if each.contains(&it) {
            continue;
        }
        if each.len() == SELECTORS_MAX {
            return Err("it has too many alternatives".to_owned());
        }
        each.push(it);
    }
    Ok(each)
}

//! The code of filters, as steps.
//!
//! Answers the tree of steps and expressions of a row of words; what it does not know keeps its text. Knows no attribute.

use super::condition::looks_at_other_kinds;
use super::text::{Kind, Word, written};
use super::variables::{self, TYPES, Variables};

/// Steps inside steps, and parentheses inside parentheses.
const DEPTH_MAX: usize = 32;

/// A step with its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) does: Does,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Does {
    Accept,
    Reject,
    If {
        condition: Expression,
        then: Vec<Step>,
        otherwise: Vec<Step>,
    },
    /// `NAME = VALUE`.
    Assign(String, Value),
    /// `NAME.METHOD(VALUES)`, or a function by its name.
    Call(String, Vec<Value>),
    Return(Expression),
    Unknown,
}

/// What a condition is made of.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    Any(Vec<Self>),
    All(Vec<Self>),
    Not(Box<Self>),
    Compare(Value, String, Value),
    /// `true`, `false`, a call.
    Alone(Value),
    Unknown,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// A number, an address, a prefix, or the name of something.
    Plain(String),
    Quoted(String),
    /// `(65001, 1)`.
    Tuple(Vec<String>),
    /// `[ 10.0.0.0/8+, 10.1.0.0/16 ]`: the words of each part.
    Set(Vec<Vec<String>>),
    /// `[= 65001 * =]`.
    Mask(Vec<String>),
    Call(String, Vec<Self>),
    /// `-empty-`.
    Empty,
}

/// A function.
#[derive(Debug, Clone, Default)]
pub(super) struct Function {
    parameters: Vec<String>,
    body: Vec<Step>,
}

impl Function {
    /// `function NAME(TYPE NAME; TYPE NAME)` with its body; variables are declared behind the parentheses or in the body.
    pub(super) fn read(words: &[Word], body: &[Word]) -> Self {
        let inside = words.split(|it| it.is("(")).nth(1).unwrap_or_default();
        let inside = inside.split(|it| it.is(")")).next().unwrap_or_default();
        let names =
            inside.split(|it| it.is(",") || it.kind == Kind::End).filter_map(<[Word]>::last);
        Self { parameters: names.map(|it| it.text.clone()).collect(), body: steps(body) }
    }

    /// Its steps where it is called with these values; nothing if they are not as many as it takes, or if one may be another
    /// value by the time that a step looks at it.
    pub(super) fn called(&self, values: &[Value]) -> Option<Vec<Step>> {
        let changes = |it: &Value| {
            variables::calls(it) || (!variables::is_fixed(it) && variables::act(&self.body))
        };
        if values.iter().any(changes) {
            return None;
        }
        let names = self.parameters.iter().cloned();
        let bound = || names.zip(values.iter().cloned()).collect();
        (self.parameters.len() == values.len()).then(|| variables::bound(&self.body, &bound()))
    }

    /// Whether it looks at large or extended communities.
    pub(super) fn looks_at_other_kinds(&self) -> bool {
        looks_at_other_kinds(&self.body)
    }

    /// What it returns, as a condition; nothing if it does something else, too.
    pub(super) fn condition(&self, values: &[Value]) -> Option<Expression> {
        let mut count = 0;
        variables::returned(&self.called(values)?, &mut count)
    }
}

/// The steps of a filter, without its variables.
pub(super) fn filter(words: &[Word]) -> Vec<Step> {
    variables::bound(&steps(words), &Variables::default())
}

/// The steps of a block.
fn steps(words: &[Word]) -> Vec<Step> {
    let mut reader = Reader { words, depth: 0 };
    let mut all = Vec::new();
    while !reader.words.is_empty() {
        all.extend(reader.step());
    }
    all
}

/// What `where WORDS` says.
pub(super) fn expression(words: &[Word]) -> Expression {
    let mut reader = Expressions { words, depth: 0 };
    let all = reader.any_or_all();
    match (all, reader.words) {
        (Some(all), []) => all,
        _ => Expression::Unknown,
    }
}

struct Reader<'a> {
    words: &'a [Word],
    depth: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> &'a [Word] {
        let (taken, rest) = self.words.split_at(count.min(self.words.len()));
        self.words = rest;
        taken
    }

    fn begins(&self, text: &str) -> bool {
        self.words.first().is_some_and(|it| it.is(text))
    }

    /// One step, or those of a block; nothing where a step has no effect.
    fn step(&mut self) -> Vec<Step> {
        let Some(first) = self.words.first() else { return Vec::new() };
        if self.depth > DEPTH_MAX {
            let words = self.take(usize::MAX);
            return vec![unknown(words)];
        }
        match (first.kind, first.text.as_str()) {
            (Kind::Open, _) => {
                self.take(1);
                let inner = self.balanced();
                // The brace that closes it, and a semicolon that some people put behind it.
                self.take(1);
                let mut reader = Reader { words: inner, depth: self.depth.saturating_add(1) };
                let mut all = Vec::new();
                while !reader.words.is_empty() {
                    all.extend(reader.step());
                }
                all
            }
            (Kind::End | Kind::Close, _) => {
                self.take(1);
                Vec::new()
            }
            (Kind::Plain, "if") => vec![self.branch()],
            (Kind::Plain, "case" | "for") => {
                let opens = self.words.iter().position(|it| it.kind == Kind::Open);
                let head = self.take(opens.unwrap_or(usize::MAX));
                self.take(1);
                self.balanced();
                self.take(1);
                vec![unknown(head)]
            }
            _ => {
                let ends = self.words.iter().position(|it| it.kind == Kind::End);
                let words = self.take(ends.unwrap_or(usize::MAX));
                self.take(1);
                // Behind the block the name has the value that it had before.
                if self.depth > 0 && TYPES.contains(&first.text.as_str()) {
                    return vec![unknown(words)];
                }
                simple(words).into_iter().collect()
            }
        }
    }

    /// The words up to the brace that closes what is open.
    fn balanced(&mut self) -> &'a [Word] {
        let mut depth = 0_usize;
        let end = self.words.iter().position(|it| {
            match it.kind {
                Kind::Open => depth = depth.saturating_add(1),
                Kind::Close if depth == 0 => return true,
                Kind::Close => depth = depth.saturating_sub(1),
                Kind::Plain | Kind::Quoted | Kind::End => {}
            }
            false
        });
        self.take(end.unwrap_or(usize::MAX))
    }

    /// `if CONDITION then STEP [else STEP]`.
    fn branch(&mut self) -> Step {
        let then = self.words.iter().position(|it| it.is("then"));
        let head = self.take(then.unwrap_or(usize::MAX));
        self.take(1);
        let condition = expression(head.get(1..).unwrap_or_default());
        self.depth = self.depth.saturating_add(1);
        let then = self.step();
        let otherwise = if self.begins("else") {
            self.take(1);
            self.step()
        } else {
            Vec::new()
        };
        self.depth = self.depth.saturating_sub(1);
        Step { does: Does::If { condition, then, otherwise }, ..unknown(head) }
    }
}

/// Words of a step in a message.
const WORDS_SHOWN: usize = 40;

fn unknown(words: &[Word]) -> Step {
    let line = words.first().map_or(0, |it| it.line);
    let words = words.get(..WORDS_SHOWN).unwrap_or(words);
    Step { line, text: written(words), does: Does::Unknown }
}

/// A step up to its semicolon; nothing where it only writes to the log.
fn simple(words: &[Word]) -> Option<Step> {
    let first = words.first()?;
    let does = match first.text.as_str() {
        "accept" | "print" | "printn" if calls(words) => Does::Unknown,
        "accept" => Does::Accept,
        "reject" | "error" => Does::Reject,
        "print" | "printn" => return None,
        kind if TYPES.contains(&kind) => {
            let words = words.get(1..)?;
            let words = if words.first()?.is("set") { words.get(1..)? } else { words };
            // Without a value it is a declaration.
            return if words.len() > 1 { simple(words) } else { None };
        }
        "return" => Does::Return(expression(words.get(1..)?)),
        _ => assignment(words).unwrap_or(Does::Unknown),
    };
    Some(Step { does, ..unknown(words) })
}

/// Whether what is written to the log calls a function, which may reject.
fn calls(words: &[Word]) -> bool {
    let of_bird = ["defined", "roa_check", "format"];
    words.windows(2).any(|it| match it {
        [name, open] => {
            let is_name = name.kind == Kind::Plain && name.text.starts_with(char::is_alphabetic);
            is_name && open.is("(") && !of_bird.contains(&name.text.as_str())
        }
        _ => false,
    })
}

fn assignment(words: &[Word]) -> Option<Does> {
    let (first, rest) = words.split_first()?;
    let mut reader = Expressions { words: rest, depth: 0 };
    if rest.first().is_some_and(|it| it.is("=")) {
        reader.words = rest.get(1..)?;
        let value = reader.value()?;
        return reader.words.is_empty().then(|| Does::Assign(first.text.clone(), value));
    }
    let values = if rest.is_empty() { Vec::new() } else { reader.arguments()? };
    reader.words.is_empty().then(|| Does::Call(first.text.clone(), values))
}

struct Expressions<'a> {
    words: &'a [Word],
    depth: usize,
}

impl Expressions<'_> {
    fn begins(&self, text: &str) -> bool {
        self.words.first().is_some_and(|it| it.is(text))
    }

    fn skip(&mut self, text: &str) -> Option<()> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        first.is(text).then_some(())
    }

    /// Parts that are joined by one operator: which one binds more tightly is not for us to say.
    fn any_or_all(&mut self) -> Option<Expression> {
        let first = self.one()?;
        let operator = match self.words.first() {
            Some(word) if word.is("&&") || word.is("||") => word.text.clone(),
            _ => return Some(first),
        };
        let mut parts = vec![first];
        while self.begins(&operator) {
            self.skip(&operator)?;
            parts.push(self.one()?);
        }
        let is_mixed = self.begins("&&") || self.begins("||");
        let joined = if operator == "&&" { Expression::All } else { Expression::Any };
        (!is_mixed).then(|| joined(parts))
    }

    fn one(&mut self) -> Option<Expression> {
        self.depth = self.depth.saturating_add(1);
        if self.depth > DEPTH_MAX {
            return None;
        }
        let found = self.one_inside();
        self.depth = self.depth.saturating_sub(1);
        found
    }

    fn one_inside(&mut self) -> Option<Expression> {
        if self.begins("!") {
            self.skip("!")?;
            // It binds more tightly than a comparison.
            let inner = if self.begins("(") {
                self.parenthesized()?
            } else {
                Expression::Alone(self.value()?)
            };
            return Some(Expression::Not(Box::new(inner)));
        }
        let before = self.words;
        if self.begins("(") {
            if let Some(inner) = self.parenthesized() {
                return Some(inner);
            }
            self.words = before;
        }
        let left = self.value()?;
        let operator = match self.words.first() {
            Some(it)
                if ["~", "!~", "=", "!=", "<", ">", "<=", ">="].contains(&it.text.as_str()) =>
            {
                it.text.clone()
            }
            _ => return Some(Expression::Alone(left)),
        };
        self.skip(&operator)?;
        let right = self.value()?;
        let compare = |operator: &str| Expression::Compare(left, operator.to_owned(), right);
        Some(match operator.as_str() {
            "!=" => Expression::Not(Box::new(compare("="))),
            "!~" => Expression::Not(Box::new(compare("~"))),
            other => compare(other),
        })
    }

    fn parenthesized(&mut self) -> Option<Expression> {
        self.skip("(")?;
        let inner = self.any_or_all()?;
        // `(65001, 1) ~ bgp_community` begins like a condition in parentheses.
        let is_condition = !matches!(inner, Expression::Alone(Value::Plain(_)));
        self.skip(")")?;
        is_condition.then_some(inner)
    }

    fn value(&mut self) -> Option<Value> {
        let (first, rest) = self.words.split_first()?;
        match (first.kind, first.text.as_str()) {
            (Kind::Quoted, _) => {
                self.words = rest;
                Some(Value::Quoted(first.text.clone()))
            }
            (_, "(") => self.tuple(),
            (_, "[") => self.set(),
            (_, sign @ ("-" | "+")) => {
                let is_empty =
                    matches!(rest, [name, close, ..] if name.is("empty") && close.is(sign));
                self.words = rest.get(2..)?;
                is_empty.then_some(Value::Empty)
            }
            (Kind::Plain, text)
                if text.starts_with(|it: char| it.is_alphanumeric() || it == '_' || it == ':') =>
            {
                self.words = rest;
                if self.begins("(") {
                    return Some(Value::Call(text.to_owned(), self.arguments()?));
                }
                Some(Value::Plain(text.to_owned()))
            }
            _ => None,
        }
    }

    /// `(VALUE, VALUE)`.
    fn arguments(&mut self) -> Option<Vec<Value>> {
        self.depth = self.depth.saturating_add(1);
        if self.depth > DEPTH_MAX {
            return None;
        }
        self.skip("(")?;
        let mut values = Vec::new();
        while !self.begins(")") {
            values.push(self.value()?);
            if !self.begins(")") {
                self.skip(",")?;
            }
        }
        self.skip(")")?;
        self.depth = self.depth.saturating_sub(1);
        Some(values)
    }

    fn tuple(&mut self) -> Option<Value> {
        self.skip("(")?;
        let mut parts = Vec::new();
        loop {
            let (first, rest) = self.words.split_first()?;
            self.words = rest;
            match first.text.as_str() {
                ")" => return Some(Value::Tuple(parts)),
                "," => {}
                "(" => return None,
                text => parts.push(text.to_owned()),
            }
        }
    }

    fn set(&mut self) -> Option<Value> {
        self.skip("[")?;
        let end = self.words.iter().position(|it| it.is("]"))?;
        let (inside, rest) = self.words.split_at(end);
        self.words = rest.get(1..)?;
        let texts = || inside.iter().map(|it| it.text.clone());
        if let [first, between @ .., last] = inside
            && first.is("=")
            && last.is("=")
        {
            return Some(Value::Mask(between.iter().map(|it| it.text.clone()).collect()));
        }
        let mut parts = vec![Vec::new()];
        let mut depth = 0_usize;
        for text in texts() {
            match text.as_str() {
                "(" | "{" => depth = depth.saturating_add(1),
                ")" | "}" => depth = depth.saturating_sub(1),
                "," if depth == 0 => {
                    parts.push(Vec::new());
                    continue;
                }
                _ => {}
            }
            parts.last_mut()?.push(text);
        }
        Some(Value::Set(parts))
    }
}

//! An answer that may be larger than memory: a table is made entry by entry, while it is written.
//!
//! Knows no table: each hands in what comes before its entries, the entries, and what comes after them.

use std::fmt::{self, Write};

use serde_json::Value;

use super::object::Object;

/// Text.
pub(crate) enum Text<'a> {
    Whole(String),
    Lines(Lines<'a>),
}

/// Writes them one after the other.
type Lines<'a> = Box<dyn FnOnce(&mut dyn Write) -> fmt::Result + 'a>;

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self::Whole(text)
    }
}

impl<'a> Text<'a> {
    pub(super) fn lines(write: impl FnOnce(&mut dyn Write) -> fmt::Result + 'a) -> Self {
        Self::Lines(Box::new(write))
    }

    pub(super) fn write(self, out: &mut dyn Write) -> fmt::Result {
        match self {
            Self::Whole(text) => out.write_str(&text),
            Self::Lines(write) => write(out),
        }
    }
}

/// JSON.
pub(crate) enum Document<'a> {
    Whole(Value),
    Table(Table<'a>),
}

/// A table by the keys of its entries.
pub(crate) struct Table<'a> {
    pub(super) head: Object,
    /// What holds the entries.
    pub(super) key: &'static str,
    pub(super) entries: Entries<'a>,
    /// What holds the number of entries, if anything does.
    pub(super) count_key: Option<&'static str>,
    pub(super) tail: Object,
}

/// Hands each entry over, until it is told that nobody wants more.
pub(super) type Entries<'a> = Box<dyn Fn(&mut dyn FnMut(String, Value) -> Wanted) + 'a>;

/// Whether there is still a reader.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    More,
    Nothing,
}

impl From<Object> for Document<'_> {
    fn from(object: Object) -> Self {
        Self::Whole(object.into())
    }
}

impl Document<'_> {
    /// Indented, as FRR's, and a newline.
    pub(super) fn write(&self, out: &mut dyn Write) -> fmt::Result {
        self.write_at(0, out)?;
        out.write_str("\n")
    }

    /// As a value inside so many objects.
    fn write_at(&self, depth: usize, out: &mut dyn Write) -> fmt::Result {
        let table = match self {
            Self::Whole(value) => return write_value(value, depth, out),
            Self::Table(table) => table,
        };
        let mut object = ObjectWriter::new(depth, out);
        object.fields(&table.head)?;
        let count = object.entries(table.key, &table.entries)?;
        if let Some(key) = table.count_key {
            object.field(key, &count.into())?;
        }
        object.fields(&table.tail)?;
        object.end()
    }
}

/// The same for documents by name.
pub(super) fn write_keyed(documents: &[(&str, Document<'_>)], out: &mut dyn Write) -> fmt::Result {
    let mut object = ObjectWriter::new(0, out);
    for (name, document) in documents {
        object.key(name)?;
        document.write_at(1, object.out)?;
    }
    object.end()?;
    out.write_str("\n")
}

/// An object that is written field by field, in the form that serde_json has for values.
struct ObjectWriter<'a> {
    /// It is inside so many others.
    depth: usize,
    is_empty: bool,
    out: &'a mut dyn Write,
}

impl<'a> ObjectWriter<'a> {
    fn new(depth: usize, out: &'a mut dyn Write) -> Self {
        Self { depth, is_empty: true, out }
    }

    fn key(&mut self, key: &str) -> fmt::Result {
        let is_first = std::mem::replace(&mut self.is_empty, false);
        self.out.write_str(if is_first { "{" } else { "," })?;
        write_newline(self.depth.saturating_add(1), self.out)?;
        write!(self.out, "{}: ", Value::from(key))
    }

    fn field(&mut self, key: &str, value: &Value) -> fmt::Result {
        self.key(key)?;
        write_value(value, self.depth.saturating_add(1), self.out)
    }

    fn fields(&mut self, object: &Object) -> fmt::Result {
        object.fields().try_for_each(|(key, value)| self.field(key, value))
    }

    /// An object of entries; returns how many there are.
    fn entries(&mut self, key: &str, entries: &Entries<'_>) -> Result<usize, fmt::Error> {
        self.key(key)?;
        let mut object = ObjectWriter::new(self.depth.saturating_add(1), self.out);
        let (mut count, mut result) = (0_usize, Ok(()));
        entries(&mut |key, value| {
            count = count.saturating_add(1);
            result = object.field(&key, &value);
            if result.is_ok() { Wanted::More } else { Wanted::Nothing }
        });
        result?;
        object.end()?;
        Ok(count)
    }

    fn end(self) -> fmt::Result {
        if self.is_empty {
            return self.out.write_str("{}");
        }
        write_newline(self.depth, self.out)?;
        self.out.write_str("}")
    }
}

/// A newline is nowhere inside a text of JSON, so each is one between fields.
fn write_value(value: &Value, depth: usize, out: &mut dyn Write) -> fmt::Result {
    let text = format!("{value:#}");
    let mut lines = text.split('\n');
    out.write_str(lines.next().unwrap_or_default())?;
    lines.try_for_each(|line| {
        write_newline(depth, out)?;
        out.write_str(line)
    })
}

fn write_newline(depth: usize, out: &mut dyn Write) -> fmt::Result {
    out.write_str("\n")?;
    (0..depth).try_for_each(|_| out.write_str("  "))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::json;

    use super::*;

    fn table(count: u32) -> Table<'static> {
        Table {
            head: Object::new().field("version", 1),
            key: "routes",
            entries: Box::new(move |take| {
                for number in 0..count {
                    if take(number.to_string(), json!([number, "\u{7}é"])) == Wanted::Nothing {
                        return;
                    }
                }
            }),
            count_key: Some("total"),
            tail: Object::new().field("paths", 7),
        }
    }

    #[test]
    fn a_table_is_written_as_the_value_of_all_its_entries_would_be() {
        for count in [0, 1, 3] {
            let entries: Object =
                (0..count).map(|it| (it.to_string(), json!([it, "\u{7}é"]))).collect();
            let whole = Object::new()
                .field("version", 1)
                .field("routes", entries)
                .field("total", count)
                .field("paths", 7);
            let mut text = String::new();
            Document::Table(table(count)).write(&mut text).unwrap();
            let whole = Value::from(whole);
            assert_eq!(text, format!("{whole:#}\n"));
            text.clear();
            let documents = [
                ("red", Document::Table(table(count))),
                ("blue", Document::Whole(json!([]))),
                ("green", Object::new().into()),
            ];
            write_keyed(&documents, &mut text).unwrap();
            assert_eq!(text, format!("{:#}\n", json!({"red": whole, "blue": [], "green": {}})));
        }
    }

    /// A reader that has left.
    struct Left(usize);

    impl Write for Left {
        fn write_str(&mut self, _: &str) -> fmt::Result {
            self.0 = self.0.checked_sub(1).ok_or(fmt::Error)?;
            Ok(())
        }
    }

    #[test]
    fn nothing_more_is_made_for_a_reader_who_has_left() {
        let made = Cell::new(0);
        let document = Document::Table(Table {
            entries: Box::new(|take| {
                while take("a".to_owned(), json!(1)) == Wanted::More {
                    made.set(made.get() + 1);
                }
            }),
            ..table(0)
        });
        assert!(document.write(&mut Left(100)).is_err());
        assert!(made.get() < 100);
    }
}

//! What is shown, and what a key does to that.

use fairway_ground::Instant;
use fairway_show::overview::{EventLog, EventRow, Overview};

use crate::rates::Rates;
use crate::table::{self, Row};
use crate::view::View;

/// The longest filter, in characters: more does not fit into the line.
const FILTER_LENGTH_MAX: usize = 60;

/// A key, as far as it means something here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Character(char),
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
    /// Tab.
    Tab,
    /// Shift and Tab.
    BackTab,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the first row.
    Home,
    /// To the last row.
    End,
}

/// What the caller does about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing but drawing again.
    Draw,
    /// It ends.
    Quit,
    /// It asks the daemon, with these words for `fairway explain`, and shows the answer with [`Screen::explain`].
    Explain([String; 2]),
}

/// Text over the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sheet {
    pub(crate) title: String,
    pub(crate) lines: Vec<String>,
    /// The first line that is drawn.
    pub(crate) first: usize,
}

/// All that is shown.
#[derive(Debug, Clone, Default)]
pub struct Screen {
    pub(crate) overview: Option<Overview>,
    pub(crate) rates: Rates,
    pub(crate) log: EventLog,
    /// Why the last look failed, if it did.
    pub(crate) trouble: Option<String>,
    pub(crate) view: View,
    pub(crate) rows: Vec<Row>,
    /// The row that Enter explains.
    pub(crate) selected: usize,
    pub(crate) filter: String,
    /// Characters belong to the filter.
    pub(crate) is_filtering: bool,
    pub(crate) sheet: Option<Sheet>,
    /// The rows of a page.
    page_rows: usize,
}

impl Screen {
    /// A look at the daemon. Returns the events that are new, the oldest first: none for the first look.
    pub fn follow(&mut self, now: Instant, overview: Overview) -> Vec<EventRow> {
        let is_first = self.overview.is_none();
        self.rates.follow(now, &overview);
        let new = self.log.follow(&overview);
        self.trouble = None;
        self.overview = Some(overview);
        self.arrange();
        let news: Vec<EventRow> = self.log.events().take(new).cloned().collect();
        if is_first { Vec::new() } else { news.into_iter().rev().collect() }
    }

    /// The daemon did not answer. What it said last stays.
    pub fn fail(&mut self, why: String) {
        self.trouble = Some(why);
    }

    /// The answer to [`Reaction::Explain`].
    pub fn explain(&mut self, title: String, text: &str) {
        let lines = text.lines().map(|it| fairway_ground::printable(it).into_owned()).collect();
        self.sheet = Some(Sheet { title, lines, first: 0 });
    }

    /// The table has room for so many rows.
    pub fn resize(&mut self, height: u16) {
        self.page_rows = usize::from(crate::layout::table_rows(height, self.view)).max(1);
    }

    /// What a key does.
    pub fn press(&mut self, key: Key) -> Reaction {
        if self.is_filtering {
            self.edit(key);
            return Reaction::Draw;
        }
        if let Some(sheet) = &mut self.sheet {
            match scrolled(key, sheet.first, sheet.lines.len(), self.page_rows) {
                Some(first) => sheet.first = first,
                None => self.sheet = None,
            }
            return Reaction::Draw;
        }
        if let Some(to) = scrolled(key, self.selected, self.rows.len(), self.page_rows) {
            self.selected = to;
            return Reaction::Draw;
        }
        match key {
            Key::Character('q') => return Reaction::Quit,
            Key::Escape if self.filter.is_empty() => return Reaction::Quit,
            Key::Escape => {
                self.filter.clear();
                self.arrange();
            }
            Key::Character('/') => self.is_filtering = true,
            Key::Character('?' | 'h') => self.explain("Keys".to_owned(), HELP),
            Key::Tab => self.turn_to(self.view.moved(1)),
            Key::BackTab => self.turn_to(self.view.moved(View::ALL.len().saturating_sub(1))),
            Key::Character(digit @ '1'..='6') => {
                let at = u32::from(digit).saturating_sub(u32::from('1'));
                let view = usize::try_from(at).ok().and_then(|it| View::ALL.get(it));
                self.turn_to(view.copied().unwrap_or_default());
            }
            Key::Enter => {
                let row = self.rows.get(self.selected);
                if let Some(explain) = row.and_then(|it| it.explain.clone()) {
                    return Reaction::Explain(explain);
                }
            }
            _ => {}
        }
        Reaction::Draw
    }

    fn edit(&mut self, key: Key) {
        match key {
            Key::Enter => self.is_filtering = false,
            Key::Escape => {
                self.is_filtering = false;
                self.filter.clear();
            }
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Character(character) if self.filter.chars().count() < FILTER_LENGTH_MAX => {
                self.filter.extend(character.to_lowercase());
            }
            _ => {}
        }
        self.arrange();
    }

    fn turn_to(&mut self, view: View) {
        self.view = view;
        self.selected = 0;
        self.arrange();
    }

    /// Makes the rows. The selected object stays selected while it is there, wherever it moves.
    fn arrange(&mut self) {
        let Some(overview) = &self.overview else { return };
        let before = self.rows.get(self.selected).and_then(|it| it.explain.clone());
        self.rows = table::rows(self.view, overview, &self.rates, &self.log, &self.filter);
        let same = before.filter(|_| self.selected > 0);
        let same =
            same.and_then(|it| self.rows.iter().position(|row| row.explain.as_ref() == Some(&it)));
        self.selected = same.unwrap_or(self.selected).min(self.rows.len().saturating_sub(1));
    }
}

/// Where a key for scrolling leads from `at`, among so many lines; `None` for any other key.
fn scrolled(key: Key, at: usize, count: usize, page_rows: usize) -> Option<usize> {
    let last = count.saturating_sub(1);
    Some(match key {
        Key::Up | Key::Character('k') => at.saturating_sub(1),
        Key::Down | Key::Character('j') => at.saturating_add(1).min(last),
        Key::PageUp => at.saturating_sub(page_rows),
        Key::PageDown | Key::Character(' ') => at.saturating_add(page_rows).min(last),
        Key::Home | Key::Character('g') => 0,
        Key::End | Key::Character('G') => last,
        _ => return None,
    })
}

const HELP: &str = "1-6, Tab      another table
up, down      another row (also j, k; a page: PgUp, PgDn; the ends: Home, End)
Enter         fairway explain for the row
/             only rows that contain a text; Enter keeps it, Esc ends it
q, Esc        quit

Rows that somebody should look at come first, in red.
STATE/RCVD: the state of a session that is not Established, else the routes accepted from
the neighbor. SENT: routes that it was sent. The line below the table is the selected row's.
MSG/S: BGP messages in both directions, over the last two seconds.
Times of events are UTC.";

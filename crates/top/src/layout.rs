//! Which part of the screen has how many lines.

use crate::view::View;

/// Lines of the head, with the tabs.
pub(crate) const HEAD_LINES: u16 = 3;
/// Lines of the last events, with their title.
pub(crate) const EVENT_LINES: u16 = 6;
/// The line of the selected row, whose last column may not fit into the table.
pub(crate) const DETAIL_LINES: u16 = 1;
/// The line of keys.
pub(crate) const FOOT_LINES: u16 = 1;
/// Below this height of the terminal the last events have no room.
const EVENTS_HEIGHT_MIN: u16 = 18;

/// How many rows the table has, in a terminal of this height.
pub(crate) fn table_rows(height: u16, view: View) -> u16 {
    let events = if has_events(height, view) { EVENT_LINES } else { 0 };
    // One is the heads'.
    height.saturating_sub(HEAD_LINES + DETAIL_LINES + FOOT_LINES + 1).saturating_sub(events)
}

/// Whether the last events are below the table.
pub(crate) fn has_events(height: u16, view: View) -> bool {
    height >= EVENTS_HEIGHT_MIN && view != View::Events
}

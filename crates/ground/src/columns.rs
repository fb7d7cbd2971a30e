//! Columns as kubectl aligns them, for all tables in the output.

/// Shown for an empty value.
pub const NONE: &str = "<none>";
const SEPARATOR_WIDTH: usize = 3;

/// One line for each row; each column as wide as its widest cell. The first row is the heading.
pub fn aligned<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let mut widths = [0; COLUMNS];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &[String; COLUMNS]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| {
            let width = width.saturating_add(SEPARATOR_WIDTH);
            format!("{cell:width$}")
        });
        let line: String = cells.collect();
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}

/// `text`, or [`NONE`] if it is empty.
pub fn or_none(text: String) -> String {
    if text.is_empty() { NONE.to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_lines_end_with_text() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned);
        let rows = [row(["NAME", "POOL", "REASON"]), row(["länger", "a", ""])];
        assert_eq!(aligned(&rows), "NAME     POOL   REASON\nlänger   a\n");
    }
}

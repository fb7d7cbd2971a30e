//! The screen as cells: head, tabs, table, the last events, keys.

use std::time::Duration;

use fairway_ground::printable;
use fairway_show::clock;
use fairway_show::overview::Overview;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph, Table};

use crate::layout::{DETAIL_LINES, EVENT_LINES, FOOT_LINES, HEAD_LINES, has_events};
use crate::screen::{Screen, Sheet};
use crate::table::{Column, Row, Weight, columns, event, per_second, short};
use crate::view::View;

/// Draws `screen` over the whole of `frame`.
pub fn draw(screen: &Screen, frame: &mut Frame<'_>) {
    let area = frame.area();
    let events = if has_events(area.height, screen.view) { EVENT_LINES } else { 0 };
    let parts = Layout::vertical([
        Constraint::Length(HEAD_LINES),
        Constraint::Fill(1),
        Constraint::Length(DETAIL_LINES),
        Constraint::Length(events),
        Constraint::Length(FOOT_LINES),
    ]);
    let [head, middle, detail, bottom, foot] = parts.areas(area);
    let Some(overview) = &screen.overview else {
        let text = screen.trouble.as_deref().unwrap_or("asking the daemon ...");
        frame.render_widget(Paragraph::new(printable(text).into_owned()), area);
        return;
    };
    frame.render_widget(Paragraph::new(head_lines(screen, overview)), head);
    match &screen.sheet {
        Some(sheet) => draw_sheet(sheet, frame, middle),
        None => {
            draw_table(screen, frame, middle);
            frame.render_widget(detail_line(screen), detail);
        }
    }
    if events > 0 {
        draw_events(screen, frame, bottom);
    }
    frame.render_widget(foot_line(screen), foot);
}

fn strong() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn warning() -> Style {
    Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)
}

fn faint() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn style(weight: Weight) -> Style {
    match weight {
        Weight::Calm => Style::new(),
        Weight::Faint => faint(),
        Weight::Warning => Style::new().fg(Color::Red),
    }
}

fn head_lines<'a>(screen: &'a Screen, overview: &'a Overview) -> Vec<Line<'a>> {
    let numbers: Vec<String> = overview.local_as.iter().map(ToString::to_string).collect();
    let local_as = match numbers.as_slice() {
        [] => String::new(),
        some => format!("  AS {}", some.join(",")),
    };
    let age = overview.now_epoch_seconds.saturating_sub(overview.started_epoch_seconds);
    let first = vec![
        Span::styled(printable(&overview.node), strong()),
        Span::raw(format!(
            "{local_as}  router ID {}  fairway {}  up {}",
            overview.router_id,
            overview.version,
            clock(Duration::from_secs(age))
        )),
    ];
    vec![Line::from(first), second_line(screen, overview), tabs(screen, overview)]
}

/// Numbers, and what is wrong with the node as a whole in front of them.
fn second_line<'a>(screen: &'a Screen, overview: &'a Overview) -> Line<'a> {
    let mut spans: Vec<Span<'a>> = Vec::new();
    let mut warn = |text: String| spans.extend([Span::styled(text, warning()), Span::raw("  ")]);
    if let Some(trouble) = &screen.trouble {
        warn(format!("no answer: {}", printable(trouble)));
    }
    for text in [&overview.drain, &overview.outage].into_iter().flatten() {
        warn(printable(text).into_owned());
    }
    if overview.faults > 0 {
        let faults = if overview.faults == 1 { "fault" } else { "faults" };
        warn(format!("{} {faults}: fairway show config", overview.faults));
    }
    let (up, all) = (overview.established(), overview.sessions.len());
    let of_sessions = if up < all { warning() } else { Style::new() };
    spans.push(Span::styled(format!("{up}/{all} sessions"), of_sessions));
    let counts = overview.service_counts;
    spans.push(Span::raw(format!("  {} services", counts.total)));
    if counts.lacking > 0 {
        spans.push(Span::styled(format!(" ({} lacking)", counts.lacking), warning()));
    }
    let rate = screen.rates.total();
    spans.push(Span::raw(format!(
        "  {} prefixes  msg/s {} in, {} out",
        short(overview.prefixes.total()),
        per_second(rate.received),
        per_second(rate.sent)
    )));
    Line::from(spans)
}

fn tabs<'a>(screen: &'a Screen, overview: &'a Overview) -> Line<'a> {
    let spans = View::ALL.into_iter().flat_map(|view| {
        let number = view.position().saturating_add(1);
        let count = match view {
            View::Neighbors => overview.sessions.len(),
            View::Services => usize::try_from(overview.service_counts.total).unwrap_or(usize::MAX),
            View::Pools => overview.pools.len(),
            View::Segment => overview.segment.len(),
            View::Prefixes => overview.prefixes_of_node.len(),
            View::Events => screen.log.events().len(),
        };
        let style = match view == screen.view {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => faint(),
        };
        [Span::styled(format!("{number} {} {count}", view.title()), style), Span::raw("  ")]
    });
    Line::from(spans.collect::<Vec<_>>())
}

fn draw_table(screen: &Screen, frame: &mut Frame<'_>, area: Rect) {
    let columns = columns(screen.view);
    let room = usize::from(area.height.saturating_sub(1)).max(1);
    // The page with the selected row.
    let first = screen.selected.checked_div(room).unwrap_or(0).saturating_mul(room);
    let widths = columns.iter().map(|it| match it.width {
        0 => Constraint::Fill(1),
        width => Constraint::Length(width),
    });
    let heads = columns.iter().map(|it| aligned(it, it.head.to_owned()));
    let heads = ratatui::widgets::Row::new(heads.collect::<Vec<_>>()).style(strong());
    let rows = screen.rows.iter().enumerate().skip(first).take(room).map(|(at, row)| {
        let cells: Vec<Line<'_>> = cells(row, columns);
        let style = match at == screen.selected {
            true => style(row.weight).add_modifier(Modifier::REVERSED),
            false => style(row.weight),
        };
        ratatui::widgets::Row::new(cells).style(style)
    });
    let table = Table::new(rows.collect::<Vec<_>>(), widths).header(heads).column_spacing(1);
    frame.render_widget(table, area);
    if screen.rows.is_empty() {
        let below = Rect { y: area.y.saturating_add(1), height: area.height.min(1), ..area };
        let text = match screen.filter.as_str() {
            "" => "none".to_owned(),
            filter => format!("nothing contains {filter}"),
        };
        frame.render_widget(Paragraph::new(Line::styled(text, faint())), below);
    }
}

fn cells<'a>(row: &'a Row, columns: &[Column]) -> Vec<Line<'a>> {
    row.cells.iter().zip(columns).map(|(text, column)| aligned(column, text.clone())).collect()
}

/// Numbers to the right; a text that does not fit ends with a mark.
fn aligned<'a>(column: &Column, text: String) -> Line<'a> {
    let width = usize::from(column.width);
    let text = match width > 0 && text.chars().count() > width {
        true => {
            let kept = text.chars().take(width.saturating_sub(1));
            kept.chain(['…']).collect()
        }
        false => text,
    };
    if column.is_number { Line::from(text).right_aligned() } else { Line::from(text) }
}

/// The name and the last column of the selected row.
fn detail_line(screen: &Screen) -> Line<'_> {
    let Some(row) = screen.rows.get(screen.selected) else { return Line::default() };
    match (row.cells.first(), row.cells.last()) {
        (Some(name), Some(last)) if !last.is_empty() => {
            Line::styled(format!("{name}: {last}"), style(row.weight))
        }
        _ => Line::default(),
    }
}

fn draw_events(screen: &Screen, frame: &mut Frame<'_>, area: Rect) {
    let mut lines = vec![Line::styled("Last events", strong())];
    let room = usize::from(area.height.saturating_sub(1));
    lines.extend(screen.log.events().take(room).map(|it| {
        let row = event(it);
        Line::styled(row.cells.join(" "), style(row.weight))
    }));
    frame.render_widget(Paragraph::new(lines), area);
}

fn draw_sheet(sheet: &Sheet, frame: &mut Frame<'_>, area: Rect) {
    frame.render_widget(Clear, area);
    let title = Line::styled(printable(&sheet.title), strong());
    let room = usize::from(area.height.saturating_sub(1));
    let lines = sheet.lines.iter().skip(sheet.first).take(room);
    let lines = std::iter::once(title).chain(lines.map(|it| Line::raw(it.as_str())));
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

fn foot_line(screen: &Screen) -> Line<'_> {
    if screen.is_filtering {
        return Line::from(format!("/{}_", screen.filter));
    }
    if screen.sheet.is_some() {
        return Line::styled("up, down: scroll   any other key: back", faint());
    }
    let filter = match screen.filter.as_str() {
        "" => String::new(),
        filter => format!("   only /{filter}"),
    };
    let keys = "q quit  Tab table  / filter  Enter explain  ? keys";
    Line::styled(format!("{keys}{filter}"), faint())
}

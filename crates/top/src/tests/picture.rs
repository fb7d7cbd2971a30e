//! The picture in the docs: what the screen draws, cell by cell.

use std::fmt::Write;

use ratatui::style::{Color, Modifier};

use super::*;

const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pictures/top.svg");
/// Of one cell, in pixels.
const WIDTH: usize = 8;
const HEIGHT: usize = 17;

/// Runs of cells of the same style as text of an SVG picture.
fn svg(buffer: &Buffer) -> String {
    let (columns, rows) = (usize::from(buffer.area.width), usize::from(buffer.area.height));
    let (width, height) = (columns * WIDTH + 16, rows * HEIGHT + 16);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"monospace\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#1b1e24\"/>\n"
    );
    for (y, row) in buffer.content.chunks(columns).enumerate() {
        let mut x = 0;
        for run in row.chunk_by(|one, other| (one.fg, one.modifier) == (other.fg, other.modifier)) {
            let text: String = run.iter().map(|cell| cell.symbol()).collect();
            let (left, top) = (8 + x * WIDTH, 8 + y * HEIGHT);
            let style = (run[0].fg, run[0].modifier);
            x += run.len();
            let is_reversed = style.1.contains(Modifier::REVERSED);
            let colour = if style.0 == Color::Red { "#ff6b6b" } else { "#d7dae0" };
            if is_reversed {
                let wide = run.len() * WIDTH;
                let _ = writeln!(
                    svg,
                    "<rect x=\"{left}\" y=\"{top}\" width=\"{wide}\" height=\"{HEIGHT}\" fill=\"{colour}\"/>"
                );
            }
            if text.trim().is_empty() {
                continue;
            }
            let colour = if is_reversed { "#1b1e24" } else { colour };
            let weight =
                if style.1.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
            let faint = if style.1.contains(Modifier::DIM) { " opacity=\"0.6\"" } else { "" };
            let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let _ = writeln!(
                svg,
                "<text x=\"{left}\" y=\"{}\" textLength=\"{}\" fill=\"{colour}\"{weight}{faint} \
                 xml:space=\"preserve\">{escaped}</text>",
                top + 13,
                run.len() * WIDTH,
            );
        }
    }
    svg + "</svg>\n"
}

#[test]
fn the_picture_in_the_docs_is_what_the_screen_draws() {
    let picture = svg(&drawn(&screen(), 100, 24));
    if std::env::var_os("FAIRWAY_WRITE").is_some() {
        std::fs::create_dir_all(std::path::Path::new(PICTURE).parent().unwrap()).unwrap();
        std::fs::write(PICTURE, &picture).unwrap();
    }
    let kept = std::fs::read_to_string(PICTURE).unwrap_or_default();
    assert!(kept == picture, "FAIRWAY_WRITE=1 cargo test -p fairway-top writes {PICTURE}");
}

//! The local segment: a lane for each node, with the addresses that it answers for.

use std::collections::BTreeMap;

use fairway_show::overview::{Overview, SegmentRow};
use serde::Serialize;

/// What is drawn; the table below the picture has the rest.
const LANES_MAX: usize = 16;
const ADDRESSES_MAX: usize = 96;

/// Sizes of the picture, in its own units.
const WIDTH: usize = 960;
const LANE_GAP: usize = 14;
const CHIP_LEFT: usize = 210;
const CHIP_HEIGHT: usize = 24;
const CHIP_STEP: usize = 30;
const CHIP_GAP: usize = 8;
const CHARACTER_WIDTH: usize = 8;
const CHIP_PADDING: usize = 20;
/// Longer names are cut where they are drawn.
const NAME_CHARACTERS_MAX: usize = 20;

#[derive(Serialize)]
pub(super) struct Segment<'a> {
    rows: &'a [SegmentRow],
    lanes: Vec<Lane>,
    width: usize,
    height: usize,
    /// Addresses that are not drawn.
    undrawn: usize,
}

#[derive(Serialize)]
struct Lane {
    name: String,
    is_mine: bool,
    /// Nobody answers for these.
    is_nobody: bool,
    y: usize,
    height: usize,
    middle: usize,
    chips: Vec<Chip>,
}

#[derive(Serialize)]
struct Chip {
    address: String,
    x: usize,
    y: usize,
    width: usize,
    is_warning: bool,
}

impl<'a> Segment<'a> {
    pub(super) fn of(overview: &'a Overview) -> Self {
        let rows = &overview.segment;
        // This node first, nobody last.
        let mut owners: BTreeMap<(bool, bool, &str), Vec<&SegmentRow>> = BTreeMap::new();
        for row in rows.iter().take(ADDRESSES_MAX) {
            let name = row.owner.as_deref().unwrap_or("nobody");
            let key = (row.owner.is_none(), !row.is_mine, name);
            owners.entry(key).or_default().push(row);
        }
        let mut y = 0;
        let mut lanes = Vec::new();
        let mut drawn: usize = 0;
        for ((is_nobody, is_other, name), rows) in owners.into_iter().take(LANES_MAX) {
            let lane = lane(name, is_nobody, !is_other, y, &rows);
            y = y.saturating_add(lane.height).saturating_add(LANE_GAP);
            drawn = drawn.saturating_add(rows.len());
            lanes.push(lane);
        }
        let height = y.saturating_sub(LANE_GAP);
        Self { rows, lanes, width: WIDTH, height, undrawn: rows.len().saturating_sub(drawn) }
    }
}

fn lane(name: &str, is_nobody: bool, is_mine: bool, y: usize, rows: &[&SegmentRow]) -> Lane {
    let (mut x, mut line) = (CHIP_LEFT, 0_usize);
    let mut chips = Vec::new();
    for row in rows {
        let characters = row.address.chars().count();
        let width = characters.saturating_mul(CHARACTER_WIDTH).saturating_add(CHIP_PADDING);
        if x > CHIP_LEFT && x.saturating_add(width) > WIDTH {
            (x, line) = (CHIP_LEFT, line.saturating_add(1));
        }
        chips.push(Chip {
            address: row.address.clone(),
            x,
            y: line.saturating_mul(CHIP_STEP).saturating_add(3),
            width,
            is_warning: !row.reason.is_empty() || row.conflicts > 0,
        });
        x = x.saturating_add(width).saturating_add(CHIP_GAP);
    }
    let height = line.saturating_mul(CHIP_STEP).saturating_add(CHIP_HEIGHT).saturating_add(6);
    let shown: String = name.chars().take(NAME_CHARACTERS_MAX).collect();
    let name = if shown.len() < name.len() { format!("{shown}…") } else { shown };
    Lane { name, is_mine, is_nobody, y, height, middle: height / 2, chips }
}

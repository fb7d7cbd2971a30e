//! Can people use the page, in a real browser: by keyboard alone, in the dark, without scripts, on a small screen?
//! `--browser`, and as a stage of `make test-all`.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use lab::suite::{Case, Cell, Suite};

use crate::browser::{Browser, Key, Preferences};
use crate::client::ADDRESS;
use crate::scene::{Backend, Scene};

/// Of text beside its background (WCAG 2.2 §1.4.3, level AA).
const CONTRAST_MIN: f64 = 4.5;
/// Stops of the tabulator before it is back at the top: more than the page of the lab has.
const STOPS_MAX: usize = 60;

pub(crate) fn add_to(suite: &mut Suite) {
    suite.add(Case::new(
        "everything is reached by keyboard, and the focus outlives changes",
        keyboard,
    ));
    suite.add(Case::new("text is readable in the light and in the dark", colors));
    suite.add(Case::new("without scripts the page has its tables and finds routes", no_script));
    suite.add(Case::new("a telephone shows the page without scrolling sideways", small));
}

fn page(path: &str) -> String {
    format!("http://{ADDRESS}/{path}")
}

fn open(cell: &Cell, preferences: Preferences) -> Result<(Scene, Browser)> {
    let scene = Scene::build(cell.number, &cell.directory, Backend::Native, 2)?;
    let mut browser = Browser::start(&scene.node, &cell.directory, preferences)?;
    browser.load(&page(""))?;
    if preferences.runs_scripts {
        browser.wait_for("document.body.innerText.includes('2 of 2 up')")?;
    }
    Ok((scene, browser))
}

/// What has the focus: its id, or where it leads.
const FOCUSED: &str = "(() => { const it = document.activeElement; \
     return it === document.body ? 'BODY' : it.id || it.getAttribute('href') || it.textContent.trim() || it.tagName; })()";

fn focused(browser: &mut Browser) -> Result<String> {
    let value = browser.value(FOCUSED)?;
    Ok(value.as_str().context("nothing has the focus")?.to_owned())
}

fn keyboard(cell: &Cell) -> Result<()> {
    let (mut scene, mut browser) = open(cell, Preferences::USUAL)?;
    for (key, section) in [
        ("1", "neighbors"),
        ("2", "services"),
        ("3", "segment"),
        ("4", "pools"),
        ("5", "prefixes"),
        ("6", "events"),
    ] {
        browser.press(Key::Text(key))?;
        let found = focused(&mut browser)?;
        ensure!(found == section, "{key} leads to {found}, not to {section}");
    }
    browser.press(Key::Text("?"))?;
    ensure!(browser.value("help.open")? == true, "? does not open the help");
    browser.press(Key::Escape)?;
    ensure!(browser.value("help.open")? == false, "Escape does not close the help");
    stops(&mut browser)?;
    // A session goes down while a link of the neighbors' table has the focus.
    browser.value("document.querySelector('#neighbors a').focus()")?;
    let before = focused(&mut browser)?;
    scene.bird.ask("disable tor_1")?;
    browser.wait_for("document.body.innerText.includes('1 of 2 up')")?;
    let after = focused(&mut browser)?;
    ensure!(before == after, "the focus was at {before}, and is at {after}");
    browser.press(Key::Text("/"))?;
    browser.write("203.0.113.200")?;
    browser.press(Key::Enter)?;
    browser.wait_for(
        "document.URL.endsWith('?q=203.0.113.200') && document.readyState === 'complete'",
    )?;
    let found = browser.value("document.getElementById('found').innerText")?;
    ensure!(found.as_str().is_some_and(|it| it.contains("203.0.113.128/25")), "{found}");
    // A community leads to all routes with it.
    browser.value("document.querySelector('#found a.tag').focus()")?;
    browser.press(Key::Enter)?;
    browser.wait_for("document.URL.includes('?q=65535%3A65281')")
}

/// The tabulator stops at each link, button and field once, and each stop can be seen.
fn stops(browser: &mut Browser) -> Result<()> {
    browser.value("document.activeElement.blur(); window.scrollTo(0, 0); window.getSelection().removeAllRanges()")?;
    browser.load(&page(""))?;
    let wanted = "[...document.querySelectorAll('a[href], button, input')].filter(it => !it.closest('dialog'))\
                  .map(it => it.id || it.getAttribute('href') || it.textContent.trim())";
    let wanted = browser.value(wanted)?;
    let wanted: BTreeSet<String> = wanted
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| Some(it.as_str()?.to_owned()))
        .collect();
    ensure!(wanted.len() > 10, "{wanted:?}");
    let mut seen = BTreeSet::new();
    for _ in 0..STOPS_MAX {
        browser.press(Key::Tab)?;
        let stop = focused(browser)?;
        if stop == "BODY" {
            break;
        }
        let ring = browser.value(
            "(() => { const style = getComputedStyle(document.activeElement); \
             return style.outlineStyle !== 'none' || style.boxShadow !== 'none'; })()",
        )?;
        ensure!(ring == true, "nothing shows that {stop} has the focus");
        if !seen.insert(stop) && seen.is_superset(&wanted) {
            break;
        }
    }
    let missed: Vec<_> = wanted.difference(&seen).collect();
    ensure!(missed.is_empty(), "the tabulator never stops at {missed:?}");
    Ok(())
}

/// The lowest contrast of a text beside what is behind it, and that text.
const LOWEST_CONTRAST: &str = r#"(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const pixel = (color, below) => {
    canvas.fillStyle = `rgb(${below.join(" ")})`; canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const behind = (it) => it ? pixel(getComputedStyle(it).backgroundColor, behind(it.parentElement))
    : pixel("canvas", [255, 255, 255]);
  const light = (color) => {
    const [r, g, b] = color.map((it) => it / 255).map((it) => it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let lowest = [99, "no text"];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode.textContent.trim(), it = texts.currentNode.parentElement;
    const box = it.getBoundingClientRect();
    if (!text || box.width < 2 || !it.checkVisibility() || it.closest("svg, script, noscript")) continue;
    const below = behind(it);
    const [a, b] = [light(pixel(getComputedStyle(it).color, below)), light(below)];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < lowest[0]) lowest = [contrast, text];
  }
  return lowest;
})()"#;

fn colors(cell: &Cell) -> Result<()> {
    let (mut scene, mut browser) = open(cell, Preferences::USUAL)?;
    // A session that is down has colors of its own.
    scene.bird.ask("disable tor_1")?;
    browser.wait_for("document.body.innerText.includes('1 of 2 up')")?;
    let mut backgrounds = BTreeSet::new();
    for is_dark in [false, true] {
        browser.prefer(Preferences { is_dark, ..Preferences::USUAL })?;
        for path in ["", "?q=203.0.113.200", "?q=nothing-has-this-name"] {
            browser.load(&page(path))?;
            let lowest = browser.value(LOWEST_CONTRAST)?;
            let contrast = lowest[0].as_f64().unwrap_or_default();
            ensure!((CONTRAST_MIN..30.0).contains(&contrast), "dark: {is_dark}, /{path}: {lowest}");
        }
        let background = browser.value("getComputedStyle(document.body).backgroundColor")?;
        backgrounds.insert(background.to_string());
    }
    ensure!(backgrounds.len() == 2, "light and dark have one background: {backgrounds:?}");
    Ok(())
}

fn no_script(cell: &Cell) -> Result<()> {
    let preferences = Preferences { runs_scripts: false, ..Preferences::USUAL };
    let (_scene, mut browser) = open(cell, preferences)?;
    // Nothing changes by itself: it is loaded until the sessions are up.
    lab::wait::wait_until("both sessions are in the page", 4 * lab::wait::PATIENCE, || {
        browser.load(&page(""))?;
        let text = browser.value("document.body.innerText")?;
        ensure!(text.as_str().is_some_and(|it| it.contains("2 of 2 up")), "{text}");
        Ok(())
    })?;
    let text = browser.value("document.body.innerText")?;
    let text = text.as_str().unwrap_or_default();
    for wanted in ["Without JavaScript", "tor-1", "web", "198.51.100.10", "public"] {
        ensure!(text.contains(wanted), "{wanted:?} is not in {text}");
    }
    ensure!(
        browser.value("document.querySelectorAll('main table').length >= 3")? == true,
        "no tables"
    );
    browser.value("document.getElementById('q').focus()")?;
    browser.write("no-export")?;
    browser.press(Key::Enter)?;
    browser
        .wait_for("document.URL.endsWith('?q=no-export') && document.readyState === 'complete'")?;
    let found = browser.value("document.getElementById('found').innerText")?;
    ensure!(found.as_str().is_some_and(|it| it.contains("203.0.113.128/25")), "{found}");
    Ok(())
}

fn small(cell: &Cell) -> Result<()> {
    let telephone = Preferences { width: 360, height: 740, ..Preferences::USUAL };
    let (_scene, mut browser) = open(cell, telephone)?;
    for path in ["", "?q=203.0.113.0/24"] {
        browser.load(&page(path))?;
        let width = browser.value("document.documentElement.scrollWidth")?;
        ensure!(width.as_u64().is_some_and(|it| it <= 360), "/{path} is {width} pixels wide");
    }
    Ok(())
}

//! What keys do.

use super::*;

fn press(screen: &mut Screen, text: &str) {
    for character in text.chars() {
        screen.press(Key::Character(character));
    }
}

#[test]
fn numbers_and_tab_turn_to_another_table() {
    let mut screen = screen();
    for (key, wanted) in [
        ('2', "shop/queue: the pool public has no free address"),
        ('3', "2/2"),
        ('4', "node-b"),
        ('5', "10.244.3.0/26"),
        ('6', "service shop/api"),
        ('1', "tor-2"),
    ] {
        screen.press(Key::Character(key));
        assert!(has(&lines(&screen), wanted), "{key}: {:#?}", lines(&screen));
    }
    screen.press(Key::Tab);
    assert!(has(&lines(&screen), "shop/queue"));
    screen.press(Key::BackTab);
    screen.press(Key::BackTab);
    assert!(has(&lines(&screen), "ABOUT"));
}

#[test]
fn a_filter_keeps_the_rows_that_contain_it_until_escape() {
    let mut screen = screen();
    press(&mut screen, "/TOR-2");
    let filtered = lines(&screen);
    assert!(has(&filtered, "/tor-2_") && has(&filtered, "tor-2  "), "{filtered:#?}");
    assert!(!filtered[4..17].iter().any(|it| it.contains("tor-1")), "{filtered:#?}");
    screen.press(Key::Enter);
    assert!(has(&lines(&screen), "only /tor-2"));
    // A q behind the slash was a letter; now it is a key again.
    assert_eq!(screen.press(Key::Escape), Reaction::Draw);
    assert!(has(&lines(&screen), "tor-1"));
    assert_eq!(screen.press(Key::Escape), Reaction::Quit);
}

#[test]
fn a_filter_that_nothing_contains_says_so() {
    let mut screen = screen();
    press(&mut screen, "/nowhere");
    assert!(has(&lines(&screen), "nothing contains nowhere"));
    screen.press(Key::Enter);
    assert_eq!(screen.press(Key::Enter), Reaction::Draw);
}

#[test]
fn enter_explains_the_row_and_any_key_leads_back() {
    let mut screen = screen();
    screen.press(Key::Down);
    let wanted = ["peer".to_owned(), "192.0.2.1".to_owned()];
    assert_eq!(screen.press(Key::Enter), Reaction::Explain(wanted));
    screen.explain("fairway explain peer 192.0.2.1".to_owned(), "Session: Established\n");
    assert!(has(&lines(&screen), "Session: Established") && !has(&lines(&screen), "tor-2  "));
    assert_eq!(screen.press(Key::Character('q')), Reaction::Draw);
    assert!(has(&lines(&screen), "tor-2  "));
    assert_eq!(screen.press(Key::Character('q')), Reaction::Quit);
}

#[test]
fn the_selected_row_follows_its_object() {
    let mut screen = screen();
    screen.press(Key::Down);
    screen.press(Key::Down);
    // tor-2 is selected; now it goes down, and moves up among the rows.
    let mut next = overview();
    next.sessions[1] = session("192.0.2.2", "tor-2", false);
    screen.follow(at(1), next);
    let wanted = ["peer".to_owned(), "192.0.2.2".to_owned()];
    assert_eq!(screen.press(Key::Enter), Reaction::Explain(wanted));
}

#[test]
fn five_hundred_neighbors_are_pages_and_the_last_one_can_be_reached() {
    let mut screen = Screen::default();
    screen.resize(24);
    let mut many = overview();
    many.sessions =
        (0..500).map(|it| session(&format!("10.0.{}.{}", it / 250, it % 250), "", true)).collect();
    screen.follow(at(0), many);
    screen.press(Key::PageDown);
    assert!(!has(&lines(&screen), "10.0.0.0 "), "{:#?}", lines(&screen));
    screen.press(Key::End);
    assert!(has(&lines(&screen), "10.0.1.249"), "{:#?}", lines(&screen));
    screen.press(Key::Home);
    assert!(has(&lines(&screen), "10.0.0.0 "));
}

//! Stories of a station, and random histories of many.

use super::*;

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn actions(station: &mut Station) -> Vec<Action> {
    std::iter::from_fn(|| station.poll_action()).collect()
}

fn connected(now: Instant) -> Station {
    let mut station = Station::new(now, 1);
    station.handle(now, Event::Tick);
    assert_eq!(actions(&mut station), [Action::Connect]);
    station.handle(now, Event::Connected);
    assert_eq!(actions(&mut station), [Action::Report(Report::Connected), Action::Begin]);
    station
}

fn message(length: usize) -> Bytes {
    vec![7; length].into()
}

#[test]
fn a_station_that_takes_nothing_is_given_up_and_its_queue_dropped() {
    let mut station = connected(at(0));
    station.push(at(1), message(100));
    assert_eq!(station.poll_transmit(at(1)), Some(message(100)));
    station.push(at(2), message(50));
    assert_eq!(station.poll_transmit(at(2)), None, "one chunk is on its way");
    station.handle(at(30), Event::Tick);
    assert!(station.is_up());
    assert_eq!(station.next_deadline(), Some(at(31)));
    station.handle(at(31), Event::Tick);
    let failed = Report::Failed("it has taken nothing for 30 s".to_owned());
    assert_eq!(actions(&mut station), [Action::Close, Action::Report(failed)]);
    assert_eq!(station.view().queued_bytes, 0);
    station.push(at(31), message(100));
    assert_eq!(station.view().queued_bytes, 0, "the next connection begins with all there is");
}

#[test]
fn a_station_that_is_too_slow_is_given_up() {
    let mut station = connected(at(0));
    for _ in 0..QUEUE_BYTES_MAX / (1 << 20) {
        station.push(at(1), message(1 << 20));
    }
    assert!(station.is_up());
    station.push(at(1), message(1));
    assert!(!station.is_up());
    let failed = Report::Failed("it is too slow: more than 16 MiB wait for it".to_owned());
    assert_eq!(actions(&mut station), [Action::Close, Action::Report(failed)]);
}

#[test]
fn the_last_words_are_all_that_waits_but_tables() {
    let mut station = connected(at(0));
    station.push(at(0), Bytes::from_static(b"first "));
    station.begin_tables(Tables::new(std::iter::repeat(message(1000))));
    station.push(at(0), Bytes::from_static(b"last"));
    assert_eq!(station.take_rest(), Some(Bytes::from_static(b"first last")));
    assert_eq!(station.take_rest(), None);
}

#[test]
fn small_messages_are_written_together_and_whole() {
    let mut station = connected(at(0));
    for _ in 0..3 {
        station.push(at(0), message(CHUNK_BYTES_MAX / 2));
    }
    station.push(at(0), message(CHUNK_BYTES_MAX * 2));
    let mut lengths = Vec::new();
    while let Some(chunk) = station.poll_transmit(at(0)) {
        lengths.push(chunk.len());
        station.handle(at(0), Event::Written);
    }
    assert_eq!(lengths, [CHUNK_BYTES_MAX, CHUNK_BYTES_MAX / 2 + CHUNK_BYTES_MAX * 2]);
}

#[test]
fn tables_are_made_as_they_are_taken_and_what_happens_meanwhile_follows_them() {
    let mut station = connected(at(0));
    station.push(at(0), Bytes::from_static(b"first "));
    let made = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = made.clone();
    let messages = (0..100).map(move |_| {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        message(CHUNK_BYTES_MAX)
    });
    station.begin_tables(Tables::new(messages));
    station.push(at(0), Bytes::from_static(b"last"));
    let mut total = Vec::new();
    while let Some(chunk) = station.poll_transmit(at(0)) {
        assert!(
            made.load(std::sync::atomic::Ordering::Relaxed) * CHUNK_BYTES_MAX
                <= total.len() + chunk.len()
        );
        total.extend_from_slice(&chunk);
        station.handle(at(0), Event::Written);
    }
    assert!(total.starts_with(b"first ") && total.ends_with(b"last"));
    assert_eq!(total.len(), 10 + 100 * CHUNK_BYTES_MAX);
    assert_eq!(station.view().messages, 102);
}

//= RFC 7854 §3.2 MUST: attempts to connect are further and further apart.
#[test]
fn attempts_wait_from_a_second_to_two_minutes() {
    let mut station = Station::new(at(0), 3);
    let mut now = at(0);
    let mut waits = Vec::new();
    for _ in 0..10 {
        station.handle(now, Event::Tick);
        station.handle(now, Event::Closed("connection refused"));
        let next = station.next_deadline().unwrap();
        waits.push(next.since(now).as_secs_f64());
        now = next;
    }
    assert!(waits[0] >= 0.5 && waits[0] <= 1.0, "{waits:?}");
    assert!(waits[9] >= 60.0 && waits[9] <= 120.0, "{waits:?}");
    // One that has worked for long enough is back at once.
    station.handle(now, Event::Tick);
    station.handle(now, Event::Connected);
    let later = now + RECONNECT_WAIT_MAX;
    station.handle(later, Event::Closed("it restarts"));
    assert!(station.next_deadline().unwrap().since(later) <= Duration::from_secs(1));
}

//= RFC 7854 §3.2 MUST: the rate of sessions is limited.
#[test]
fn a_station_that_ends_each_connection_is_connected_to_more_and_more_rarely() {
    let mut station = Station::new(at(0), 3);
    let mut now = at(0);
    for _ in 0..10 {
        station.handle(now, Event::Tick);
        station.handle(now, Event::Connected);
        let end = now + Duration::from_secs(1);
        station.handle(end, Event::Closed("it is gone"));
        now = station.next_deadline().unwrap();
        assert!(now.since(end) <= Duration::from_secs(120), "{:?}", now.since(end));
    }
    let waited = now.since(at(0));
    assert!(waited >= Duration::from_secs(300), "ten sessions in {waited:?}");
    let connects = actions(&mut station).iter().filter(|it| **it == Action::Connect).count();
    assert_eq!(connects, 10);
}

/// What a reader has of the present connection is what was pushed since it began, in order, without a gap.
#[test]
fn in_a_random_history_a_connection_has_all_from_its_beginning_on() {
    let (mut given_up, mut delivered) = (0, 0_u64);
    for seed in 0..100_u64 {
        let mut random = Rng::seeded(seed);
        let mut station = Station::new(Instant::ZERO, seed);
        let mut now = Instant::ZERO;
        let (mut pushed, mut read): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
        let mut on_its_way: Option<Bytes> = None;
        let mut number = 0_u8;
        for _ in 0..2_000 {
            now = now + Duration::from_millis(random.next_u64() % 3_000);
            match random.next_u64() % 60 {
                0 => station.handle(now, Event::Closed("it is gone")),
                1 => station.start_over(now, "something was lost"),
                2..25 => {
                    let length = usize::try_from(random.next_u64() % 10_000).unwrap();
                    let was_up = station.is_up();
                    number = number.wrapping_add(1);
                    station.push(now, vec![number; length].into());
                    if was_up && station.is_up() {
                        pushed.extend(std::iter::repeat_n(number, length));
                    }
                }
                25..50 => {
                    if let Some(chunk) = on_its_way.take() {
                        read.extend_from_slice(&chunk);
                        delivered += 1;
                        station.handle(now, Event::Written);
                    }
                }
                _ => station.handle(now, Event::Tick),
            }
            while let Some(action) = station.poll_action() {
                match action {
                    // The dial may fail, too.
                    Action::Connect if random.next_u64().is_multiple_of(3) => {
                        station.handle(now, Event::Closed("refused"));
                    }
                    Action::Connect => station.handle(now, Event::Connected),
                    Action::Begin => {
                        (pushed, read, on_its_way) = (Vec::new(), Vec::new(), None);
                    }
                    Action::Close => {
                        on_its_way = None;
                        given_up += 1;
                    }
                    Action::Report(_) => {}
                }
            }
            if !station.is_up() {
                on_its_way = None;
            } else if let Some(chunk) = station.poll_transmit(now) {
                assert!(on_its_way.is_none());
                on_its_way = Some(chunk);
            }
            let view = station.view();
            assert!(view.queued_bytes <= QUEUE_BYTES_MAX);
            if station.is_up() {
                assert!(pushed.starts_with(&read), "seed {seed}: a gap");
                let waits = view.queued_bytes + on_its_way.as_ref().map_or(0, Bytes::len);
                assert_eq!(read.len() + waits, pushed.len(), "seed {seed}: something is lost");
                let stalls_at = station.next_deadline();
                assert_eq!(stalls_at.is_some(), on_its_way.is_some());
            } else {
                assert_eq!(view.queued_bytes, 0);
            }
        }
    }
    assert!(given_up > 500 && delivered > 5_000, "{given_up} {delivered}");
}

//! Many Services at once: what it costs.

use super::*;

const SERVICES: usize = 5_000;

#[test]
fn five_thousand_services_cost_one_write_each() {
    let mut lab = Lab::with_pool("10.0.0.0/16");
    lab.run(3);
    lab.written(WrittenKind::IpAddressPool);
    let polls = lab.polls;
    for number in 0..SERVICES {
        lab.new_service(&format!("s{number:04}"));
    }
    lab.run(5);
    assert_eq!(lab.written(WrittenKind::Service).len(), SERVICES);
    assert!(lab.written(WrittenKind::IpAddressPool).len() <= 5);
    // Polled once for each write and event, and a few times for other actions.
    assert!(lab.polls - polls < 2 * SERVICES + 100, "{}", lab.polls - polls);
    assert_eq!(lab.said().len(), SERVICES, "each gets its Event");
}

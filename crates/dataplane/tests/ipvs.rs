//! The kernel's IPVS, with ipvsadm as the witness.
//!
//! For a kernel that has it, and root: `make vm` boots one.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)] // What fails here fails the test.

mod scene;

use std::net::IpAddr;
use std::process::Command;
use std::time::Duration;

use fairway_dataplane::ipvs::Change;
use fairway_dataplane::{DataPath, FilterOptions, INTERFACE, Ipvs};
use fairway_model::{IpvsScheduler, TransportProtocol};
use fairway_proxy::{Operation, Outcome, ServerSettings, VirtualAddress};

use scene::{alone, at, real};

/// What ipvsadm saves, in order.
fn saved() -> Vec<String> {
    let output = Command::new("ipvsadm").arg("-Sn").output().expect("ipvsadm is not installed");
    assert!(output.status.success(), "{output:?}");
    let mut lines: Vec<_> =
        String::from_utf8(output.stdout).unwrap().lines().map(|it| it.trim().to_owned()).collect();
    lines.sort();
    lines
}

/// Makes changes that all succeed.
fn make(ipvs: &mut Ipvs, changes: &[Change]) {
    for (outcome, change) in ipvs.change(changes).unwrap().into_iter().zip(changes) {
        outcome.unwrap_or_else(|error| panic!("{change:?}: {error}"));
    }
}

fn code(ipvs: &mut Ipvs, change: Change) -> i32 {
    let outcome = ipvs.change(&[change]).unwrap().pop().unwrap();
    outcome.err().and_then(|error| error.raw_os_error()).unwrap_or(0)
}

#[test]
#[ignore = "needs a kernel with IPVS: make vm"]
fn servers_of_both_families_and_all_protocols_are_there_as_they_were_made() {
    alone(|| {
        let mut ipvs = Ipvs::open().unwrap();
        assert!(ipvs.servers().unwrap().is_empty());
        let web = at("192.0.2.1", 80, TransportProtocol::Tcp);
        let dns = at("2001:db8::1", 53, TransportProtocol::Udp);
        let signalling = at("192.0.2.1", 2905, TransportProtocol::Sctp);
        let kept = ServerSettings {
            scheduler: IpvsScheduler::MaglevHash,
            persistence: Some(Duration::from_secs(10_800)),
        };
        let plain = ServerSettings::default();
        make(
            &mut ipvs,
            &[
                Change::Add(web, kept),
                Change::AddReal(web, real("10.1.0.1", 8080), 1),
                Change::AddReal(web, real("10.1.0.2", 8080), 0),
                Change::Add(dns, plain),
                Change::AddReal(dns, real("fd00:1::1", 5353), 1),
                Change::Add(signalling, plain),
            ],
        );
        assert_eq!(
            saved(),
            [
                "-A --sctp-service 192.0.2.1:2905 -s rr",
                "-A -t 192.0.2.1:80 -s mh -p 10800 -b mh-fallback,mh-port",
                "-A -u [2001:db8::1]:53 -s rr",
                "-a -t 192.0.2.1:80 -r 10.1.0.1:8080 -m -w 1",
                "-a -t 192.0.2.1:80 -r 10.1.0.2:8080 -m -w 0",
                "-a -u [2001:db8::1]:53 -r [fd00:1::1]:5353 -m -w 1",
            ]
        );
        let servers = ipvs.servers().unwrap();
        assert_eq!(servers.len(), 3);
        assert_eq!(servers[&web].settings, Some(kept));
        let weights: Vec<_> = servers[&web]
            .real_servers
            .iter()
            .map(|(it, weight)| (it.to_string(), *weight))
            .collect();
        assert_eq!(weights, [("10.1.0.1:8080".to_owned(), 1), ("10.1.0.2:8080".to_owned(), 0)]);
        assert_eq!(ipvs.server(dns).unwrap().as_ref(), servers.get(&dns));
        assert_eq!(ipvs.server(at("192.0.2.9", 80, TransportProtocol::Tcp)).unwrap(), None);
        // Another scheduler: the real servers stay.
        make(
            &mut ipvs,
            &[Change::Set(web, plain), Change::SetReal(web, real("10.1.0.2", 8080), 5)],
        );
        let lines = saved();
        assert!(lines.contains(&"-A -t 192.0.2.1:80 -s rr".to_owned()), "{lines:?}");
        assert!(
            lines.contains(&"-a -t 192.0.2.1:80 -r 10.1.0.2:8080 -m -w 5".to_owned()),
            "{lines:?}"
        );
        make(&mut ipvs, &[Change::RemoveReal(web, real("10.1.0.1", 8080)), Change::Remove(dns)]);
        make(&mut ipvs, &[Change::Remove(web), Change::Remove(signalling)]);
        assert_eq!(saved(), [""; 0]);
    });
}

#[test]
#[ignore = "needs a kernel with IPVS: make vm"]
fn what_the_kernel_refuses_is_told_apart_and_stops_nothing_else() {
    const ENOENT: i32 = 2;
    const ESRCH: i32 = 3;
    const EEXIST: i32 = 17;
    alone(|| {
        let mut ipvs = Ipvs::open().unwrap();
        let web = at("192.0.2.1", 80, TransportProtocol::Tcp);
        let none = at("192.0.2.2", 80, TransportProtocol::Tcp);
        let settings = ServerSettings::default();
        let pod = real("10.1.0.1", 8080);
        let outcomes = ipvs
            .change(&[
                Change::AddReal(none, pod, 1),
                Change::Add(web, settings),
                Change::Add(web, settings),
                Change::AddReal(web, pod, 1),
                Change::RemoveReal(web, real("10.1.0.2", 8080)),
            ])
            .unwrap();
        let codes: Vec<_> = outcomes
            .into_iter()
            .map(|it| it.err().and_then(|error| error.raw_os_error()).unwrap_or(0))
            .collect();
        assert_eq!(codes, [ESRCH, 0, EEXIST, 0, ENOENT]);
        assert_eq!(code(&mut ipvs, Change::AddReal(web, pod, 1)), EEXIST);
        assert_eq!(code(&mut ipvs, Change::Remove(none)), ESRCH);
        assert_eq!(code(&mut ipvs, Change::Set(none, settings)), ESRCH);
        assert_eq!(ipvs.real_servers(none).unwrap(), []);
        assert_eq!(ipvs.server(web).unwrap().unwrap().real_servers.len(), 1);
    });
}

#[test]
#[ignore = "needs a kernel with IPVS: make vm"]
fn each_scheduler_of_this_kernel_is_read_as_it_was_set() {
    alone(|| {
        let mut ipvs = Ipvs::open().unwrap();
        let web = at("192.0.2.1", 80, TransportProtocol::Tcp);
        make(&mut ipvs, &[Change::Add(web, ServerSettings::default())]);
        for scheduler in IpvsScheduler::ALL {
            let settings = ServerSettings { scheduler, persistence: None };
            make(&mut ipvs, &[Change::Set(web, settings)]);
            assert_eq!(
                ipvs.server(web).unwrap().unwrap().settings,
                Some(settings),
                "{scheduler:?}"
            );
        }
    });
}

#[test]
#[ignore = "needs a kernel with IPVS: make vm"]
fn thousands_of_servers_are_made_listed_and_removed() {
    alone(|| {
        let mut ipvs = Ipvs::open().unwrap();
        let all: Vec<VirtualAddress> = (0..3_000_u16)
            .map(|it| {
                at(&format!("198.18.{}.{}", it / 250, it % 250 + 1), 80, TransportProtocol::Tcp)
            })
            .collect();
        let pods = |it: &VirtualAddress| {
            let at = *it;
            (1..=3).map(move |pod| Change::AddReal(at, real(&format!("10.1.0.{pod}"), 8080), 1))
        };
        let add = |it: &VirtualAddress| Change::Add(*it, ServerSettings::default());
        make(&mut ipvs, &all.iter().map(add).collect::<Vec<_>>());
        make(&mut ipvs, &all.iter().flat_map(pods).collect::<Vec<_>>());
        let servers = ipvs.servers().unwrap();
        assert_eq!(servers.keys().copied().collect::<Vec<_>>(), all);
        assert!(servers.values().all(|it| it.real_servers.len() == 3));
        make(&mut ipvs, &all.iter().map(|it| Change::Remove(*it)).collect::<Vec<_>>());
        assert!(ipvs.servers().unwrap().is_empty());
    });
}

/// What a program prints.
fn printed(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "needs a kernel with IPVS: make vm"]
fn the_addresses_of_a_batch_are_bound_in_one_transaction_and_each_has_its_outcome() {
    alone(|| {
        let folder = std::env::temp_dir().join(format!("fairway-bind-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (mut path, _) = DataPath::open(FilterOptions::default(), &folder).unwrap();
        path.observe().unwrap();
        let addresses = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1"];
        let all = addresses.map(|it| it.parse::<IpAddr>().unwrap());
        let known = || {
            let text = printed("nft", &["-j", "list", "ruleset"]);
            addresses.map(|it| text.contains(&format!("\"{it}\"")))
        };
        let bound = || {
            let text = printed("ip", &["-o", "address", "show", "dev", INTERFACE]);
            addresses.map(|it| text.contains(&format!(" {it}/")))
        };
        assert_eq!(path.perform(&[Operation::Bind(all[0])]), [Outcome::Done]);
        let outcomes = path.perform(&all.map(Operation::Bind));
        let done = || Outcome::Done;
        assert_eq!(outcomes, [Outcome::Exists, done(), done(), done()]);
        assert_eq!((known(), bound()), ([true; 4], [true; 4]));
        // The filter does not know one of them any more: the others go none the less.
        assert_eq!(path.perform(&[Operation::Unbind(all[2])]), [Outcome::Done]);
        let outcomes = path.perform(&all.map(Operation::Unbind));
        assert_eq!(outcomes, [done(), done(), Outcome::Missing, done()]);
        assert_eq!((known(), bound()), ([false; 4], [false; 4]));
        std::fs::remove_dir_all(&folder).unwrap();
    });
}

//! What happens in a history is drawn from small sets, so that routes, rules and payloads meet.

use super::*;

impl Hub {
    pub(super) fn prefix(&mut self) -> Prefix {
        let pool = ["10.0.0.0/8", "10.1.0.0/16", "11.0.0.0/8", "12.0.0.1/32", "0.0.0.0/0"];
        let pool6 = ["2001:db8:1::/48", "2001:db8:2::1/128", "::/0"];
        // Half of all concern a few prefixes, to which there are several paths.
        let number = self.draw(2 * (pool.len() + pool6.len()));
        match pool.iter().chain(&pool6).nth(number) {
            Some(text) => text.parse().unwrap(),
            None if number.is_multiple_of(3) => {
                format!("2001:db8:{}::/48", 100 + self.draw(12)).parse().unwrap()
            }
            None => format!("10.{}.0.0/16", 100 + self.draw(30)).parse().unwrap(),
        }
    }

    pub(super) fn attributes(&mut self, number: usize, family: AddressFamily) -> PathAttributes {
        let config = self.configs[number].clone();
        let is_internal = config.kind() == fairway_ground::PeerKind::Internal;
        let mut asns: Vec<u32> = if is_internal { vec![] } else { vec![remote_asn(&config).get()] };
        for _ in 0..self.draw(3) {
            asns.push([7, 8, 9, 65_002, OUR_ASN][self.draw(5)]);
        }
        let next_hop = match family {
            AddressFamily::Ipv4Unicast => NextHop::Ipv4(
                [[192, 0, 2, 9], [192, 0, 2, 10], [192, 0, 2, 101], [198, 51, 100, 1]]
                    [self.draw(4)]
                .into(),
            ),
            AddressFamily::Ipv6Unicast => NextHop::Ipv6 {
                global: ["2001:db8::9", "2001:db8::1", "2001:db8:9::9"][self.draw(3)]
                    .parse()
                    .unwrap(),
                link_local: None,
            },
        };
        let mut attributes = PathAttributes::originated(AsPath::sequence(asns), next_hop);
        attributes.origin = [Origin::Igp, Origin::Egp, Origin::Incomplete][self.draw(3)];
        attributes.med = [None, Some(5), Some(9)][self.draw(3)];
        let community = [
            Community(1),
            Community::NO_EXPORT,
            Community::NO_ADVERTISE,
            Community::GRACEFUL_SHUTDOWN,
        ];
        attributes.communities = community.get(self.draw(5)).copied().into_iter().collect();
        let unknown = |flags, code, value| UnknownAttribute { flags, code, value };
        if is_internal {
            attributes.local_pref = [None, Some(100), Some(200)][self.draw(3)];
            let originator = u8::try_from(self.draw(3) + 1).unwrap();
            attributes.unknown.push(unknown(0x80, code::ORIGINATOR_ID, vec![0, 0, 0, originator]));
        }
        if self.draw(3) == 0 {
            attributes.unknown.push(unknown(0xC0, 99, vec![1]));
        }
        attributes
    }

    pub(super) fn filter(&mut self) -> PrefixFilter {
        let range = PrefixRange::new("10.0.0.0/8".parse().unwrap(), None, Some(32)).unwrap();
        [PrefixFilter::Everything, PrefixFilter::Nothing, PrefixFilter::Listed(vec![range])]
            [self.draw(3)]
        .clone()
    }

    pub(super) fn payload(&mut self) -> RoaPayload {
        let prefix = self.prefix();
        let longer = [0, 8][self.draw(2)];
        let length_max = (prefix.length() + longer).min(prefix.family().address_bits());
        RoaPayload { prefix, length_max, asn: [7, 8, 9, 65_002, 65_003, OUR_ASN][self.draw(6)] }
    }
}

//! What users of transactions do: connections for each or one for all, pauses, the end.

use crate::common::{Fake, group, s, user, watch};
use redtail_core::{Span, Time};
use redtail_traffic::{Exchange, Server};

fn in_100_ms(_: &Exchange) -> Span {
    Span::from_ms(100)
}

fn transactions(keys: &str) -> String {
    format!(r#"{{ "kind": "transactions", "name": "t", "response": "5 kB" {keys} }}"#)
}

#[test]
fn each_transaction_has_a_connection_of_its_own_and_the_next_begins_at_once() {
    // netperf's TCP_CRR.
    let fake = watch(&transactions(""), s(10), in_100_ms);
    assert_eq!(fake.opened.len(), fake.asked.len());
    assert!(fake.asked.iter().all(|it| it.exchange.last));
    assert!(fake.opened.iter().all(|it| it.server == Server::Own));
    let expected: Vec<Time> = (0..=100)
        .map(|i| Time::ZERO + Span::from_ms(100 * i))
        .collect();
    let asked: Vec<Time> = fake.asked.iter().map(|it| it.at).collect();
    assert_eq!(asked, expected);
    let sizes = |it: &Exchange| (it.request, it.response, it.service);
    assert_eq!(sizes(&fake.asked[7].exchange), (1000, 5000, Span::ZERO));
}

#[test]
fn all_transactions_share_a_connection_where_they_are_to() {
    // netperf's TCP_RR; with a pause.
    let keys = r#", "connections": "one", "think": "900 ms", "service": "20 ms""#;
    let fake = watch(&transactions(keys), s(10), in_100_ms);
    assert_eq!((fake.opened.len(), fake.asked.len()), (1, 11));
    assert!(fake.asked.iter().all(|it| !it.exchange.last));
    assert!(
        fake.asked
            .windows(2)
            .all(|two| two[1].at - two[0].at == Span::from_s(1))
    );
    assert_eq!(fake.asked[0].exchange.service, Span::from_ms(20));
}

#[test]
fn a_user_who_stops_asks_no_more_and_closes() {
    for (connections, opened) in [("each", 10), ("one", 1)] {
        let keys = format!(r#", "connections": "{connections}""#);
        let group = group(&transactions(&keys));
        let mut fake = Fake::new(in_100_ms);
        fake.drive(&mut user(&group, s(1), 1), s(100));
        assert_eq!(
            (fake.opened.len(), fake.asked.len()),
            (opened, 10),
            "{connections}"
        );
        let over = fake
            .opened
            .iter()
            .all(|it| it.ended || it.closed == Some(s(1)));
        assert!(over, "{connections}");
    }
}

#[test]
fn sizes_are_drawn_alike_whatever_the_network_does() {
    let keys = r#", "response": "pareto mean 12 kB shape 1.2", "request": "uniform 100..900 B""#;
    let json = format!(r#"{{ "kind": "transactions", "name": "t" {keys} }}"#);
    let fast = watch(&json, s(100), in_100_ms);
    let slow = watch(&json, s(100), |it| Span::from_us(100 * it.response));
    assert!(slow.asked.len() > 20 && fast.asked.len() > slow.asked.len());
    for (one, other) in fast.asked.iter().zip(&slow.asked) {
        assert_eq!(one.exchange, other.exchange);
    }
}

//! What Web users of each model do: pages, connections, servers, pauses; that none of what they
//! draw depends on how fast the network is.

use std::collections::BTreeSet;

use crate::common::{Asked, Fake, group, s, user, watch};
use redtail_core::{Span, Time};
use redtail_traffic::{Exchange, Server};

fn in_100_ms(_: &Exchange) -> Span {
    Span::from_ms(100)
}

fn in_100_s(_: &Exchange) -> Span {
    Span::from_s(100)
}

/// 1 Mbit/s after 50 ms.
fn by_size(exchange: &Exchange) -> Span {
    Span::from_ms(50) + Span::from_us(8 * exchange.response)
}

const MODELS: [&str; 5] = ["feldmann", "request-think", "empirical", "http1", "http2"];

/// A group of one user with a model and more keys, on 20 hosts, that begins at once.
fn web(model: &str, keys: &str) -> String {
    format!(
        r#"{{ "kind": "web", "name": "web", "model": "{model}", "hosts": 20, "start": "0 s" {keys} }}"#
    )
}

/// When each page began.
fn begins(fake: &Fake) -> Vec<Time> {
    fake.by_page().iter().map(|page| page[0].at).collect()
}

/// Most requests of a page that were waited for at once.
fn most_at_once(page: &[Asked]) -> usize {
    let at_once = |now: Time| {
        let waits = page.iter().filter(|it| it.at <= now && now < it.answered);
        waits.count()
    };
    page.iter().map(|it| at_once(it.at)).max().unwrap_or(0)
}

#[test]
fn a_page_of_very_many_objects_takes_several_events_at_one_instant() {
    let keys = r#", "objects": "3000", "think": "1000 s""#;
    for (model, keys) in [
        ("http2", keys.to_owned()),
        ("feldmann", format!(r#"{keys}, "gap": "0 s""#)),
        ("http1", format!(r#"{keys}, "parallel": 4000"#)),
    ] {
        let fake = watch(&web(model, &keys), s(500), in_100_ms);
        assert_eq!(fake.asked.len(), 3000, "{model}");
        assert_eq!(fake.pages.len(), 1, "{model}");
        // The document, and everything else when it is there, or all at once.
        let (first, last) = (fake.asked[1].at, fake.asked[2999].at);
        assert_eq!(first, last, "{model}");
        assert!(
            fake.most_in_a_call <= 1024,
            "{model}: {}",
            fake.most_in_a_call
        );
    }
}

#[test]
fn launched_objects_have_connections_of_their_own_and_do_not_wait() {
    let slow = watch(&web("feldmann", ""), s(20_000), in_100_s);
    let fast = watch(&web("feldmann", ""), s(20_000), in_100_ms);
    for fake in [&slow, &fast] {
        assert_eq!(fake.opened.len(), fake.asked.len());
        assert!(fake.opened.iter().all(|it| it.ended), "HTTP/1.0 closes");
        assert!(fake.by_page().iter().any(|page| page.len() > 5));
    }
    // Neither when objects are asked for nor when pages begin depends on the answers.
    let times = |fake: &Fake| fake.asked.iter().map(|it| it.at).collect::<Vec<_>>();
    assert_eq!(times(&slow), times(&fast));
    let gaps = slow.by_page();
    let gaps = gaps
        .iter()
        .flat_map(|page| page.windows(2).map(|two| two[1].at - two[0].at));
    // Pareto with a mean of 0.5 s and shape 1.5: never below a third of it.
    assert!(gaps.into_iter().min() >= Some(Span::from_us(166_666)));
}

#[test]
fn the_first_object_of_a_page_is_its_document_however_objects_are_fetched() {
    for (model, more) in [
        ("feldmann", ""),
        ("http1", ""),
        ("http2", ""),
        ("empirical", ""),
        ("http1", r#", "persistent": 0"#),
    ] {
        let keys = format!(r#"{more}, "document": "77 B", "object": "5 kB", "objects": "4""#);
        let fake = watch(&web(model, &keys), s(1000), in_100_ms);
        let pages = fake.by_page();
        assert!(pages.len() > 3, "{model}");
        for page in pages.iter().filter(|page| page.len() == 4) {
            let sizes: Vec<u64> = page.iter().map(|it| it.exchange.response).collect();
            assert_eq!(sizes, [77, 5000, 5000, 5000], "{model}");
        }
    }
}

#[test]
fn fetched_objects_follow_the_document_over_a_few_connections() {
    for (model, parallel) in [("http1", 6), ("empirical", 4)] {
        let fake = watch(&web(model, r#", "persistent": 1"#), s(3000), by_size);
        let mut full = 0;
        for page in &fake.by_page()[..50] {
            let document = page[0].answered;
            assert!(page[1..].iter().all(|it| it.at >= document), "{model}");
            assert!(most_at_once(page) <= parallel, "{model}");
            full += usize::from(most_at_once(page) == parallel);
            let used = fake.connections(page);
            assert_eq!(
                used.len(),
                parallel.min(page.len().saturating_sub(1)).max(1)
            );
            // Each is closed when the page is complete, for nothing keeps it.
            let end = page.iter().map(|it| it.answered).max();
            let closed = used.iter().map(|it| fake.opened[it.0 as usize].closed);
            assert!(closed.into_iter().all(|at| at == end), "{model}");
        }
        assert!(full > 5, "{model}: {full} pages");
    }
}

#[test]
fn without_persistence_each_object_has_a_connection_and_few_are_open() {
    let fake = watch(&web("http1", r#", "persistent": 0"#), s(2000), by_size);
    for page in &fake.by_page()[..50] {
        assert_eq!(fake.connections(page).len(), page.len());
        assert!(page.iter().all(|it| it.exchange.last));
        assert_eq!(most_at_once(page), 6);
    }
}

#[test]
fn a_share_of_pages_is_persistent() {
    let fake = watch(
        &web("empirical", r#", "objects": "3""#),
        s(50_000),
        in_100_ms,
    );
    let pages = fake.by_page();
    let persistent = pages.iter().filter(|page| !page[0].exchange.last).count();
    // Half of them: beyond 4.4 deviations with a probability of 1e-5.
    let (n, share) = (pages.len() as f64, persistent as f64 / pages.len() as f64);
    assert!(
        n > 1000.0 && (share - 0.5).abs() < 4.4 * 0.5 / n.sqrt(),
        "{share}"
    );
}

#[test]
fn multiplexed_objects_are_asked_for_at_once_when_the_document_has_come() {
    let fake = watch(&web("http2", ""), s(3000), in_100_ms);
    let pages = fake.by_page();
    assert!(pages.len() > 50);
    for page in &pages[..50] {
        assert_eq!(fake.connections(page).len(), 1);
        let document = page[0].answered;
        assert!(page[1..].iter().all(|it| it.at == document));
    }
}

#[test]
fn an_idle_connection_serves_the_next_page_until_it_expires() {
    // RFC 9112, section 9.3: persistence; how long is the server's choice. Kept for 15 s.
    for (think, kept) in [("14900 ms", true), ("15100 ms", false)] {
        let keys = format!(r#", "think": "{think}""#);
        let fake = watch(&web("request-think", &keys), s(1000), in_100_ms);
        let pages = fake.by_page();
        assert!(pages.len() > 60);
        if kept {
            assert_eq!(fake.opened.len(), 1);
            assert_eq!(fake.opened[0].closed, None);
            continue;
        }
        assert_eq!(fake.opened.len(), pages.len());
        for (connection, page) in fake.opened.iter().zip(&pages[..60]) {
            let expected = page[0].answered + Span::from_s(15);
            assert_eq!(connection.closed, Some(expected));
        }
    }
}

#[test]
fn idle_connections_are_for_pages_of_the_same_server() {
    let keys = r#", "keep_alive": "1000 s", "think": "1 s", "objects": "20""#;
    let fake = watch(&web("http1", keys), s(5000), in_100_ms);
    let mut again = 0;
    for two in fake.by_page().windows(2) {
        let servers: Vec<_> = two
            .iter()
            .map(|page| fake.server(page[0].connection))
            .collect();
        let same = fake.connections(&two[0]) == fake.connections(&two[1]);
        assert_eq!(same, servers[0] == servers[1]);
        again += u32::from(same);
        let mut all = fake.connections(&two[1]);
        all.retain(|it| fake.server(*it) != servers[1]);
        assert_eq!(all, []);
    }
    assert!(again > 10, "{again}"); // one page in twenty
    // No more than six to each of the twenty servers, for they are kept.
    assert!(fake.opened.len() <= 120, "{}", fake.opened.len());
}

#[test]
fn servers_are_chosen_as_the_model_says() {
    let host = |server| match server {
        Server::Host(host) => host,
        Server::Own => panic!("its own"),
    };
    let own = watch(&web("request-think", ""), s(10_000), in_100_ms);
    assert!(own.opened.iter().all(|it| it.server == Server::Own));

    // One for each page; each host has its share of 20 hosts.
    let fake = watch(&web("feldmann", ""), s(100_000), in_100_ms);
    let mut counts = [0_u32; 20];
    for page in fake.by_page() {
        let servers: BTreeSet<u32> = page
            .iter()
            .map(|it| host(fake.server(it.connection)))
            .collect();
        assert_eq!(servers.len(), 1);
        counts[*servers.first().expect("one") as usize] += 1;
    }
    let expected = f64::from(counts.iter().sum::<u32>()) / 20.0;
    let deviations = counts.map(|count| (f64::from(count) - expected).powi(2) / expected);
    // Chi-squared with 19 degrees of freedom: beyond 56.3 with a probability of 1e-5.
    assert!(deviations.iter().sum::<f64>() < 56.3, "{counts:?}");

    // One for each connection.
    let keys = r#", "persistent": 0, "objects": "20""#;
    let fake = watch(&web("empirical", keys), s(10_000), in_100_ms);
    let page = &fake.by_page()[3];
    let servers = page.iter().map(|it| host(fake.server(it.connection)));
    assert!(servers.collect::<BTreeSet<_>>().len() > 5);

    // Several pages in a row.
    let fake = watch(
        &web("http1", r#", "pages_per_server": "3""#),
        s(5000),
        in_100_ms,
    );
    let pages = fake.by_page();
    let servers: Vec<Server> = pages
        .iter()
        .map(|it| fake.server(it[0].connection))
        .collect();
    let runs = servers.chunks_exact(3);
    assert!(runs.clone().all(|run| run.iter().all(|it| *it == run[0])));
    assert!(runs.map(|run| host(run[0])).collect::<BTreeSet<_>>().len() > 10);
}

#[test]
fn users_think_from_the_start_of_a_page_or_from_its_end() {
    let at = |from: &str| {
        let keys = format!(r#", "think": "10 s", "think_from": "{from}", "objects": "1""#);
        let fake = watch(&web("http1", &keys), s(500), |_| Span::from_s(3));
        let begins = begins(&fake);
        let steps: BTreeSet<Span> = begins.windows(2).map(|two| two[1] - two[0]).collect();
        steps.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(at("page-start"), [Span::from_s(10)]);
    assert_eq!(at("page-end"), [Span::from_s(13)]);
}

#[test]
fn a_page_begins_when_it_is_due_whether_or_not_the_one_before_is_complete() {
    let fake = watch(&web("feldmann", r#", "think": "2 s""#), s(50), in_100_s);
    let expected: Vec<Time> = (0..=25).map(|i| s(2 * i)).collect();
    assert_eq!(begins(&fake), expected);
    assert_eq!(fake.pages, []);
}

#[test]
fn pages_are_reported_with_what_they_took() {
    for model in MODELS {
        let fake = watch(&web(model, ""), s(2000), by_size);
        let mut expected: Vec<(Time, Span)> = Vec::new();
        for page in fake.by_page() {
            let end = page.iter().map(|it| it.answered).max().expect("objects");
            expected.push((end, end - page[0].at));
        }
        // The last may have more to come, and pages of a user who does not wait overlap.
        let mut found = fake.pages.clone();
        found.sort();
        assert!(found.len() > 10, "{model}");
        let missing = found.iter().filter(|it| !expected.contains(it)).count();
        assert_eq!(missing, 0, "{model}");
        assert!(found.len() + 30 > expected.len(), "{model}");
    }
}

#[test]
fn a_user_begins_no_page_after_its_stop_and_finishes_the_last() {
    for model in MODELS {
        let group = group(&web(model, r#", "keep_alive": "20 s""#));
        let mut fake = Fake::new(by_size);
        fake.drive(&mut user(&group, s(100), 1), s(100_000));
        assert!(begins(&fake).iter().all(|at| *at < s(100)), "{model}");
        assert_eq!(fake.pages.len(), fake.by_page().len(), "{model}");
        let over = |it: &crate::common::Opened| it.ended || it.closed.is_some();
        assert!(fake.opened.iter().all(over), "{model}: left open");
    }
}

#[test]
fn what_the_nth_page_is_does_not_depend_on_the_network() {
    // Common random numbers. Connections that are kept while pages overlap make it hardest: which
    // are free for the next page depends on the network.
    let kept = r#", "keep_alive": "10 s", "persistent": 0.5"#;
    let overlapping = r#", "keep_alive": "10 s", "persistent": 1, "think_from": "page-start",
        "think": "500 ms", "objects": "uniform 1..12""#;
    let cases = MODELS.map(|model| (model, ""));
    let more = [
        ("empirical", kept),
        ("empirical", overlapping),
        ("http1", kept),
        ("feldmann", r#", "server": "per-connection""#),
    ];
    for (model, keys) in cases.into_iter().chain(more) {
        let takes = [in_100_ms, by_size, |it: &Exchange| {
            Span::from_us(40 * it.response)
        }];
        let contents = takes.map(|takes| {
            let fake = watch(&web(model, keys), s(4000), takes);
            let pages = fake.by_page();
            assert!(pages.len() > 20, "{model}: {} pages", pages.len());
            let of = |it: &Asked| (it.exchange, fake.server(it.connection));
            let first = pages.iter().take(20);
            first
                .map(|page| page.iter().map(of).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        });
        for other in &contents[1..] {
            for (number, (one, other)) in contents[0].iter().zip(other).enumerate() {
                let exchanges =
                    |page: &[(Exchange, Server)]| page.iter().map(|it| it.0).collect::<Vec<_>>();
                assert_eq!(
                    exchanges(one),
                    exchanges(other),
                    "{model} {keys}, page {number}"
                );
                // Where a connection is chosen for each page, so is its server.
                if model == "feldmann" || model == "http1" {
                    assert_eq!(one, other, "{model} {keys}, page {number}");
                }
            }
        }
    }
}

#[test]
fn a_user_without_a_start_begins_by_thinking() {
    let json = r#"{ "kind": "web", "name": "web", "model": "request-think", "think": "7 s" }"#;
    let fake = watch(json, s(100), in_100_ms);
    assert_eq!(begins(&fake)[0], s(7));
}

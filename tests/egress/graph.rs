//! Redirects of any shape: nothing is ever seen where nothing is allowed.

use crate::support::*;
use coracle_outbound::{Asked, REDIRECTS_MAX};
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::json;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

const HOSTS: usize = 6;
const PAGES: usize = 24;

/// Where a page leads to: its status, the page, and in which form that is written.
type Link = Option<(u16, usize, Form)>;

#[derive(Clone, Copy, Debug)]
enum Form {
    Whole,
    WithoutScheme,
    UpperCase,
    WithDot,
    WithFragment,
    WithBackslashes,
}

#[derive(Clone, Debug)]
struct Graph {
    links: Vec<Link>,
    allowed: Vec<bool>,
}

fn graphs() -> impl Strategy<Value = Graph> {
    let form = prop_oneof![
        Just(Form::Whole),
        Just(Form::WithoutScheme),
        Just(Form::UpperCase),
        Just(Form::WithDot),
        Just(Form::WithFragment),
        Just(Form::WithBackslashes),
    ];
    let status = proptest::sample::select(vec![301, 302, 303, 307, 308]);
    let link = prop_oneof![
        1 => Just(None),
        6 => (status, 0..PAGES, form).prop_map(Some),
    ];
    let links = prop::collection::vec(link, PAGES);
    let allowed = prop::collection::vec(prop::bool::weighted(0.8), HOSTS);
    (links, allowed).prop_map(|(links, allowed)| Graph { links, allowed })
}

fn host(page: usize) -> usize {
    page % HOSTS
}

fn written(page: usize, port: u16, form: Form) -> String {
    let (host, path) = (host(page), format!("/{page}"));
    match form {
        Form::Whole => format!("http://h{host}.test:{port}{path}"),
        Form::WithoutScheme => format!("//h{host}.test:{port}{path}"),
        Form::UpperCase => format!("HTTP://H{host}.TEST:{port}{path}"),
        Form::WithDot => format!("http://h{host}.test.:{port}{path}"),
        Form::WithFragment => format!("http://h{host}.test:{port}{path}#http://h0.test"),
        Form::WithBackslashes => format!("http:\\\\h{host}.test:{port}\\{page}"),
    }
}

/// The pages that are to be seen, and whether the last of them is the response.
fn expected(graph: &Graph) -> (Vec<usize>, bool) {
    let (mut page, mut seen) = (0, Vec::new());
    loop {
        if !graph.allowed[host(page)] {
            return (seen, false);
        }
        seen.push(page);
        match graph.links[page] {
            None => return (seen, true),
            Some(_) if seen.len() > REDIRECTS_MAX as usize => return (seen, false),
            Some((_, next, _)) => page = next,
        }
    }
}

/// N01: for every graph of redirects, over hosts of which some are allowed.
#[test]
fn no_redirect_leads_out_of_a_policy() {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().expect("a runtime");
    let links = Arc::<Mutex<Vec<Link>>>::default();
    let served = Arc::clone(&links);
    let (world, server) = runtime.block_on(async {
        let world = World::of(json!([{"allow": ["http://*.test:*"], "private": true}])).await;
        for host in 0..HOSTS {
            world
                .dns
                .set_kept(&format!("h{host}.test"), &["127.0.0.1"], 300);
        }
        let server = Server::plain(move |seen| {
            let page: usize = seen.path[1..].parse().expect("a page");
            let port = seen
                .host
                .rsplit(':')
                .next()
                .and_then(|port| port.parse().ok());
            match served.lock().expect("no panic")[page] {
                None => answer(200, &[], "the end"),
                Some((status, next, form)) => {
                    let place = written(next, port.expect("a port"), form);
                    answer(status, &[("location", &place)], "")
                }
            }
        })
        .await;
        (world, server)
    });
    let outcomes = Mutex::new(HashMap::new());
    let mut runner = TestRunner::new(ProptestConfig::with_cases(400));
    let outcome = runner.run(&graphs(), |graph| {
        *links.lock().expect("no panic") = graph.links.clone();
        let (port, before) = (server.address.port(), server.seen().len());
        let allowed = (0..HOSTS).filter(|host| graph.allowed[*host]);
        let allowed: Vec<String> = allowed
            .map(|host| format!("http://h{host}.test:*"))
            .collect();
        let rules = json!({"rules": [{"allow": allowed}]}).to_string();
        let channel = world.outbound.channel("acme", Asked::Given(&rules), None);
        let fetched = runtime.block_on(get(
            &channel.expect("a channel"),
            written(0, port, Form::Whole),
        ));
        let seen = server.seen().split_off(before);
        for seen in &seen {
            let host = seen.host.trim_start_matches('h').split('.').next();
            let host: usize = host.and_then(|host| host.parse().ok()).expect("a host");
            prop_assert!(graph.allowed[host], "{}{}", seen.host, seen.path);
        }
        let (pages, is_response) = expected(&graph);
        let paths: Vec<String> = pages.iter().map(|page| format!("/{page}")).collect();
        prop_assert_eq!(
            seen.into_iter().map(|seen| seen.path).collect::<Vec<_>>(),
            paths
        );
        prop_assert_eq!(fetched.is_ok(), is_response);
        let mut outcomes = outcomes.lock().expect("no panic");
        *outcomes.entry((is_response, pages.len())).or_insert(0) += 1;
        Ok(())
    });
    outcome.expect("it holds");
    let outcomes = outcomes.into_inner().expect("no panic");
    // The graphs are of all kinds: it would hold of none as well.
    for (is_response, count) in [(true, 1), (true, 4), (false, 0), (false, 2), (false, 6)] {
        assert!(outcomes.contains_key(&(is_response, count)), "{outcomes:?}");
    }
}

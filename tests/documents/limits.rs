//! `docs/limits.md`: the numbers, that nothing is missing, and that no limit is mentioned that there is not.

use crate::{cells, constants::Constants, document, repository};
use coracle_isolate::Machine;
use coracle_loader::{CORE_CONFIG_SPECS, LimitName, limits::grouped};
use coracle_outbound::{DnsConfig, RequestLimits};
use coracle_server::ServerConfig;
use std::fs;

const PAGE: &str = "docs/limits.md";

/// Constants that look like bounds and are none that anybody could meet: each with the reason.
const NO_LIMITS: [(&str, &str); 45] = [
    (
        "cordon::confine::DESCRIPTORS_MAX",
        "what a cordon's own pool needs",
    ),
    (
        "cordon::cordon::BACKLOG_BYTES_MAX",
        "beyond what callers may have under way",
    ),
    (
        "cordon::cordon::LOOK_TWICE_AFTER",
        "the watchdog's patience, in docs/security.md",
    ),
    (
        "cordon::cordon::STARVED_MAX",
        "the watchdog's patience, in docs/security.md",
    ),
    (
        "cordon::cordons::IDLE_MAX",
        "when an unused cordon is ended",
    ),
    (
        "cordon::cordons::OVERDUE_AFTER",
        "the watchdog's patience, in docs/security.md",
    ),
    (
        "cordon::cordons::RETRY_AFTER",
        "when a start is tried again",
    ),
    (
        "cordon::cordons::SILENCE_MAX",
        "the watchdog's patience, in docs/security.md",
    ),
    ("cordon::cordons::START_MAX", "the watchdog's patience"),
    (
        "cordon::inside::SET_UP_BYTES_MAX",
        "of the server's own first frame",
    ),
    (
        "cordon::ledger::RECENT_MAX",
        "what is remembered of calls that are over",
    ),
    (
        "isolate::machine::ISOLATE_BYTES_MIN",
        "in the text on isolates_max",
    ),
    ("isolate::scheduler::shares::TURN_MIN", "the order of turns"),
    ("loader::core::tenancy::WEIGHT_MAX", "in docs/fairness.md"),
    ("loader::core::waiting::RETRY_MS_MAX", "what a hint says"),
    ("loader::core::waiting::RETRY_MS_MIN", "what a hint says"),
    ("loader::trust::TENANTS_MAX", "suspects that are remembered"),
    (
        "server::service::outward::REQUEST_BYTES_MAX",
        "what a record is made from",
    ),
    ("abi::loading::IMPORTS_MADE_MIN", "where numbers begin"),
    (
        "isolate::image::file::IMAGES_MAX",
        "files in a cache folder",
    ),
    (
        "isolate::machine::ISOLATES_CEILING",
        "in the text on isolates_max",
    ),
    (
        "isolate::machine::RUNNING_CEILING",
        "in the text on isolates_max",
    ),
    (
        "isolate::machine::RUNNING_MIN",
        "in the text on isolates_max",
    ),
    (
        "isolate::sandbox::ATTEMPTS_MAX",
        "of a system call at the start",
    ),
    ("cordon::cordon::POSTED_BYTES_MAX", "goes at once then"),
    ("cordon::cordon::POSTED_MAX", "goes at once then"),
    (
        "cordon::cordons::voice::FRAMES_AT_ONCE_MAX",
        "others have a turn in between",
    ),
    (
        "isolate::scheduler::queues::BEFORE_ENDING_MAX",
        "an order of turns",
    ),
    (
        "isolate::scheduler::queues::ENDING_MAX",
        "an order of turns",
    ),
    (
        "isolate::scheduler::queues::ALARMS_AT_ONCE_MAX",
        "the rest follows at once",
    ),
    (
        "isolate::scheduler::queues::FRESH_IN_A_ROW_MAX",
        "the order of turns",
    ),
    (
        "isolate::scheduler::queues::RESTING_STACKS_MAX",
        "stacks that are kept for reuse",
    ),
    (
        "isolate::scheduler::threads::ASSISTANTS_MAX",
        "helpers of the scheduler's own",
    ),
    (
        "isolate::scheduler::threads::ASSISTED_TURNS_MAX",
        "the order of turns",
    ),
    (
        "isolate::scheduler::threads::PARKED_MAX",
        "how long a thread sleeps",
    ),
    ("loader::limits::parse::CHARS_MAX", "what an error quotes"),
    (
        "outbound::credential::token::MARGIN_MAX",
        "when a token is renewed",
    ),
    (
        "outbound::secret::file::READ_BYTES_MAX",
        "SECRET_BYTES_MAX and an end of a line",
    ),
    (
        "outbound::secret::source::KEY_BYTES_MAX",
        "of the operator's configuration",
    ),
    (
        "outbound::secret::source::REFRESH_SECONDS_MAX",
        "of the operator's configuration",
    ),
    (
        "outbound::secret::source::TIMEOUT_SECONDS_MAX",
        "of the operator's configuration",
    ),
    (
        "server::capnp_front::TARGETS_MADE_MAX",
        "when a table is tidied",
    ),
    (
        "server::loading::CHECK_INLINE_BYTES_MAX",
        "which thread checks",
    ),
    (
        "server::capnp_front::result_target::EXTERNAL_BYTES_MAX",
        "bytes of a reference",
    ),
    ("value::value::SAFE_INTEGER_MAX", "of JavaScript"),
];

/// A row whose number is made by the code, and what that is.
struct Known {
    name: String,
    value: u64,
}

/// What a server, its connections and its requests have by default.
fn configured() -> Vec<Known> {
    let machine = Machine {
        memory_bytes: 4 << 30,
        map_count_max: 65_530,
        cores: 2,
        pagemap_scan: false,
    };
    let server = ServerConfig::for_machine(&machine);
    assert_eq!(server.connections_bytes_max, machine.memory_bytes / 5);
    let (requests, dns) = (RequestLimits::default(), DnsConfig::default());
    let known = |(name, value): (&str, u64)| Known {
        name: name.to_owned(),
        value,
    };
    let rows = [
        ("`connections_max`", server.connections_max as u64),
        ("`message_bytes_max`", server.message_bytes_max),
        ("`connection_bytes_max`", server.connection_bytes_max),
        (
            "`login_deadline_ms`",
            server.login_deadline.as_millis() as u64,
        ),
        ("`drain_delay_ms`", server.drain_delay.as_millis() as u64),
        ("`drain_grace_ms`", server.drain_grace.as_millis() as u64),
        ("`request_bytes_max`", requests.request_bytes_max),
        ("`response_bytes_max`", requests.response_bytes_max),
        ("`connect_ms_max`", requests.connect_ms_max),
        ("`response_ms_max`", requests.response_ms_max),
        ("`idle_ms_max`", requests.idle_ms_max),
        (
            "`idle_connections_max`",
            requests.idle_connections_max as u64,
        ),
        ("`connections_max` of HTTP", requests.connections_max as u64),
        ("`sockets_max`", requests.sockets_max as u64),
        ("`lookups_max`", dns.lookups_max as u64),
        ("`lookup_ms_max`", dns.lookup_ms_max),
        ("`cache_entries_max`", dns.cache_entries_max),
        ("`cache_seconds_max`", dns.cache_seconds_max),
    ];
    rows.into_iter().map(known).collect()
}

/// The constant that a row is about: its last cell.
fn constant(line: &str) -> Option<String> {
    let cells = cells(line);
    let last = cells.last()?.strip_prefix('`')?.strip_suffix('`')?;
    (cells.len() == 6 && last.contains("::")).then(|| last.to_owned())
}

/// Every number of the page that has a name in the code is what it is there.
#[test]
fn the_numbers_are_those_of_the_code() {
    let (constants, configured) = (Constants::read(), configured());
    let page = document(PAGE);
    let mut met = vec![0; configured.len()];
    let mut written = String::new();
    for line in page.lines() {
        let cells = cells(line);
        let value = match (constant(line), cells.first()) {
            (Some(constant), _) => Some(constants.value(&constant)),
            (None, Some(name)) if cells.len() == 5 => {
                let index = configured.iter().position(|known| known.name == *name);
                index.map(|index| {
                    met[index] += 1;
                    configured[index].value
                })
            }
            _ => None,
        };
        match value {
            Some(value) => {
                let mut cells = cells.clone();
                let number = grouped(value);
                cells[1] = &number;
                written += &format!("| {} |\n", cells.join(" | "));
            }
            None => written += &format!("{line}\n"),
        }
    }
    for (known, met) in configured.iter().zip(met) {
        assert_eq!(met, 1, "{} stands there {met} times", known.name);
    }
    if std::env::var_os("CORACLE_DOCUMENTS_REWRITE").is_some() {
        // Put in place as a whole: the other tests read it meanwhile.
        let draft = repository().join("docs/.limits.md.new");
        fs::write(&draft, &written).unwrap();
        fs::rename(draft, repository().join(PAGE)).unwrap();
        return;
    }
    for (is, should_be) in page.lines().zip(written.lines()) {
        assert_eq!(is, should_be, "CORACLE_DOCUMENTS_REWRITE=1 writes it");
    }
}

/// A bound that is added to the code is added to the page, or named here with the reason why not.
#[test]
fn every_bound_of_the_code_is_on_the_page() {
    let page = document(PAGE);
    let listed: Vec<String> = page.lines().filter_map(constant).collect();
    let constants = Constants::read();
    let mut missing = Vec::new();
    for bound in constants.bounds() {
        let excused = NO_LIMITS.iter().any(|(name, _)| *name == bound);
        let is_listed = listed.iter().any(|constant| constant == bound);
        assert!(!(excused && is_listed), "{bound} is excused and listed");
        if !excused && !is_listed {
            missing.push(bound);
        }
    }
    assert!(missing.is_empty(), "not on the page: {missing:#?}");
    for (name, _) in NO_LIMITS {
        assert!(
            constants.bounds().any(|bound| bound == name),
            "{name} is excused and not there"
        );
    }
}

/// A name that ends like a limit's is one of the code's.
#[test]
fn no_limit_is_mentioned_that_does_not_exist() {
    let mut names: Vec<String> = Vec::new();
    names.extend(LimitName::ALL.map(|name| name.as_str().to_owned()));
    names.extend(CORE_CONFIG_SPECS.iter().map(|spec| spec.text.to_owned()));
    names.extend(configured().iter().map(|known| known.name.replace('`', "")));
    // Those that are made when the server starts, and those that have a name in errors only.
    names.extend(
        [
            "connections_bytes_max",
            "outbound_connections_max",
            "outbound_connections_per_tenant_max",
            "snapshots_bytes_max",
            "questions_max",
            "pipelined_max",
            "timers_max",
        ]
        .map(String::from),
    );
    let page = document(PAGE);
    for mentioned in page.split('`').skip(1).step_by(2) {
        if mentioned.ends_with("_max") && !mentioned.starts_with("--") {
            assert!(names.iter().any(|name| name == mentioned), "{mentioned}");
        }
    }
}

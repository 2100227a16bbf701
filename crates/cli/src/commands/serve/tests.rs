//! How flags become a configuration.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use super::*;
use clap::Parser;

#[derive(Parser)]
struct Only {
    #[command(flatten)]
    serve: ServeArgs,
}

fn config(flags: &[&str]) -> Result<ServerConfig, Failure> {
    let all = ["serve"].iter().chain(flags);
    Only::try_parse_from(all)
        .map_err(Failure::usage)?
        .serve
        .config()
}

fn refusal(flags: &[&str]) -> String {
    match config(flags) {
        Ok(_) => panic!("{flags:?} was accepted"),
        Err(failure) => failure.to_string(),
    }
}

#[test]
fn without_flags_it_is_the_default_for_this_machine() {
    let (config, default) = (
        config(&[]).unwrap(),
        ServerConfig::for_machine(&Machine::read()),
    );
    assert_eq!(config.listen, ["127.0.0.1:7070".parse().unwrap()]);
    assert_eq!((config.admin, config.tokens.required()), (None, false));
    assert_eq!((config.core, config.limits), (default.core, default.limits));
    assert_eq!(config.message_bytes_max, default.message_bytes_max);
    assert_eq!(
        (config.drain_delay, config.drain_grace),
        (default.drain_delay, default.drain_grace)
    );
}

#[test]
fn flags_take_the_place_of_defaults() {
    let config = config(&[
        "--listen=127.0.0.1:1,unix:/s",
        "--listen=[::1]:2",
        "--admin=127.0.0.1:3",
        "--isolates-max=5",
        "--pool-memory-bytes-max=1000000",
        "--isolate-threads=6",
        "--calls-queued-max=7",
        "--drain-delay-ms=0",
        "--drain-grace-ms=8",
        "--limit=fuel_max=9,wall_ms_max=10",
        "--limit=exports_max=11",
    ])
    .unwrap();
    assert_eq!(
        config
            .listen
            .iter()
            .map(Address::to_string)
            .collect::<Vec<_>>(),
        ["127.0.0.1:1", "unix:/s", "[::1]:2"]
    );
    assert_eq!(config.admin.unwrap().port(), 3);
    assert_eq!(
        (config.core.isolates_max, config.core.calls_queued_max),
        (5, 7)
    );
    assert_eq!(
        (config.pool_memory_bytes_max, config.isolate_threads),
        (1_000_000, 6)
    );
    assert_eq!(
        (config.drain_delay, config.drain_grace),
        (Duration::ZERO, Duration::from_millis(8))
    );
    assert_eq!(
        (
            config.limits.fuel_max,
            config.limits.wall_ms_max,
            config.limits.exports_max
        ),
        (9, 10, 11)
    );
}

#[test]
fn a_message_has_room_for_what_the_limits_allow() {
    let config = config(&["--limit=args_bytes_max=268_435_456"]).unwrap();
    assert!(config.message_bytes_max > 268_435_456);
}

#[test]
fn what_is_wrong_is_refused_and_not_guessed_at() {
    assert!(refusal(&["--isolates-max=0"]).contains("not in 1.."));
    assert!(refusal(&["--listen=example.com:1"]).contains("use IP:PORT"));
    assert!(refusal(&["--limit=fuel_max=-1"]).contains("is not a whole number"));
    assert!(
        refusal(&["--limit=fuel_max=1", "--limit=fuel_max=2"]).contains("fuel_max is given twice")
    );
    assert!(refusal(&["--token-file=/there/is/none"]).contains("token file /there/is/none"));
    assert!(refusal(&["--no-such-flag"]).contains("unexpected argument"));
}

//! The log of cases: public failures of others, each as a worker with the right answer.
//!
//! `cases/README.md` says how a case is written, and lists them with those that other tests guard. While one runs, the
//! worker of another login is called: whatever the case does, its neighbour is answered, what it used stays within its
//! limits, and the server is as well as before.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

mod support;

use coracle_client::{
    Answer, Coracle, Entrypoint, Limits as Asked, Outcome, Payload, Stub, Thrown, Value,
    WorkerCode, args,
};
use coracle_isolate::FUEL_SLICE;
use coracle_loader::Limits;
use serde_json::{Map, Value as Json, json};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use support::{
    PATIENCE, Server, client, forget_resident_peak, get, load, resident_bytes, resident_bytes_peak,
    value, within,
};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The paths of all cases below `cases`: `<area>/<id>.js`.
fn names() -> Vec<String> {
    let folder = repository().join("tests/cases");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .filter(|area| area.as_ref().unwrap().path().is_dir())
        .flat_map(|area| fs::read_dir(area.unwrap().path()).unwrap())
        .map(|case| {
            let path = case.unwrap().path();
            path.strip_prefix(&folder).unwrap().display().to_string()
        })
        .collect();
    names.sort();
    names
}

/// What a server may take for a call of a case and one of a neighbour, besides the memory of the isolate: messages that
/// are under way, and code. The process as a whole then has the limit of a case and a fifth.
const SERVER_BYTES_MAX: u64 = 16 << 20;

/// Calls what a case exports: the functions of an array one by one, or the method `run` of an object.
const WRAPPER: &str = "
    import worker from './case.js';
    const runs = Array.isArray(worker) ? worker : [(...args) => worker.run(...args)];
    export default {
        count(_) { return runs.length; },
        async run(x, env, ctx) { return JSON.stringify(await runs[x](x, env, ctx)) ?? 'null'; },
    };";

struct Case {
    name: String,
    rule: String,
    /// What it asks for.
    asked: Asked,
    /// The limits that it has: what it asks for, and the defaults.
    limits: Limits,
    /// One of these is right.
    expected: Vec<Expected>,
    /// It is known to be wrong; then it must not be right.
    is_open: bool,
    /// Names and sources; the first is the case itself.
    modules: Vec<(String, String)>,
}

enum Expected {
    /// `run` returns this.
    Answer(Json),
    /// `run` throws, and this can be said of what it throws.
    Throw(Map<String, Json>),
    /// It is stopped, by one of these, and this can be said of the verdict.
    Verdict(Vec<String>, Map<String, Json>),
}

impl Case {
    fn read(name: &str) -> Self {
        let source = fs::read_to_string(repository().join("tests/cases").join(name)).unwrap();
        let mut case = Self {
            name: name.to_owned(),
            rule: String::new(),
            asked: Asked::default(),
            limits: Limits::default(),
            expected: Vec::new(),
            is_open: false,
            modules: vec![("case.js".to_owned(), String::new())],
        };
        let mut has_source = false;
        for line in source.lines() {
            let field = line
                .strip_prefix("// ")
                .and_then(|line| line.split_once(": "));
            match field {
                Some(("source", _)) => has_source = true,
                Some(("rule", rule)) => case.rule = rule.to_owned(),
                Some(("open", _)) => case.is_open = true,
                Some(("limits", limits)) => case.ask(&object(limits)),
                Some(("expected", json)) => case.expected.push(Expected::Answer(parsed(json))),
                Some(("expected throw", fields)) => {
                    case.expected.push(Expected::Throw(object(fields)));
                }
                Some(("expected verdict", text)) => case.expected.push(verdict_expected(text)),
                Some(("module", name)) => {
                    case.modules.push((name.to_owned(), String::new()));
                    continue;
                }
                _ => {}
            }
            // Its header stays in the case itself, so that errors name the lines of its file.
            let (_, body) = case.modules.last_mut().unwrap();
            body.push_str(line);
            body.push('\n');
        }
        let whole = has_source && !case.rule.is_empty() && !case.expected.is_empty();
        assert!(whole, "{name} does not say what it is");
        case
    }

    fn ask(&mut self, limits: &Map<String, Json>) {
        for (name, value) in limits {
            let value = value.as_u64().unwrap();
            self.asked.set(name, value).unwrap();
            self.limits.set(name.parse().unwrap(), value);
        }
    }

    fn code(&self, env: Payload) -> WorkerCode {
        let main = WorkerCode::new("main.js").es_module("main.js", WRAPPER);
        let with = |code: WorkerCode, (name, body): &(String, String)| code.es_module(name, body);
        let code = self.modules.iter().fold(main, with);
        code.env(env).limits(self.asked)
    }

    /// What is wrong with an answer.
    fn faults(&self, answer: &Answer) -> Vec<String> {
        let mut faults = self.excesses(answer);
        let fits = |expected: &Expected| expected.fits(&answer.outcome);
        match (self.expected.iter().any(fits), self.is_open) {
            (true, false) | (false, true) => {}
            (true, true) => faults.push("is right by now: it is not open any more".to_owned()),
            (false, false) => faults.push(format!("{:?}", answer.outcome)),
        }
        faults
    }

    /// Where an answer used more than its limit and the slack that is documented for it.
    fn excesses(&self, answer: &Answer) -> Vec<String> {
        // A slice takes about 0.2 ms, and on a machine that is busy with other things some more.
        const CPU_SLACK_MICROS: u64 = 20_000;
        const WALL_SLACK_MICROS: u64 = 5_000_000;
        let (limits, usage) = (&self.limits, &answer.usage);
        let logged: usize = answer.logs.iter().map(|line| line.message.len()).sum();
        let figures = [
            ("fuel", usage.fuel_run, limits.fuel_max + FUEL_SLICE),
            (
                "load",
                usage.fuel_load,
                limits.startup_fuel_max + FUEL_SLICE,
            ),
            (
                "CPU",
                usage.cpu_micros,
                limits.cpu_ms_max * 1_000 + CPU_SLACK_MICROS,
            ),
            (
                "wall",
                usage.wall_micros,
                limits.wall_ms_max * 1_000 + WALL_SLACK_MICROS,
            ),
            ("memory", usage.memory_peak_bytes, limits.memory_bytes_max),
            ("calls", usage.subrequests.into(), limits.subrequests_max),
            ("logs", logged as u64, limits.log_bytes_max),
        ];
        figures
            .iter()
            .filter(|(_, used, most)| used > most)
            .map(|(what, used, most)| format!("{what}: {used} of at most {most}"))
            .collect()
    }
}

impl Expected {
    fn fits(&self, outcome: &Outcome) -> bool {
        match (self, outcome) {
            (Self::Answer(expected), Outcome::Value(value)) => {
                let answer = value
                    .as_str()
                    .and_then(|text| serde_json::from_str(text).ok());
                answer.as_ref() == Some(expected)
            }
            (Self::Throw(expected), Outcome::Threw(thrown)) => has(
                &json!({
                    "name": thrown.name, "message": thrown.message, "module": thrown.module,
                    "line": thrown.line, "column": thrown.column, "during_load": thrown.during_load,
                }),
                expected,
            ),
            (Self::Verdict(kinds, expected), Outcome::Verdict(verdict)) => {
                kinds.contains(&verdict.kind)
                    && has(
                        &json!({
                            "limit_name": verdict.limit_name, "limit": verdict.limit,
                            "started": verdict.started,
                            "subrequests_sent": verdict.subrequests_sent,
                        }),
                        expected,
                    )
            }
            _ => false,
        }
    }
}

fn parsed(json: &str) -> Json {
    serde_json::from_str(json).unwrap_or_else(|problem| panic!("{json}: {problem}"))
}

fn object(json: &str) -> Map<String, Json> {
    match parsed(json) {
        Json::Object(fields) => fields,
        other => panic!("{other} is no object"),
    }
}

/// `cpu|memory`, and what else can be said: `cpu {"started":true}`.
fn verdict_expected(text: &str) -> Expected {
    let (kinds, fields) = text.split_once(' ').unwrap_or((text, "{}"));
    Expected::Verdict(
        kinds.split('|').map(str::to_owned).collect(),
        object(fields),
    )
}

fn has(found: &Json, expected: &Map<String, Json>) -> bool {
    expected
        .iter()
        .all(|(name, value)| found.get(name) == Some(value))
}

/// What every case has in its `env`: a loader, and functions of this process.
fn env(coracle: &Coracle) -> Payload {
    let delay = coracle.function(async |args: Payload| {
        let ms = args.value.index(0).and_then(Value::as_f64);
        tokio::time::sleep(Duration::from_millis(ms.unwrap_or_default() as u64)).await;
        Ok::<_, Thrown>(Payload::from(Value::Undefined))
    });
    let echo = coracle.function(async |args: Payload| {
        let value = args.value.index(0).cloned().unwrap_or(Value::Undefined);
        let externals = args.externals;
        Ok::<_, Thrown>(Payload { value, externals })
    });
    let never = coracle.function(async |_| std::future::pending::<Result<Payload, Thrown>>().await);
    let mut env = Payload::default();
    let mut bind = |name, stub: &Stub| (name, env.external(stub));
    let bindings = [
        bind("LOADER", &coracle.loader()),
        bind("delay", &delay),
        bind("echo", &echo),
        bind("never", &never),
    ];
    env.value = Value::object(bindings);
    env
}

/// A server with a client that runs cases, and one that does not want to hear of them.
struct House {
    server: Server,
    coracle: Coracle,
    neighbour: Entrypoint,
}

impl House {
    async fn new() -> Self {
        let server = Server::start();
        let coracle = client(server.address()).await;
        let other_login = client(server.address()).await;
        let neighbour = load(&other_login, "add(a, b) { return a + b; }");
        Self {
            server,
            coracle,
            neighbour,
        }
    }

    /// Runs each function of a case and says what is wrong with them. What is not stopped is run twice, in workers of their
    /// own, so that the second would find what the first has left.
    async fn faults(&mut self, case: &Case) -> Vec<String> {
        let mut faults = Vec::new();
        for index in 0..self.count(case).await {
            for _ in 0..2 {
                let server = self.server.pid();
                let before = resident_bytes(server);
                forget_resident_peak(server);
                let answer = self.answer(case, "run", index).await;
                let grown = resident_bytes_peak(server).saturating_sub(before);
                let most = case.limits.memory_bytes_max / 5 * 6 + SERVER_BYTES_MAX;
                assert!(grown <= most, "{} [{index}]: {grown} of {most}", case.name);
                self.neighbour_is_answered(case).await;
                self.is_well(case).await;
                let tell = |fault| format!("{} [{index}]: {}\n    {fault}", case.name, case.rule);
                faults.extend(case.faults(&answer).into_iter().map(tell));
                if matches!(answer.outcome, Outcome::Verdict(_)) {
                    break;
                }
            }
        }
        faults
    }

    /// How many functions a case has; one, if its modules can't be evaluated.
    async fn count(&self, case: &Case) -> u32 {
        match self.answer(case, "count", 0).await.outcome {
            Outcome::Value(count) => {
                let count = count.as_f64().unwrap() as u32;
                assert!(count > 0, "{} has no functions", case.name);
                count
            }
            Outcome::Threw(_) | Outcome::Verdict(_) => 1,
        }
    }

    async fn answer(&self, case: &Case, method: &str, arg: u32) -> Answer {
        let worker = self.coracle.load(case.code(env(&self.coracle)));
        let entrypoint = worker.entrypoint("default");
        let call = within(
            PATIENCE * 3,
            &case.name,
            entrypoint.call(method, args![arg]),
        );
        let (answer, ()) = tokio::join!(call, self.neighbour_is_answered(case));
        answer.unwrap()
    }

    async fn neighbour_is_answered(&self, case: &Case) {
        let sum = self.neighbour.call("add", args![20, 22]);
        let sum = within(PATIENCE, &format!("a neighbour of {}", case.name), sum).await;
        assert_eq!(value(sum.unwrap()), Value::from(42), "{}", case.name);
    }

    async fn is_well(&mut self, case: &Case) {
        let (name, server) = (&case.name, &mut self.server);
        assert!(server.exited().is_none(), "{name}: {}", server.log());
        assert_eq!(get(server.admin(), "/readyz").await.0, 200, "{name}");
        for series in [
            "coracle_panics_total",
            "coracle_invocations_total{outcome=\"trap\"}",
        ] {
            assert_eq!(server.metric(series).await, 0.0, "{name}: {series}");
        }
    }
}

/// Runs the cases of an area, or of them that whose name has what the variable `CASE` says.
async fn every_case_has_its_right_answer(area: &str) {
    let chosen = std::env::var("CASE").unwrap_or_default();
    let mut house = House::new().await;
    let mut wrong = Vec::new();
    let of_area = |name: &&String| name.starts_with(area) && name.contains(&chosen);
    for name in names().iter().filter(of_area) {
        wrong.extend(house.faults(&Case::read(name)).await);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let House {
        server,
        coracle,
        neighbour,
    } = house;
    drop((coracle, neighbour));
    server.is_empty().await;
}

#[tokio::test]
async fn time() {
    every_case_has_its_right_answer("time/").await;
}

#[tokio::test]
async fn memory() {
    every_case_has_its_right_answer("memory/").await;
}

#[tokio::test]
async fn engine() {
    every_case_has_its_right_answer("engine/").await;
}

#[tokio::test]
async fn escape() {
    every_case_has_its_right_answer("escape/").await;
}

#[tokio::test]
async fn rpc() {
    every_case_has_its_right_answer("rpc/").await;
}

/// The ids of the log whose answer a worker, or a test of another kind, has to show.
const IDS: &str = "
    L01 L03 L04 L05 L06 L07 L11 L12 L15 L16 L17 L19 L21 L22 L23 L24
    M01 M02 M03 M05 M07 M10 M11 M13 M14 M15 M18 M19 M20 M21 M23 M25
    E01 E03 E05 E07 E09 E11 E13 E15 E16 E17 E19 E20 E22 E23 E24 E25 E26
    X01 X03 X04 X07 X08 X09 X11 X12 X13 X14 X15 X17 X18
    R01 R02 R04 R05 R06 R08 R10 R11 R12 R13 R15 R16 R17 R18";

/// What guards each id is there, every case has its row, and what nothing guards says why.
#[test]
fn the_list_names_every_case_and_tests_that_there_are() {
    let list = fs::read_to_string(repository().join("tests/cases/README.md")).unwrap();
    let rows: Vec<Vec<&str>> = list
        .lines()
        .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>())
        .filter(|row| row.len() == 5 && IDS.split_whitespace().any(|id| id == row[1]))
        .collect();
    let listed: Vec<&str> = rows.iter().map(|row| row[1]).collect();
    assert_eq!(listed, IDS.split_whitespace().collect::<Vec<_>>());
    let mut cases = names();
    for row in &rows {
        for guard in row[3].split("; ") {
            check_guard(row[1], guard, &mut cases);
        }
    }
    assert!(cases.is_empty(), "not on the list: {cases:?}");
}

/// A guard is `area/ID*.js`, which takes its cases off the list; or tests with the file that they are in; or a reason why
/// there is none.
fn check_guard(id: &str, guard: &str, cases: &mut Vec<String>) {
    let quoted: Vec<&str> = guard.split('`').skip(1).step_by(2).collect();
    match &quoted[..] {
        [] => assert!(guard.starts_with("none: "), "nothing guards {id}"),
        [pattern] => {
            assert!(
                pattern.contains(&format!("/{id}")),
                "{pattern} is of no {id}"
            );
            let (start, end) = pattern.split_once('*').unwrap_or((pattern, ""));
            let count = cases.len();
            cases.retain(|name| !(name.starts_with(start) && name.ends_with(end)));
            assert!(cases.len() < count, "there is no {pattern}");
        }
        [tests @ .., file] => {
            let source = fs::read_to_string(repository().join(file)).unwrap();
            for test in tests {
                let is_there = source.contains(&format!("fn {test}()"));
                assert!(is_there, "{test} is not in {file}");
            }
        }
    }
}

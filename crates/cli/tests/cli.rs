//! The `coracle` binary from outside: what it writes, where to, and how it ends.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use std::{
    env, fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Output, Stdio},
    sync::Once,
};

/// A folder with these files, to run the command in.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        let mut command = coracle();
        let output = command.args(arguments).current_dir(self.path()).output();
        output.unwrap().into()
    }
}

/// The command, with a cache that has the compiled guest in it, so that no test sees it being made.
fn coracle() -> Command {
    static CACHE_FILLED: Once = Once::new();
    CACHE_FILLED.call_once(|| {
        let folder = Folder::with(&[("main.js", "")]);
        let mut command = command();
        command
            .args(["check", "main.js"])
            .current_dir(folder.path());
        assert_eq!(Ended::from(command.output().unwrap()).code, 0);
    });
    command()
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coracle"));
    command.env_remove("CORACLE_TOKEN");
    // Tests run in folders of their own, where a relative path means another one.
    let cache = env::var_os("CORACLE_CACHE_DIR").expect(".cargo/config.toml sets it");
    let cache = std::path::absolute(PathBuf::from(cache)).unwrap();
    command.env("CORACLE_CACHE_DIR", cache);
    command
}

struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("not ended by a signal"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ended {
    #[track_caller]
    fn is(&self, code: i32, stdout: &str, stderr: &str) {
        assert_eq!(
            (self.code, &self.stdout[..], &self.stderr[..]),
            (code, stdout, stderr)
        );
    }

    #[track_caller]
    fn says(&self, code: i32, stderr_part: &str) {
        assert_eq!((self.code, &self.stdout[..]), (code, ""), "{}", self.stderr);
        assert!(self.stderr.contains(stderr_part), "{}", self.stderr);
    }

    fn json(&self) -> serde_json::Value {
        assert_eq!(self.stderr, "");
        serde_json::from_str(&self.stdout).unwrap()
    }
}

const HELLO: &str = r#"
import { greeting } from "./lib/greeting.js";
import config from "./config.json";

export default {
  mark: config.mark,
  run(name, env) {
    console.log("greeting", name);
    return { text: `${greeting}, ${name ?? env.NAME ?? "you"}${config.mark}` };
  },
};
"#;

const HELLO_FILES: [&str; 3] = ["hello.js", "lib/greeting.js", "config.json"];

fn hello(command: &str, flags: &[&str]) -> Ended {
    let folder = Folder::with(&[
        ("hello.js", HELLO),
        ("lib/greeting.js", "export const greeting = 'Hello';"),
        ("config.json", r#"{"mark": "!"}"#),
    ]);
    folder.run(&[&[command], &HELLO_FILES[..], flags].concat())
}

#[test]
fn a_result_is_json_on_stdout_and_the_console_is_on_stderr() {
    let ended = hello("run", &["--args", r#"["world"]"#]);
    ended.is(
        0,
        "{\"text\":\"Hello, world!\"}\n",
        "[log] greeting world\n",
    );
}

#[test]
fn without_arguments_one_is_sent_that_is_undefined() {
    hello("run", &["--quiet"]).is(0, "{\"text\":\"Hello, you!\"}\n", "");
    let with_env = hello("run", &["--quiet", "--env", r#"{"NAME": "env"}"#]);
    with_env.is(0, "{\"text\":\"Hello, env!\"}\n", "");
}

#[test]
fn a_property_is_read() {
    hello("run", &["--get", "mark"]).is(0, "\"!\"\n", "");
}

#[test]
fn the_example_says_hello() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/workers/hello.js"
    );
    let ended = Folder::with(&[]).run(&["run", file, "--args", r#"["world"]"#]);
    ended.is(0, "\"Hello, world!\"\n", "[log] saying hello\n");
}

#[test]
fn a_folder_is_loaded_whole() {
    let main = "import text from './notes.md'; export default { run: () => text };";
    let folder = Folder::with(&[("app/main.js", main), ("app/notes.md", "# Notes")]);
    folder.run(&["run", "app"]).is(0, "\"# Notes\"\n", "");
}

#[test]
fn a_class_finds_its_props_and_takes_any_number_of_arguments() {
    let source = r#"
        import { WorkerEntrypoint } from "cloudflare:workers";
        export class Sum extends WorkerEntrypoint {
          add(a, b, c) { return this.ctx.props.start + a + b + c; }
        }
    "#;
    let folder = Folder::with(&[("main.js", source)]);
    let call = ["run", "main.js", "--entrypoint", "Sum", "--call", "add"];
    let values = ["--args", "[1, 2, 3]", "--props", r#"{"start": 10}"#];
    folder.run(&[&call[..], &values].concat()).is(0, "16\n", "");
}

#[test]
fn a_worker_can_be_kept_from_the_outside_whatever_the_policy_is() {
    let source =
        "export default { run: () => fetch('https://example.com').catch((e) => e.message) }";
    let folder = Folder::with(&[("main.js", source)]);
    let message = |flags: &[&str]| folder.run(&[&["run", "main.js"], flags].concat()).stdout;
    assert!(message(&[]).contains("no outbound policy, which denies"));
    assert!(message(&["--outbound", "none"]).contains("It must use capabilities"));
}

#[test]
fn usage_is_written_when_it_is_asked_for() {
    let ended = hello("run", &["--usage"]);
    let (_, usage) = ended.stderr.split_once("\nusage: ").unwrap();
    assert!(
        usage.ends_with(" MiB of memory; 0 subrequests\n"),
        "{usage}"
    );
}

#[test]
fn one_document_has_it_all_and_stderr_nothing() {
    let ended = hello("run", &["--json", "--args", r#"["world"]"#]);
    assert_eq!((ended.code, ended.stdout.lines().count()), (0, 1));
    let document = ended.json();
    let expected = serde_json::json!({"value": {"text": "Hello, world!"}});
    assert_eq!(document["outcome"], expected);
    assert_eq!(document["logs"][0]["level"], "log");
    assert_eq!(document["logs"][0]["message"], "greeting world");
    assert_eq!(document["logBytesDropped"], 0);
    assert!(document["usage"]["fuelRun"].as_u64().unwrap() > 0);
}

const TROUBLE: &str = "\
export default {
\trun() {
\t\tconst wide = \"漢字 😀\"; null.member;
\t},
\tloop() {
\t\tfor (;;) {}
\t},
\thang() {
\t\treturn new Promise(() => {});
\t},
\tbig() {
\t\treturn { rows: [{ id: 1n }] };
\t},
\twrite() {
\t\tconsole.error('\\x1b[2J\\nerror: forged');
\t},
};
";

fn trouble(flags: &[&str]) -> Ended {
    let folder = Folder::with(&[("src/main.js", TROUBLE)]);
    folder.run(&[&["run", "src/main.js"], flags].concat())
}

#[test]
fn an_exception_is_shown_in_the_code_that_threw_it() {
    let expected = "TypeError: cannot read property 'member' of null
 --> src/main.js:3:25
  |
1 | export default {
2 |     run() {
3 |         const wide = \"漢字 😀\"; null.member;
  |                                 ^
4 |     },
5 |     loop() {
    at run (main.js:3:25)
";
    trouble(&[]).is(1, "", expected);
}

#[test]
fn an_exception_is_in_the_document() {
    let ended = trouble(&["--json"]);
    assert_eq!(ended.code, 1);
    let threw = &ended.json()["outcome"]["threw"];
    assert_eq!(threw["name"], "TypeError");
    assert_eq!(threw["module"], "main.js");
    assert_eq!(threw["line"], 3);
    assert_eq!(threw["duringLoad"], false);
}

#[test]
fn a_limit_stops_the_code_and_names_the_flag_that_raises_it() {
    let ended = trouble(&["--call", "loop", "--fuel", "1_000_000"]);
    ended.says(3, "stopped (fuel): the call used 1000000 fuel of 1000000");
    let hint =
        "\n  --fuel N raises fuel_max, which is 1,000,000 fuel now, up to 10,000,000,000,000\n";
    ended.says(3, hint);
}

#[test]
fn limits_can_be_raised_above_their_defaults() {
    let source = "export default { run: () => new Uint8Array(80_000_000).length };";
    let folder = Folder::with(&[("main.js", source)]);
    let run = |flags: &[&str]| folder.run(&[&["run", "main.js"], flags].concat()).code;
    assert_eq!(run(&["--memory-mb", "200"]), 0);
    assert_ne!(run(&[]), 0);
}

#[test]
fn what_can_never_end_is_a_verdict() {
    let ended = trouble(&["--call", "hang", "--json"]);
    assert_eq!(ended.code, 3);
    assert_eq!(ended.json()["outcome"]["verdict"]["kind"], "hung");
}

#[test]
fn a_result_that_json_can_not_express_says_where_it_is() {
    const WHY: &str = "bigint at $.rows[0].id can't be json";
    let expected = format!("the result can't be written as JSON: {WHY}\n");
    trouble(&["--call", "big"]).is(1, "", &expected);
    let ended = trouble(&["--call", "big", "--json"]);
    assert_eq!(ended.code, 1);
    assert_eq!(ended.json()["outcome"]["valueNotJson"], WHY);
}

#[test]
fn a_worker_can_not_forge_lines_or_act_on_the_terminal() {
    let expected = "[error] \\x1b[2J\n        error: forged\n";
    trouble(&["--call", "write"]).is(0, "null\n", expected);
}

#[test]
fn what_is_wrong_with_the_command_line_is_exit_code_2() {
    for (flags, said) in [
        (&["--args", "[1, x]"][..], "1 | [1, x]\n  |     ^\n"),
        (&["--args", "{}"], "--args takes an array"),
        (&["--env", "[]"], "--env takes an object"),
        (&["--fuel", "1.5"], "write fuel in digits"),
        (&["--cpu-ms", "0"], "the value must be at least 1"),
        (&["--limit", "speed=1"], "no limit is called \"speed\""),
        (
            &["--limit", "fuel_max=1", "--fuel", "2"],
            "fuel_max is given twice",
        ),
        (&["--get", "a", "--call", "b"], "cannot be used with"),
        (&["--compat-date", "tomorrow"], "Invalid compatibility date"),
        (&["src/none.js"], "can't read"),
        (&["--connect", "nowhere"], "is no address"),
        (&["--no-such-flag"], "unexpected argument"),
    ] {
        trouble(flags).says(2, said);
    }
}

#[test]
fn a_server_that_can_not_be_reached_is_exit_code_4() {
    let folder = Folder::with(&[("main.js", "export default {}")]);
    let ended = folder.run(&["run", "main.js", "--connect", "unix:./none"]);
    ended.says(4, "error: can't connect to unix:./none: ");
}

#[test]
fn a_good_worker_passes_its_check() {
    let ended = hello("check", &[]);
    assert_eq!((ended.code, &ended.stderr[..]), (0, ""));
    let line = "hello.js: all is well (3 modules, ";
    assert!(ended.stdout.starts_with(line), "{}", ended.stdout);

    let expected =
        serde_json::json!({"ok": true, "modules": 3, "problems": [], "problemsUnlisted": 0});
    assert_eq!(hello("check", &["--json"]).json(), expected);
}

#[test]
fn a_check_says_of_a_default_export_that_can_not_be_called_what_it_is() {
    for (source, what) in [
        ("export default 5", "it is number"),
        (
            "export default class {}",
            "a class that does not extend WorkerEntrypoint",
        ),
    ] {
        let folder = Folder::with(&[("main.js", source)]);
        let ended = folder.run(&["check", "main.js"]);
        ended.says(1, "The export \"default\" can't be an entrypoint");
        ended.says(1, what);
    }
    // Other exports may be meant.
    let folder = Folder::with(&[("main.js", "export const named = { run() {} };")]);
    assert_eq!(folder.run(&["check", "main.js"]).code, 0);
}

#[test]
fn help_is_a_command_as_well() {
    let folder = Folder::with(&[]);
    let ended = folder.run(&["help", "run"]);
    assert_eq!(ended.code, 0);
    assert!(ended.stdout.contains("--call"), "{}", ended.stdout);
}

#[test]
fn a_check_reports_the_syntax_errors_of_all_modules_at_once() {
    let main = "import './a.js';\nimport './b.js';\nexport default {\n";
    let folder = Folder::with(&[
        ("main.js", main),
        ("a.js", "let let = 1;\n"),
        ("b.js", "export const fine = JSON.parse('{');\n"),
        ("unused.js", "const 漢 = ;\n"),
    ]);
    let expected = "SyntaxError: invalid property name
 --> main.js:4:1
  |
2 | import './b.js';
3 | export default {
4 |
  | ^

SyntaxError: variable name expected
 --> a.js:1:5
  |
1 | let let = 1;
  |     ^
2 |

SyntaxError: unexpected token in expression: ';'
 --> unused.js:1:11
  |
1 | const 漢 = ;
  |            ^
2 |

3 problems
";
    let files = ["check", "main.js", "a.js", "b.js", "unused.js"];
    folder.run(&files).is(1, "", expected);
}

#[test]
fn a_check_tells_syntax_from_what_the_top_level_does() {
    for (source, kind) in [
        ("export default {", "syntax"),
        ("/(/;", "syntax"),
        ("JSON.parse('{');", "evaluation"),
        ("throw new Error('No such module x');", "evaluation"),
        ("import './missing.js';", "evaluation"),
        ("import './module.js';", "evaluation"),
        (
            "import { nothing } from 'cloudflare:workers';",
            "evaluation",
        ),
        ("for (;;) {}", "stopped"),
    ] {
        let folder = Folder::with(&[("main.js", source)]);
        let ended = folder.run(&["check", "main.js", "--json"]);
        assert_eq!(ended.code, 1, "{source}");
        let problems = ended.json()["problems"].clone();
        assert_eq!(
            problems.as_array().unwrap().len(),
            1,
            "{source}: {problems}"
        );
        assert_eq!(problems[0]["kind"], kind, "{source}");
    }
}

#[test]
fn a_check_reports_problems_of_shape_together_and_syntax_with_them() {
    let folder = Folder::with(&[
        ("main.js", "export default {"),
        ("a.ts", "export const x: number = 1;"),
        ("b.json", "{"),
    ]);
    let files = ["check", "main.js", "a.ts", "b.json"];
    let ended = folder.run(&[&files[..], &["--compat-flag", "none-such"]].concat());
    ended.says(1, "\n3 problems\n");
    for said in [
        "/compatibilityFlags/0: No such compatibility flag: none-such",
        "/modules/b.json: Module \"b.json\" is not valid JSON",
        " --> main.js:1:17\n",
    ] {
        ended.says(1, said);
    }
}

#[test]
fn a_check_parses_also_what_is_too_large() {
    let folder = Folder::with(&[("main.js", "export default {")]);
    let ended = folder.run(&["check", "main.js", "--limit", "code_bytes_max=5"]);
    ended.says(
        1,
        "code size (16 bytes) exceeds the maximum allowed size of 5 bytes",
    );
    ended.says(1, " --> main.js:1:17\n");
}

#[test]
fn completions_know_the_commands() {
    let folder = Folder::with(&[]);
    for shell in ["bash", "zsh", "fish"] {
        let ended = folder.run(&["completions", shell]);
        assert_eq!((ended.code, &ended.stderr[..]), (0, ""));
        for word in ["serve", "memory-mb"] {
            assert!(ended.stdout.contains(word), "{shell} {word}");
        }
    }
    folder
        .run(&["completions", "tcsh"])
        .says(2, "invalid value");
}

#[test]
fn the_version_names_what_is_built_in() {
    let folder = Folder::with(&[]);
    let document = folder.run(&["version", "--json"]).json();
    assert_eq!(document["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(document["guest"].as_str().unwrap().len(), 64);
    let plain = folder.run(&["version"]);
    for name in ["guest", "quickjs", "wasmtime", "cpuBaseline"] {
        let value = document[name].as_str().unwrap();
        assert!(plain.stdout.contains(value), "{name} {value}");
    }
}

#[test]
fn help_explains_the_exit_codes() {
    let help = Folder::with(&[]).run(&["--help"]);
    assert_eq!(help.code, 0);
    assert!(help.stdout.contains("Exit codes:\n  0 "), "{}", help.stdout);
}

#[test]
fn an_image_is_appended_once_and_needs_no_cache() {
    let folder = Folder::with(&[("main.js", "export default { run: () => 7 }")]);
    let info = ["image", "info", "--json"];
    assert_eq!(folder.run(&info).json()["carried"], false);
    let append = folder.run(&["image", "append", "--output", "carrying"]);
    append.is(0, "", "");

    let copy = folder.path().join("carrying");
    let mode = fs::metadata(&copy).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&copy);
        command.env("CORACLE_CACHE_DIR", "cache");
        let output = command.args(arguments).current_dir(folder.path()).output();
        Ended::from(output.unwrap())
    };
    assert_eq!(run(&info).json()["carried"], true);
    run(&["run", "main.js"]).is(0, "7\n", "");
    assert!(!folder.path().join("cache").exists(), "it used the cache");
    run(&["image", "append", "--output", "again"]).says(2, "carries an image already");
}

/// A server that has said where it listens.
struct Server {
    child: Child,
    stderr: BufReader<ChildStderr>,
    /// The first line that it wrote.
    line: String,
}

impl Server {
    fn start(folder: &Folder, flags: &[&str]) -> Self {
        let mut command = coracle();
        command.arg("serve").args(flags).current_dir(folder.path());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut server = Self {
            child,
            stderr,
            line: String::new(),
        };
        server.line = server.wait_for(" listens on ");
        server
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args([name, &id]).status();
        assert!(status.unwrap().success());
    }

    /// The next line that has `text` in it.
    fn wait_for(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.stderr.read_line(&mut line).unwrap();
            assert!(read > 0, "it ended without saying {text:?}");
            if line.contains(text) {
                return line;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const SERVE: [&str; 4] = ["--listen", "unix:./socket", "--isolates-max", "8"];

#[test]
fn a_worker_runs_the_same_on_a_server() {
    let token_file = ("tokens", "acme:0123456789abcdef\n");
    let folder = Folder::with(&[("src/main.js", TROUBLE), token_file]);
    let server = Server::start(&folder, &[&SERVE[..], &["--token-file", "tokens"]].concat());
    for said in [
        " listens on unix:./socket; no admin endpoint; ",
        "; every login needs a token; at most 8 isolates; guest ",
    ] {
        assert!(server.line.contains(said), "{}", server.line);
    }

    let main = ["run", "src/main.js"];
    let here = folder.run(&main);
    let connect = [&main[..], &["--connect", "unix:./socket"]].concat();
    let there = |flags: &[&str]| {
        let token = ["--token", "0123456789abcdef"];
        folder.run(&[&connect[..], &token, flags].concat())
    };
    there(&[]).is(1, "", &here.stderr);
    there(&["--call", "loop", "--cpu-ms", "20"]).says(3, "the server's own cpu_ms_max");
    there(&["--limit", "env_bytes_max=1"]).says(2, "env_bytes_max can't be asked for");
    folder.run(&connect).says(4, "wants a bearer token");
}

#[test]
fn a_server_that_is_told_to_end_drains_and_says_that_all_went_well() {
    let folder = Folder::with(&[]);
    let flags = [&SERVE[..], &["--drain-delay-ms", "0"]].concat();
    let mut server = Server::start(&folder, &flags);
    let logins = "; logins without a token from this machine only; ";
    assert!(server.line.contains(logins), "{}", server.line);
    server.signal("-TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert!(!folder.path().join("socket").exists());
}

#[test]
fn a_second_signal_ends_a_server_at_once() {
    for (signal, code) in [("-TERM", 143), ("-INT", 130)] {
        let folder = Folder::with(&[]);
        let flags = [&SERVE[..], &["--drain-delay-ms", "600000"]].concat();
        let mut server = Server::start(&folder, &flags);
        server.signal("-TERM");
        server.wait_for("draining");
        server.signal(signal);
        assert_eq!(server.child.wait().unwrap().code(), Some(code));
    }
}

#[test]
fn a_server_warns_where_it_listens_for_clients_that_it_turns_away() {
    let folder = Folder::with(&[]);
    let flags = ["--listen", "0.0.0.0:0", "--isolates-max", "8"];
    let mut server = Server::start(&folder, &flags);
    server.wait_for("turned away without --token-file");
}

#[test]
fn a_server_that_can_not_listen_is_exit_code_4() {
    let folder = Folder::with(&[("taken", "a file")]);
    let ended = folder.run(&["serve", "--listen", "unix:taken", "--isolates-max", "8"]);
    ended.says(4, "the path exists and is no socket");
}

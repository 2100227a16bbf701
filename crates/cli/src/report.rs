//! What came of a call, for people: console lines, errors with the code around them, what stopped
//! the call and how to give it more, what it cost.
//!
//! Every text from a sandbox passes through `text::visible`, and its further lines are indented, so
//! that a worker can't write what looks like a line of this command's.

use crate::{
    frame::{Place, code_frame},
    limits,
    modules::ModuleFiles,
    source_maps,
    terminal::{Colour, Paint},
    text::{counted, mebibytes, milliseconds, visible},
};
use coracle_client::{LogLevel, LogLine, Thrown, Usage, Value, Verdict};
use coracle_loader::{LimitName, limits::grouped};
use std::fmt::Write;

/// How many errors are followed by what `cause` leads to.
const CAUSES_MAX: usize = 5;

/// Who decides how high a limit may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Authority {
    /// The flags of this command.
    Flags,
    /// A server; flags only lower what it allows.
    Server,
}

/// The console lines, each with its level.
pub(crate) fn logs(lines: &[LogLine], bytes_dropped: u64, paint: Paint) -> String {
    let mut text = String::new();
    for line in lines {
        let level = line.level.as_str();
        let label = paint.apply(colour_of(line.level), level);
        let indent = " ".repeat(level.len() + 3);
        // Writing to a string can't fail.
        let _ = writeln!(text, "[{label}] {}", indented(&line.message, &indent));
    }
    if bytes_dropped > 0 {
        let bytes = grouped(bytes_dropped);
        let flag = limits::flag_of(LimitName::LogBytesMax);
        let _ = writeln!(
            text,
            "[…] {bytes} bytes of console output were dropped; {flag} keeps more"
        );
    }
    text
}

fn colour_of(level: LogLevel) -> Colour {
    match level {
        LogLevel::Debug => Colour::Grey,
        LogLevel::Info => Colour::Blue,
        LogLevel::Log => Colour::Bold,
        LogLevel::Warn => Colour::Yellow,
        LogLevel::Error => Colour::Red,
    }
}

/// An exception: what it is, the code that threw it, the stack, and what caused it.
pub(crate) fn thrown(thrown: &Thrown, files: &ModuleFiles, paint: Paint) -> String {
    let mut text = headline(&thrown.name, &thrown.message, paint);
    text.extend(code(
        files,
        &thrown.module,
        thrown.line,
        thrown.column,
        paint,
    ));
    for line in thrown.stack.lines() {
        // Writing to a string can't fail.
        let _ = writeln!(text, "{}", paint.apply(Colour::Grey, &visible(line)));
    }
    let mut error = thrown.value.as_error();
    for _ in 0..CAUSES_MAX {
        let Some(cause) = error.and_then(|error| error.cause.as_ref()) else {
            break;
        };
        let described = match cause.as_error() {
            Some(error) => {
                let (name, message) = (
                    error.name.to_string_lossy(),
                    error.message.to_string_lossy(),
                );
                format!("{name}: {message}")
            }
            None => cause_text(cause),
        };
        let _ = writeln!(text, "caused by {}", indented(&described, "  "));
        error = cause.as_error();
    }
    if thrown.during_load {
        text.push_str("thrown while the modules were evaluated, before anything was called\n");
    }
    text
}

/// `name: message`, the first line of an error.
pub(crate) fn headline(name: &str, message: &str, paint: Paint) -> String {
    let name = paint.apply(Colour::Red, &visible(name).replace('\n', " "));
    match message {
        "" => format!("{name}\n"),
        message => format!("{name}: {}\n", indented(message, "  ")),
    }
}

/// The code around a place in a module, or in a source that a module's map brings along; none where it is not known.
pub(crate) fn code(
    files: &ModuleFiles,
    module: &str,
    line: u32,
    column: u32,
    paint: Paint,
) -> Option<String> {
    let (path, text) = match files.get(module) {
        Some(file) => (file.path.display().to_string(), file.source()?.to_owned()),
        None => (module.to_owned(), source_maps::content(files, module)?),
    };
    code_frame(
        &Place {
            file: &visible(&path),
            source: &text,
            line,
            column,
        },
        paint,
    )
}

/// What stopped a call, and what would let it go on.
pub(crate) fn verdict(verdict: &Verdict, authority: Authority, paint: Paint) -> String {
    let mut text = paint.apply(Colour::Red, "stopped");
    // Writing to a string can't fail.
    let _ = writeln!(
        text,
        " ({}): {}",
        visible(&verdict.kind),
        indented(&verdict.message, "  ")
    );
    if let Ok(name) = verdict.limit_name.parse() {
        let _ = writeln!(text, "  {}", hint(name, verdict.limit, authority));
    }
    text
}

fn hint(name: LimitName, limit: u64, authority: Authority) -> String {
    let (flag, unit) = (limits::flag_of(name), name.unit());
    let ceiling = grouped(name.ceiling());
    match authority {
        Authority::Flags if limit >= name.ceiling() => {
            format!("{name} is at its ceiling of {ceiling} {unit}")
        }
        Authority::Flags => {
            let now = grouped(limit);
            format!("{flag} raises {name}, which is {now} {unit} now, up to {ceiling}")
        }
        Authority::Server => {
            format!(
                "{flag} can ask for no more than the server's own {name}, which its configuration sets"
            )
        }
    }
}

/// What a call cost, in a line.
pub(crate) fn usage(usage: &Usage) -> String {
    let mut text = format!(
        "usage: {} CPU, {} in all; fuel {} to load, {} to run; {} of memory; {}",
        milliseconds(usage.cpu_micros),
        milliseconds(usage.wall_micros),
        grouped(usage.fuel_load),
        grouped(usage.fuel_run),
        mebibytes(usage.memory_peak_bytes),
        counted(usage.subrequests as usize, "subrequest"),
    );
    if usage.memory_denied > 0 {
        let denied = counted(usage.memory_denied as usize, "growth");
        // Writing to a string can't fail.
        let _ = write!(text, "; {denied} of memory denied");
    }
    text.push('\n');
    text
}

fn cause_text(cause: &Value) -> String {
    crate::json::text_of(cause).unwrap_or_else(|_| "a value that can't be shown".to_owned())
}

/// A stranger's text with its further lines indented.
fn indented(text: &str, indent: &str) -> String {
    visible(text.trim_end_matches('\n')).replace('\n', &format!("\n{indent}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::ModuleFile;
    use coracle_client::ModuleBody;
    use coracle_value::ErrorValue;

    fn files() -> ModuleFiles {
        let source = "export default {\n  run() {\n    null.x;\n  },\n};\n";
        let body = ModuleBody::EsModule(source.into());
        let file = ModuleFile {
            name: "main.js".into(),
            path: "src/main.js".into(),
            body,
        };
        ModuleFiles {
            main: "main.js".into(),
            files: vec![file],
        }
    }

    fn line(level: LogLevel, message: &str) -> LogLine {
        LogLine {
            level,
            message: message.into(),
            timestamp_ms: 0.0,
        }
    }

    #[test]
    fn an_exception_is_shown_in_the_code_that_threw_it() {
        let cause = ErrorValue {
            cause: Some(Value::from("why")),
            ..ErrorValue::new("Error", "before")
        };
        let value = ErrorValue {
            cause: Some(cause.into()),
            ..ErrorValue::default()
        }
        .into();
        let error = Thrown {
            name: "TypeError".into(),
            message: "no x".into(),
            stack: "    at run (main.js:3:10)".into(),
            module: "main.js".into(),
            line: 3,
            column: 10,
            value,
            during_load: true,
        };
        let expected = "\
TypeError: no x
 --> src/main.js:3:10
  |
1 | export default {
2 |   run() {
3 |     null.x;
  |          ^
4 |   },
5 | };
    at run (main.js:3:10)
caused by Error: before
caused by \"why\"
thrown while the modules were evaluated, before anything was called
";
        assert_eq!(thrown(&error, &files(), Paint::OFF), expected);
    }

    #[test]
    fn an_exception_without_a_place_has_no_code() {
        let error = Thrown {
            name: "Error".into(),
            message: "hi\nerror: forged".into(),
            ..Thrown::default()
        };
        assert_eq!(
            thrown(&error, &files(), Paint::OFF),
            "Error: hi\n  error: forged\n"
        );
    }

    #[test]
    fn a_worker_can_not_write_lines_of_ours_or_act_on_the_terminal() {
        let lines = [
            line(LogLevel::Log, "a\nusage: none\x1b[2J"),
            line(LogLevel::Error, "b"),
        ];
        let expected = "[log] a\n      usage: none\\x1b[2J\n[error] b\n";
        assert_eq!(logs(&lines, 0, Paint::OFF), expected);
    }

    #[test]
    fn levels_are_coloured_on_a_terminal() {
        let text = logs(&[line(LogLevel::Warn, "careful")], 7, Paint::ON);
        assert!(
            text.starts_with("[\x1b[33mwarn\x1b[0m] careful\n"),
            "{text:?}"
        );
        assert!(text.contains("7 bytes of console output were dropped; --limit log_bytes_max=N"));
    }

    fn stopped(limit_name: &str, limit: u64) -> Verdict {
        Verdict {
            kind: "cpu".into(),
            limit_name: limit_name.into(),
            used: limit,
            limit,
            message: "the call used too much".into(),
            started: true,
            subrequests_sent: 0,
        }
    }

    #[test]
    fn a_verdict_says_which_flag_gives_more() {
        let text = verdict(&stopped("cpu_ms_max", 1_000), Authority::Flags, Paint::OFF);
        let expected = "stopped (cpu): the call used too much\n  --cpu-ms N raises cpu_ms_max, which is 1,000 \
                        milliseconds now, up to 3,600,000\n";
        assert_eq!(text, expected);
        let text = verdict(
            &stopped("exports_max", 1_000_000),
            Authority::Flags,
            Paint::OFF,
        );
        assert!(
            text.ends_with("  exports_max is at its ceiling of 1,000,000 references\n"),
            "{text}"
        );
        let text = verdict(&stopped("cpu_ms_max", 1_000), Authority::Server, Paint::OFF);
        assert!(
            text.contains("--cpu-ms N can ask for no more than the server's own cpu_ms_max"),
            "{text}"
        );
    }

    #[test]
    fn a_verdict_without_a_limit_has_no_hint() {
        let text = verdict(&stopped("", 0), Authority::Flags, Paint::OFF);
        assert_eq!(text, "stopped (cpu): the call used too much\n");
    }

    #[test]
    fn usage_is_a_line() {
        let cost = Usage {
            cpu_micros: 1_234,
            fuel_run: 5_000,
            memory_peak_bytes: 1 << 20,
            ..Usage::default()
        };
        let expected = "usage: 1.23 ms CPU, 0.00 ms in all; fuel 0 to load, 5,000 to run; 1.00 MiB of memory; \
                        0 subrequests\n";
        assert_eq!(usage(&cost), expected);
    }
}

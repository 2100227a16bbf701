//! `coracle check`: everything that is wrong with a worker, all at once.
//!
//! Three questions, each asked as far as the answers before allow: is the worker's shape right
//! (`coracle_loader::check`), does every module parse, do the modules evaluate. An evaluation ends
//! at the first syntax error, so each ES module is also parsed by itself: see [`parse_alone`].

use crate::{
    document,
    exit::Exit,
    failure::Failure,
    guest::GuestArgs,
    limits::{self, LimitArgs, LimitValue},
    logging,
    modules::ModuleFiles,
    report::{self, Authority},
    sandbox,
    terminal::{self, Paint, Terminal},
    text::{counted, visible},
    worker::{Worker, WorkerArgs},
};
use clap::Args;
use coracle_abi::{Language, ModuleKind, PROGRAM_SUFFIX};
use coracle_client::{Coracle, ModuleBody, Outcome, Thrown, Value, Verdict, WorkerCode, args};
use coracle_loader::{
    Encoded, Form, LimitName, Limits, Module, Outbound, Problem, limits::grouped,
};
use std::fmt::Write;

/// Check a worker: its shape, the syntax of its modules, and that they evaluate.
///
/// All problems are reported, not only the first. Nothing is called; the top level of the modules
/// runs in a sandbox inside this command. CommonJS modules are parsed when they are required.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  coracle check main.js                  one module
  coracle check src                      all files of a folder
  coracle check main.js lib/*.js --json  for programs

Exit codes: 0 all is well, 1 there are problems, 2 usage, 4 no sandbox could be started.")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    worker: WorkerArgs,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    guest: GuestArgs,

    /// Write one JSON document to stdout, and nothing to stderr
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// One thing that is wrong.
enum Finding {
    /// With the shape of the worker; all of it is known before anything runs.
    Shape(Problem),
    /// With the syntax of a module. The thrown error names the module as the worker does.
    Syntax(Box<Thrown>),
    /// The top level threw, or an import leads nowhere.
    Evaluation(Box<Thrown>),
    /// A limit stopped the parser or the top level; the module's name, or none for all together.
    Stopped(String, Box<Verdict>),
}

pub(crate) async fn check(args: CheckArgs) -> Result<Exit, Failure> {
    let terminal = Terminal::detect();
    if !args.json {
        logging::install_for_command(terminal);
    }
    let asked = args.limits.asked()?;
    let worker = args.worker.read(terminal.paint)?;

    let (mut findings, unlisted) = check_shape(&worker.code, &limits::over_defaults(&asked));
    let shape_is_right = findings.is_empty();
    let coracle = sandbox::embedded(&args.guest, &with_room(asked), None).await?;
    for file in &worker.files.files {
        if let ModuleBody::EsModule(source) = &file.body {
            findings.extend(parse_alone(&coracle, &file.name, source).await?);
        }
    }
    if shape_is_right && let Some(finding) = evaluate(&coracle, &worker.code).await? {
        let known = findings
            .iter()
            .any(|known| known.is_same_syntax_error(&finding));
        findings.extend((!known).then_some(finding));
    }

    if args.json {
        let document = document_of(&findings, unlisted, &worker);
        terminal::write_stdout(&document::text(&document, terminal.stdout)?)?;
    } else {
        write_report(&findings, unlisted, &worker, terminal.paint)?;
    }
    Ok(if findings.is_empty() {
        Exit::Ok
    } else {
        Exit::Threw
    })
}

/// The limits with room for more code than any server takes: whether the worker's own is too much has
/// been said with its shape, and its modules are parsed all the same.
fn with_room(mut asked: Vec<LimitValue>) -> Vec<LimitValue> {
    asked.retain(|(name, _)| *name != LimitName::CodeBytesMax);
    let with_main = LimitName::CodeBytesMax.ceiling() + ALONE_MAIN_BYTES_MAX;
    asked.push((LimitName::CodeBytesMax, with_main));
    asked
}

/// All problems of the shape, and how many more there are than are listed.
fn check_shape(code: &WorkerCode, limits: &Limits) -> (Vec<Finding>, usize) {
    match coracle_loader::check(&loader_code(code), limits) {
        Ok(()) => (Vec::new(), 0),
        Err(problems) => {
            let findings = problems
                .listed()
                .iter()
                .cloned()
                .map(Finding::Shape)
                .collect();
            (findings, problems.unlisted())
        }
    }
}

fn loader_code(code: &WorkerCode) -> coracle_loader::WorkerCode {
    let modules = code.modules.iter().map(|(name, body)| {
        let body = match body.clone() {
            ModuleBody::EsModule(text) => coracle_loader::ModuleBody::EsModule(text),
            ModuleBody::CommonJs(text) => coracle_loader::ModuleBody::CommonJs(text),
            ModuleBody::Text(text) => coracle_loader::ModuleBody::Text(text),
            ModuleBody::Json(text) => coracle_loader::ModuleBody::Json(text),
            ModuleBody::Data(bytes) => coracle_loader::ModuleBody::Data(bytes),
        };
        Module {
            name: name.clone(),
            body,
        }
    });
    let env = match &code.env {
        Value::Undefined => Encoded::default(),
        env => Encoded {
            form: Form::Cbor,
            bytes: coracle_value::encode(env),
            externals: 0,
        },
    };
    coracle_loader::WorkerCode {
        compatibility_date: code.compatibility_date.clone(),
        compatibility_flags: code.compatibility_flags.clone(),
        main_module: code.main_module.clone(),
        modules: modules.collect(),
        env,
        outbound: match code.outbound {
            coracle_client::Outbound::None => Outbound::None,
            _ => Outbound::default(),
        },
        ..coracle_loader::WorkerCode::default()
    }
}

/// What a module is called in the worker that only parses it: its ending says in which language it is written.
fn alone(name: &str) -> String {
    match Language::of(name, ModuleKind::EsModule) {
        None => "module.js".into(),
        Some(Language::TypeScript) => "module.ts".into(),
        Some(Language::TypeScriptJsx) => "module.tsx".into(),
        Some(Language::Jsx) => "module.jsx".into(),
        Some(Language::Program) => format!("module{PROGRAM_SUFFIX}"),
    }
}

/// The main module of that worker: it imports the module, then what is not there. Modules are parsed
/// as they are imported, in order, and linked only once all are there; so the module is parsed, and
/// nothing is ever linked or evaluated.
fn alone_main(alone: &str) -> String {
    format!("import './{alone}'; import 'coracle-check-ends-here';")
}

const ALONE_MAIN_BYTES_MAX: u64 = 100;

/// How that worker ends when the module parses. The guest's text, as Workers have it.
const IMPORT_MISSING: &str = "No such module ";

/// Parses one module, whatever it imports. Any end but the expected one is a finding, so that nothing
/// passes for having been parsed that was not.
async fn parse_alone(
    coracle: &Coracle,
    name: &str,
    source: &str,
) -> Result<Option<Finding>, Failure> {
    let alone = alone(name);
    let code = WorkerCode::new("main.js")
        .es_module("main.js", alone_main(&alone))
        .es_module(&alone, source);
    Ok(match coracle.load(code).ready().await?.outcome {
        Outcome::Threw(thrown) if thrown.message.starts_with(IMPORT_MISSING) => None,
        Outcome::Threw(thrown) => Some(Finding::Syntax(Box::new(Thrown {
            // Unless it is a source of the module's, by its map.
            module: match &thrown.module {
                other if !other.is_empty() && *other != alone => other.clone(),
                _ => name.to_owned(),
            },
            // It names the module as it is called here, and has one line.
            stack: String::new(),
            ..*thrown
        }))),
        Outcome::Verdict(verdict) => Some(Finding::Stopped(name.to_owned(), verdict)),
        Outcome::Value(_) => None,
    })
}

/// How the guest begins to say that an export has the wrong kind. (That there is none may be meant: other exports can be
/// entrypoints, too.)
const NOT_AN_ENTRYPOINT: &str = "The export \"default\" can't be an entrypoint";

async fn evaluate(coracle: &Coracle, code: &WorkerCode) -> Result<Option<Finding>, Failure> {
    let worker = coracle.load(code.clone());
    Ok(match worker.ready().await?.outcome {
        Outcome::Value(_) => not_callable(&worker).await?,
        Outcome::Threw(thrown) => Some(Finding::Evaluation(thrown)),
        Outcome::Verdict(verdict) => Some(Finding::Stopped(String::new(), verdict)),
    })
}

/// What keeps the default export from being an entrypoint. No method is named, so nothing of the worker's is called.
async fn not_callable(worker: &coracle_client::Worker) -> Result<Option<Finding>, Failure> {
    let answer = worker.entrypoint("default").call("", args![]).await?;
    Ok(match answer.outcome {
        Outcome::Threw(thrown) if thrown.message.starts_with(NOT_AN_ENTRYPOINT) => {
            Some(Finding::Evaluation(thrown))
        }
        _ => None,
    })
}

impl Finding {
    /// Whether `other`, from the evaluation, is this syntax error met again.
    fn is_same_syntax_error(&self, other: &Self) -> bool {
        let (Self::Syntax(known), Self::Evaluation(thrown)) = (self, other) else {
            return false;
        };
        let place_unknown = thrown.module.is_empty() && known.line == 0;
        (thrown.module == known.module || place_unknown)
            && (&thrown.name, &thrown.message) == (&known.name, &known.message)
            && (thrown.line, thrown.column) == (known.line, known.column)
    }

    fn report(&self, files: &ModuleFiles, paint: Paint) -> String {
        match self {
            Self::Shape(problem) => format!("{}\n", visible(&problem.to_string())),
            Self::Syntax(thrown) => {
                let place = report::code(files, &thrown.module, thrown.line, thrown.column, paint);
                let place = place.unwrap_or_else(|| format!(" in {}\n", visible(&thrown.module)));
                report::headline(&thrown.name, &thrown.message, paint) + &place
            }
            Self::Evaluation(thrown) => report::thrown(thrown, files, paint),
            Self::Stopped(module, verdict) => {
                let text = report::verdict(verdict, Authority::Flags, paint);
                if module.is_empty() {
                    text
                } else {
                    format!("{text}  in {}\n", visible(module))
                }
            }
        }
    }

    fn document(&self) -> Value {
        match self {
            Self::Shape(problem) => Value::object([
                ("kind", Value::from("shape")),
                ("path", Value::from(&problem.path[..])),
                ("code", format!("{:?}", problem.code).into()),
                ("message", Value::from(&problem.message[..])),
                ("fix", Value::from(&problem.fix[..])),
            ]),
            Self::Syntax(thrown) => of_thrown("syntax", thrown),
            Self::Evaluation(thrown) => of_thrown("evaluation", thrown),
            Self::Stopped(module, verdict) => Value::object([
                ("kind", Value::from("stopped")),
                ("module", Value::from(&module[..])),
                ("name", Value::from(&verdict.kind[..])),
                ("message", Value::from(&verdict.message[..])),
                ("limitName", Value::from(&verdict.limit_name[..])),
            ]),
        }
    }
}

fn of_thrown(kind: &str, thrown: &Thrown) -> Value {
    Value::object([
        ("kind", Value::from(kind)),
        ("module", Value::from(&thrown.module[..])),
        ("line", thrown.line.into()),
        ("column", thrown.column.into()),
        ("name", Value::from(&thrown.name[..])),
        ("message", Value::from(&thrown.message[..])),
    ])
}

fn document_of(findings: &[Finding], unlisted: usize, worker: &Worker) -> Value {
    Value::object([
        ("ok", Value::from(findings.is_empty())),
        ("modules", document::number(worker.files.files.len() as u64)),
        (
            "problems",
            Value::array(findings.iter().map(Finding::document)),
        ),
        ("problemsUnlisted", document::number(unlisted as u64)),
    ])
}

fn write_report(
    findings: &[Finding],
    unlisted: usize,
    worker: &Worker,
    paint: Paint,
) -> Result<(), Failure> {
    if findings.is_empty() {
        let files = &worker.files.files;
        let bytes = grouped(files.iter().map(|file| file.bytes()).sum());
        let (main, modules) = (visible(&worker.files.main), counted(files.len(), "module"));
        return terminal::write_stdout(&format!(
            "{main}: all is well ({modules}, {bytes} bytes)\n"
        ));
    }
    let mut text = String::new();
    for finding in findings {
        // Writing to a string can't fail.
        let _ = writeln!(text, "{}", finding.report(&worker.files, paint));
    }
    let _ = writeln!(text, "{}", counted(findings.len() + unlisted, "problem"));
    terminal::write_stderr(&text);
    Ok(())
}

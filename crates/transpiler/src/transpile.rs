//! One module, from its text to JavaScript.

use crate::{erase, mappings::Token, program, rewrite};
use coracle_abi::{Language, Transpile};
use oxc::{
    allocator::Allocator,
    diagnostics::{Diagnostics, Severity},
    parser::{ParseOptions, Parser},
    span::SourceType,
};

/// JavaScript.
#[derive(Debug)]
pub(crate) struct Code {
    /// The text.
    pub(crate) text: String,
    /// Where it comes from; empty where everything stands where it stood.
    pub(crate) tokens: Vec<Token>,
}

/// Why a module can't be made JavaScript of.
#[derive(Debug)]
pub(crate) struct Fault {
    /// A sentence.
    pub(crate) message: String,
    /// The byte of the source that it is about.
    pub(crate) at: u32,
}

/// Makes JavaScript of a module. Types are not checked; what is no valid JavaScript apart from them is mostly left for the
/// engine to refuse, which has the better words for it.
///
/// # Errors
/// What the parser does not read, or what has no JavaScript for it.
pub(crate) fn transpile(request: &Transpile<'_>) -> Result<Code, Fault> {
    if request.language != Language::Program {
        return transpile_module(request);
    }
    let pieces = program::normalise(request.source)?;
    let request = Transpile {
        source: pieces.text(),
        language: Language::TypeScript,
        is_common_js: false,
    };
    let code = transpile_module(&request).map_err(|fault| Fault {
        at: pieces.origin(fault.at),
        ..fault
    })?;
    Ok(Code {
        tokens: pieces.trace(code.tokens),
        text: code.text,
    })
}

fn transpile_module(request: &Transpile<'_>) -> Result<Code, Fault> {
    let arena = Allocator::default();
    let options = ParseOptions {
        allow_return_outside_function: request.is_common_js,
        ..ParseOptions::default()
    };
    let parsed = Parser::new(&arena, request.source, source_type(request))
        .with_options(options)
        .parse();
    refuse(parsed.diagnostics)?;
    let program = parsed.program;
    let erased = erase::erase(request.source, &program)?;
    match erased {
        Some(text) => Ok(Code {
            text,
            tokens: Vec::new(),
        }),
        None => rewrite::rewrite(&arena, program),
    }
}

fn source_type(request: &Transpile<'_>) -> SourceType {
    let language = match request.language {
        Language::TypeScript => SourceType::ts(),
        Language::TypeScriptJsx => SourceType::tsx(),
        Language::Jsx => SourceType::jsx(),
        Language::Program => SourceType::ts(),
    };
    if request.is_common_js {
        language.with_commonjs(true)
    } else {
        language.with_module(true)
    }
}

/// The first error, if there is one.
pub(crate) fn refuse(diagnostics: Diagnostics) -> Result<(), Fault> {
    let mut errors = diagnostics.into_iter();
    let Some(error) = errors.find(|error| error.severity == Severity::Error) else {
        return Ok(());
    };
    let mut message = error.message.to_string();
    if let Some(help) = &error.help {
        message += &format!(" ({help})");
    }
    let at = error.labels.first().map_or(0, |label| label.offset());
    Err(Fault { message, at })
}

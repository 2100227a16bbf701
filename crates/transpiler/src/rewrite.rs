//! What can't be had by taking something away: oxc's transformer, and its printer with mappings back to the source.

use crate::{
    mappings::Token,
    transpile::{Code, Fault, refuse},
};
use oxc::{
    allocator::Allocator,
    ast::ast::Program,
    codegen::{Codegen, CodegenOptions},
    semantic::SemanticBuilder,
    transformer::{JsxOptions, JsxRuntime, TransformOptions, Transformer},
};
use std::path::{Path, PathBuf};

/// Asked for by the transformer and the printer; nobody sees it.
const PATH: &str = "module";

/// Rewrites a module and prints it.
pub(crate) fn rewrite<'a>(arena: &'a Allocator, mut program: Program<'a>) -> Result<Code, Fault> {
    let semantic = SemanticBuilder::new()
        .with_enum_eval(true)
        .build(&program)
        .semantic;
    let scoping = semantic.into_scoping();
    let options = TransformOptions {
        jsx: jsx_options(&program),
        ..TransformOptions::default()
    };
    let transformed = Transformer::new(arena, Path::new(PATH), &options)
        .build_with_scoping(scoping, &mut program);
    refuse(transformed.diagnostics)?;
    let printed = Codegen::new()
        .with_options(CodegenOptions {
            source_map_path: Some(PathBuf::from(PATH)),
            ..CodegenOptions::default()
        })
        .build(&program);
    let tokens = printed.map.iter().flat_map(|map| map.get_tokens());
    Ok(Code {
        text: printed.code,
        tokens: tokens.map(token).collect(),
    })
}

/// oxc counts from 0.
fn token(token: oxc_sourcemap::Token) -> Token {
    Token {
        line: token.get_dst_line() + 1,
        column: token.get_dst_col() + 1,
        from_line: token.get_src_line() + 1,
        from_column: token.get_src_col() + 1,
    }
}

/// Elements become `React.createElement(…)` unless the module's comments say otherwise: with that no module is imported
/// that the author has not named. Naming where to import from is asking for the other way.
fn jsx_options(program: &Program<'_>) -> JsxOptions {
    let source = program.source_text;
    let mut comments = program.comments.iter();
    let imports = comments.any(|comment| {
        let text = comment.content_span().source_text(source);
        text.contains("@jsxImportSource")
    });
    JsxOptions {
        runtime: if imports {
            JsxRuntime::Automatic
        } else {
            JsxRuntime::Classic
        },
        ..JsxOptions::enable()
    }
}

//! A program as models write it, made a module whose default export is a function that runs it.
//!
//! What is around the code goes (a fence, prose), what has to stand outside of functions moves out (imports), and the
//! program's result becomes what the function returns: that of its last expression, of its default export, of the one
//! function that it is or declares. A module that is of that shape already stays as it is, so doing it twice is doing it
//! once. Nothing is printed anew: the text is cut into pieces, and every piece knows where it was ([`Pieces`]).

mod fence;
mod pieces;

pub(crate) use pieces::Pieces;

use crate::transpile::{Fault, refuse};
use oxc::{
    allocator::Allocator,
    ast::ast::*,
    ast_visit::{Visit, walk},
    parser::{ParseOptions, Parser, ParserReturn},
    span::{GetSpan, SourceType, Span},
};

/// Makes a module of a program.
///
/// # Errors
/// What can't be read as a program, with its place in the text that was given.
pub(crate) fn normalise(source: &str) -> Result<Pieces<'_>, Fault> {
    let arena = Allocator::default();
    let whole = parse(&arena, source);
    let span = match fence::find(source) {
        Some(block) if !whole.is_sound() || has_tagged_template(&whole.program) => block,
        _ => Span::new(0, source.len() as u32),
    };
    let code = &source[span.start as usize..span.end as usize];
    let parsed = parse(&arena, code);
    let (edits, result) = if parsed.is_sound() && !is_object(&parsed.program, code) {
        if is_module_already(&parsed.program) {
            return Ok(Pieces::part_of(source, span));
        }
        plan(&parsed.program, code)
    } else if let Some(function) = expression(code) {
        // A block with labels is an object, and a function without a name is one too.
        let end = code.trim_end_matches(is_end).len() as u32;
        let mut edits = Edits::default();
        edits.insert(0, "return (");
        edits.insert(end, if function { "\n)()" } else { "\n)" });
        (edits, String::new())
    } else {
        let fault = refuse(parsed.diagnostics).err();
        return Err(fault.map_or_else(
            || Fault {
                message: "The program can't be read".into(),
                at: span.start,
            },
            |fault| Fault {
                at: fault.at + span.start,
                ..fault
            },
        ));
    };
    let mut pieces = Pieces::new(source);
    for hoisted in &edits.hoisted {
        pieces.keep(hoisted.start + span.start, hoisted.end + span.start);
        pieces.insert(hoisted.end + span.start, "\n");
    }
    pieces.insert(span.start, "export default async () => {");
    let mut done = span.start;
    for Edit { cut, text } in edits.in_order() {
        let (start, end) = (cut.start + span.start, cut.end + span.start);
        pieces.keep(done, start);
        pieces.insert(start, text);
        done = end.max(done);
    }
    pieces.keep(done, span.end);
    pieces.insert(span.end, &format!("\n{result}}}"));
    Ok(pieces)
}

fn parse<'a>(arena: &'a Allocator, source: &'a str) -> Parsed<'a> {
    let options = ParseOptions {
        allow_return_outside_function: true,
        ..ParseOptions::default()
    };
    let language = SourceType::ts().with_module(true);
    let ParserReturn {
        program,
        diagnostics,
        panicked,
        ..
    } = Parser::new(arena, source, language)
        .with_options(options)
        .parse();
    Parsed {
        program,
        diagnostics,
        panicked,
    }
}

struct Parsed<'a> {
    program: Program<'a>,
    diagnostics: oxc::diagnostics::Diagnostics,
    panicked: bool,
}

impl Parsed<'_> {
    fn is_sound(&self) -> bool {
        !self.panicked && refuse(self.diagnostics.clone()).is_ok()
    }
}

/// What may stand behind an expression.
fn is_end(character: char) -> bool {
    character == ';' || character.is_whitespace()
}

/// Whether the text is one expression; if so, whether it is a function.
fn expression(code: &str) -> Option<bool> {
    let arena = Allocator::default();
    let code = format!("({}\n)", code.trim_end_matches(is_end));
    let parsed = parse(&arena, &code);
    match &parsed.program.body[..] {
        [Statement::ExpressionStatement(it)] if parsed.is_sound() => {
            let whole = Span::new(0, code.len() as u32);
            let inner = matches!(&it.expression, Expression::ParenthesizedExpression(it) if it.span == whole);
            inner.then(|| is_function(&it.expression))
        }
        _ => None,
    }
}

/// Whether what reads as a block is meant as an object.
fn is_object(program: &Program<'_>, code: &str) -> bool {
    let mut body = program
        .body
        .iter()
        .filter(|it| !matches!(it, Statement::EmptyStatement(_)));
    let is_block = matches!(body.next(), Some(Statement::BlockStatement(_)));
    is_block && body.next().is_none() && expression(code).is_some()
}

fn is_function(expression: &Expression<'_>) -> bool {
    matches!(
        expression.get_inner_expression(),
        Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_)
    )
}

/// Imports and then a default export that is a function.
fn is_module_already(program: &Program<'_>) -> bool {
    let Some((Statement::ExportDefaultDeclaration(last), before)) = program.body.split_last()
    else {
        return false;
    };
    let is_function = match &last.declaration {
        ExportDefaultDeclarationKind::FunctionDeclaration(it) => it.body.is_some(),
        other => other.as_expression().is_some_and(is_function),
    };
    is_function && before.iter().all(is_hoisted)
}

/// What can't stand in a function, and is the same before it.
fn is_hoisted(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::ImportDeclaration(_)
        | Statement::ExportAllDeclaration(_)
        | Statement::ExportFromDeclaration(_)
        | Statement::TSNamespaceDeclaration(_)
        | Statement::TSExternalModuleDeclaration(_)
        | Statement::TSGlobalDeclaration(_)
        | Statement::TSImportEqualsDeclaration(_) => true,
        Statement::ExportDeclaration(it) => matches!(
            it.declaration,
            Declaration::TSNamespaceDeclaration(_) | Declaration::TSImportEqualsDeclaration(_)
        ),
        _ => false,
    }
}

struct Edit {
    cut: Span,
    text: String,
}

#[derive(Default)]
struct Edits {
    hoisted: Vec<Span>,
    edits: Vec<Edit>,
}

impl Edits {
    fn insert(&mut self, at: u32, text: &str) {
        self.replace(Span::new(at, at), text);
    }

    fn replace(&mut self, cut: Span, text: &str) {
        self.edits.push(Edit {
            cut,
            text: text.into(),
        });
    }

    fn in_order(&self) -> impl Iterator<Item = &Edit> {
        let mut edits: Vec<_> = self.edits.iter().collect();
        edits.sort_by_key(|edit| edit.cut.start);
        edits.into_iter()
    }
}

/// What has to change for the program to be the body of a function, and what is appended to it.
fn plan(program: &Program<'_>, code: &str) -> (Edits, String) {
    let mut edits = Edits::default();
    if let Some(hashbang) = &program.hashbang {
        edits.replace(hashbang.span, "");
    }
    let mut result = None;
    for statement in &program.body {
        let span = statement.span();
        match statement {
            _ if is_hoisted(statement) => {
                edits.hoisted.push(span);
                edits.replace(span, ";");
            }
            Statement::ExportNamedDeclaration(_) => edits.replace(span, ";"),
            Statement::ExportDeclaration(it) => {
                edits.replace(Span::new(span.start, it.declaration.span().start), "");
            }
            Statement::ExportDefaultDeclaration(it) => {
                result = export_default(&it.declaration, span, code, &mut edits).or(result);
            }
            _ => {}
        }
    }
    let result = match result {
        Some(result) => result,
        None => match program.body.iter().rev().find(|it| !is_declared_ahead(it)) {
            Some(Statement::ExpressionStatement(last)) => {
                let span = last.expression.span();
                edits.insert(span.start, "return (");
                edits.insert(
                    span.end,
                    if is_function(&last.expression) {
                        ")()"
                    } else {
                        ")"
                    },
                );
                String::new()
            }
            _ => match (&program.body[..], program.directives.last()) {
                ([], Some(text)) => {
                    edits.insert(text.span.start, "return ");
                    String::new()
                }
                _ => main(program).map_or_else(String::new, |name| format!("return {name}();\n")),
            },
        },
    };
    (edits, result)
}

/// Makes a declaration of a default export, and says what returns it.
fn export_default(
    declaration: &ExportDefaultDeclarationKind<'_>,
    span: Span,
    code: &str,
    edits: &mut Edits,
) -> Option<String> {
    let inner = declaration.span();
    let keywords = Span::new(span.start, inner.start);
    let (name, is_function) = match declaration {
        ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => {
            edits.replace(keywords, "");
            return None;
        }
        ExportDefaultDeclarationKind::FunctionDeclaration(it) => (it.id.as_ref(), true),
        ExportDefaultDeclarationKind::ClassDeclaration(it) => (it.id.as_ref(), false),
        other => (None, other.as_expression().is_some_and(is_function)),
    };
    let name = match name {
        Some(name) => {
            edits.replace(keywords, "");
            name.name.to_string()
        }
        None => {
            let mut name = String::from("result$");
            while code.contains(&name) {
                name.push('$');
            }
            edits.replace(keywords, &format!("const {name} = ("));
            edits.insert(inner.end, ");");
            name
        }
    };
    let call = if is_function { "()" } else { "" };
    Some(format!("return {name}{call};\n"))
}

/// Whether it makes no difference that the program's result has been computed before it.
fn is_declared_ahead(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::EmptyStatement(_)
        | Statement::FunctionDeclaration(_)
        | Statement::TSTypeAliasDeclaration(_)
        | Statement::TSInterfaceDeclaration(_)
        | Statement::ExportNamedDeclaration(_) => true,
        Statement::ExportDeclaration(it) => matches!(
            it.declaration,
            Declaration::FunctionDeclaration(_)
                | Declaration::TSTypeAliasDeclaration(_)
                | Declaration::TSInterfaceDeclaration(_)
        ),
        _ => is_hoisted(statement),
    }
}

/// The function to call of a program that does nothing but declare some: `main`, or else the last.
fn main(program: &Program<'_>) -> Option<String> {
    let mut functions: Vec<&str> = Vec::new();
    for statement in &program.body {
        let declaration = match statement {
            Statement::ExportDeclaration(it) => Some(&it.declaration),
            other => other.as_declaration(),
        };
        match declaration {
            Some(Declaration::FunctionDeclaration(it)) => {
                let name = it.id.as_ref().filter(|_| it.body.is_some());
                functions.extend(name.map(|name| name.name.as_str()));
            }
            Some(Declaration::VariableDeclaration(all)) => {
                for one in &all.declarations {
                    let init = one.init.as_ref().map(Expression::get_inner_expression);
                    match (&one.id, init) {
                        (BindingPattern::BindingIdentifier(name), Some(it)) if is_function(it) => {
                            functions.push(name.name.as_str());
                        }
                        // It computes nothing.
                        (BindingPattern::BindingIdentifier(_), None) => {}
                        (_, Some(it)) if it.is_literal() => {}
                        _ => return None,
                    }
                }
            }
            _ if is_declared_ahead(statement) => {}
            _ => return None,
        }
    }
    let main = functions.iter().find(|name| **name == "main");
    main.or(functions.last()).map(|name| (*name).to_owned())
}

/// Three backticks in a row are two empty templates, or one that is called, which means nothing: such a text is Markdown.
fn has_tagged_template(program: &Program<'_>) -> bool {
    struct Search(bool);
    impl<'a> Visit<'a> for Search {
        fn visit_tagged_template_expression(&mut self, it: &TaggedTemplateExpression<'a>) {
            self.0 |= matches!(
                it.tag,
                Expression::TemplateLiteral(_) | Expression::TaggedTemplateExpression(_)
            );
            walk::walk_tagged_template_expression(self, it);
        }
    }
    let mut search = Search(false);
    search.visit_program(program);
    search.0
}

//! Taking types away where nothing has to come in their place.
//!
//! Types, and what only they need, become blanks. Where JavaScript would read on over what was a border in TypeScript, a
//! semicolon stands in the first blank. What an import or an export names that is a type is taken out like any other: a
//! module that imports it could not be linked.

use crate::{blanks::Blanks, place::is_line_end, transpile::Fault};
use oxc::{
    ast::ast::*,
    ast_visit::{Visit, walk},
    semantic::{Scoping, SemanticBuilder, SymbolFlags},
    span::{GetSpan, Span},
};

/// The source without its types; none where that is not enough.
///
/// # Errors
/// What has no JavaScript for it.
pub(crate) fn erase(source: &str, program: &Program<'_>) -> Result<Option<String>, Fault> {
    let is_typescript = program.source_type.is_typescript();
    let names_others = program.body.iter().any(names_something);
    let scoping = (is_typescript && names_others).then(|| {
        SemanticBuilder::new()
            .build(program)
            .semantic
            .into_scoping()
    });
    let mut eraser = Eraser {
        source,
        scoping,
        blanks: Blanks::default(),
        needs_code: false,
        refused: None,
    };
    eraser.visit_program(program);
    match eraser {
        Eraser {
            refused: Some(fault),
            ..
        } => Err(fault),
        Eraser {
            needs_code: true, ..
        } => Ok(None),
        Eraser { blanks, .. } => Ok(Some(blanks.apply(source))),
    }
}

/// Whether it names what may turn out to be a type.
fn names_something(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::ImportDeclaration(import) => import.specifiers.is_some(),
        Statement::ExportNamedDeclaration(export) => !export.specifiers.is_empty(),
        Statement::ExportDefaultDeclaration(export) => matches!(
            export.declaration,
            ExportDefaultDeclarationKind::Identifier(_)
        ),
        _ => false,
    }
}

struct Eraser<'s> {
    source: &'s str,
    /// Where something is named that may be a type.
    scoping: Option<Scoping>,
    blanks: Blanks,
    /// There is something that blanks can't stand for.
    needs_code: bool,
    refused: Option<Fault>,
}

impl Eraser<'_> {
    /// Takes a statement or a member of a class out. The semicolon keeps what is before it from reading on.
    fn erase_whole(&mut self, span: Span) {
        self.blanks.add(span);
        self.blanks.mark(span.start, ';');
    }

    fn erase(&mut self, start: u32, end: u32) {
        if start < end {
            self.blanks.add(Span::new(start, end));
        }
    }

    fn text(&self, start: u32, end: u32) -> &str {
        self.source.get(start as usize..end as usize).unwrap_or("")
    }

    fn has_line_end(&self, start: u32, end: u32) -> bool {
        self.text(start, end).contains(is_line_end)
    }

    /// Where the next token is, from a place between tokens.
    fn skip_trivia(&self, from: u32) -> u32 {
        let mut at = from as usize;
        loop {
            let rest = &self.source[at..];
            let trimmed =
                rest.trim_start_matches(|it: char| it.is_whitespace() || it == '\u{feff}');
            at = self.source.len() - trimmed.len();
            let comment = if trimmed.starts_with("//") {
                trimmed.find(is_line_end)
            } else if trimmed.starts_with("/*") {
                trimmed.find("*/").map(|end| end + 2)
            } else {
                return at as u32;
            };
            at += comment.unwrap_or(trimmed.len());
        }
    }

    /// Takes a character out that is the next token, if it is.
    fn erase_next(&mut self, from: u32, character: char) -> Option<u32> {
        let at = self.skip_trivia(from);
        self.source[at as usize..]
            .starts_with(character)
            .then(|| self.erase(at, at + 1))
            .map(|()| at)
    }

    /// Takes words out between two places, such as modifiers. Answers with where the first was, if that is where it
    /// started.
    fn erase_words(&mut self, from: u32, until: u32, unwanted: &[&str]) -> Option<u32> {
        let mut first = None;
        let mut at = self.skip_trivia(from);
        while at < until {
            let rest = self.text(at, until);
            let word: usize = rest
                .find(|it: char| !it.is_alphanumeric() && it != '_' && it != '$')
                .unwrap_or(rest.len());
            if word == 0 {
                // Punctuation, such as the bracket before a computed name.
                break;
            }
            let end = at + word as u32;
            if unwanted.contains(&&rest[..word]) {
                self.erase(at, end);
                if at == from {
                    first = Some(at);
                }
            }
            at = self.skip_trivia(end);
        }
        first
    }

    /// What was after a type may be read on over, where a type ends and an expression does not.
    fn end_expression(&mut self, expression: u32, end: u32) {
        self.erase(expression, end);
        let next = self.skip_trivia(end);
        let rest = &self.source[next as usize..];
        if rest.starts_with(['(', '[', '`']) && self.has_line_end(end, next) {
            self.blanks.mark(expression, ';');
        }
    }

    /// Modifiers, the mark behind the name, and the type of a field or method.
    fn erase_member_head(&mut self, member: Span, key: &PropertyKey<'_>, computed: bool) -> u32 {
        const MODIFIERS: [&str; 5] = ["public", "private", "protected", "readonly", "override"];
        if let Some(first) = self.erase_words(member.start, key.span().start, &MODIFIERS) {
            // Or a name in brackets would belong to the field before.
            self.blanks.mark(first, ';');
        }
        let mut end = key.span().end;
        if computed {
            let bracket = self.skip_trivia(end);
            if self.source[bracket as usize..].starts_with(']') {
                end = bracket + 1;
            }
        }
        self.erase_next(end, '?');
        self.erase_next(end, '!');
        end
    }

    fn erase_field(
        &mut self,
        member: Span,
        key: &PropertyKey<'_>,
        computed: bool,
        annotation: Option<&TSTypeAnnotation<'_>>,
        value: Option<&Expression<'_>>,
    ) {
        let name_end = self.erase_member_head(member, key, computed);
        let Some(annotation) = annotation else {
            return;
        };
        self.erase(name_end, annotation.span.end);
        // These names would take the next member for their own.
        let name = self.text(key.span().start, key.span().end);
        if value.is_none() && matches!(name, "get" | "set" | "static" | "async" | "accessor") {
            self.blanks.mark(name_end, ';');
        }
    }

    fn is_type(&self, name: &ModuleExportName<'_>) -> bool {
        match name {
            ModuleExportName::IdentifierReference(name) => self.refers_to_type(name),
            _ => false,
        }
    }

    /// Whether a name that is exported is only a type.
    fn refers_to_type(&self, name: &IdentifierReference<'_>) -> bool {
        let (Some(scoping), Some(reference)) = (&self.scoping, name.reference_id.get()) else {
            return false;
        };
        let reference = scoping.get_reference(reference);
        reference.symbol_id().is_some_and(|symbol| {
            let flags = scoping.symbol_flags(symbol);
            let redeclared = scoping.symbol_redeclarations(symbol);
            reference.is_type()
                || flags.is_ambient() && redeclared.iter().all(|it| it.flags.is_ambient())
        })
    }

    /// Whether an import is used as a value.
    fn is_used(&self, local: &BindingIdentifier<'_>) -> bool {
        let (Some(scoping), Some(symbol)) = (&self.scoping, local.symbol_id.get()) else {
            return true;
        };
        let shadowed = (scoping.symbol_flags(symbol) - SymbolFlags::Import).is_value();
        let mut references = scoping.get_resolved_references(symbol);
        !shadowed && references.any(|reference| !reference.is_type())
    }

    fn import(&mut self, import: &ImportDeclaration<'_>) {
        if import.import_kind.is_type() {
            return self.erase_whole(import.span);
        }
        let Some(specifiers) = import.specifiers.as_ref().filter(|all| !all.is_empty()) else {
            return;
        };
        let unwanted: Vec<bool> = specifiers
            .iter()
            .map(|specifier| {
                let is_type = matches!(
                    specifier,
                    ImportDeclarationSpecifier::ImportSpecifier(it) if it.import_kind.is_type()
                );
                is_type || !self.is_used(specifier.local())
            })
            .collect();
        if unwanted.iter().all(|unwanted| *unwanted) {
            return self.erase_whole(import.span);
        }
        let mut before = import.span.start;
        for (specifier, unwanted) in specifiers.iter().zip(unwanted) {
            let span = specifier.span();
            if unwanted {
                self.erase(span.start, span.end);
                let comma = self.erase_next(span.end, ',');
                let is_namespace = matches!(
                    specifier,
                    ImportDeclarationSpecifier::ImportNamespaceSpecifier(_)
                );
                if is_namespace && comma.is_none() {
                    // `import a, * as b`: the comma is before it.
                    self.erase(before, span.end);
                }
            }
            before = span.end;
        }
    }

    fn export(&mut self, span: Span, is_type: bool, specifiers: &[ExportSpecifier<'_>]) {
        if is_type {
            return self.erase_whole(span);
        }
        let unwanted: Vec<Span> = specifiers
            .iter()
            .filter(|it| it.export_kind.is_type() || self.is_type(&it.local))
            .map(|it| it.span)
            .collect();
        if !specifiers.is_empty() && unwanted.len() == specifiers.len() {
            return self.erase_whole(span);
        }
        for span in unwanted {
            self.erase(span.start, span.end);
            self.erase_next(span.end, ',');
        }
    }
}

/// Whether a declaration is nothing at run time. Namespaces are left to who can say whether there is a value in them.
fn is_only_types(declaration: &Declaration<'_>) -> bool {
    match declaration {
        Declaration::VariableDeclaration(it) => it.declare,
        Declaration::FunctionDeclaration(it) => it.is_typescript_syntax(),
        Declaration::ClassDeclaration(it) => it.declare,
        Declaration::TSEnumDeclaration(it) => it.declare,
        Declaration::TSNamespaceDeclaration(it) => it.declare,
        Declaration::TSImportEqualsDeclaration(it) => it.import_kind.is_type(),
        Declaration::TSTypeAliasDeclaration(_)
        | Declaration::TSInterfaceDeclaration(_)
        | Declaration::TSExternalModuleDeclaration(_)
        | Declaration::TSGlobalDeclaration(_) => true,
    }
}

impl<'a> Visit<'a> for Eraser<'_> {
    fn visit_statement(&mut self, statement: &Statement<'a>) {
        let span = statement.span();
        match statement {
            Statement::ImportDeclaration(import) => self.import(import),
            Statement::ExportNamedDeclaration(it) => {
                self.export(span, it.export_kind.is_type(), &it.specifiers);
            }
            Statement::ExportFromDeclaration(it) => {
                self.export(span, it.export_kind.is_type(), &it.specifiers);
            }
            Statement::ExportAllDeclaration(it) if it.export_kind.is_type() => {
                self.erase_whole(span);
            }
            Statement::ExportDeclaration(it) if is_only_types(&it.declaration) => {
                self.erase_whole(span);
            }
            Statement::ExportDefaultDeclaration(it) => {
                let is_type = match &it.declaration {
                    ExportDefaultDeclarationKind::Identifier(name) => self.refers_to_type(name),
                    ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => true,
                    ExportDefaultDeclarationKind::FunctionDeclaration(it) => {
                        it.is_typescript_syntax()
                    }
                    _ => false,
                };
                if is_type {
                    self.erase_whole(span);
                } else {
                    walk::walk_statement(self, statement);
                }
            }
            Statement::TSExportAssignment(_) | Statement::TSNamespaceExportDeclaration(_) => {
                self.needs_code = true;
            }
            other => match other.as_declaration() {
                Some(declaration) if is_only_types(declaration) => self.erase_whole(span),
                _ => walk::walk_statement(self, statement),
            },
        }
    }

    fn visit_ts_enum_declaration(&mut self, _: &TSEnumDeclaration<'a>) {
        self.needs_code = true;
    }

    fn visit_ts_namespace_declaration(&mut self, _: &TSNamespaceDeclaration<'a>) {
        self.needs_code = true;
    }

    fn visit_ts_import_equals_declaration(&mut self, _: &TSImportEqualsDeclaration<'a>) {
        self.needs_code = true;
    }

    fn visit_jsx_element(&mut self, element: &JSXElement<'a>) {
        self.needs_code = true;
        walk::walk_jsx_element(self, element);
    }

    fn visit_jsx_fragment(&mut self, fragment: &JSXFragment<'a>) {
        self.needs_code = true;
        walk::walk_jsx_fragment(self, fragment);
    }

    fn visit_decorator(&mut self, decorator: &Decorator<'a>) {
        self.refused.get_or_insert_with(|| Fault {
            message: "decorators are not supported".into(),
            at: decorator.span.start,
        });
    }

    fn visit_ts_type_annotation(&mut self, annotation: &TSTypeAnnotation<'a>) {
        self.blanks.add(annotation.span);
    }

    fn visit_ts_type_parameter_declaration(&mut self, it: &TSTypeParameterDeclaration<'a>) {
        self.blanks.add(it.span);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, it: &TSTypeParameterInstantiation<'a>) {
        self.blanks.add(it.span);
    }

    fn visit_ts_this_parameter(&mut self, it: &TSThisParameter<'a>) {
        self.blanks.add(it.span);
        self.erase_next(it.span.end, ',');
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.visit_expression(&it.expression);
        self.end_expression(it.expression.span().end, it.span.end);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.visit_expression(&it.expression);
        self.end_expression(it.expression.span().end, it.span.end);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.visit_expression(&it.expression);
        self.erase(it.expression.span().end, it.span.end);
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        self.visit_expression(&it.expression);
        let (start, expression) = (it.span.start, it.expression.span().start);
        let rest = &self.source[expression as usize..];
        // `() => <T>{}` would have a body, and `return <T\n>x` would return nothing.
        let is_other =
            rest.starts_with(['{', 'f', 'c', 'l']) || self.has_line_end(start, expression);
        if is_other {
            self.needs_code = true;
        } else {
            self.erase(start, expression);
        }
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if let Some(annotation) = &it.type_annotation {
            // With the mark of a definite assignment.
            self.erase(it.id.span().end, annotation.span.end);
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        if it.has_modifier() {
            self.needs_code = true;
        }
        if it.optional {
            self.erase_next(it.pattern.span().end, '?');
        }
        walk::walk_formal_parameter(self, it);
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        if let Some(parameters) = &it.type_parameters
            && it.r#async
            && self.has_line_end(parameters.span.start, parameters.span.end)
        {
            // `async` and the parenthesis would be on two lines.
            self.needs_code = true;
        }
        let end = it.params.span.end;
        if let Some(result) = &it.return_type
            && self.has_line_end(end, result.span.end)
        {
            // The arrow has to be on the line of the parenthesis, which moves to the end of the type.
            let last = self.text(0, result.span.end).char_indices().next_back();
            if self.text(end - 1, end) == ")"
                && let Some((last, _)) = last
            {
                self.erase(end - 1, result.span.end);
                self.blanks.mark(last as u32, ')');
            } else {
                self.needs_code = true;
            }
        }
        walk::walk_arrow_function_expression(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        if it.r#abstract {
            self.erase_words(it.span.start, it.body.span.start, &["abstract"]);
        }
        if let Some(last) = it.implements.last() {
            let named = [
                it.heritage.as_ref().map(|heritage| heritage.span().end),
                it.type_parameters.as_ref().map(|it| it.span.end),
                it.id.as_ref().map(|id| id.span.end),
            ];
            let from = named.into_iter().flatten().max();
            match from {
                Some(from) => self.erase(from, last.span.end),
                None if it.r#abstract => self.needs_code = true,
                None => self.erase(it.span.start + "class".len() as u32, last.span.end),
            }
        }
        walk::walk_class(self, it);
    }

    fn visit_ts_class_implements(&mut self, _: &TSClassImplements<'a>) {}

    fn visit_class_element(&mut self, element: &ClassElement<'a>) {
        let is_declared =
            matches!(element, ClassElement::PropertyDefinition(field) if field.declare);
        if element.is_typescript_syntax() || is_declared {
            self.erase_whole(element.span());
        } else {
            walk::walk_class_element(self, element);
        }
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        self.erase_member_head(it.span, &it.key, it.computed);
        walk::walk_method_definition(self, it);
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        let (annotation, value) = (it.type_annotation.as_deref(), it.value.as_ref());
        self.erase_field(it.span, &it.key, it.computed, annotation, value);
        walk::walk_property_definition(self, it);
    }

    fn visit_accessor_property(&mut self, it: &AccessorProperty<'a>) {
        let (annotation, value) = (it.type_annotation.as_deref(), it.value.as_ref());
        self.erase_field(it.span, &it.key, it.computed, annotation, value);
        walk::walk_accessor_property(self, it);
    }
}

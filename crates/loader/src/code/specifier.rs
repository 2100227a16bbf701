//! Where an import points to: a name in the worker's flat map of modules, and nothing else.
//!
//! The guest holds a copy of this rule, since it resolves while it links. `tests/specifiers.json`
//! is what both must agree on.

/// The name of the module that `specifier` means in a module called `importer`, or `None` where it
/// can't mean any.
///
/// - `./x` and `../x` are relative to the importer's folder, `/x` to the root. Empty and `.`
///   segments of the specifier vanish; `..` stops at the root.
/// - Everything else, URLs and `node:` names included, is a name already and stays as it is. So
///   `file:///etc/passwd` is looked up among the worker's modules like any other name, and nothing
///   is ever fetched.
pub fn resolve_specifier(importer: &str, specifier: &str) -> Option<String> {
    if specifier.contains('\0') {
        return None;
    }
    let base = if specifier.starts_with("./") || specifier.starts_with("../") {
        importer.rsplit_once('/').map_or("", |(folder, _)| folder)
    } else if specifier.starts_with('/') {
        ""
    } else {
        return (!specifier.is_empty()).then(|| specifier.to_owned());
    };
    // The importer's own name is not read as a path: `./main.js` finds its neighbour `./a.js`.
    let mut segments: Vec<&str> = base
        .split('/')
        .filter(|folder| !folder.is_empty())
        .collect();
    for segment in specifier.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            name => segments.push(name),
        }
    }
    (!segments.is_empty()).then(|| segments.join("/"))
}

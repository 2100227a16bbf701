//! The text of sources that a source map brings along, for the code around an error in generated code.
//!
//! Places come mapped already; here is only looked for what to show of them. The maps are the user's own files, and read by
//! a parser that has a bound on nesting.

use crate::modules::ModuleFiles;
use base64::{Engine, prelude::BASE64_STANDARD};
use coracle_loader::resolve_specifier;
use serde_json::Value;

/// The text of a source that some module's map has under this name.
pub(crate) fn content(files: &ModuleFiles, source: &str) -> Option<String> {
    let modules = files.files.iter();
    let mut maps = modules.filter_map(|file| map_of(files, &file.name, file.source()?));
    maps.find_map(|(base, map)| {
        let root = map["sourceRoot"]
            .as_str()
            .unwrap_or("")
            .trim_end_matches('/');
        let names = map["sources"].as_array()?.iter().map(|name| {
            let name = name.as_str().unwrap_or_default();
            match root {
                "" => name.to_owned(),
                root => format!("{root}/{name}"),
            }
        });
        let mut named = names.zip(map["sourcesContent"].as_array()?);
        named
            .find(|(name, _)| relative_to(&base, name).as_deref() == Some(source))
            .and_then(|(_, content)| content.as_str().map(str::to_owned))
    })
}

/// The map that a module names in its last line, and what the names in it are relative to.
fn map_of(files: &ModuleFiles, module: &str, text: &str) -> Option<(String, Value)> {
    let line = text.trim_end().lines().next_back()?.trim_start();
    let url = line.strip_prefix("//# sourceMappingURL=")?.trim();
    let (base, json) = match url.strip_prefix("data:") {
        Some(data) => {
            let (_, body) = data.split_once(";base64,")?;
            let bytes = BASE64_STANDARD.decode(body).ok()?;
            (module.to_owned(), String::from_utf8(bytes).ok()?)
        }
        None => {
            let name = relative_to(module, url)?;
            let text = files.get(&name)?.text()?;
            (name, text)
        }
    };
    Some((base, serde_json::from_str(&json).ok()?))
}

/// As the guest has it.
fn relative_to(base: &str, url: &str) -> Option<String> {
    if url.contains("://") || url.starts_with('/') {
        return Some(url.to_owned());
    }
    resolve_specifier(base, &format!("./{url}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::ModuleFile;
    use coracle_client::ModuleBody;

    fn file(name: &str, body: ModuleBody) -> ModuleFile {
        ModuleFile {
            name: name.into(),
            path: name.into(),
            body,
        }
    }

    /// What a map brings along is found by the name that stacks have for it, wherever the map is.
    #[test]
    fn a_source_is_found_in_a_map_inline_and_in_a_module() {
        let map = r#"{"version":3,"sources":["../src/agent.ts"],"sourcesContent":["let x: number"],"mappings":""}"#;
        let inline = format!(
            "1;\n//# sourceMappingURL=data:application/json;base64,{}\n",
            BASE64_STANDARD.encode(map)
        );
        let by_name = "1;\n//# sourceMappingURL=main.js.map".to_owned();
        for (text, maps) in [(inline, 0), (by_name, 1)] {
            let mut files = vec![file("dist/main.js", ModuleBody::EsModule(text))];
            let bytes = map.as_bytes().to_vec();
            files.extend(
                (0..maps).map(|_| file("dist/main.js.map", ModuleBody::Data(bytes.clone()))),
            );
            let files = ModuleFiles {
                main: "dist/main.js".into(),
                files,
            };
            assert_eq!(
                content(&files, "src/agent.ts").as_deref(),
                Some("let x: number")
            );
            assert_eq!(content(&files, "agent.ts"), None);
        }
    }
}

//! Texts to the words that are searched for.

/// The words of a text: `listRepoIssues`, `list_repo_issues` and `List repo issues` have the same. In lower case, and in the
/// singular as far as an `s` at the end tells.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = Kind::Other;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let kind = Kind::of(character);
        let next = characters
            .peek()
            .map_or(Kind::Other, |next| Kind::of(*next));
        let begins = match (before, kind) {
            (_, Kind::Other) => true,
            // Scripts that have no spaces: each sign is a word.
            (_, Kind::Sign) | (Kind::Sign, _) => true,
            (Kind::Lower, Kind::Upper) | (Kind::Digit, Kind::Upper) => true,
            // `HTTPServer` is `http server`.
            (Kind::Upper, Kind::Upper) => next == Kind::Lower,
            _ => false,
        };
        if begins && !word.is_empty() {
            words.push(singular(std::mem::take(&mut word)));
        }
        if kind != Kind::Other {
            word.extend(character.to_lowercase());
        }
        before = kind;
    }
    if !word.is_empty() {
        words.push(singular(word));
    }
    words
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Upper,
    Lower,
    Digit,
    Sign,
    Other,
}

impl Kind {
    fn of(character: char) -> Self {
        match character {
            '\u{2e80}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7af}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}' => Self::Sign,
            _ if character.is_uppercase() => Self::Upper,
            _ if character.is_numeric() => Self::Digit,
            _ if character.is_alphabetic() => Self::Lower,
            _ => Self::Other,
        }
    }
}

fn singular(word: String) -> String {
    let is_long = word.len() > 3 && word.is_ascii();
    if is_long && word.ends_with("ies") && word.len() > 4 {
        return format!("{}y", &word[..word.len() - 3]);
    }
    let has_other_s = ["ss", "us", "is"].iter().any(|end| word.ends_with(end));
    let is_with_e = ["xes", "ches", "shes", "sses"]
        .iter()
        .any(|end| word.ends_with(end));
    if is_long && is_with_e {
        return word[..word.len() - 2].to_owned();
    }
    if is_long && word.ends_with('s') && !has_other_s {
        return word[..word.len() - 1].to_owned();
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However a name is written, its words are the same.
    #[test]
    fn names_are_split_into_words() {
        for text in [
            "listRepoIssues",
            "list_repo_issues",
            "list-repo-issue",
            "List repo issues.",
            "LIST_REPO_ISSUES",
            "list.repo/issues",
        ] {
            assert_eq!(words(text), ["list", "repo", "issue"], "{text}");
        }
        assert_eq!(words("HTTPServerError2"), ["http", "server", "error2"]);
        assert_eq!(words("getV2Status"), ["get", "v2", "status"]);
        assert_eq!(words("検索 tool"), ["検", "索", "tool"]);
        assert!(words("--__..").is_empty());
    }

    /// Plurals are found by their singular, and what only looks like one is left alone.
    #[test]
    fn plurals_are_one_word_with_their_singular() {
        for (text, expected) in [
            ("repositories", "repository"),
            ("boxes", "box"),
            ("branches", "branch"),
            ("classes", "class"),
            ("status", "status"),
            ("address", "address"),
            ("analysis", "analysis"),
            ("is", "is"),
        ] {
            assert_eq!(words(text), [expected]);
        }
    }
}

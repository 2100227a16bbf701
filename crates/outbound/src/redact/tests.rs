//! What is taken out, and that nothing else is.

use super::*;
use proptest::prelude::*;

fn redactor(secrets: &[&[u8]]) -> Redactor {
    let secrets: Vec<Secret> = secrets
        .iter()
        .map(|secret| Secret::derived(secret.to_vec()))
        .collect();
    Redactor::new(&secrets).expect("a redactor")
}

/// Pushes a body in pieces.
fn pushed<'a>(redactor: &mut Redactor, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut kept = Vec::new();
    for piece in pieces {
        kept.extend(redactor.push(Bytes::copy_from_slice(piece)));
    }
    kept.extend(redactor.finish());
    kept
}

/// Each form that usual encoders make of a secret is found, wherever it stands.
#[test]
fn what_encoders_make_of_a_secret_is_found() {
    use base64::prelude::*;
    let secret = "s3cr/t+k\u{e9}y \"<'=?>\\\n~(x)*";
    let mut redactor = redactor(&[secret.as_bytes()]);
    let mut forms = vec![
        secret.to_owned(),
        serde_json::to_string(secret).expect("JSON"),
        serde_json::to_string(secret)
            .expect("JSON")
            .replace('/', "\\/"),
        // As Go and Python write it.
        "s3cr/t+ké\u{79} \\\"\\u003c'=?\\u003e\\\\\\n~(x)*".into(),
        "s3cr/t+k\\u00e9y \\\"<'=?>\\\\\\n~(x)*".into(),
        "s3cr\\/t+k\\u00E9y \\u0022\\u003C\\u0027=?\\u003E\\\\\\n~(x)*".into(),
        url::form_urlencoded::byte_serialize(secret.as_bytes()).collect(),
        // encodeURIComponent, and the same in lower case.
        "s3cr%2Ft%2Bk%C3%A9y%20%22%3C'%3D%3F%3E%5C%0A~(x)*".into(),
        "s3cr%2ft%2bk%c3%a9y%20%22%3c'%3d%3f%3e%5c%0a~(x)*".into(),
        // encodeURI
        "s3cr/t+k%C3%A9y%20%22%3C'=?%3E%5C%0A~(x)*".into(),
        secret.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        hex::encode(secret),
        hex::encode_upper(secret),
    ];
    for before in ["", "a", "ab", "abc", "user:", "longer:"] {
        for after in ["", "x", "xy", "xyz"] {
            let text = format!("{before}{secret}{after}");
            forms.extend([
                BASE64_STANDARD.encode(&text),
                BASE64_STANDARD_NO_PAD.encode(&text),
                BASE64_URL_SAFE.encode(&text),
                BASE64_URL_SAFE_NO_PAD.encode(&text),
            ]);
        }
    }
    for (found, form) in (1..).zip(&forms) {
        let text = format!("{{\"you sent\": \"{form}\"}}");
        let kept = redactor.redact_text(&text);
        assert!(kept.contains("[redacted]"), "{form}: {kept}");
        assert!(kept.len() < text.len() - secret.len() / 2, "{form}: {kept}");
        assert_eq!(redactor.count(), found, "{form}");
    }
}

#[test]
fn nothing_else_is_taken_out() {
    let text = "s3cret key, S3CRET KEYS, czNjcmV0, %73%33";
    let mut redactor = redactor(&[b"s3cret keys", b"short"]);
    assert!(matches!(redactor.redact_text(text), Cow::Borrowed(same) if same == text));
    assert_eq!(
        redactor.redact_text("short").as_ref(),
        "short",
        "too short to be told from text"
    );
    assert_eq!(redactor.count(), 0);
}

/// One secret within or across another leaves nothing of either.
#[test]
fn what_overlaps_is_taken_out_as_one() {
    let mut redactor = redactor(&[b"abcdefgh", b"efghijkl", b"cdefghijklmn", b"ababababa"]);
    for (text, kept) in [
        ("-abcdefgh-", "-[redacted]-"),
        ("-abcdefghijkl-", "-[redacted]-"),
        ("-abcdefghijklmn-", "-[redacted]-"),
        ("-abcdefghabcdefgh-", "-[redacted][redacted]-"),
        ("-ababababababababa-", "-[redacted]-"),
        ("-abcdefg-efghijk", "-abcdefg-efghijk"),
    ] {
        assert_eq!(redactor.redact_text(text), kept);
        let pieces = text.as_bytes().chunks(1);
        assert_eq!(pushed(&mut redactor, pieces), kept.as_bytes());
    }
}

/// What is held back does not depend on what is said: who has guesses echoed learns nothing of how right they are.
#[test]
fn as_much_is_held_back_whatever_is_said() {
    let secret = b"sk-1234567890";
    let longest = forms::all([&secret[..]].into_iter())
        .iter()
        .map(Vec::len)
        .max();
    let held = longest.expect("forms") - 1;
    let given = |text: &str| {
        let mut redactor = redactor(&[secret]);
        redactor.push(Bytes::from(text.to_owned())).len()
    };
    for filling in [0, 1, 50, 500] {
        let text = "x".repeat(filling);
        for guess in ["s", "sk-12", "sk-123456789", "c2stMTIz"] {
            let wrong = "y".repeat(guess.len());
            let expected = (filling + guess.len()).saturating_sub(held);
            assert_eq!(given(&(text.clone() + guess)), expected, "{guess}");
            assert_eq!(given(&(text.clone() + &wrong)), expected);
        }
    }
    let mut redactor = redactor(&[secret]);
    let text = b"a sk-1234567890 b".repeat(40);
    let mut kept = redactor.push(Bytes::from(text)).to_vec();
    kept.extend(redactor.finish());
    assert_eq!(kept, b"a [redacted] b".repeat(40));
    assert_eq!((redactor.count(), redactor.another().count()), (40, 0));
}

#[test]
fn without_secrets_all_passes() {
    let mut redactor = redactor(&[b"short"]);
    assert!(redactor.looking.is_none());
    let chunk = Bytes::from_static(b"short");
    assert_eq!(redactor.push(chunk.clone()).as_ptr(), chunk.as_ptr());
    assert_eq!(redactor.finish(), Bytes::new());
}

/// What is held back is bounded by the longest form, whatever comes.
#[test]
fn what_is_held_back_is_bounded() {
    let secret = [b'a'; 64];
    let mut redactor = redactor(&[&secret[..], b"aaaaaaaaaaaaaaab"]);
    let longest = forms::all([&secret[..]].into_iter())
        .iter()
        .map(Vec::len)
        .max();
    for _ in 0..10_000 {
        redactor.push(Bytes::from_static(b"aaaaaaa"));
        let body = &redactor.looking.as_ref().expect("secrets").body;
        assert!(Some(body.held.len()) <= longest);
        assert!(body.hidden.len() <= 2);
    }
    assert_eq!(redactor.finish(), Bytes::new());
    assert_eq!(redactor.count(), 1);
}

/// All that any form covers, taken out without an automaton.
fn expected(forms: &[Vec<u8>], text: &[u8]) -> Vec<u8> {
    let mut hidden: Vec<(usize, usize)> = Vec::new();
    for from in 0..text.len() {
        let fitting = forms.iter().filter(|form| text[from..].starts_with(form));
        let Some(to) = fitting.map(|form| from + form.len()).max() else {
            continue;
        };
        match hidden.last_mut() {
            Some((_, last)) if *last > from => *last = to.max(*last),
            _ => hidden.push((from, to)),
        }
    }
    let (mut kept, mut given) = (Vec::new(), 0);
    for (from, to) in hidden {
        kept.extend_from_slice(&text[given..from]);
        kept.extend_from_slice(REDACTED);
        given = to;
    }
    kept.extend_from_slice(&text[given..]);
    kept
}

/// A part of a text: anything, or a form of a secret, whole or cut at either end.
#[derive(Clone, Debug)]
enum Part {
    Bytes(Vec<u8>),
    Form {
        index: prop::sample::Index,
        cut: prop::sample::Index,
        keeps: Keeps,
    },
}

#[derive(Clone, Debug)]
enum Keeps {
    All,
    Beginning,
    End,
}

/// Few letters, so that secrets overlap themselves and each other; and some of any kind. None is `[`, which tells what is
/// written in a secret's place from the rest.
fn bytes(length: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    let few = prop::sample::select(b"ab/\" ".to_vec());
    let any = any::<u8>().prop_map(|byte| if byte == b'[' { b'(' } else { byte });
    let letters = prop_oneof![4 => few, 1 => any];
    prop::collection::vec(letters, length)
}

fn part() -> impl Strategy<Value = Part> {
    let keeps = prop_oneof![
        2 => Just(Keeps::All),
        1 => Just(Keeps::Beginning),
        1 => Just(Keeps::End)
    ];
    let form = (
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        keeps,
    );
    prop_oneof![
        bytes(0..20).prop_map(Part::Bytes),
        form.prop_map(|(index, cut, keeps)| Part::Form { index, cut, keeps })
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// For any secrets, any text and any pieces: what comes out is what comes out in one go, it is what was meant, and
    /// there is no form of a secret in it.
    #[test]
    fn pieces_make_no_difference(
        secrets in prop::collection::vec(bytes(8..24), 1..4),
        parts in prop::collection::vec(part(), 0..12),
        cuts in prop::collection::vec(1_usize..12, 1..20),
    ) {
        let forms = forms::all(secrets.iter().map(Vec::as_slice));
        let mut text = Vec::new();
        for part in parts {
            match part {
                Part::Bytes(bytes) => text.extend(bytes),
                Part::Form { index, cut, keeps } => {
                    let form = index.get(&forms);
                    let cut = cut.index(form.len());
                    text.extend_from_slice(match keeps {
                        Keeps::All => form,
                        Keeps::Beginning => &form[..cut],
                        Keeps::End => &form[cut..],
                    });
                }
            }
        }
        let secrets: Vec<&[u8]> = secrets.iter().map(Vec::as_slice).collect();
        let mut whole = redactor(&secrets);
        let kept = whole.redact(&text).into_owned();
        prop_assert_eq!(&kept, &expected(&forms, &text));

        let mut streaming = whole.another();
        let mut rest = text.as_slice();
        let pieces = cuts.iter().cycle().map_while(|length| {
            let (piece, after) = rest.split_at((*length).min(rest.len()));
            rest = after;
            (!piece.is_empty()).then_some(piece)
        });
        prop_assert_eq!(&pushed(&mut streaming, pieces), &kept);
        prop_assert_eq!(streaming.count(), whole.count());
        let again = pushed(&mut streaming, std::iter::once(text.as_slice()));
        prop_assert_eq!(&again, &kept);

        let mut stretch = kept.as_slice();
        let is_clean = |stretch: &[u8]| {
            forms.iter().all(|form| !stretch.windows(form.len()).any(|window| window == form))
        };
        for _ in 0..whole.count() {
            let marker = stretch.windows(REDACTED.len()).position(|window| window == REDACTED);
            let marker = marker.expect("as many as were counted");
            prop_assert!(is_clean(&stretch[..marker]));
            stretch = &stretch[marker + REDACTED.len()..];
        }
        prop_assert!(is_clean(stretch));
    }
}

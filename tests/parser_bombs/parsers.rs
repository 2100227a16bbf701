//! The parsers, and what each reads.

use crate::{bombs::Grammar, support::frames};
use coracle_abi as abi;
use coracle_loader::{
    Encoded, Form, LimitName, Limits, LimitsRequest, Module, ModuleBody, Outbound, WorkerCode,
    check, resolve_specifier,
};
use coracle_outbound::{Destination, Policy, PolicyOrigin};
use coracle_server::Tokens;
use coracle_value::{Bounds, Text, decode, from_json, select, to_json, validate};
use std::borrow::Cow;

pub(crate) struct Parser {
    pub(crate) name: &'static str,
    pub(crate) grammar: Grammar,
    /// Reads and says whether it was accepted.
    pub(crate) read: fn(&[u8]) -> bool,
    /// Bytes of memory that a byte of the input may take.
    pub(crate) memory_factor: usize,
    /// Whether an input that only opens is refused for its depth or as unfinished.
    pub(crate) is_depth_bounded: bool,
}

pub(crate) static PARSERS: [Parser; 15] = [
    Parser {
        name: "values in CBOR, checked",
        grammar: CBOR,
        read: |bytes| {
            let checked = validate(bytes, &bounds()).is_ok();
            assert_eq!(select(bytes, &["a", "0"], &bounds()).is_ok(), checked);
            checked
        },
        memory_factor: 8,
        is_depth_bounded: true,
    },
    Parser {
        name: "values in CBOR, decoded",
        grammar: CBOR,
        read: |bytes| match decode(bytes, &bounds()) {
            Ok(value) => {
                let _ = to_json(&value);
                true
            }
            Err(_) => false,
        },
        memory_factor: 160,
        is_depth_bounded: true,
    },
    Parser {
        name: "values in JSON",
        grammar: JSON,
        read: |bytes| from_json(&text(bytes), &bounds()).is_ok(),
        memory_factor: 160,
        is_depth_bounded: true,
    },
    Parser {
        name: "texts in WTF-8",
        grammar: WTF8,
        read: |bytes| Text::from_wtf8(bytes.to_vec()).is_ok(),
        memory_factor: 4,
        is_depth_bounded: false,
    },
    Parser {
        name: "env in CBOR",
        grammar: CBOR_OBJECT,
        read: |bytes| {
            let mut code = worker();
            code.env = env(Form::Cbor, bytes);
            is_right(&code)
        },
        memory_factor: 8,
        is_depth_bounded: true,
    },
    Parser {
        name: "env in JSON",
        grammar: JSON,
        read: |bytes| {
            let mut code = worker();
            code.env = env(Form::Json, bytes);
            is_right(&code)
        },
        memory_factor: 8,
        is_depth_bounded: true,
    },
    Parser {
        name: "modules of JSON",
        grammar: JSON,
        read: |bytes| {
            let body = ModuleBody::Json(text(bytes).into_owned());
            is_right(&with_module("data.json".into(), body))
        },
        memory_factor: 8,
        is_depth_bounded: true,
    },
    Parser {
        name: "names of modules, and specifiers",
        grammar: SPECIFIER,
        read: |bytes| {
            let name = text(bytes).into_owned();
            let resolved = resolve_specifier(&name, &name).is_some();
            is_right(&with_module(name, ModuleBody::Text(String::new()))) && resolved
        },
        memory_factor: 64,
        is_depth_bounded: false,
    },
    Parser {
        name: "compatibility dates and flags",
        grammar: DATE,
        read: |bytes| {
            let text = text(bytes);
            let mut lines = text.lines();
            let mut code = worker();
            code.compatibility_date = lines.next().unwrap_or_default().to_owned();
            code.compatibility_flags = lines.map(str::to_owned).collect();
            is_right(&code)
        },
        memory_factor: 128,
        is_depth_bounded: false,
    },
    Parser {
        name: "limits",
        grammar: NUMBER,
        read: |bytes| {
            let text = text(bytes);
            let _ = text.parse::<LimitName>();
            LimitName::FuelMax.parse_value(&text).is_ok()
        },
        memory_factor: 16,
        is_depth_bounded: false,
    },
    Parser {
        name: "policies",
        grammar: POLICY,
        read: |bytes| Policy::of_json("bomb", PolicyOrigin::Client, &text(bytes)).is_ok(),
        memory_factor: 16,
        is_depth_bounded: true,
    },
    Parser {
        name: "URLs, redirects and the paths that policies compare",
        grammar: URL,
        read: |bytes| {
            let (text, here) = (
                text(bytes),
                Destination::of_url("https://a.example/b/").unwrap(),
            );
            let _ = here.redirected(&text).is_ok();
            match Destination::of_url(&text) {
                Ok(destination) => {
                    let policy = r#"{"rules": [
                        {"deny": ["*"], "paths": ["/**/a/**/a/**/*b/**/a/z"]},
                        {"allow": ["https://*.a.example"]}]}"#;
                    let policy = Policy::of_json("paths", PolicyOrigin::Client, policy).unwrap();
                    let _ = policy.decide(&destination, Some("GET")).explain();
                    true
                }
                Err(_) => false,
            }
        },
        memory_factor: 64,
        is_depth_bounded: false,
    },
    Parser {
        name: "addresses to connect to",
        grammar: ADDRESS,
        read: |bytes| Destination::of_address(&text(bytes)).is_ok(),
        memory_factor: 16,
        is_depth_bounded: false,
    },
    Parser {
        name: "messages of isolates",
        grammar: BORDER,
        read: |bytes| {
            let call = minicbor::decode::<abi::Call<'_>>(bytes).is_ok();
            let child = minicbor::decode::<abi::Child<'_>>(bytes).is_ok();
            let thrown = minicbor::decode::<abi::Thrown>(bytes).is_ok();
            let encoded = minicbor::decode::<abi::Encoded<'_>>(bytes).is_ok();
            call || child || thrown || encoded
        },
        memory_factor: 4,
        is_depth_bounded: true,
    },
    Parser {
        name: "files of tokens",
        grammar: TOKENS,
        read: |bytes| Tokens::parse(&text(bytes)).is_ok(),
        memory_factor: 64,
        is_depth_bounded: false,
    },
];

fn bounds() -> Bounds {
    Bounds {
        externals: 4,
        ..Bounds::default()
    }
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn env(form: Form, bytes: &[u8]) -> Encoded {
    Encoded {
        form,
        bytes: bytes.to_vec(),
        externals: 4,
    }
}

/// A worker with nothing wrong in it.
fn worker() -> WorkerCode {
    WorkerCode {
        compatibility_date: String::new(),
        compatibility_flags: Vec::new(),
        main_module: "main.js".into(),
        modules: vec![Module {
            name: "main.js".into(),
            body: ModuleBody::EsModule(String::new()),
        }],
        env: Encoded {
            form: Form::Undefined,
            bytes: Vec::new(),
            externals: 0,
        },
        outbound: Outbound::None,
        limits: LimitsRequest::default(),
    }
}

fn with_module(name: String, body: ModuleBody) -> WorkerCode {
    let mut code = worker();
    code.modules.push(Module { name, body });
    code
}

fn is_right(code: &WorkerCode) -> bool {
    check(code, &Limits::default()).is_ok()
}

const CBOR: Grammar = Grammar {
    sample: b"\xa2\x61a\x83\x01\xd8\x1c\x80\xd8\x1d\x00\x61b\xd9\x9c\x40\x03",
    openings: &[
        b"\x81",
        b"\x9f",
        b"\xa1\x60",
        b"\xbf\x60",
        b"\xd9\x01\x02\x81",
        b"\xd9\x01\x03\xa1",
        b"\xd9\x01\x03\xbf",
        b"\xd8\x1c\x81",
        b"\xd9\x9c\x41\xa3\x64name\x60\x67message\x60\x65cause",
    ],
    parts: &[
        b"\x00",
        b"\x20",
        b"\x41x",
        b"\x61a",
        b"\x80",
        b"\xa0",
        b"\xf7",
        b"\xff",
        b"\xd8\x1d\x00",
        b"\xd8\x1c\x80",
        b"\xc2\x41\x01",
        b"\xc1\x00",
        b"\xd9\x9c\x43\xf4",
        b"\xd9\x9c\x40\x00",
        b"\x9f\x00\xff",
        b"\xfb\x7f\xf0\x00\x00\x00\x00\x00\x00",
        b"\xd8\x40\x41\x00",
    ],
    claims: &[
        b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\xbb\x7f\xff\xff\xff\xff\xff\xff\xff",
        b"\x5b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x7a\xff\xff\xff\xff",
        b"\x9a\x00\x0f\xff\xff",
        b"\xba\x00\x07\xff\xff\x60",
        b"\xd8\x40\x5a\xff\xff\xff\xff",
        b"\xc2\x5a\x00\xff\xff\xff",
        b"\x5f",
        b"\x7f",
    ],
};

/// An object, as `env` must be; all externals are in it.
const CBOR_OBJECT: Grammar = Grammar {
    sample: b"\xa1\x61a\x83\x01\xd8\x1c\x80\xd8\x1d\x00",
    ..CBOR
};

const JSON: Grammar = Grammar {
    sample: br#"{"a": [1, -2.5e3, "\ud800\n", {"b": null}], "c": [true, false]}"#,
    openings: &[b"[", b"{\"\":", b"[[", b"{\"a\":[", b" [\n"],
    parts: &[
        b"0,",
        b"\"\\u0000\",",
        b"\\u",
        b"\"",
        b"\\",
        b"]",
        b"}",
        b",",
        b":",
        b"1e",
        b"9",
        b"-",
        b"null",
        b"\"a\":",
        b" ",
        b"\xff",
    ],
    claims: &[
        b"1e999999999",
        b"0.0000000000000000001",
        b"\"\\ud83d",
        b"\"",
        b"{\"\":0,",
    ],
};

const WTF8: Grammar = Grammar {
    sample: b"a\xc3\xa9\xed\xa0\x80b\xf0\x9f\x98\x80",
    openings: &[b"\xed\xa0\x80", b"\xed\xa0\x80\xed\xb0\x80"],
    parts: &[
        b"a",
        b"\xc3\xa9",
        b"\xed\xb0\x80",
        b"\xf0\x9f\x98\x80",
        b"\x80",
        b"\xff",
        b"\xf0\x9f",
    ],
    claims: &[b"\xf0", b"\xe2\x82", b"\xc3"],
};

const SPECIFIER: Grammar = Grammar {
    sample: b"lib/a.js",
    openings: &[b"../", b"./", b"a/", b"/"],
    parts: &[
        b"a",
        b".",
        b"/",
        b"..",
        b"%2e",
        b"\0",
        b"\n",
        b"\xff",
        b"node:",
        b"\xe2\x80\xae",
    ],
    claims: &[b"file:///", b"data:text/javascript,", b"node:"],
};

const DATE: Grammar = Grammar {
    sample: b"2026-01-31\nnodejs_compat\nrpc",
    openings: &[b"\n", b"2026-"],
    parts: &[b"2", b"0", b"-", b"\n", b"rpc\n", b"\xff", b"9"],
    claims: &[b"9999-99-99", b"2999-12-31", b"2026-01-31\n\n"],
};

const NUMBER: Grammar = Grammar {
    sample: b"10_000",
    openings: &[b"1_", b"0"],
    parts: &[b"9", b"_", b"-", b"e", b".", b" ", b"\xff"],
    claims: &[b"18446744073709551616", b"1e99", b"0x"],
};

const POLICY: Grammar = Grammar {
    sample: br#"{"rules": [{"name": "n", "allow": ["https://*.a.example"], "methods": ["GET"], "paths": ["/a/**"]},
                {"deny": ["*"]}, {"ask": ["https://b.example:8443"], "budget": {"requests_max": 5, "per_seconds": 60}}]}"#,
    openings: &[
        b"[", b"{\"rules\":", b"{\"rules\": [", b"{\"rules\": [{\"allow\": [", b"{\"a\":",
    ],
    parts: &[
        b"{\"deny\": [\"*\"]},", b"\"https://a.example\",", b"{}", b",", b"]", b"}", b"\"/**/a/**\",",
        b"\"*.\",", b"1e9", b"\\u0000", b"\xff",
    ],
    claims: &[
        b"{\"rules\": [{\"allow\": [\"*\"], \"budget\": {\"requests_max\": 1e308, \"per_seconds\": 1}},",
        b"{\"rules\": [{\"deny\": [\"*\"], \"paths\": [",
        b"{\"rules\": [{\"allow\": [\"https://[",
    ],
};

const URL: Grammar = Grammar {
    sample: b"https://www.a.example:8443/a/b/../%61/a/z?q=1#f",
    openings: &[
        b"https://a.a.example/a/",
        b"../",
        b"a/",
        b"https://",
        b"/a%2f",
        b"https://xn--",
        b"a.",
        b"[",
    ],
    parts: &[
        b"a",
        b"/",
        b"%",
        b"%25",
        b"?",
        b"#",
        b"@",
        b":",
        b".",
        b"xn--a",
        b"\xc3\xbc",
        b"\xe2\x80\x8d",
        b"0x7f",
        b"\\",
        b"\t",
        b"\xff",
    ],
    claims: &[
        b"https://a:",
        b"https://[::",
        b"https://1.2.3.",
        b"https://0xffffffffff",
        b"https://xn--",
        b"https://www.a.example/",
        b"https://a.example:99999",
        b"https://user:",
        b"https://\xc3\x9f\xe3\x83\xbb",
    ],
};

const ADDRESS: Grammar = Grammar {
    sample: b"db.a.example:5432",
    openings: &[b"[", b"a.", b":"],
    parts: &[
        b"a",
        b".",
        b":",
        b"1",
        b"[",
        b"]",
        b"xn--",
        b"\xc3\xbc",
        b"%",
        b"@",
        b"/",
        b"\xff",
    ],
    claims: &[b"a:99999999999999999999", b"[::1", b"[fe80::1%", b"xn--"],
};

/// Arrays as an isolate's messages are made of: a call, and a worker to be loaded.
const BORDER: Grammar = Grammar {
    sample: b"\x84\x01\x81\x61a\x00\x83\x01\x41\x80\x80",
    openings: &[b"\x81", b"\x84\x01\x81", b"\x83\x01\x40\x81", b"\x9f"],
    parts: &[
        b"\x60",
        b"\x00",
        b"\x40",
        b"\x80",
        b"\x61a",
        b"\x82\x00\x00",
        b"\xf6",
        b"\xff",
        b"\x83\x60\x00\x40",
    ],
    claims: &[
        b"\x84\x01\x9f",
        b"\x84\x01\x9b\x00\x00\x00\xff\xff\xff\xff\xff",
        b"\x84\x01\x80\x00\x83\x01\x40\x9f",
        b"\x84\x01\x80\x00\x83\x01\x5b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x8a\x01\x00\x60\x9f",
        b"\x8a\x01\x00\x60\x80\x61m\x9f",
        b"\x8a\x01\x00\x60\x80\x61m\x9a\xff\xff\xff\xff",
        b"\x88\x7a\xff\xff\xff\xff",
        b"\x83\x01\x40\x9f",
    ],
};

const TOKENS: Grammar = Grammar {
    sample: b"# who may log in\nshop:0123456789abcdef0123\n",
    openings: &[b"a:", b"#"],
    parts: &[
        b"0",
        b":",
        b"\n",
        b"#",
        b" ",
        b"a:0123456789abcdef\n",
        b"\xff",
        b"\0",
    ],
    claims: &[b"shop:", b":", b"a b:0123456789abcdef\n"],
};

/// What the admin endpoint reads.
pub(crate) const HTTP: Grammar = Grammar {
    sample: b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
    openings: &[b"GET ", b"a: b\r\n ", b"GET /%2e/"],
    parts: &[
        b"GET / HTTP/1.1\r\n", b"Host: localhost\r\n", b"x: y\r\n", b"\r\n", b"\0", b"a", b"\xff",
        b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n", b" ",
    ],
    claims: &[
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 18446744073709551615\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\x00\x00\x00\x00\x00\x00",
        b"GET / HTTP/1.1\r\nx: ",
    ],
};

/// What a connection is before and after its login: messages of Cap'n Proto. All offsets, sizes and counts are taken
/// from the bytes that follow, whatever those are.
pub(crate) fn rpc() -> Grammar {
    let nested: &'static [u8] = frames::join_with_pointers_nested(1_000).leak();
    let openings: &'static [&'static [u8]] = vec![nested, b"\0\0\0\0\0\0\x01\0"].leak();
    let claims: Vec<&'static [u8]> = [
        frames::header(&[u32::MAX]),
        frames::header(&[1 << 20]),
        frames::header(&[8_000]),
        frames::header(&[1, u32::MAX, u32::MAX, u32::MAX]),
        frames::header(&[0; 511]),
        frames::header(&[1; 4_000]),
        vec![0xff; 8],
    ]
    .into_iter()
    .map(|claim| &*claim.leak())
    .collect();
    Grammar {
        sample: [frames::bootstrap(), frames::login(1, 0)].concat().leak(),
        openings,
        parts: &[
            // A message without anything, a word of it, pointers to structs, lists and other segments.
            b"\0\0\0\0\0\0\0\0",
            b"\0\0\0\0\x02\0\0\0",
            b"\x01\0\0\0\xff\xff\xff\xff",
            b"\x01\0\0\0\xf8\xff\xff\xff",
            b"\x02\0\0\0\0\0\0\0",
            b"\xfc\xff\xff\xff\xff\xff\xff\xff",
            b"\x03\0\0\0\x07\0\0\0",
            b"\0\0\0\0\x10\0\0\0",
        ],
        claims: claims.leak(),
    }
}

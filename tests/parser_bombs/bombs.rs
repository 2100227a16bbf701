//! What bombs are made of, and how.

/// What a parser reads, in pieces that bombs are made of.
pub(crate) struct Grammar {
    /// Something that is right, to be cut and changed.
    pub(crate) sample: &'static [u8],
    /// What opens a level of nesting.
    pub(crate) openings: &'static [&'static [u8]],
    /// What may stand there.
    pub(crate) parts: &'static [&'static [u8]],
    /// What says that much will follow.
    pub(crate) claims: &'static [&'static [u8]],
}

/// How a bomb is meant to hurt.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// By levels of nesting.
    Deep,
    /// By a length that is not there.
    Claim,
    /// By one part again and again.
    Run,
    /// By very many parts.
    Many,
    /// By an end that comes too early.
    Cut,
    /// By bits that are wrong.
    Mutated,
}

const KINDS: [Kind; 6] = [
    Kind::Deep,
    Kind::Claim,
    Kind::Run,
    Kind::Many,
    Kind::Cut,
    Kind::Mutated,
];

/// The next bomb for a grammar.
pub(crate) fn bomb(grammar: &Grammar, random: &mut Random) -> (Kind, Vec<u8>) {
    let kind = random.pick(&KINDS);
    let length = length(random);
    let bytes = match kind {
        Kind::Deep => deep(grammar, length, random),
        Kind::Claim => claim(grammar, length, random),
        Kind::Run => run(random.pick(grammar.parts), length),
        Kind::Many => many(grammar, length, random),
        Kind::Cut => cut(grammar, random),
        Kind::Mutated => mutated(grammar, random),
    };
    (kind, bytes)
}

/// Mostly short, so that there can be thousands; one in twenty has about a mebibyte.
fn length(random: &mut Random) -> usize {
    match random.below(20) {
        0 => (1 << 20) + random.below(1 << 16),
        _ => 1 << random.below(15),
    }
}

fn run(part: &[u8], length: usize) -> Vec<u8> {
    part.repeat(length.div_ceil(part.len().max(1)))
}

/// One opening, or all in turns; half of the time with something at the bottom.
fn deep(grammar: &Grammar, length: usize, random: &mut Random) -> Vec<u8> {
    let openings = match random.below(2) {
        0 => random.pick(grammar.openings).to_vec(),
        _ => grammar.openings.concat(),
    };
    let mut bytes = run(&openings, length);
    if random.below(2) == 0 {
        bytes.extend(random.pick(grammar.parts));
    }
    bytes
}

/// A claim after what may stand before it, and less than was claimed; claims may stand in claims.
fn claim(grammar: &Grammar, length: usize, random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.below(3) {
        bytes.extend(random.pick(grammar.parts));
    }
    let claims = match random.below(2) {
        0 => 1,
        _ => random.below(64),
    };
    for _ in 0..claims {
        bytes.extend(random.pick(grammar.claims));
    }
    bytes.extend(run(random.pick(grammar.parts), length));
    bytes
}

fn many(grammar: &Grammar, length: usize, random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let from = match random.below(4) {
            0 => grammar.openings,
            _ => grammar.parts,
        };
        bytes.extend(random.pick(from));
    }
    bytes
}

fn cut(grammar: &Grammar, random: &mut Random) -> Vec<u8> {
    let sample = grammar.sample;
    sample[..random.below(sample.len())].to_vec()
}

/// The sample with some of its bytes changed, and perhaps a piece of itself inside of itself.
fn mutated(grammar: &Grammar, random: &mut Random) -> Vec<u8> {
    let mut bytes = grammar.sample.to_vec();
    for _ in 0..1 + random.below(8) {
        let at = random.below(bytes.len());
        bytes[at] = random.number() as u8;
    }
    if random.below(2) == 0 {
        let at = random.below(bytes.len());
        let piece = bytes[at..].repeat(1 + random.below(16));
        bytes.splice(at..at, piece);
    }
    bytes
}

/// Numbers that are the same for the same seed: SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize {
        (self.number() % end as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

//! Makes hostile sessions out of honest ones: on the level of bytes, of frames, and of what the frames mean.

use crate::Source;
use capnp::{
    message::{self, ReaderOptions},
    serialize,
};
use capnp_rpc::rpc_capnp as rpc;
use coracle_schema as schema;

/// What a client does: the pieces that it sends, and whether it listens.
pub(super) struct Attack {
    /// Sent one after the other, with other tasks running in between.
    pub(super) pieces: Vec<Vec<u8>>,
    pub(super) reads: bool,
    /// Stays for a moment before it drops the connection.
    pub(super) lingers: bool,
}

/// An attack that is this session, as it was.
pub(super) fn honest(session: &[u8]) -> Attack {
    Attack {
        pieces: vec![session.to_vec()],
        reads: true,
        lingers: true,
    }
}

/// Some attack.
pub(super) fn attack(random: &mut Source<'_>, sessions: &[(&str, &[u8])]) -> Attack {
    let bytes = match random.below(20) {
        0 => (0..random.below(4_000))
            .map(|_| random.number() as u8)
            .collect(),
        1 => flipped(random, random_session(&mut random.clone(), sessions)),
        _ => mutated_frames(random, sessions).concat(),
    };
    Attack {
        pieces: cut(random, &bytes),
        reads: !random.once_in(8),
        lingers: random.once_in(3),
    }
}

fn random_session<'a>(random: &mut Source<'_>, sessions: &[(&str, &'a [u8])]) -> &'a [u8] {
    sessions[random.below(sessions.len())].1
}

/// In one piece, in a few, or in many small ones.
fn cut(random: &mut Source<'_>, bytes: &[u8]) -> Vec<Vec<u8>> {
    let largest = match random.below(4) {
        0 => 64,
        1 => 4_096,
        _ => return vec![bytes.to_vec()],
    };
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() && pieces.len() < 200 {
        let (piece, left) = rest.split_at(rest.len().min(1 + random.below(largest)));
        pieces.push(piece.to_vec());
        rest = left;
    }
    pieces.push(rest.to_vec());
    pieces
}

fn flipped(random: &mut Source<'_>, session: &[u8]) -> Vec<u8> {
    let mut bytes = session.to_vec();
    if bytes.is_empty() {
        return bytes;
    }
    for _ in 0..1 + random.below(8) {
        let at = random.below(bytes.len());
        bytes[at] ^= 1 << random.below(8);
    }
    bytes
}

// --- frames ---

/// The messages of a stream, each with its framing; what is no message any more comes last.
pub(super) fn frames(mut stream: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while let Some(length) = frame_length(stream).filter(|length| *length <= stream.len()) {
        frames.push(stream[..length].to_vec());
        stream = &stream[length..];
    }
    if !stream.is_empty() {
        frames.push(stream.to_vec());
    }
    frames
}

fn frame_length(stream: &[u8]) -> Option<usize> {
    let number = |index: usize| {
        Some(u32::from_le_bytes(stream.get(index * 4..index * 4 + 4)?.try_into().ok()?) as usize)
    };
    let segments = number(0)?
        .checked_add(1)
        .filter(|segments| *segments < 512)?;
    let head = (segments + 1).next_multiple_of(2) * 4;
    let words = (1..=segments).map(number).sum::<Option<usize>>()?;
    Some(head + words * 8)
}

fn mutated_frames(random: &mut Source<'_>, sessions: &[(&str, &[u8])]) -> Vec<Vec<u8>> {
    let mut frames = frames(random_session(random, sessions));
    for _ in 0..1 + random.below(6) {
        let at = random.below(frames.len());
        match random.below(12) {
            0 => frames[at] = flipped(random, &frames[at]),
            1 => truncate(random, &mut frames[at]),
            2 => frames.insert(at, frames[random.below(frames.len())].clone()),
            3 => {
                let other = random.below(frames.len());
                frames.swap(at, other);
            }
            4 if frames.len() > 1 => drop(frames.remove(at)),
            5 => {
                // The rest of another session.
                let other = self::frames(random_session(random, sessions));
                frames.truncate(at + 1);
                frames.extend_from_slice(&other[random.below(other.len())..]);
            }
            6 => wild_word(random, &mut frames[at]),
            7 => wild_head(random, &mut frames[at]),
            8 => frames.insert(at + 1, invented(random)),
            9 => {
                // Far more of it than anybody needs.
                let copies = vec![frames[at].clone(); 1 + random.below(100)];
                frames.splice(at..at, copies);
            }
            _ => frames[at] = reworded(random, &frames[at]).unwrap_or_else(|| invented(random)),
        }
    }
    frames
}

fn truncate(random: &mut Source<'_>, frame: &mut Vec<u8>) {
    frame.truncate(random.below(frame.len() + 1));
    // So that what follows is not an end of the stream by chance.
    if random.once_in(2) {
        frame.resize(frame.len().next_multiple_of(8), 0);
    }
}

/// Replaces a word of the message by a pointer to somewhere, or by a number.
fn wild_word(random: &mut Source<'_>, frame: &mut [u8]) {
    if frame.len() < 16 {
        return;
    }
    let at = 8 + random.below(frame.len() / 8 - 1) * 8;
    let offset = |random: &mut Source<'_>| match random.below(4) {
        0 => (random.number() as u32) << 2,
        1 => (-(random.below(20) as i32) << 2) as u32,
        _ => (random.below(20) as u32) << 2,
    };
    let word = match random.below(6) {
        // A struct of any size.
        0 => {
            u64::from(offset(random))
                | u64::from(random.small() as u16) << 32
                | u64::from(random.small() as u16) << 48
        }
        // A list of anything.
        1 => {
            1 | u64::from(offset(random))
                | (random.number() % 8) << 32
                | u64::from(random.small()) << 35
        }
        // Somewhere in another segment.
        2 => {
            2 | (random.number() % 2) << 2
                | u64::from(random.small()) << 3
                | u64::from(random.small()) << 32
        }
        // A capability.
        3 => 3 | u64::from(random.small()) << 32,
        // The tag of a list.
        4 => {
            u64::from(random.small()) << 2
                | u64::from(random.small() as u16) << 32
                | u64::from(random.small() as u16) << 48
        }
        _ => random.number(),
    };
    frame[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

/// Announces other segments than there are.
fn wild_head(random: &mut Source<'_>, frame: &mut [u8]) {
    if frame.len() < 8 {
        return;
    }
    let at = 4 * random.below(2);
    let number = match random.below(3) {
        0 => random.number() as u32,
        1 => random.pick(&[0, 1, 2, 511, 512, 8 << 20, u32::MAX]),
        _ => random.small(),
    };
    frame[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

// --- what frames mean ---

type Builder = message::Builder<message::HeapAllocator>;

/// The same message with another id, target, method or table of capabilities.
fn reworded(random: &mut Source<'_>, frame: &[u8]) -> Option<Vec<u8>> {
    let reader = serialize::read_message(&mut &*frame, ReaderOptions::new()).ok()?;
    let mut message = Builder::new_default();
    message
        .set_root(reader.get_root::<rpc::message::Reader<'_>>().ok()?)
        .ok()?;
    let root: rpc::message::Builder<'_> = message.get_root().ok()?;
    match root.which().ok()? {
        rpc::message::Bootstrap(Ok(mut bootstrap)) => bootstrap.set_question_id(random.small()),
        rpc::message::Call(Ok(call)) => reword_call(random, call),
        rpc::message::Finish(Ok(mut finish)) => match random.below(2) {
            0 => finish.set_question_id(random.small()),
            _ => finish.set_release_result_caps(random.once_in(2)),
        },
        rpc::message::Release(Ok(mut release)) => match random.below(2) {
            0 => release.set_id(random.small()),
            _ => release.set_reference_count(random.small()),
        },
        _ => return None,
    }
    Some(serialize::write_message_to_words(&message))
}

const INTERFACES: [u64; 7] = [
    <schema::gate::Client as capnp::traits::HasTypeId>::TYPE_ID,
    <schema::session::Client as capnp::traits::HasTypeId>::TYPE_ID,
    <schema::loader::Client as capnp::traits::HasTypeId>::TYPE_ID,
    <schema::worker::Client as capnp::traits::HasTypeId>::TYPE_ID,
    <schema::code_source::Client as capnp::traits::HasTypeId>::TYPE_ID,
    <schema::target::Client as capnp::traits::HasTypeId>::TYPE_ID,
    0xdead_beef,
];

fn reword_call(random: &mut Source<'_>, mut call: rpc::call::Builder<'_>) {
    match random.below(7) {
        0 => call.set_question_id(random.small()),
        1 => call.set_method_id(random.below(4) as u16),
        2 => call.set_interface_id(random.pick(&INTERFACES)),
        3 => call.init_target().set_imported_cap(random.small()),
        4 => {
            let mut answer = call.init_target().init_promised_answer();
            answer.set_question_id(random.small());
            let operations = random.below(4) as u32;
            let mut transform = answer.init_transform(operations);
            for index in 0..operations {
                transform
                    .reborrow()
                    .get(index)
                    .set_get_pointer_field(random.below(4) as u16);
            }
        }
        5 => match random.below(3) {
            0 => call.get_send_results_to().set_caller(()),
            1 => call.get_send_results_to().set_yourself(()),
            _ => drop(call.get_send_results_to().init_third_party()),
        },
        _ => {
            let Ok(params) = call.get_params() else {
                return;
            };
            let count = random.below(5) as u32;
            let mut table = params.init_cap_table(count);
            for index in 0..count {
                descriptor(random, table.reborrow().get(index));
            }
        }
    }
}

fn descriptor(random: &mut Source<'_>, mut descriptor: rpc::cap_descriptor::Builder<'_>) {
    match random.below(6) {
        0 => descriptor.set_none(()),
        1 => descriptor.set_sender_hosted(random.small()),
        2 => descriptor.set_sender_promise(random.small()),
        3 => descriptor.set_receiver_hosted(random.small()),
        4 => descriptor
            .init_receiver_answer()
            .set_question_id(random.small()),
        _ => descriptor
            .init_third_party_hosted()
            .set_vine_id(random.small()),
    }
}

/// A message that no session of ours has.
fn invented(random: &mut Source<'_>) -> Vec<u8> {
    let mut message = Builder::new_default();
    let mut root: rpc::message::Builder<'_> = message.init_root();
    match random.below(13) {
        0 => root.init_bootstrap().set_question_id(random.small()),
        1 => {
            let mut release = root.init_release();
            release.set_id(random.small());
            release.set_reference_count(random.small());
        }
        2 => {
            let mut finish = root.init_finish();
            finish.set_question_id(random.small());
            finish.set_release_result_caps(random.once_in(2));
        }
        3 => {
            let mut answer = root.init_return();
            answer.set_answer_id(random.small());
            match random.below(5) {
                0 => answer.set_canceled(()),
                1 => answer.set_results_sent_elsewhere(()),
                2 => answer.set_take_from_other_question(random.small()),
                3 => answer.init_exception().set_reason("no"),
                _ => descriptor(random, answer.init_results().init_cap_table(1).get(0)),
            }
        }
        4 => {
            let mut resolve = root.init_resolve();
            resolve.set_promise_id(random.small());
            match random.below(2) {
                0 => descriptor(random, resolve.init_cap()),
                _ => resolve.init_exception().set_reason("broken"),
            }
        }
        5 => {
            let mut disembargo = root.init_disembargo();
            match random.below(2) {
                0 => disembargo
                    .reborrow()
                    .init_target()
                    .set_imported_cap(random.small()),
                _ => disembargo
                    .reborrow()
                    .init_target()
                    .init_promised_answer()
                    .set_question_id(random.small()),
            }
            let mut context = disembargo.get_context();
            match random.below(4) {
                0 => context.set_sender_loopback(random.small()),
                1 => context.set_receiver_loopback(random.small()),
                2 => context.set_accept(()),
                _ => context.set_provide(random.small()),
            }
        }
        6 => root.init_abort().set_reason("enough"),
        7 => root
            .init_unimplemented()
            .init_resolve()
            .init_cap()
            .set_sender_hosted(random.small()),
        8 => root.init_provide().set_question_id(random.small()),
        9 => root.init_accept().set_question_id(random.small()),
        10 => root.init_join().set_question_id(random.small()),
        11 => {
            let mut call = root.init_call();
            call.set_question_id(random.small());
            call.set_interface_id(random.pick(&INTERFACES));
            call.set_method_id(random.below(3) as u16);
            call.init_target().set_imported_cap(random.small());
        }
        _ => root
            .set_unimplemented(
                nested(random.below(80))
                    .get_root_as_reader()
                    .expect("just made"),
            )
            .expect("it fits"),
    }
    serialize::write_message_to_words(&message)
}

/// A message within a message within a message.
fn nested(depth: usize) -> Builder {
    let mut message = Builder::new_default();
    let mut inner: rpc::message::Builder<'_> = message.init_root();
    for _ in 0..depth {
        inner = inner.init_unimplemented();
    }
    inner.init_bootstrap().set_question_id(0);
    message
}

//! Cap'n Proto messages, byte by byte, as no decent client sends them.

use capnp::{message, serialize};
use capnp_rpc::rpc_capnp as rpc;

/// A message with its framing.
pub fn frame(fill: impl FnOnce(rpc::message::Builder<'_>)) -> Vec<u8> {
    let mut message = message::Builder::new_default();
    fill(message.init_root());
    serialize::write_message_to_words(&message)
}

/// Asks for the gate, as question 0.
pub fn bootstrap() -> Vec<u8> {
    frame(|message| message.init_bootstrap().set_question_id(0))
}

/// The framing of a message with segments of these sizes in words; the contents are to follow.
pub fn header(segment_words: &[u32]) -> Vec<u8> {
    let mut bytes = (segment_words.len() as u32 - 1).to_le_bytes().to_vec();
    for words in segment_words {
        bytes.extend(words.to_le_bytes());
    }
    if segment_words.len().is_multiple_of(2) {
        bytes.extend([0; 4]);
    }
    bytes
}

/// A `join` message, which servers answer by sending it back, with a chain of pointers in it.
pub fn join_with_pointers_nested(depth: u32) -> Vec<u8> {
    // Words: the root pointer, Message (1 data word, 1 pointer), Join (1 data word, 2 pointers), then the chain.
    let mut words: Vec<u64> = vec![
        struct_pointer(0, 1, 1),
        u64::from(JOIN_TAG),
        struct_pointer(0, 1, 2),
        0,
        0,
        struct_pointer(0, 0, 1),
    ];
    words.extend((1..depth).map(|_| struct_pointer(0, 0, 1)));
    words.push(0);
    let mut bytes = header(&[words.len() as u32]);
    bytes.extend(words.into_iter().flat_map(u64::to_le_bytes));
    bytes
}

const JOIN_TAG: u16 = 12;

/// A pointer to a struct that starts `offset` words after it.
pub fn struct_pointer(offset: u32, data_words: u16, pointers: u16) -> u64 {
    u64::from(offset) << 2 | u64::from(data_words) << 32 | u64::from(pointers) << 48
}

/// A pointer to a list of structs without any content; the tag word that says how many follows at `offset`.
pub fn empty_structs_pointer(offset: u32) -> u64 {
    1 | u64::from(offset) << 2 | 7 << 32
}

/// The tag of such a list.
pub fn empty_structs_tag(count: u32) -> u64 {
    u64::from(count) << 2
}

/// The id of the interface `Loader`, and of `Gate`.
pub const LOADER: u64 = <coracle_schema::loader::Client as capnp::traits::HasTypeId>::TYPE_ID;
pub const GATE: u64 = <coracle_schema::gate::Client as capnp::traits::HasTypeId>::TYPE_ID;

/// Calls a method of what is at these pointer fields of a question's answer.
pub fn call(
    question: u32,
    of_question: u32,
    fields: &[u16],
    interface: u64,
    method: u16,
    fill: impl FnOnce(capnp::any_pointer::Builder<'_>),
) -> Vec<u8> {
    frame(|message| {
        let mut call = message.init_call();
        call.set_question_id(question);
        call.set_interface_id(interface);
        call.set_method_id(method);
        let mut answer = call.reborrow().init_target().init_promised_answer();
        answer.set_question_id(of_question);
        let mut transform = answer.init_transform(fields.len() as u32);
        for (index, field) in fields.iter().enumerate() {
            transform
                .reborrow()
                .get(index as u32)
                .set_get_pointer_field(*field);
        }
        fill(call.init_params().get_content());
    })
}

/// Logs in without a token at the gate that a question is answered with.
pub fn login(question: u32, of_question: u32) -> Vec<u8> {
    call(question, of_question, &[], GATE, 0, |params| {
        params
            .init_as::<coracle_schema::gate::login_params::Builder<'_>>()
            .init_credentials()
            .set_none(());
    })
}

/// Turns the list of `actual` modules in a frame into one that claims `count` modules without any content.
pub fn claim_many_modules(frame: &mut [u8], actual: u32, count: u32) {
    let words = |frame: &[u8], index: usize| {
        u64::from_le_bytes(frame[index * 8..][..8].try_into().expect("eight"))
    };
    let module_words = 4; // two data words at most and two pointers; the tag says it exactly
    let tag = (1..frame.len() / 8)
        .find(|index| {
            let word = words(frame, *index);
            let (data, pointers) = (word >> 32 & 0xffff, word >> 48);
            word & 0xffff_ffff == u64::from(actual) << 2
                && (1..=module_words).contains(&(data + pointers))
        })
        .expect("the list has a tag");
    let pointer = (1..tag)
        .find(|index| {
            let word = words(frame, *index);
            word & 3 == 1 && word >> 32 & 7 == 7 && index + 1 + (word as u32 >> 2) as usize == tag
        })
        .expect("something points to the tag");
    let offset = words(frame, pointer) as u32 >> 2;
    frame[pointer * 8..][..8].copy_from_slice(&empty_structs_pointer(offset).to_le_bytes());
    frame[tag * 8..][..8].copy_from_slice(&empty_structs_tag(count).to_le_bytes());
}

//! The four imports.
//!
//! Each checks what it was given, takes its price, and puts what was asked into the outbox. None runs for long, waits,
//! or calls anything outside of the border.

use super::{
    Abort, Allowance, State, Stop, loading, meter::Charge, outbox::Finished, outbox::Started,
};
use crate::{
    fuel::Tariff,
    message::{Bytes, CallAccess, Log, LogLevel, OutwardCall, VerdictKind},
    random,
};
use coracle_abi::{
    self as abi, EXTERNALS_MAX, IMPORT_MODULE, LOG_ARGUMENTS, LOG_ARGUMENTS_MAX, PATH_BYTES_MAX,
    PATH_LENGTH_MAX, TIMERS_MAX, finish, operation,
};
use minicbor::bytes::ByteSlice;
use std::task::Poll;
use wasmtime::{Caller, Engine, Linker, Result};

/// Bytes that one console line and one description of an exception may have.
const LOG_LINE_BYTES_MAX: usize = 64 << 10;
const THROWN_BYTES_MAX: usize = 1 << 20;
/// Bytes that the table of externals of a result may have.
const TABLE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a call that a guest makes: 32 MiB of arguments, and all the rest.
const CALL_BYTES_MAX: usize = 33 << 20;
/// Bytes of an argument that are paid for: those of the largest; what has more is refused.
const BYTES_PRICED_MAX: usize = 128 << 20;
/// Bytes that `random` fills at once: the web platform's limit.
const RANDOM_BYTES_MAX: usize = 65_536;
/// What a console line counts for besides its text: its record, and the allocator's share.
const LOG_RECORD_BYTES: u64 = 80;

/// Defines the imports for isolates, which yield when a slice is over.
pub(crate) fn linker(engine: &Engine) -> Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    linker.func_wrap_async(
        IMPORT_MODULE,
        "start",
        |mut caller: Caller<'_, State>, (kind, pointer, length): (u32, u32, u32)| {
            Box::new(async move {
                let operation = start(&mut caller, kind, pointer, length)?;
                end_slice_if_due(&mut caller).await;
                Ok(operation)
            })
        },
    )?;
    linker.func_wrap_async(
        IMPORT_MODULE,
        "finish",
        |mut caller: Caller<'_, State>,
         (invocation, kind, pointer, length): (u64, u32, u32, u32)| {
            Box::new(async move {
                finish_invocation(&mut caller, invocation, kind, pointer, length)?;
                end_slice_if_due(&mut caller).await;
                Ok(())
            })
        },
    )?;
    linker.func_wrap_async(
        IMPORT_MODULE,
        "log",
        |mut caller: Caller<'_, State>, (level, pointer, length): (u32, u32, u32)| {
            Box::new(async move {
                log(&mut caller, level, pointer, length)?;
                end_slice_if_due(&mut caller).await;
                Ok(())
            })
        },
    )?;
    linker.func_wrap_async(
        IMPORT_MODULE,
        "random",
        |mut caller: Caller<'_, State>, (pointer, length): (u32, u32)| {
            Box::new(async move {
                fill_random(&mut caller, pointer, length)?;
                end_slice_if_due(&mut caller).await;
                Ok(())
            })
        },
    )?;
    Ok(linker)
}

/// Defines the imports for the guest's set-up, which is unmetered and runs in one go.
pub(crate) fn snapshot_linker(engine: &Engine) -> Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    linker.func_wrap(
        IMPORT_MODULE,
        "start",
        |mut caller: Caller<'_, State>, kind: u32, pointer: u32, length: u32| {
            start(&mut caller, kind, pointer, length)
        },
    )?;
    linker.func_wrap(
        IMPORT_MODULE,
        "finish",
        |mut caller: Caller<'_, State>, invocation: u64, kind: u32, pointer: u32, length: u32| {
            finish_invocation(&mut caller, invocation, kind, pointer, length)
        },
    )?;
    linker.func_wrap(
        IMPORT_MODULE,
        "log",
        |mut caller: Caller<'_, State>, level: u32, pointer: u32, length: u32| {
            log(&mut caller, level, pointer, length)
        },
    )?;
    linker.func_wrap(
        IMPORT_MODULE,
        "random",
        |mut caller: Caller<'_, State>, pointer: u32, length: u32| {
            fill_random(&mut caller, pointer, length)
        },
    )?;
    Ok(linker)
}

/// Bytes of the guest's, checked against its memory.
fn read<'a>(caller: &'a Caller<'_, State>, pointer: u32, length: usize) -> Result<&'a [u8]> {
    let memory = caller
        .data()
        .memory
        .ok_or_else(|| wasmtime::Error::msg("the guest calls out before it has memory"))?;
    let start = pointer as usize;
    memory
        .data(caller)
        .get(start..start.saturating_add(length))
        .ok_or_else(|| {
            wasmtime::Error::msg(format!(
                "{length} bytes at {pointer} are outside of the guest's memory"
            ))
        })
}

/// Takes the price before the work is done.
fn charge(caller: &mut Caller<'_, State>, tariff: Tariff, bytes: usize) -> Result<()> {
    let Ok(left) = caller.get_fuel() else {
        // The guest's set-up is not metered.
        return Ok(());
    };
    let state = caller.data_mut();
    match state.meter.charge(left, tariff.price(bytes)) {
        Charge::Paid { left, slice_over } => {
            state.slice_over |= slice_over;
            caller.set_fuel(left)
        }
        Charge::TooMuch => {
            caller.set_fuel(0)?;
            Err(wasmtime::Trap::OutOfFuel.into())
        }
    }
}

/// Lets others run where host operations have used up the slice.
async fn end_slice_if_due(caller: &mut Caller<'_, State>) {
    let mut due = std::mem::take(&mut caller.data_mut().slice_over);
    std::future::poll_fn(|_| match std::mem::take(&mut due) {
        true => Poll::Pending,
        false => Poll::Ready(()),
    })
    .await;
}

fn start(caller: &mut Caller<'_, State>, kind: u32, pointer: u32, length: u32) -> Result<u64> {
    let length = length as usize;
    caller.data_mut().spoil_load();
    let tariff = match kind {
        operation::CANCEL | operation::RELEASE => Tariff::CANCEL,
        operation::LOAD => Tariff::LOAD,
        _ => Tariff::OPERATION,
    };
    charge(caller, tariff, length.min(BYTES_PRICED_MAX))?;
    match kind {
        operation::TIMER => {
            let ms = f64::from_le_bytes(number(caller, pointer, length)?);
            start_timer(caller, ms)
        }
        operation::CANCEL => {
            let cancelled = u64::from_le_bytes(number(caller, pointer, length)?);
            caller.data().outbox().cancelled.push(cancelled);
            Ok(0)
        }
        // The guest's own codec keeps arguments below that.
        operation::CALL | operation::STREAM if length > CALL_BYTES_MAX => Err(
            wasmtime::Error::msg(format!("the guest makes a call of {length} bytes")),
        ),
        operation::CALL => {
            let call = outward_call(read(caller, pointer, length)?, false)?;
            let operation = start_subrequest(caller)?;
            start_call(caller, operation, call)
        }
        operation::STREAM => {
            let call = outward_call(read(caller, pointer, length)?, true)?;
            let operation = caller.data_mut().next_operation();
            start_call(caller, operation, call)
        }
        operation::LOAD | operation::ENTRYPOINT | operation::GET | operation::NOT_PROVIDED => {
            start_loading(caller, kind, pointer, length)
        }
        operation::RELEASE => {
            let import = u64::from_le_bytes(number(caller, pointer, length)?);
            caller.data().outbox().released.push(import);
            Ok(0)
        }
        operation::HOLD => {
            let invocation = u64::from_le_bytes(number(caller, pointer, length)?);
            start_hold(caller, invocation)
        }
        operation::ABORT if length <= THROWN_BYTES_MAX => {
            let thrown = minicbor::decode(read(caller, pointer, length)?)?;
            Err(Abort(Box::new(thrown)).into())
        }
        unknown => Err(wasmtime::Error::msg(format!(
            "the guest asked for operation {unknown}, which does not exist"
        ))),
    }
}

fn number(caller: &Caller<'_, State>, pointer: u32, length: usize) -> Result<[u8; 8]> {
    if length != 8 {
        return Err(wasmtime::Error::msg(format!(
            "an argument of {length} bytes is no number"
        )));
    }
    Ok(read(caller, pointer, length)?.try_into()?)
}

fn start_timer(caller: &mut Caller<'_, State>, ms: f64) -> Result<u64> {
    let state = caller.data_mut();
    if !state.outbox().timer_started() {
        return Err(Stop {
            kind: VerdictKind::Timers,
            limit_name: "timers_max",
            used: TIMERS_MAX as u64 + 1,
            limit: TIMERS_MAX as u64,
        }
        .into());
    }
    let operation = state.next_operation();
    let started = Started::Timer { operation, ms };
    state.outbox().started.push(started);
    Ok(operation)
}

fn start_call(caller: &Caller<'_, State>, operation: u64, call: OutwardCall) -> Result<u64> {
    let call = Box::new(call);
    let started = Started::Call { operation, call };
    caller.data().outbox().started.push(started);
    Ok(operation)
}

fn start_hold(caller: &mut Caller<'_, State>, invocation: u64) -> Result<u64> {
    let state = caller.data_mut();
    if !state.outbox().hold_started() {
        return Err(wasmtime::Error::msg("the guest holds too many invocations"));
    }
    let operation = state.next_operation();
    let started = Started::Hold {
        operation,
        invocation,
    };
    state.outbox().started.push(started);
    Ok(operation)
}

/// What a guest asks a loader for. Loading and looking for a worker are subrequests.
fn start_loading(
    caller: &mut Caller<'_, State>,
    kind: u32,
    pointer: u32,
    length: usize,
) -> Result<u64> {
    let limits = caller.data().limits;
    if length > loading::bytes_max(kind, &limits) {
        return Err(wasmtime::Error::msg(format!(
            "the guest asks a loader in {length} bytes"
        )));
    }
    let operation = match kind {
        operation::LOAD | operation::GET => start_subrequest(caller)?,
        _ => caller.data_mut().next_operation(),
    };
    let request = loading::read(kind, read(caller, pointer, length)?, &limits)?;
    let started = Started::Loading { operation, request };
    caller.data().outbox().started.push(started);
    Ok(operation)
}

/// A call as the guest describes it, every part of it bounded.
fn outward_call(bytes: &[u8], is_stream: bool) -> Result<OutwardCall> {
    let broken = |what: &str| wasmtime::Error::msg(format!("the guest makes a call {what}"));
    let call: abi::Call<'_> = minicbor::decode(bytes).map_err(|_| broken("that can't be read"))?;
    if call.path.len() > PATH_LENGTH_MAX || call.args.externals.len() > EXTERNALS_MAX {
        return Err(broken("with too many names or externals"));
    }
    if call.path.iter().map(|name| name.len()).sum::<usize>() > PATH_BYTES_MAX {
        return Err(broken("with names that are too long"));
    }
    Ok(OutwardCall {
        import: call.import,
        is_stream,
        path: call.path.into_iter().map(str::to_owned).collect(),
        access: match call.access {
            abi::Access::Call => CallAccess::Call,
            abi::Access::Get => CallAccess::Get,
        },
        args: Bytes {
            form: call.args.form,
            bytes: call.args.bytes.to_vec(),
            externals: call.args.externals,
        },
    })
}

/// Counts a call out of the isolate, and gives it an id.
fn start_subrequest(caller: &mut Caller<'_, State>) -> Result<u64> {
    let state = caller.data_mut();
    let Allowance {
        subrequests_sent,
        subrequests_max: limit,
        ..
    } = &mut state.allowance;
    if *subrequests_sent >= *limit {
        return Err(Stop {
            kind: VerdictKind::Subrequests,
            limit_name: "subrequests_max",
            used: *subrequests_sent + 1,
            limit: *limit,
        }
        .into());
    }
    *subrequests_sent += 1;
    Ok(state.next_operation())
}

fn finish_invocation(
    caller: &mut Caller<'_, State>,
    invocation: u64,
    kind: u32,
    pointer: u32,
    length: u32,
) -> Result<()> {
    let length = length as usize;
    let copied_max = match kind {
        finish::CBOR | finish::JSON => caller.data().result_bytes_max,
        finish::WITH_EXTERNALS => caller
            .data()
            .result_bytes_max
            .saturating_add(TABLE_BYTES_MAX),
        finish::THREW => THROWN_BYTES_MAX,
        _ => 8,
    };
    // What is too large to be passed on is not copied; its size says the rest.
    let copied = if length > copied_max { 0 } else { length };
    charge(caller, Tariff::FINISH, copied)?;
    let bytes = read(caller, pointer, copied)?.to_vec();
    let fuel_left = caller.get_fuel().unwrap_or(0);
    let state = caller.data();
    state.outbox().finished.push(Finished {
        invocation,
        kind,
        bytes,
        fuel_burnt: state.fuel.saturating_sub(fuel_left),
        length,
    });
    Ok(())
}

fn log(caller: &mut Caller<'_, State>, level: u32, pointer: u32, length: u32) -> Result<()> {
    let length = length as usize;
    if level == LOG_ARGUMENTS {
        return log_arguments(caller, pointer, length);
    }
    let allowed = caller.data().allowance.log_bytes;
    let kept_max = LOG_LINE_BYTES_MAX.min(usize::try_from(allowed).unwrap_or(usize::MAX));
    charge(caller, Tariff::LOG, length.min(kept_max))?;
    // The rest is only counted; that it exists is checked all the same.
    let (message, taken) = text(read(caller, pointer, length)?, kept_max);
    let level = match level {
        0 => LogLevel::Debug,
        1 => LogLevel::Info,
        2 => LogLevel::Log,
        3 => LogLevel::Warn,
        _ => LogLevel::Error,
    };
    let state = caller.data_mut();
    state.allowance.log_bytes = allowed.saturating_sub(log_cost(message.len()));
    let log = Log {
        level,
        message,
        arguments: std::mem::take(&mut state.outbox().log_arguments),
        timestamp_ms: state.now_ms,
    };
    match &mut state.load_logs {
        Some(logs) if taken == length && allowed > 0 => logs.push(log.clone()),
        _ => state.spoil_load(),
    }
    let mut outbox = state.outbox();
    outbox.log_bytes_dropped += (length - taken) as u64;
    if allowed > 0 {
        outbox.logs.push(log);
    }
    Ok(())
}

/// The values of the line that comes next, if there is room for all of them beside the text.
fn log_arguments(caller: &mut Caller<'_, State>, pointer: u32, length: usize) -> Result<()> {
    let allowed = caller.data().allowance.log_bytes;
    let fits = length <= LOG_LINE_BYTES_MAX && length as u64 <= allowed / 2;
    charge(caller, Tariff::LOG, if fits { length } else { 0 })?;
    let bytes = read(caller, pointer, length)?;
    if !fits {
        caller.data_mut().spoil_load();
        caller.data().outbox().log_bytes_dropped += length as u64;
        return Ok(());
    }
    let unreadable = || wasmtime::Error::msg("the guest logs values in a way that can't be read");
    let mut arguments = Vec::new();
    let mut decoder = minicbor::Decoder::new(bytes);
    for argument in decoder
        .array_iter::<&ByteSlice>()
        .map_err(|_| unreadable())?
    {
        if arguments.len() == LOG_ARGUMENTS_MAX {
            return Err(unreadable());
        }
        arguments.push(argument.map_err(|_| unreadable())?.to_vec());
    }
    let state = caller.data_mut();
    state.allowance.log_bytes = allowed - length as u64;
    state.outbox().log_arguments = arguments;
    Ok(())
}

/// What a console line counts for.
pub(crate) fn log_cost(message_bytes: usize) -> u64 {
    LOG_RECORD_BYTES + message_bytes as u64
}

/// The text in `bytes`, as far as it has room in `bytes_max`, and how many of the bytes it stands for. What is not
/// UTF-8 is replaced; no character is cut in two.
fn text(bytes: &[u8], bytes_max: usize) -> (String, usize) {
    // A character that begins within the room ends within three bytes more.
    let near = &bytes[..bytes.len().min(bytes_max.saturating_add(3))];
    let mut text = String::with_capacity(near.len().min(bytes_max));
    let mut taken = 0;
    for chunk in near.utf8_chunks() {
        let (valid, invalid) = (chunk.valid(), chunk.invalid());
        let fits = valid.floor_char_boundary(bytes_max - text.len());
        text.push_str(&valid[..fits]);
        taken += fits;
        let replacement = char::REPLACEMENT_CHARACTER;
        if fits < valid.len() || bytes_max - text.len() < replacement.len_utf8() {
            break;
        }
        if !invalid.is_empty() {
            text.push(replacement);
            taken += invalid.len();
        }
    }
    (text, taken)
}

fn fill_random(caller: &mut Caller<'_, State>, pointer: u32, length: u32) -> Result<()> {
    let length = length as usize;
    if length > RANDOM_BYTES_MAX {
        return Err(wasmtime::Error::msg(format!(
            "the guest asked for {length} random bytes at once"
        )));
    }
    caller.data_mut().spoil_load();
    charge(caller, Tariff::RANDOM, length)?;
    read(caller, pointer, length)?;
    let mut bytes = vec![0; length];
    match &mut caller.data_mut().seed {
        Some(seed) => random::fill_from(seed, &mut bytes),
        None => random::fill(&mut bytes),
    }
    let memory = caller
        .data()
        .memory
        .ok_or_else(|| wasmtime::Error::msg("the guest has no memory"))?;
    memory.write(caller, pointer as usize, &bytes)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn a_line_is_cut_between_characters_and_says_how_much_it_stands_for() {
        assert_eq!(text(b"abc", 3), ("abc".into(), 3));
        assert_eq!(text(b"abcd", 3), ("abc".into(), 3));
        assert_eq!(text("a€b".as_bytes(), 3), ("a".into(), 1));
        assert_eq!(text("a€b".as_bytes(), 4), ("a€".into(), 4));
        assert_eq!(text("€".as_bytes(), 0), (String::new(), 0));
        assert_eq!(text("𝄞x".as_bytes(), 4), ("𝄞".into(), 4));
    }

    #[test]
    fn what_is_no_text_takes_no_more_room_than_there_is() {
        assert_eq!(text(b"a\xffb", 9), ("a\u{fffd}b".into(), 3));
        assert_eq!(text(&[0xff; 10], 7), ("\u{fffd}\u{fffd}".into(), 2));
        assert_eq!(text(&[0xff; 10], 2), (String::new(), 0));
        // A character that the guest itself left unfinished.
        assert_eq!(text(b"a\xe2\x82", 9), ("a\u{fffd}".into(), 3));
    }
}

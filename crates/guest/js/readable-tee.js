// Tee of byte streams (Streams standard): both branches are byte streams, and either may be read into a reader's own buffer.
//
// Owns: which kind of reader the original has at the moment.

function byteTee(stream) {
  const tee = newTee(acquireReader(stream, DEFAULT));
  const branches = listOfTwo(newReadable(), newReadable());
  const state = { __proto__: null, tee, stream, branches, isReading: false, readAgain: listOfTwo(false, false) };
  for (let index = 0; index < 2; index++) {
    const pull = () => byteTeePull(state, index);
    const cancel = (reason) => teeCancel(tee, index, reason);
    setUpByteController(branches[index], { __proto__: null, start: undefined, pull, cancel, size: undefined }, 0, undefined);
  }
  watchTeeReader(state);
  return branches;
}

// An error of the original is one of both branches, as long as the reader is still the same.
function watchTeeReader(state) {
  const { tee, branches } = state;
  const { reader } = tee;
  react(readerClosed(reader), ignore, (error) => {
    if (tee.reader !== reader) return;
    byteError(branches[0].controller, error);
    byteError(branches[1].controller, error);
    if (!tee.isCanceled[0] || !tee.isCanceled[1]) tee.cancelled.resolve();
  });
}

function setTeeReader(state, kind) {
  const { tee } = state;
  if (tee.reader.kind === kind) return;
  const old = tee.reader;
  // (Before the old one is released, which rejects what is being watched.)
  tee.reader = undefined;
  readerRelease(old);
  tee.reader = acquireReader(state.stream, kind);
  watchTeeReader(state);
}

function byteTeePull(state, index) {
  if (state.isReading) {
    state.readAgain[index] = true;
    return undefined;
  }
  state.isReading = true;
  const byob = byobRequestOf(state.branches[index].controller);
  if (byob === null) teePullDefault(state);
  else teePullInto(state, byobRequestState(byob).view, index);
  return undefined;
}

function teeGoOn(state) {
  state.isReading = false;
  if (state.readAgain[0]) byteTeePull(state, 0);
  else if (state.readAgain[1]) byteTeePull(state, 1);
}

function teePullDefault(state) {
  const { tee, branches } = state;
  setTeeReader(state, DEFAULT);
  const request = newReadRequest(
    (chunk) =>
      QueueMicrotask(() => {
        state.readAgain[0] = state.readAgain[1] = false;
        const first = chunk;
        let second = chunk;
        if (!tee.isCanceled[0] && !tee.isCanceled[1]) {
          try {
            second = copyBytes(chunk);
          } catch (error) {
            failTee(state, error);
            return;
          }
        }
        if (!tee.isCanceled[0]) byteEnqueue(branches[0].controller, viewOfBytes(first));
        if (!tee.isCanceled[1]) byteEnqueue(branches[1].controller, viewOfBytes(second));
        teeGoOn(state);
      }),
    () => {
      state.isReading = false;
      for (let index = 0; index < 2; index++) {
        if (!tee.isCanceled[index]) byteClose(branches[index].controller);
      }
      for (let index = 0; index < 2; index++) {
        const { controller } = branches[index];
        if (queueLength(controller.pending) > 0) byteRespond(controller, 0);
      }
      if (!tee.isCanceled[0] || !tee.isCanceled[1]) tee.cancelled.resolve();
    },
    () => {
      state.isReading = false;
    },
  );
  readerRead(tee.reader, request);
}

// Reads into the view that the branch `index` was given.
function teePullInto(state, view, index) {
  const { tee, branches } = state;
  setTeeReader(state, BYTES);
  const own = branches[index];
  const other = branches[1 - index];
  const request = newReadRequest(
    (chunk) =>
      QueueMicrotask(() => {
        state.readAgain[0] = state.readAgain[1] = false;
        const isOtherCanceled = tee.isCanceled[1 - index];
        if (!isOtherCanceled) {
          let copy;
          try {
            copy = copyBytes(chunk);
          } catch (error) {
            failTee(state, error);
            return;
          }
          if (!tee.isCanceled[index]) byteRespondWithNewView(own.controller, viewOfBytes(chunk));
          byteEnqueue(other.controller, viewOfBytes(copy));
        } else if (!tee.isCanceled[index]) {
          byteRespondWithNewView(own.controller, viewOfBytes(chunk));
        }
        teeGoOn(state);
      }),
    (chunk) => {
      state.isReading = false;
      const isOwnCanceled = tee.isCanceled[index];
      const isOtherCanceled = tee.isCanceled[1 - index];
      if (!isOwnCanceled) byteClose(own.controller);
      if (!isOtherCanceled) byteClose(other.controller);
      if (chunk !== undefined) {
        if (!isOwnCanceled) byteRespondWithNewView(own.controller, viewOfBytes(chunk));
        if (!isOtherCanceled && queueLength(other.controller.pending) > 0) byteRespond(other.controller, 0);
      }
      if (!isOwnCanceled || !isOtherCanceled) tee.cancelled.resolve();
    },
    () => {
      state.isReading = false;
    },
  );
  byobRead(tee.reader, viewOfBytes(view), 1, request);
}

function failTee(state, error) {
  const { tee, branches } = state;
  byteError(branches[0].controller, error);
  byteError(branches[1].controller, error);
  react(readableCancel(state.stream, error), tee.cancelled.resolve, tee.cancelled.reject);
}

function viewOfBytes(bytes) {
  return toView(bytes, "tee");
}

// Uses of the web platform's classes that call nothing but what was captured before user code could replace it. The
// function is evaluated from its source where the prelude is, so it can use nothing from here.

// A list of [name, run, expected]: `run` answers with a value, or leaves it in `later` until its promises have settled.
export function webOperations() {
  const { apply, construct, getOwnPropertyDescriptor } = Reflect;
  const call = (constructor, name) => {
    const method = constructor.prototype[name];
    return (self, args) => apply(method, self, args ?? []);
  };
  const get = (constructor, name) => {
    const getter = getOwnPropertyDescriptor(constructor.prototype, name).get;
    return (self) => apply(getter, self, []);
  };
  const make = (constructor) => (args) => construct(constructor, args ?? []);
  const operations = [];
  const operation = (name, run, expected) => (operations[operations.length] = [name, run, expected]);
  const thrown = (run) => {
    try {
      run();
    } catch (error) {
      return getName(error);
    }
    return undefined;
  };
  const getName = (error) => (error instanceof TypeErrorHere ? "TypeError" : error instanceof RangeErrorHere ? "RangeError" : "other");
  const TypeErrorHere = TypeError;
  const RangeErrorHere = RangeError;
  // No method of its own, and none that it inherits.
  const bytes = (list) => construct(Bytes, [list]);
  const Bytes = Uint8Array;
  const hex = (list) => {
    let text = "";
    const length = lengthOf(list);
    for (let index = 0; index < length; index++) text += digits[list[index] >> 4] + digits[list[index] & 15];
    return text;
  };
  const digits = "0123456789abcdef";
  const lengthOf = get(Object.getPrototypeOf(Bytes), "byteLength");
  const settings = (members) => ({ __proto__: null, ...members });

  {
    const [newTarget, add, remove, dispatch, newEvent, newController] = [make(EventTarget), call(EventTarget, "addEventListener"), call(EventTarget, "removeEventListener"), call(EventTarget, "dispatchEvent"), make(Event), make(AbortController)];
    const [signalOf, abort, isAborted, reasonOf, check] = [get(AbortController, "signal"), call(AbortController, "abort"), get(AbortSignal, "aborted"), get(AbortSignal, "reason"), call(AbortSignal, "throwIfAborted")];
    const { any, timeout } = AbortSignal;
    const setHandler = getOwnPropertyDescriptor(AbortSignal.prototype, "onabort").set;
    operation("events", () => {
      let seen = "";
      const target = newTarget();
      const listener = () => void (seen += "a");
      add(target, ["x", listener]);
      add(target, ["x", { __proto__: null, handleEvent: () => void (seen += "b") }, settings({ once: true })]);
      dispatch(target, [newEvent(["x"])]);
      remove(target, ["x", listener]);
      dispatch(target, [newEvent(["x", settings({ cancelable: true })])]);
      return seen;
    }, "ab");
    operation("abort", () => {
      let seen = "";
      const controller = newController();
      const signal = signalOf(controller);
      apply(setHandler, signal, [() => void (seen += "on")]);
      const target = newTarget();
      add(target, ["x", () => void (seen += "x"), settings({ signal })]);
      abort(controller, ["why"]);
      dispatch(target, [newEvent(["x"])]);
      let reason;
      try { check(signal); } catch (error) { reason = error; }
      return seen + isAborted(signal) + reasonOf(signal) + reason;
    }, "ontruewhywhy");
    operation("AbortSignal.timeout", () => isAborted(timeout(5)), false);
    operation("AbortSignal.any", () => typeof any, "function");
  }
  {
    const [newEncoder, encode, encodeInto] = [make(TextEncoder), call(TextEncoder, "encode"), call(TextEncoder, "encodeInto")];
    const [newDecoder, decode] = [make(TextDecoder), call(TextDecoder, "decode")];
    operation("encode", () => hex(encode(newEncoder(), ["a\u20ac"])), "61e282ac");
    operation("encodeInto", () => encodeInto(newEncoder(), ["abc", bytes(2)]).written, 2);
    operation("decode", () => decode(newDecoder(["utf-8", settings({ fatal: true })]), [encode(newEncoder(), ["a\u20ac"]), settings({ stream: false })]), "a\u20ac");
    operation("decode in pieces", () => {
      const decoder = newDecoder();
      const more = settings({ stream: true });
      const list = encode(newEncoder(), ["\u20ac"]);
      let text = "";
      for (let index = 0; index < 3; index++) {
        const piece = bytes(1);
        piece[0] = list[index];
        text += decode(decoder, [piece, more]);
      }
      return text + decode(decoder);
    }, "\u20ac");
    operation("decode what is not valid", () => {
      const list = bytes(1);
      list[0] = 0xff;
      return thrown(() => decode(newDecoder(["utf-8", settings({ fatal: true })]), [list]));
    }, "TypeError");
    operation("TextDecoder of nothing known", () => thrown(() => newDecoder(["none"])), "RangeError");
  }
  {
    const [newUrl, hrefOf, hostOf, paramsOf, newParams] = [make(URL), get(URL, "href"), get(URL, "host"), get(URL, "searchParams"), make(URLSearchParams)];
    const [append, remove, getAll, set, sort, text, forEach, keys] = [call(URLSearchParams, "append"), call(URLSearchParams, "delete"), call(URLSearchParams, "getAll"), call(URLSearchParams, "set"), call(URLSearchParams, "sort"), call(URLSearchParams, "toString"), call(URLSearchParams, "forEach"), call(URLSearchParams, "keys")];
    const next = Object.getPrototypeOf(new URLSearchParams().keys()).next;
    const setSearch = getOwnPropertyDescriptor(URL.prototype, "search").set;
    const { canParse, parse } = URL;
    operation("URL", () => hrefOf(newUrl(["b?c", "http://a/x"])) + hostOf(parse("http://b:1/")) + canParse(""), "http://a/b?cb:1false");
    operation("URL that is none", () => thrown(() => newUrl(["nope"])), "TypeError");
    operation("URLSearchParams", () => {
      const url = newUrl(["http://a/?b=1&a=2"]);
      const params = paramsOf(url);
      append(params, ["c", "3"]);
      set(params, ["b", "4"]);
      sort(params);
      remove(params, ["c"]);
      const all = getAll(params, ["a"]);
      let seen = text(params) + all[0] + all.length;
      forEach(params, [(value, name) => void (seen += name + value)]);
      const iterator = keys(params);
      seen += apply(next, iterator, []).value;
      apply(setSearch, url, ["z"]);
      return seen + hrefOf(url) + text(params);
    }, "a=2&b=421a2b4ahttp://a/?zz=");
    operation("URLSearchParams of an object", () => text(newParams([{ __proto__: null, a: 1 }])), "a=1");
  }
  // (More of them: what comes of it is noted later.)
  const later = (run) => {
    const outcome = { later: undefined };
    run((text) => { outcome.later = (outcome.later ?? "") + text; });
    return outcome;
  };
  const then = Promise.prototype.then;
  const define = Object.defineProperty;
  const wait = (promise, onValue) => apply(then, define(promise, "constructor", { __proto__: null, value: undefined }), [onValue]);
  {
    const [newHeaders, append, set, getHeader, has, forEach, cookies] = [make(Headers), call(Headers, "append"), call(Headers, "set"), call(Headers, "get"), call(Headers, "has"), call(Headers, "forEach"), call(Headers, "getSetCookie")];
    operation("Headers", () => {
      const headers = newHeaders([{ __proto__: null, b: "1" }]);
      append(headers, ["A", " x "]);
      append(headers, ["a", "y"]);
      append(headers, ["Set-Cookie", "c"]);
      set(headers, ["b", "2"]);
      let seen = getHeader(headers, ["a"]) + has(headers, ["B"]) + cookies(headers)[0];
      forEach(headers, [(value, name) => void (seen += name + value)]);
      return seen;
    }, "x, ytrueca" + "x, yb2set-cookiec");
    const [newForm, appendForm, getAll, newBlob, textOf, slice, sizeOf] = [make(FormData), call(FormData, "append"), call(FormData, "getAll"), make(Blob), call(Blob, "text"), call(Blob, "slice"), get(Blob, "size")];
    const [newRequest, newResponse, urlOf, headersOf, signalOf, clone, cloneRequest] = [make(Request), make(Response), get(Request, "url"), get(Response, "headers"), get(Request, "signal"), call(Response, "clone"), call(Request, "clone")];
    const [text, json, formData, arrayBuffer, blob, bodyOf, requestText] = [call(Response, "text"), call(Response, "json"), call(Response, "formData"), call(Response, "arrayBuffer"), call(Response, "blob"), get(Response, "body"), call(Request, "text")];
    const [getReader, read] = [call(ReadableStream, "getReader"), call(ReadableStreamDefaultReader, "read")];
    const valuesOf = newForm();
    const { json: ofJson, redirect } = Response;
    operation("Blob", () => later((note) => wait(textOf(slice(newBlob(), [0, 5])), (it) => note("[" + it + "]" + sizeOf(newBlob())))), "[]0");
    operation("a request", () => later((note) => {
      const request = newRequest(["https://a/", settings({ method: "post", body: "b", headers: { __proto__: null, A: "1" }, redirect: "manual" })]);
      const copy = cloneRequest(request);
      signalOf(request);
      wait(requestText(newRequest([request])), (it) => note(urlOf(request) + it));
      wait(requestText(copy), note);
    }), "https://a/bb");
    operation("a response", () => later((note) => {
      const response = newResponse(["t", settings({ status: 201, headers: { __proto__: null, x: "y" } })]);
      wait(text(clone(response)), note);
      wait(arrayBuffer(response), (it) => note(typeof it + getHeader(headersOf(response), ["content-type"])));
    }), "tobjecttext/plain;charset=UTF-8");
    operation("JSON", () => later((note) => wait(json(apply(ofJson, undefined, [{ __proto__: null, a: 1 }])), (it) => note(it.a))), "1");
    operation("a redirect", () => getHeader(headersOf(apply(redirect, undefined, ["https://a/"])), ["location"]), "https://a/");
    operation("a form there and back", () => later((note) => {
      appendForm(valuesOf, ["a", "1"]);
      appendForm(valuesOf, ["f", newBlob()]);
      wait(formData(newResponse([valuesOf])), (it) => note(getAll(it, ["a"])[0] + getAll(it, ["f"]).length));
    }), "11");
    operation("a body as a stream", () => later((note) => {
      const response = newResponse(["ab"]);
      wait(read(getReader(bodyOf(response))), (it) => note(hex(it.value)));
    }), "6162");
    operation("a stream as a body", () => later((note) => {
      wait(text(newResponse([bodyOf(newResponse(["ab"]))])), note);
      wait(blob(newResponse(["abc"])), (it) => note(sizeOf(it)));
    }), "3ab");
  }
  {
    // What comes of it is noted by functions that nobody has replaced.
    const then = Promise.prototype.then;
    const asPromised = (run) => {
      const outcome = { later: undefined };
      run((text) => { outcome.later = (outcome.later ?? "") + text; });
      return outcome;
    };
    const on = (promise, onValue, onError) => apply(then, own(promise), [onValue, onError]);
    // The language asks a promise for its class when its `then` is called; this one has none of the worker's.
    const own = (promise) => Object_defineProperty(promise, "constructor", { __proto__: null, value: undefined });
    const Object_defineProperty = Object.defineProperty;
    const [newReadable, getReader, read, cancel, tee, pipeTo, pipeThrough, values] = [make(ReadableStream), call(ReadableStream, "getReader"), call(ReadableStreamDefaultReader, "read"), call(ReadableStreamDefaultReader, "cancel"), call(ReadableStream, "tee"), call(ReadableStream, "pipeTo"), call(ReadableStream, "pipeThrough"), call(ReadableStream, "values")];
    const [readInto, enqueue, close, byobRequest, respond] = [call(ReadableStreamBYOBReader, "read"), call(ReadableStreamDefaultController, "enqueue"), call(ReadableStreamDefaultController, "close"), get(ReadableByteStreamController, "byobRequest"), call(ReadableStreamBYOBRequest, "respond")];
    const [newWritable, getWriter, write, closeWriter, closed, newTransform, emit, newDecoderStream] = [make(WritableStream), call(WritableStream, "getWriter"), call(WritableStreamDefaultWriter, "write"), call(WritableStreamDefaultWriter, "close"), get(WritableStreamDefaultWriter, "closed"), make(TransformStream), call(TransformStreamDefaultController, "enqueue"), make(TextDecoderStream)];
    const viewOf = get(ReadableStreamBYOBRequest, "view");
    const iterator = new ReadableStream().values();
    const nextOf = Object.getPrototypeOf(iterator).next;
    const sides = (constructor) => {
      const [readableOf, writableOf] = [get(constructor, "readable"), get(constructor, "writable")];
      return (transform) => ({ __proto__: null, readable: readableOf(transform), writable: writableOf(transform) });
    };
    const [sidesOfTransform, sidesOfDecoder] = [sides(TransformStream), sides(TextDecoderStream)];
    const of = (first, second) => newReadable([settings({ start(c) { enqueue(c, [first]); enqueue(c, [second]); close(c); } })]);
    const drain = (stream, note) => {
      const reader = getReader(stream);
      const step = () => on(read(reader), (result) => {
        if (result.done) return note("end");
        note(result.value);
        step();
      }, () => note("failed"));
      step();
    };
    const settings = (members) => ({ __proto__: null, ...members });
    operation("a stream is read", () => asPromised((note) => drain(of("a", "b"), note)), "abend");
    operation("a stream that pulls and is cancelled", () => asPromised((note) => {
      const stream = newReadable([settings({ pull(c) { enqueue(c, ["p"]); }, cancel: () => note("cancelled") })]);
      const reader = getReader(stream);
      on(read(reader), (result) => { note(result.value); cancel(reader, ["why"]); });
    }), "pcancelled");
    operation("a stream that fails", () => asPromised((note) => drain(newReadable([settings({ pull() { throw 1; } })]), note)), "failed");
    operation("an iterator of a stream", () => asPromised((note) => {
      const it = values(of("a", "b"));
      on(apply(nextOf, it, []), (result) => note(result.value));
      on(apply(nextOf, it, []), (result) => note(result.value));
      on(apply(nextOf, it, []), (result) => note(result.done));
    }), "abtrue");
    operation("tee", () => asPromised((note) => {
      const branches = tee(of("a", "b"));
      drain(branches[0], note);
      drain(branches[1], note);
    }), "aabbendend");
    operation("a byte stream", () => asPromised((note) => {
      const stream = newReadable([settings({ type: "bytes", pull(c) {
        const request = byobRequest(c);
        viewOf(request)[0] = 9;
        respond(request, [1]);
      } })]);
      const reader = getReader(stream, [settings({ mode: "byob" })]);
      on(readInto(reader, [bytes(4)]), (result) => note(hex(result.value)));
    }), "09");
    operation("tee of a byte stream", () => asPromised((note) => {
      const branches = tee(newReadable([settings({ type: "bytes", autoAllocateChunkSize: 2, pull(c) { respond(byobRequest(c), [2]); } })]));
      for (let index = 0; index < 2; index++) on(read(getReader(branches[index])), (result) => note(hex(result.value)));
    }), "00000000");
    operation("writing", () => asPromised((note) => {
      const writer = getWriter(newWritable([settings({ write: (chunk) => note(chunk), close: () => note("close") })]));
      write(writer, ["a"]);
      write(writer, ["b"]);
      closeWriter(writer);
      on(closed(writer), () => note("closed"));
    }), "abcloseclosed");
    operation("piping through a transform", () => asPromised((note) => {
      const transform = newTransform([settings({ transform(chunk, c) { emit(c, [chunk + "!"]); } })]);
      drain(pipeThrough(of("a", "b"), [sidesOfTransform(transform)]), note);
    }), "a!b!end");
    operation("piping to a sink", () => asPromised((note) => {
      on(pipeTo(of("a", "b"), [newWritable([settings({ write: (chunk) => note(chunk) })])]), () => note("done"));
    }), "abdone");
    operation("decoding a stream", () => asPromised((note) => {
      const list = bytes(1);
      list[0] = 97;
      drain(pipeThrough(of(list, bytes(0)), [sidesOfDecoder(newDecoderStream())]), note);
    }), "aend");
  }
  return operations;
}

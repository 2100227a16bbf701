"""Run untrusted JavaScript in sandboxes, from Python.

::

    import asyncio, coracle

    async def main() -> None:
        async with coracle.connect() as session:
            worker = await session.load({"main.js": "export default { add(a, b) { return a + b; } }"})
            print(await worker.entrypoint().add(20, 22))

    asyncio.run(main())

README.md has the tour: values, functions as tools, errors, limits.
"""

from .code import CommonJs, Data, EsModule, Json, Limits, Module, Text, Wasm, WorkerCode
from .code_source import Code, CodeSource
from .errors import (
    ArgsSizeExceeded,
    ConnectError,
    CoracleError,
    CpuExceeded,
    DecodeError,
    DisconnectedError,
    DisposedError,
    EncodeError,
    EngineTrap,
    ExportsExceeded,
    FuelExceeded,
    Hung,
    InvocationCancelled,
    IsolateEvicted,
    IsolateLost,
    JsError,
    MemoryExceeded,
    OverloadedError,
    RefusedError,
    ResultSizeExceeded,
    ServeError,
    StackExceeded,
    StartupExceeded,
    SubrequestsExceeded,
    TimersExceeded,
    UnauthenticatedError,
    UnimplementedError,
    ValueDepthExceeded,
    VerdictError,
    WallExceeded,
)
from .http import Blob, Headers, Request, Response
from .outcome import LogLine, Outcome, Usage
from .policy import Policy
from .server import Server, serve
from .session import DEFAULT_ADDRESS, Connecting, Session, Worker, connect
from .streams import Sink, Stream
from .stubs import Call, Loader, Member, Remote, Stub
from .targets import RpcTarget, Target
from .values import HOLE, UNDEFINED, ArrayBuffer, BigInt, Boxed, DataView, Date, HoleType, Map, RegExp, Set, TypedArray, UndefinedType

__version__ = "0.1.0"

__all__ = [
    "ArgsSizeExceeded",
    "ArrayBuffer",
    "BigInt",
    "Blob",
    "Boxed",
    "Call",
    "Code",
    "CodeSource",
    "CommonJs",
    "ConnectError",
    "Connecting",
    "CoracleError",
    "CpuExceeded",
    "DEFAULT_ADDRESS",
    "Data",
    "DataView",
    "Date",
    "DecodeError",
    "DisconnectedError",
    "DisposedError",
    "EncodeError",
    "EngineTrap",
    "EsModule",
    "ExportsExceeded",
    "FuelExceeded",
    "HOLE",
    "Headers",
    "HoleType",
    "Hung",
    "InvocationCancelled",
    "IsolateEvicted",
    "IsolateLost",
    "JsError",
    "Json",
    "Limits",
    "Loader",
    "LogLine",
    "Map",
    "Member",
    "MemoryExceeded",
    "Module",
    "Outcome",
    "Policy",
    "OverloadedError",
    "RefusedError",
    "RegExp",
    "Remote",
    "Request",
    "Response",
    "ResultSizeExceeded",
    "RpcTarget",
    "ServeError",
    "Server",
    "Session",
    "Set",
    "Sink",
    "StackExceeded",
    "StartupExceeded",
    "Stream",
    "Stub",
    "SubrequestsExceeded",
    "Target",
    "Text",
    "TimersExceeded",
    "TypedArray",
    "UNDEFINED",
    "UnauthenticatedError",
    "UndefinedType",
    "UnimplementedError",
    "Usage",
    "ValueDepthExceeded",
    "VerdictError",
    "WallExceeded",
    "Wasm",
    "Worker",
    "WorkerCode",
    "connect",
    "serve",
]

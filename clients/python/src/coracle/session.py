"""Sessions and workers: what a program starts with."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final

import capnp

from . import event_loop
from .code import Limits, Module, WorkerCode, limits_fields, write_code
from .code_source import CodeSource, ServedSource
from .connection import Connection, error_of
from .errors import ConnectError, CoracleError
from .outcome import Outcome
from .policy import Asker, Policy
from .stubs import Loader, Stub
from .targets import Gateway, RpcTarget, Tail, Target
from .values import UNDEFINED

DEFAULT_ADDRESS: Final = "127.0.0.1:7070"
"""Where a server listens unless it is told otherwise."""


def connect(address: str = DEFAULT_ADDRESS, *, token: str | None = None) -> Connecting:
    """Connects to a server and logs in.

    ::

        async with coracle.connect("127.0.0.1:7070") as session: ...
        session = await coracle.connect("unix:/run/coracle/socket")

    :param address: ``IP:PORT`` or ``unix:/path``.
    :param token: A bearer token. Without one, only servers on the same machine that have no tokens let a client in.
    :raises ConnectError: If there is no server.
    :raises UnauthenticatedError: If the token is not accepted.
    """
    return Connecting(address, token)


class Connecting:
    """A session on its way: ``await`` it, or enter it with ``async with``, which closes the session in the end."""

    def __init__(self, address: str, token: str | None) -> None:
        self._address, self._token = address, token
        self._session: Session | None = None

    def __await__(self) -> Generator[Any, None, Session]:
        return _connect(self._address, self._token).__await__()

    async def __aenter__(self) -> Session:
        self._session = await self
        return self._session

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()


async def _connect(address: str, token: str | None) -> Session:
    await event_loop.acquire()
    connection: Connection | None = None
    try:
        connection = Connection(await _stream(address))
        request = connection.gate.login_request()
        if token is None:
            request.credentials.none = None
        else:
            request.credentials.bearerToken = token
        login = request.send()
        loader, session = login.loader, login.session
        try:
            tenant = (await session.tenant()).name
        except capnp.KjException as error:
            failure = error_of(error)
        else:
            return Session(connection, connection.lean(loader), connection.lean(session), tenant)
        raise failure
    except BaseException:
        if connection is not None:
            connection.close()
        await event_loop.release()
        raise


async def _stream(address: str) -> Any:
    try:
        if address.startswith("unix:"):
            return await capnp.AsyncIoStream.create_unix_connection(path=address.removeprefix("unix:"))
        host, separator, port = address.removeprefix("tcp:").rpartition(":")
        if not separator or not port.isdecimal():
            raise ConnectError(f"{address!r} is no address: use IP:PORT (127.0.0.1:7070) or unix:/path/to/socket")
        return await capnp.AsyncIoStream.create_connection(host=host.strip("[]"), port=int(port))
    except OSError as error:
        if isinstance(error, CoracleError):
            raise
        raise ConnectError(f"can't connect to {address}: {error}") from error


class Session:
    """A login at a server. Everything that came from it ends with it. Of one event loop, like all of asyncio."""

    def __init__(self, connection: Connection, loader: Any, session: Any, tenant: str) -> None:
        self._connection = connection
        self._loader = connection.hold(loader)
        self.loader = Loader(self._loader)
        """Put into a worker's ``env``, it lets that worker load workers."""
        # Kept because the login ends when it is dropped.
        self._session = connection.hold(session)
        self.tenant = tenant
        """The tenant that pays for what this session does."""

    def load(
        self,
        modules: Mapping[str, Module],
        *,
        main_module: str | None = None,
        env: Mapping[str, Any] | None = None,
        outbound: object | None = UNDEFINED,
        limits: Limits | None = None,
        tails: Sequence[object] = (),
        streaming_tails: Sequence[object] = (),
        compatibility_date: str = "",
        compatibility_flags: Sequence[str] = (),
    ) -> Worker:
        """Loads a worker. ``await`` what this returns to know that its code was accepted; or go on with it at once, and have
        loading, entrypoint and call in one round trip.

        Each load is a worker of its own: two loads never share state.

        :param modules: The modules by name: a ``str`` is an ES module, ``bytes`` are data; there are
            :class:`~coracle.CommonJs`, :class:`~coracle.Text`, :class:`~coracle.Json` and others.
        :param main_module: The module whose exports are the entrypoints; by default the first.
        :param env: The worker's bindings: data, functions, objects, stubs.
        :param outbound: Where its ``fetch()`` and ``connect()`` go: ``UNDEFINED`` for the session's policy, a
            :class:`~coracle.Policy` for a narrower one, None for nowhere, or a gateway: a stub, an object with ``async def fetch(self, request)`` (and ``connect(self, address, options=None)``),
            or a function that takes a :class:`~coracle.Request` and returns a :class:`~coracle.Response`.
        :param limits: Lower limits than the server's.
        :param tails: What is told of each call when it is over: functions that take a list of events, ``RpcTarget``s
            with a method ``tail``, or stubs. They delay nobody. docs/runtime.md says what is in an event.
        :param streaming_tails: What is told while it runs; the method is ``tailStream``.
        :param compatibility_date: ``YYYY-MM-DD``; empty for the newest date that the server knows.
        :param compatibility_flags: By the Workers rules.
        :raises EncodeError: If something in ``env`` can't be sent.
        """
        request = self._loader.resolve().load_request()
        code = request.init("code")
        write_code(code, WorkerCode(modules, main_module, compatibility_date, compatibility_flags))
        self._write_given(code, env, outbound, limits)
        code.tails = [self._tail(tail) for tail in tails]
        code.streamingTails = [self._tail(tail) for tail in streaming_tails]
        return Worker(self._connection, self._connection.send(request))

    def get(
        self,
        id: str,
        source: CodeSource,
        *,
        fingerprint: str | bytes = b"",
        env: Mapping[str, Any] | None = None,
        outbound: object | None = UNDEFINED,
        limits: Limits | None = None,
    ) -> Worker:
        """The worker that is there for these arguments, with its state. Where there is none, the source is asked for
        its code, once, whoever else asks meanwhile. May be used right away, like what :meth:`load` returns.

        Workers that are given data only are shared by all clients of the tenant. Functions and objects have to be the
        very same each time, wherever they are: a lambda that is written into the call is another one each time.

        :param id: Any name of at most 1,024 bytes.
        :param source: A function without parameters, sync or async, that returns the modules by name or a
            :class:`~coracle.WorkerCode`, within 30 s. What it raises fails the request, and is not kept.
        :param fingerprint: What stands for the code: a hash of it, or a version. Without one, code that has changed is
            noticed only when the worker has to be loaded again.
        :param env: As for :meth:`load`.
        :param outbound: As for :meth:`load`.
        :param limits: As for :meth:`load`.
        :raises EncodeError: If something in ``env`` can't be sent.
        """
        if not callable(source):
            raise TypeError(f"a source is a function that returns the code, and not {type(source).__name__}")
        request = self._loader.resolve().get_request()
        request.id = id
        request.fingerprint = fingerprint.encode() if isinstance(fingerprint, str) else fingerprint
        self._write_given(request, env, outbound, limits, keep=True)
        request.source = served = ServedSource(source)
        return Worker(self._connection, self._connection.send(request), served)

    def _write_given(
        self,
        builder: Any,
        env: Mapping[str, Any] | None,
        outbound: object | None,
        limits: Limits | None,
        keep: bool = False,
    ) -> None:
        """Writes what a worker is given besides its code."""
        if env is not None:
            self._connection.write_value(builder.init("env"), env, keep=keep)
        if outbound is None:
            builder.outbound.none = None
        elif isinstance(outbound, Policy):
            self._write_policy(builder.outbound, outbound, keep)
        elif outbound is not UNDEFINED:
            gateway = outbound if isinstance(outbound, (Stub, Target, RpcTarget)) else Gateway(outbound)
            builder.outbound.gateway = self._connection.capability(gateway, keep=keep)
        builder.limits = limits_fields(limits)

    def _write_policy(self, builder: Any, policy: Policy, keep: bool) -> None:
        if policy.name is not None:
            builder.policyNamed = policy.name
        elif policy.rules is not None:
            builder.policyGiven = policy.text
        if policy.ask is not None:
            builder.ask = self._connection.capability(Asker(policy.ask), keep=keep)

    def _tail(self, tail: object) -> Any:
        return self._connection.capability(tail if isinstance(tail, Stub) else Tail(tail))

    async def close(self) -> None:
        """Ends the session. Calls under way end with DisconnectedError."""
        if not self._connection.closed:
            self._connection.close()
            await event_loop.release()

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Session of {self.tenant}{', closed' if self._connection.closed else ''}>"


class Worker:
    """A loaded worker. The server lets go of it when this and its entrypoints are collected."""

    def __init__(self, connection: Connection, loading: Any, source: ServedSource | None = None) -> None:
        self._connection = connection
        self._source = source
        self._worker = connection.hold(connection.lean(loading.worker))
        self._loading = connection.hold(loading)
        self._is_accepted = False

    def __await__(self) -> Generator[Any, None, Worker]:
        return self._accepted().__await__()

    async def _accepted(self) -> Worker:
        if self._is_accepted:
            return self
        try:
            await self._loading.take()
        except capnp.KjException as error:
            failure = error_of(error)
        else:
            self._is_accepted = True
            return self
        raise failure from None if self._source is None else self._source.error

    def entrypoint(
        self, name: str = "default", *, props: Mapping[str, Any] | None = None, limits: Limits | None = None
    ) -> Stub:
        """An entrypoint: an export of the main module. Whether it exists shows at the first call.

        :param name: The export's name; "default" is the default export.
        :param props: What the worker finds as ``ctx.props``.
        :param limits: Lower limits for calls through this entrypoint.
        """
        request = self._worker.resolve().getEntrypoint_request()
        request.name = name
        if props is not None:
            self._connection.write_value(request.init("props"), props)
        request.limits = limits_fields(limits)
        entrypoint = self._connection.send(request).entrypoint
        return Stub(self._connection.hold(self._connection.lean(entrypoint)))

    async def ready(self) -> Outcome:
        """Evaluates the modules, if that has not happened yet.

        :raises JsError: What their top level threw.
        :raises VerdictError: What stopped them.
        """
        outcome = await self._connection.receive(self._connection.send(self._worker.resolve().ready_request()))
        _ = outcome.value
        return outcome

    def dispose(self) -> None:
        """Lets go of it now. Its entrypoints go on."""
        self._worker.release()
        self._loading.release()

//! What a worker is made of.

use crate::{LimitUnknown, Payload, Stub, Value};

/// A worker's modules, bindings, outbound rule and limits.
#[derive(Clone, Debug, Default)]
pub struct WorkerCode {
    /// `YYYY-MM-DD`, or empty for the newest date that the server knows.
    pub compatibility_date: String,
    /// By the Workers rules.
    pub compatibility_flags: Vec<String>,
    /// The module whose exports are the entrypoints.
    pub main_module: String,
    /// Names and bodies.
    pub modules: Vec<(String, ModuleBody)>,
    /// An object with the bindings, or undefined.
    pub env: Value,
    /// What `env` refers to.
    pub env_externals: Vec<Stub>,
    /// Where `fetch()` and `connect()` go.
    pub outbound: Outbound,
    /// What it asks for.
    pub limits: Limits,
    /// What is told of each call when it is over: objects with a method `tail`, which takes an array of events.
    pub tails: Vec<Stub>,
    /// What is told while it runs: objects with a method `tailStream`, which takes an array of events.
    pub streaming_tails: Vec<Stub>,
}

/// Where a worker's `fetch()` and `connect()` go: `globalOutbound`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Outbound {
    /// Wherever the policy of the session allows, which is nowhere by default. `docs/outbound.md` says how it is made.
    #[default]
    Policy,
    /// Wherever the policy of the session allows, and besides that a narrower one.
    Narrowed(Narrowed),
    /// Nowhere, whatever the policy says: both throw.
    None,
    /// To an object with a method `fetch`, which takes the `Request` and returns the `Response`, and a method `connect`
    /// where it takes connections: one of this process ([`Coracle::serve`](crate::Coracle::serve)), or a worker's.
    Gateway(Stub),
}

/// What narrows the policy of the session. By default nothing does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Narrowed {
    /// Another policy that has to allow as well.
    pub by: NarrowedBy,
    /// Who decides where a rule says "ask": an object whose method `ask` takes the `Request`, without its body, and
    /// returns `true` or `false`. Without one the answer is no.
    pub ask: Option<Stub>,
}

/// Another policy besides that of the session.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum NarrowedBy {
    /// None.
    #[default]
    Nothing,
    /// One of the server's configuration, by its name.
    Name(String),
    /// Rules in JSON, `{"rules": [...]}`, as in `docs/outbound.md`.
    Rules(String),
}

/// A module's body.
#[derive(Clone, Debug)]
pub enum ModuleBody {
    /// JavaScript with imports and exports.
    EsModule(String),
    /// JavaScript with `require` and `exports`.
    CommonJs(String),
    /// Default export: the string.
    Text(String),
    /// Default export: the parsed value.
    Json(String),
    /// Default export: an `ArrayBuffer`.
    Data(Vec<u8>),
}

impl WorkerCode {
    /// A worker with that main module, which is to be added.
    #[must_use]
    pub fn new(main_module: impl Into<String>) -> Self {
        Self {
            main_module: main_module.into(),
            ..Self::default()
        }
    }

    /// Sets the bindings, with functions and stubs among them.
    #[must_use]
    pub fn env(mut self, env: impl Into<Payload>) -> Self {
        let Payload { value, externals } = env.into();
        (self.env, self.env_externals) = (value, externals);
        self
    }

    /// Adds a module.
    #[must_use]
    pub fn module(mut self, name: impl Into<String>, body: ModuleBody) -> Self {
        self.modules.push((name.into(), body));
        self
    }

    /// Adds an ES module.
    #[must_use]
    pub fn es_module(self, name: impl Into<String>, source: impl Into<String>) -> Self {
        self.module(name, ModuleBody::EsModule(source.into()))
    }

    /// Adds something that is told of each call when it is over.
    #[must_use]
    pub fn tail(mut self, tail: Stub) -> Self {
        self.tails.push(tail);
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Limits that are asked for; zero asks for none. They can only lower what the server allows.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Limits {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Limits {
            /// Sets the limit with that name.
            ///
            /// # Errors
            /// When there is no such limit.
            pub fn set(&mut self, name: &str, value: u64) -> Result<(), LimitUnknown> {
                match name {
                    $(stringify!($name) => self.$name = value,)*
                    _ => return Err(LimitUnknown(name.to_owned())),
                }
                Ok(())
            }
        }
    };
}

limits! {
    /// Fuel of one call; about 15,000,000 a millisecond.
    fuel_max,
    /// CPU time of one call in milliseconds, that of evaluating the modules for it included.
    cpu_ms_max,
    /// Fuel for evaluating the modules.
    startup_fuel_max,
    /// Wall time of one call in milliseconds.
    wall_ms_max,
    /// Linear memory of the isolate in bytes.
    memory_bytes_max,
    /// Calls out of the isolate.
    subrequests_max,
    /// Of these, how many may wait at once.
    subrequests_in_flight_max,
    /// How long one of them may wait for its answer, in milliseconds.
    subrequest_ms_max,
    /// Encoded arguments and `props` of a call in bytes.
    args_bytes_max,
    /// Encoded result of a call in bytes.
    result_bytes_max,
    /// Console output of a call in bytes.
    log_bytes_max,
    /// Nesting of arguments and results.
    value_depth_max,
    /// Stubs that an isolate may have given out.
    exports_max,
}

/// What a worker is given that is got by an id ([`Coracle::get`](crate::Coracle::get)).
#[derive(Clone, Debug, Default)]
pub struct GetOptions {
    /// What stands for the code: a hash of it, or a version. Without one, code that has changed is noticed only when the
    /// worker has to be loaded again.
    pub fingerprint: Vec<u8>,
    /// An object with the bindings, or undefined, with what it refers to.
    pub env: Payload,
    /// Where `fetch()` and `connect()` go.
    pub outbound: Outbound,
    /// What it asks for.
    pub limits: Limits,
}

/// How an entrypoint is to be had.
#[derive(Clone, Debug, Default)]
pub struct EntrypointOptions {
    /// What `props` refers to.
    pub props_externals: Vec<Stub>,
    /// `ctx.props`: an object, or undefined.
    pub props: Value,
    /// Lower limits for calls through this entrypoint.
    pub limits: Limits,
}

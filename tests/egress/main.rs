//! What the client sends, and what it makes of answers, against real servers, a real DNS server and a real proxy. The
//! numbers that begin with N are those of the log of cases.

mod addresses;
mod bodies;
mod bounds;
mod connections;
mod credentials;
mod graph;
mod headers;
mod names;
mod permissions;
mod proxies;
mod records;
mod redirects;
mod sockets;
mod support;
mod tls;
mod web_sockets;

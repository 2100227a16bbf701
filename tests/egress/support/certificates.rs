//! An authority of certificates that only this world trusts.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer},
};
use std::sync::Arc;

pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// A server that is one of these names, with HTTP/2 and HTTP/1.1.
    pub(crate) fn server(&self, names: &[&str]) -> Arc<ServerConfig> {
        self.make(names, false, &[b"h2", b"http/1.1"])
    }

    /// The same, with HTTP/1.1 only.
    pub(crate) fn server_http1(&self, names: &[&str]) -> Arc<ServerConfig> {
        self.make(names, false, &[b"http/1.1"])
    }

    /// One that was.
    pub(crate) fn server_expired(&self, names: &[&str]) -> Arc<ServerConfig> {
        self.make(names, true, &[b"http/1.1"])
    }

    fn make(&self, names: &[&str], is_expired: bool, protocols: &[&[u8]]) -> Arc<ServerConfig> {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.not_before = date_time_ymd(2020, 1, 1);
        if is_expired {
            params.not_after = date_time_ymd(2020, 2, 1);
        }
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("a server");
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Arc::new(config)
    }
}

//! TLS of a connection. The certificate is always checked, and nothing can turn that off.

use crate::host::Host;
use crate::net::ByteStream;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig};
use rustls_platform_verifier::Verifier;
use std::io;
use std::sync::Arc;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;

/// Makes TLS connections. Reads the system's certificates when the first one is made.
pub(crate) struct Tls {
    extra_ca: Vec<CertificateDer<'static>>,
    connector: OnceCell<TlsConnector>,
}

impl Tls {
    pub(crate) fn new(extra_ca: Vec<CertificateDer<'static>>) -> Self {
        Self { extra_ca, connector: OnceCell::new() }
    }

    /// Makes a TLS connection over another one.
    pub(crate) async fn connect(
        &self,
        host: &Host,
        stream: Box<dyn ByteStream>,
    ) -> Result<Box<dyn ByteStream>, &'static str> {
        let name = match host {
            Host::Name(name) => ServerName::try_from(name.clone()),
            Host::Address(address) => Ok(ServerName::from(*address)),
        };
        let name = name.map_err(|_| "a certificate cannot name this host")?;
        let connector = self.connector.get_or_try_init(|| load(self.extra_ca.clone())).await?;
        match connector.connect(name, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(explain(&error)),
        }
    }
}

async fn load(extra_ca: Vec<CertificateDer<'static>>) -> Result<TlsConnector, &'static str> {
    const UNUSABLE: &str = "the system's certificates cannot be read";
    let read = move || -> Result<TlsConnector, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> =
            Arc::new(Verifier::new_with_extra_roots(extra_ca, provider.clone())?);
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsConnector::from(Arc::new(config)))
    };
    // The certificates are many files.
    tokio::task::spawn_blocking(read).await.map_err(|_| UNUSABLE)?.map_err(|_| UNUSABLE)
}

fn explain(error: &io::Error) -> &'static str {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(problem)) => match problem {
            CertificateError::UnknownIssuer => "the certificate of the host is not from a trusted issuer",
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "the certificate of the host is for another name"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the certificate of the host has expired"
            }
            _ => "the certificate of the host is not valid",
        },
        Some(_) => "the host does not speak TLS that this program accepts",
        None => "the connection was lost in the TLS handshake",
    }
}

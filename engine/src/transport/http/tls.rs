//! Secure connections: rustls with cryptography that is not written in C.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::settings::{Settings, TlsVersion};
use crate::transport::Error;
use crate::transport::options::setting;

/// Where systems keep the certificates that they trust.
const BUNDLES: [&str; 7] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
    "/usr/local/etc/ssl/cert.pem",
];
/// The size of a file of certificates that is read.
const LONGEST_BUNDLE: u64 = 64 << 20;

/// What connections are made with.
pub(super) fn config(settings: &Settings, remote: &str) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(provider(remote)?);
    let versions: &[&rustls::SupportedProtocolVersion] = match settings.tls_version {
        None => &[&rustls::version::TLS13, &rustls::version::TLS12],
        Some(TlsVersion::Tls12) => &[&rustls::version::TLS12],
        Some(TlsVersion::Tls13) => &[&rustls::version::TLS13],
    };
    let failed = |error: rustls::Error| Error::Tls {
        remote: remote.to_owned(),
        message: error.to_string(),
    };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(failed)?;
    let builder = match settings.verify {
        true => builder.with_root_certificates(roots(settings)?),
        false => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Unverified(
                provider.signature_verification_algorithms,
            ))),
    };
    let mut config = match &settings.client_certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let bad = |name: &str, path: &Path, error: &dyn std::fmt::Display| {
                setting(name, format!("{}: {error}", path.display()))
            };
            let chain: Vec<CertificateDer<'static>> =
                certificates(certificate).map_err(|error| bad("http.sslCert", certificate, &error))?;
            let secret =
                PrivateKeyDer::from_pem_slice(&read(key).map_err(|error| bad("http.sslKey", key, &error))?)
                    .map_err(|error| bad("http.sslKey", key, &error))?;
            builder
                .with_client_auth_cert(chain, secret)
                .map_err(|error| bad("http.sslKey", key, &error))?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The cryptography, where the processor can run it.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn provider(remote: &str) -> Result<CryptoProvider, Error> {
    #[cfg(target_arch = "x86_64")]
    let able = std::arch::is_x86_feature_detected!("adx")
        && std::arch::is_x86_feature_detected!("aes")
        && std::arch::is_x86_feature_detected!("avx")
        && std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("bmi2")
        && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    let able = std::arch::is_aarch64_feature_detected!("neon")
        && std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull")
        && std::arch::is_aarch64_feature_detected!("sha2");
    match able {
        true => Ok(rustls_graviola::default_provider()),
        false => Err(unable(remote)),
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn provider(remote: &str) -> Result<CryptoProvider, Error> {
    Err(unable(remote))
}

fn unable(remote: &str) -> Error {
    Error::Tls {
        remote: remote.to_owned(),
        message: "this processor lacks the instructions for https; use ssh".to_owned(),
    }
}

/// The certificates to trust: those of the configuration, or of the system, or, where that has none, of Mozilla.
fn roots(settings: &Settings) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    if settings.ca_file.is_none() && settings.ca_folder.is_none() {
        for path in system_bundles(settings) {
            if let Ok(list) = certificates(&path) {
                store.add_parsable_certificates(list);
                break;
            }
        }
        if store.is_empty() {
            store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        return Ok(store);
    }
    if let Some(path) = &settings.ca_file {
        let bad = |message: String| setting("http.sslCAInfo", format!("{}: {message}", path.display()));
        let (added, _) = store.add_parsable_certificates(certificates(path).map_err(bad)?);
        if added == 0 {
            return Err(bad("it has no certificate that can be used".to_owned()));
        }
    }
    if let Some(folder) = &settings.ca_folder {
        let bad = |error: std::io::Error| setting("http.sslCAPath", format!("{}: {error}", folder.display()));
        for entry in std::fs::read_dir(folder).map_err(bad)? {
            // The folder may hold other files, too.
            if let Ok(list) = certificates(&entry.map_err(bad)?.path()) {
                store.add_parsable_certificates(list);
            }
        }
    }
    Ok(store)
}

fn system_bundles(settings: &Settings) -> Vec<PathBuf> {
    match &settings.system_ca_file {
        Some(path) => vec![path.clone()],
        None => BUNDLES.iter().map(PathBuf::from).collect(),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let length = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if length > LONGEST_BUNDLE {
        return Err(format!("its {length} bytes are too many"));
    }
    std::fs::read(path).map_err(|error| error.to_string())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = read(path)?;
    let mut list = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        list.push(certificate.map_err(|error| error.to_string())?);
    }
    match list.is_empty() {
        true => Err("it has no certificate".to_owned()),
        false => Ok(list),
    }
}

/// For `http.sslVerify=false`: whoever answers is believed.
#[derive(Debug)]
struct Unverified(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

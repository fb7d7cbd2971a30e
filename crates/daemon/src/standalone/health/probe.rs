//! One check: a connection, or a request and the status of its answer.
//!
//! `Ours:` as kubelet's probes, it does not verify certificates: it asks whether this machine serves, not who it is.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fairway_model::{HealthCheck, Probe};
use http::Request;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

use crate::build_info;

/// Runs `check` once.
///
/// # Errors
/// What failed, in words.
pub(super) async fn run(check: &HealthCheck) -> Result<(), String> {
    let asked = async {
        match &check.probe {
            Probe::Tcp(address) => connect(*address).await.map(drop),
            Probe::Http { address, is_tls: false, path } => {
                let connection = connect(*address).await?;
                get(connection, *address, path).await
            }
            Probe::Http { address, is_tls: true, path } => {
                let connection = connect(*address).await?;
                let connection = encrypted(connection, *address).await?;
                get(connection, *address, path).await
            }
        }
    };
    match tokio::time::timeout(check.timeout, asked).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("no answer within {}", spelled(check.timeout))),
    }
}

fn spelled(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}

async fn connect(address: SocketAddr) -> Result<TcpStream, String> {
    TcpStream::connect(address)
        .await
        .map_err(|error| format!("cannot connect to {address}: {error}"))
}

async fn encrypted(
    connection: TcpStream,
    address: SocketAddr,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("TLS with {address}: {error}");
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    let name = ServerName::IpAddress(address.ip().into());
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, connection).await.map_err(|error| failed(&error))
}

async fn get(
    connection: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    address: SocketAddr,
    path: &str,
) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("GET {path} from {address}: {error}");
    let request = Request::get(path)
        .header("Host", address.to_string())
        .header("User-Agent", format!("fairway/{}", build_info::RELEASE))
        .header("Connection", "close")
        .body(Empty::<Bytes>::new())
        .map_err(|error| failed(&error))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(connection)).await.map_err(|error| failed(&error))?;
    let answer = sender.send_request(request);
    tokio::pin!(answer);
    // The connection ends with the answer: what is behind its head is not read.
    let answered = tokio::select! {
        answered = &mut answer => answered,
        // A server may close the connection at once, and the answer is there.
        _ = connection => answer.await,
    };
    let status = answered.map_err(|error| failed(&error))?.status();
    match status.as_u16() {
        200..=399 => Ok(()),
        _ => Err(failed(&format_args!("status {}", status.as_u16()))),
    }
}

/// Takes every certificate; the handshake is not verified either.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;

    use super::*;

    fn check(probe: Probe) -> HealthCheck {
        HealthCheck {
            probe,
            interval: HealthCheck::INTERVAL,
            timeout: Duration::from_secs(5),
            failures: 1,
            successes: 1,
        }
    }

    fn http(address: SocketAddr, is_tls: bool) -> HealthCheck {
        check(Probe::Http { address, is_tls, path: "/livez".to_owned() })
    }

    async fn answer(mut connection: impl AsyncRead + AsyncWrite + Unpin, text: &str) -> String {
        let mut request = [0; 1_024];
        let length = connection.read(&mut request).await.unwrap();
        connection.write_all(text.as_bytes()).await.unwrap();
        connection.flush().await.unwrap();
        // The client leaves first.
        let _ = connection.read(&mut request[length..]).await;
        String::from_utf8(request[..length].to_vec()).unwrap()
    }

    /// What a check says of a server that answers with `text`, and what it asked.
    async fn outcome_of(text: &str) -> (Result<(), String>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let check = http(listener.local_addr().unwrap(), false);
        let served = async { answer(listener.accept().await.unwrap().0, text).await };
        tokio::join!(run(&check), served)
    }

    #[tokio::test]
    async fn a_port_that_accepts_is_enough_for_tcp() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(run(&check(Probe::Tcp(address))).await, Ok(()));
        drop(listener);
        let error = run(&check(Probe::Tcp(address))).await.unwrap_err();
        assert!(error.contains("cannot connect to 127.0.0.1:"), "{error}");
    }

    #[tokio::test]
    async fn the_status_of_the_answer_decides() {
        let (outcome, request) =
            outcome_of("HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\nok").await;
        assert_eq!(outcome, Ok(()), "the rest of the body is not waited for");
        assert!(request.starts_with("GET /livez HTTP/1.1\r\n"), "{request}");
        assert!(request.to_ascii_lowercase().contains("host: 127.0.0.1:"), "{request}");
        let (outcome, _) = outcome_of("HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n").await;
        assert_eq!(outcome, Ok(()));
        let (outcome, _) = outcome_of("HTTP/1.1 503 Service Unavailable\r\n\r\n").await;
        assert!(outcome.unwrap_err().ends_with("status 503"));
        let (outcome, _) = outcome_of("SSH-2.0-OpenSSH_9.2\r\n").await;
        assert!(outcome.is_err());
    }

    #[tokio::test]
    async fn a_server_that_says_nothing_fails_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let timeout = Duration::from_millis(100);
        let check = HealthCheck { timeout, ..http(listener.local_addr().unwrap(), false) };
        assert_eq!(run(&check).await, Err("no answer within 100 ms".to_owned()));
    }

    #[tokio::test]
    async fn a_certificate_that_nobody_signed_is_taken() {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["elsewhere".to_owned()]).unwrap();
        let certificate = certificate.self_signed(&key).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let check = http(listener.local_addr().unwrap(), true);
        let served = async {
            let (connection, _) = listener.accept().await.unwrap();
            let connection = TlsAcceptor::from(Arc::new(config)).accept(connection).await.unwrap();
            answer(connection, "HTTP/1.1 200 OK\r\n\r\n").await
        };
        let (outcome, _) = tokio::join!(run(&check), served);
        assert_eq!(outcome, Ok(()));
    }
}

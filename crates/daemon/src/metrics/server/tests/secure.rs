//! Metrics with TLS: who may read them, and which certificate is presented. Who may is a mock here;
//! `tests/kubernetes` asks a real API server.

use std::fs;
use std::path::Path;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::*;
use crate::metrics::{Judged, SecureOptions};

/// The verdict is the token.
struct ByName;

impl Access for ByName {
    fn verdict<'a>(&'a self, token: &'a str) -> Judged<'a> {
        let verdict = match token {
            "allowed" => Verdict::Allowed,
            "forbidden" => Verdict::Forbidden,
            "unknown" => Verdict::Unknown,
            _ => Verdict::Unauthenticated,
        };
        Box::pin(std::future::ready(verdict))
    }
}

/// Writes another certificate into the folder; returns it.
fn issue(folder: &Path) -> CertificateDer<'static> {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    put(folder, "tls.crt", &certificate.pem());
    put(folder, "tls.key", &key.serialize_pem());
    certificate.der().clone()
}

/// Another file in place of the one there was.
fn put(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join("new"), text).unwrap();
    fs::rename(folder.join("new"), folder.join(name)).unwrap();
}

/// The answer to a request with this header; `None` if the certificate is not the trusted one.
async fn ask(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    header: &str,
) -> Option<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.ok()?;
    let request = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{header}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("it is not closed");
    Some(String::from_utf8(answer).unwrap())
}

/// A server with both ports, and its addresses.
async fn both(folder: &Path) -> (Server, SocketAddr, SocketAddr) {
    let ports = [TcpListener::bind("127.0.0.1:0"), TcpListener::bind("127.0.0.1:0")];
    let mut addresses = Vec::new();
    for port in ports {
        addresses.push(port.await.unwrap().local_addr().unwrap());
    }
    let options = SecureOptions {
        listen: HttpListen::At(addresses[1]),
        certificate_folder: Some(folder.to_owned()),
    };
    let secured = options.secured(Arc::new(ByName)).unwrap();
    let plain = HttpListen::At(addresses[0]);
    let server = Server::start(plain, secured, Arc::default(), Played::Answers);
    for address in &addresses {
        let open = async { while TcpStream::connect(address).await.is_err() {} };
        timeout(PATIENCE, open).await.unwrap();
    }
    (server, addresses[0], addresses[1])
}

#[tokio::test]
async fn metrics_with_tls_are_for_clients_that_may_read_them() {
    let folder = tempfile::tempdir().unwrap();
    let trusted = issue(folder.path());
    let (_server, plain, secure) = both(folder.path()).await;
    for (header, status) in [
        ("Authorization: Bearer allowed\r\n", "200 OK"),
        ("authorization: bearer allowed\r\n", "200 OK"),
        ("Authorization: Bearer forbidden\r\n", "403 "),
        ("Authorization: Bearer unknown\r\n", "503 "),
        ("Authorization: Bearer stolen\r\n", "401 "),
        ("Authorization: Bearer \r\n", "401 "),
        ("Authorization: Basic allowed\r\n", "401 "),
        ("", "401 "),
    ] {
        let answer = ask(secure, &trusted, header).await.expect("the certificate is the one");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{header}{answer}");
        let is_page = answer.contains("\nmetallb_k8s_client_config_loaded_bool ");
        assert_eq!(is_page, status == "200 OK", "{header}{answer}");
    }
    assert!(get(plain, "/healthz").await.starts_with("HTTP/1.1 200 OK\r\n"));
    let elsewhere = get(plain, "/metrics").await;
    assert!(elsewhere.starts_with("HTTP/1.1 404 "), "{elsewhere}");
    assert!(elsewhere.contains("--metrics-secure-listen"), "{elsewhere}");
    let in_clear = get(secure, "/metrics").await;
    assert!(!in_clear.contains("metallb"), "{in_clear}");
}

#[tokio::test]
async fn a_certificate_that_is_renewed_is_presented_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let first = issue(folder.path());
    let (_server, _, secure) = both(folder.path()).await;
    assert!(ask(secure, &first, "").await.is_some());
    let second = issue(folder.path());
    assert!(ask(secure, &first, "").await.is_none());
    assert!(ask(secure, &second, "").await.is_some());
    put(folder.path(), "tls.crt", "nonsense");
    assert!(ask(secure, &second, "").await.is_some(), "the earlier one stays");
}

#[test]
fn a_certificate_that_cannot_be_used_ends_the_start_and_names_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let listen = HttpListen::Everywhere(9120);
        let certificate_folder = Some(folder.path().to_owned());
        let secured = SecureOptions { listen, certificate_folder }.secured(Arc::new(ByName));
        secured.err().unwrap().to_string()
    };
    assert!(start().contains("tls.crt: No such file"), "{}", start());
    issue(folder.path());
    put(folder.path(), "tls.key", "nonsense");
    assert!(start().contains("tls.key: is not PEM"), "{}", start());
    let key = folder.path().join("tls.key");
    fs::remove_file(&key).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&key).status().unwrap().success());
    assert!(start().contains("tls.key: is not a file of at most 1 MiB"), "{}", start());
}

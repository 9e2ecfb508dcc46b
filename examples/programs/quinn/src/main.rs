//! A download over QUIC, by quinn: `quinn-pair server ADDRESS CERTIFICATE BYTES` serves it, and
//! `quinn-pair client ADDRESS CERTIFICATE` prints as JSON how it went.
//!
//! The server writes its certificate to a file, and the client trusts this one alone.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use std::{env, fs};

use quinn::{ClientConfig, Endpoint, ServerConfig};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

/// The name for which the certificate is.
const NAME: &str = "server";

/// Most bytes that the client takes.
const MOST: usize = 1 << 30;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match words[..] {
        ["server", at, certificate, bytes] => {
            runtime.block_on(serve(at.parse()?, certificate, bytes.parse()?))
        }
        ["client", at, certificate] => runtime.block_on(download(at.parse()?, certificate)),
        _ => Err("accepted: server ADDRESS CERTIFICATE BYTES, or client ADDRESS CERTIFICATE".into()),
    }
}

async fn serve(at: SocketAddr, certificate: &str, bytes: usize) -> Result<(), Box<dyn Error>> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = ServerConfig::with_single_cert(vec![made.cert.der().clone()], key.into())?;
    let endpoint = Endpoint::server(config, at)?;
    fs::write(certificate, made.cert.der())?;
    while let Some(incoming) = endpoint.accept().await {
        let connection = incoming.await?;
        let mut stream = connection.open_uni().await?;
        stream.write_all(&vec![0; bytes]).await?;
        stream.finish()?;
        connection.closed().await;
    }
    Ok(())
}

async fn download(at: SocketAddr, certificate: &str) -> Result<(), Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(fs::read(certificate)?))?;
    let mut endpoint = Endpoint::client("0.0.0.0:0".parse()?)?;
    endpoint.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots))?);
    let began = Instant::now();
    let connection = endpoint.connect(at, NAME)?.await?;
    let data = connection.accept_uni().await?.read_to_end(MOST).await?;
    let took_s = began.elapsed().as_secs_f64();
    let path = connection.stats().path;
    println!(
        "{{\"goodput\": {}, \"rtt\": {}, \"time\": {took_s}}}",
        data.len() as f64 * 8.0 / took_s,
        path.rtt.as_secs_f64(),
    );
    connection.close(0_u32.into(), b"done");
    endpoint.wait_idle().await;
    Ok(())
}

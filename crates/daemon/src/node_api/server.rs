//! The HTTPS server of a speaker: only for holders of the right certificate.

use std::sync::Arc;
use std::time::Duration;

use fairway_ground::Bound;
use fairway_show::language::{Question, Vocabulary, understand};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use serde::Serialize;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::{NodeApiOptions, NodeQuestion, PATH, REFUSED};
use crate::admin::{self, Answer, Observer, Order};
use crate::host::ClientLimits;
use crate::http_server::{self, HttpListen, HttpsBounds, Peer, plain};
use crate::tls::{CertificateFolder, CertificateFolderOptions};

/// A few controllers, each with a few questions; a large answer to a slow one.
const BOUNDS: HttpsBounds = HttpsBounds {
    what: "the node API",
    clients: ClientLimits {
        clients_max: 32,
        silence: Duration::from_millis(500),
        bound: Bound::NodeApiClient,
    },
    connection_timeout: Duration::from_secs(60),
    read_buffer_bytes: 16 << 10,
    headers_max: 100,
};
/// How long a client may take for its question.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// A question is a few words.
const QUESTION_BYTES_MAX: usize = 4096;
/// Answers that are made at the same time: one may be a large table, as large as that of `fairway show`.
const ANSWERS_MAX: usize = 1;
/// How often a certificate that is not there yet is looked for.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Serves until it is aborted. Without a certificate, which the leading controller issues, it does not listen.
pub(crate) async fn serve(
    options: NodeApiOptions,
    observer: Observer,
    orders: mpsc::Sender<Order>,
) {
    if options.listen == HttpListen::Nowhere {
        return;
    }
    let desk = Arc::new(Desk { observer, orders, answers: Semaphore::new(ANSWERS_MAX) });
    let certificate = certificate(&options).await;
    let listening = options.listen.bind_patiently("answers to controllers", "--node-api-listen");
    let Some(listener) = listening.await else { return };
    info!(listen = %options.listen, "answering controllers");
    let config = || Some(certificate.config());
    let answer = move |request, peer| {
        let desk = Arc::clone(&desk);
        async move { reply(request, &desk, &peer).await }
    };
    http_server::serve(&listener, BOUNDS, config, answer).await;
}

/// The certificate, once it is there.
async fn certificate(options: &NodeApiOptions) -> CertificateFolder {
    let folder = CertificateFolderOptions {
        option: "--node-api-cert-dir",
        folder: options.certificate_folder.clone(),
        names_clients: true,
    };
    let mut trouble = None;
    loop {
        let problem = match CertificateFolder::open(folder.clone()) {
            Ok(certificate) => return certificate,
            Err(error) => error.to_string(),
        };
        if trouble.as_ref() != Some(&problem) {
            warn!(
                "kubectl fairway gets no answer from this node: {problem}; the leading controller issues the \
                 certificate; trying again"
            );
        }
        trouble = Some(problem);
        sleep(RETRY_INTERVAL).await;
    }
}

/// Where questions are answered.
struct Desk {
    observer: Observer,
    orders: mpsc::Sender<Order>,
    answers: Semaphore,
}

async fn reply(request: Request<Incoming>, desk: &Desk, peer: &Peer) -> Response<Full<Bytes>> {
    if request.uri().path() != PATH || request.method() != Method::POST {
        return plain(StatusCode::NOT_FOUND, "only POST /v1/ask exists\n");
    }
    let body = Limited::new(request.into_body(), QUESTION_BYTES_MAX);
    let Ok(Ok(body)) = timeout(REQUEST_TIMEOUT, body.collect()).await else {
        return plain(StatusCode::PAYLOAD_TOO_LARGE, "the question is too large, or late\n");
    };
    peer.work.begins();
    let Ok(_permit) = desk.answers.acquire().await else {
        return plain(StatusCode::SERVICE_UNAVAILABLE, "the speaker is shutting down\n");
    };
    let answer = match serde_json::from_slice(&body.to_bytes()) {
        Ok(question) => answer(&question, desk).await,
        Err(error) => Answer::Error(format!("malformed question: {error}")),
    };
    match answer {
        Answer::Piece(output) | Answer::Output(output) | Answer::Encoded(output) => {
            http_server::text_of(StatusCode::OK, output)
        }
        Answer::Error(why) => plain(REFUSED, &why),
        Answer::Drain(report) => as_json(&report),
        Answer::Overview(overview) => as_json(&*overview),
    }
}

fn as_json(answer: &impl Serialize) -> Response<Full<Bytes>> {
    match serde_json::to_string(answer) {
        Ok(text) => http_server::json(StatusCode::OK, text),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
    }
}

async fn answer(question: &NodeQuestion, desk: &Desk) -> Answer {
    let request = match question {
        NodeQuestion::Drain(request) => admin::Request::Drain(*request),
        NodeQuestion::Words(words) => {
            let line: Vec<&str> = words.iter().map(String::as_str).collect();
            match understand(Vocabulary::CommandLine, &line) {
                Ok(Question::Show(query)) => admin::Request::Show(query),
                // What changes something is asked for in another form.
                Ok(_) => return Answer::Error(format!("not answered here: {}", words.join(" "))),
                Err(_) => return Answer::Error(format!("unknown here: {}", words.join(" "))),
            }
        }
    };
    admin::answer(&request, &desk.observer, &desk.orders).await
}

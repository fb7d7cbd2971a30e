//! How is a true review served meanwhile? One a second, each on a connection of its own; what each answer was and how
//! long it took. Used by the case of all floods.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::NAMESPACE;
use super::client::Client;
use lab::latencies::Latencies;
use lab::wait::now;

const GAP: Duration = Duration::from_secs(1);
/// How long an answer may take; the API server waits for five.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// After this time the client goes.
const GIVE_UP: Duration = Duration::from_secs(10);

/// Sends them until it is dropped.
pub(crate) struct Reviews {
    record: Arc<Mutex<Record>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Record {
    latencies: Latencies,
    /// What was wrong with which review.
    faults: Vec<String>,
}

impl Reviews {
    pub(super) fn start(runtime: &Handle, client: Client) -> Self {
        let record = Arc::<Mutex<Record>>::default();
        let task = runtime.spawn(send(client, Arc::clone(&record)));
        Self { record, task }
    }

    /// Fails when one was not answered as it should be, or when there were fewer than one a second; else prints how
    /// long they took.
    pub(crate) fn report(&self, period: Duration) -> Result<String> {
        let record = lock(&self.record);
        ensure!(
            record.faults.is_empty(),
            "{} reviews were not served, {} were; the first: {}",
            record.faults.len(),
            record.latencies.count(),
            record.faults.first().map_or("", String::as_str)
        );
        let (count, due) = (record.latencies.count(), period.as_secs_f64() / GAP.as_secs_f64());
        let count_exact = f64::from(u32::try_from(count)?);
        ensure!(count_exact > due * 0.9, "{count} reviews in {period:?}");
        Ok(format!(
            "{count} reviews answered, p50 {:.1} ms, p99 {:.1} ms, at most {:.1} ms",
            record.latencies.percentile(50),
            record.latencies.percentile(99),
            record.latencies.percentile(100)
        ))
    }
}

impl Drop for Reviews {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn send(client: Client, record: Arc<Mutex<Record>>) {
    let mut due = interval(GAP);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 1_u32.. {
        due.tick().await;
        let start = now();
        let outcome = timeout(GIVE_UP, served(&client, number)).await;
        let took = start.elapsed();
        let outcome = match outcome {
            Ok(Ok(())) if took <= ANSWER_MAX => Ok(()),
            Ok(Ok(())) => Err("it was answered late".to_owned()),
            Ok(Err(error)) => Err(format!("{error:#}")),
            Err(_) => Err("no answer".to_owned()),
        };
        let mut record = lock(&record);
        match outcome {
            Ok(()) => record.latencies.push(took),
            Err(fault) => record.faults.push(format!("{number}, after {took:?}: {fault}")),
        }
    }
}

/// A pool without a fault is allowed, in an answer to this review.
async fn served(client: &Client, number: u32) -> Result<()> {
    let review = pool(&format!("pool-{number}"), &json!(["192.0.2.0/24"]), &json!({}));
    let reply = client.ask(review.to_string().as_bytes()).await?;
    ensure!(reply.status == 200, "status {}: {}", reply.status, reply.body);
    let answer: Value = serde_json::from_str(&reply.body).context("the answer")?;
    let expected = [json!(format!("pool-{number}")), json!(true)];
    let found = ["/response/uid", "/response/allowed"].map(|it| answer.pointer(it));
    ensure!(found == expected.each_ref().map(Some), "it answers {answer}");
    Ok(())
}

/// The review of a new IPAddressPool.
pub(super) fn pool(name: &str, addresses: &Value, annotations: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": name,
            "kind": { "group": "metallb.io", "version": "v1beta1", "kind": "IPAddressPool" },
            "operation": "CREATE",
            "namespace": NAMESPACE,
            "name": name,
            "object": {
                "apiVersion": "metallb.io/v1beta1",
                "kind": "IPAddressPool",
                "metadata": { "name": name, "namespace": NAMESPACE, "annotations": annotations },
                "spec": { "addresses": addresses },
            },
        },
    })
}

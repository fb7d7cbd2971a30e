//! What is around every answer.

use fairway_ground::Utc;
use fairway_show::Snapshot;
use serde::Serialize;

use super::BirdwatcherError;

/// An answer holds for so long, as far as a client is concerned.
const TTL_SECONDS: u64 = 5;

/// Content with `api` and `ttl` around it.
pub(super) struct Envelope<'a, T> {
    pub(super) snapshot: &'a Snapshot<'a>,
    pub(super) content: T,
}

#[derive(Serialize)]
struct Written<T> {
    api: Api,
    ttl: String,
    #[serde(flatten)]
    content: T,
}

#[derive(Serialize)]
struct Api {
    /// As Alice-LG reads it.
    #[serde(rename = "Version")]
    version_of_alice: String,
    /// As the schema says.
    version: String,
    result_from_cache: bool,
    cache_status: CacheStatus,
}

#[derive(Serialize)]
struct CacheStatus {
    cached_at: CachedAt,
}

#[derive(Serialize)]
struct CachedAt {
    date: String,
    timezone_type: &'static str,
    timezone: &'static str,
}

impl<T: Serialize> Envelope<'_, T> {
    pub(super) fn json(self) -> Result<String, BirdwatcherError> {
        let now = self.snapshot.now_epoch_seconds;
        let version = version();
        let date = Utc(now).rfc3339();
        let cached_at = CachedAt { date, timezone_type: "UTC", timezone: "UTC" };
        let written = Written {
            api: Api {
                version_of_alice: version.clone(),
                version,
                result_from_cache: false,
                cache_status: CacheStatus { cached_at },
            },
            ttl: Utc(now.saturating_add(TTL_SECONDS)).rfc3339(),
            content: self.content,
        };
        serde_json::to_string(&written).map_err(|error| BirdwatcherError::Json(error.to_string()))
    }
}

pub(super) fn version() -> String {
    format!("Fairway {}", env!("CARGO_PKG_VERSION"))
}

/// `2026-11-20 16:38:03`, as BIRD prints it with `timeformat iso long`.
pub(super) fn time(epoch_seconds: u64) -> String {
    Utc(epoch_seconds).to_string().trim_end_matches(" UTC").to_owned()
}

//! Detects an input that never terminates, which the worker that runs it cannot.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use fairway_fuzzing::{TARGETS, Target};

use super::finding::{Fault, Finding};

/// Maximum wall-clock time of one input. Far more than its CPU time: the machine may be busy.
const HANG_TIME: Duration = Duration::from_secs(20);

/// The current input of a worker.
#[derive(Debug, Default)]
pub(crate) struct Post {
    target: AtomicUsize,
    seed: AtomicU64,
    /// Counts inputs.
    progress: AtomicU64,
    left: AtomicBool,
}

impl Post {
    /// The worker starts another input.
    pub(crate) fn run(&self, target: &Target, seed: u64) {
        // Targets outside the list are used in tests.
        let position = TARGETS.iter().position(|it| std::ptr::eq(it, target));
        self.target.store(position.unwrap_or(usize::MAX), Ordering::Relaxed);
        self.seed.store(seed, Ordering::Relaxed);
        self.progress.fetch_add(1, Ordering::Release);
    }

    /// The worker has ended.
    pub(crate) fn leave(&self) {
        self.left.store(true, Ordering::Release);
    }

    fn finding(&self) -> Option<Finding> {
        let target = TARGETS.get(self.target.load(Ordering::Relaxed))?;
        let seed = self.seed.load(Ordering::Relaxed);
        let input = target.input(seed);
        Some(Finding { target, seed: Some(seed), input, fault: Fault::Hangs })
    }
}

pub(crate) struct Watchdog {
    posts: Vec<Post>,
    dismissed: Mutex<bool>,
    bell: Condvar,
}

impl Watchdog {
    pub(crate) fn new(workers: usize) -> Self {
        let posts = (0..workers).map(|_| Post::default()).collect();
        Self { posts, dismissed: Mutex::new(false), bell: Condvar::new() }
    }

    pub(crate) fn posts(&self) -> impl Iterator<Item = &Post> {
        self.posts.iter()
    }

    /// Watches until it is dismissed. Exits the process if a worker hangs: its thread cannot be terminated,
    /// and the locks it holds are lost.
    pub(crate) fn watch(&self) {
        let mut seen: Vec<u64> = vec![u64::MAX; self.posts.len()];
        let mut dismissed = self.dismissed.lock().unwrap_or_else(PoisonError::into_inner);
        while !*dismissed {
            let woken = self.bell.wait_timeout(dismissed, HANG_TIME);
            let (guard, timeout) = woken.unwrap_or_else(PoisonError::into_inner);
            dismissed = guard;
            if !timeout.timed_out() {
                continue;
            }
            for (post, seen) in self.posts.iter().zip(&mut seen) {
                let progress = post.progress.load(Ordering::Acquire);
                if progress == *seen && !post.left.load(Ordering::Acquire) {
                    if let Some(finding) = post.finding() {
                        println!("{finding}\n  {}", finding.keep());
                    }
                    std::process::exit(1);
                }
                *seen = progress;
            }
        }
    }

    /// Ends the watch.
    pub(crate) fn dismiss(&self) {
        *self.dismissed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.bell.notify_all();
    }
}

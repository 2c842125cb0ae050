//! Acting for real.

use super::cut::Cut;
use super::http::Http;
use super::{Execute, Job, Observation};
use crate::authorize::Permitted;

/// Runs each action by its kind.
#[derive(Debug)]
pub struct Live {
    http: Http,
}

impl Live {
    /// Nothing is opened or started before the first job.
    #[expect(clippy::new_without_default, reason = "there is no default way to act on the world")]
    pub fn new() -> Self {
        Self { http: Http::new() }
    }
}

impl Execute for Live {
    fn run(&self, job: Job, cut: &Cut) -> Observation {
        match job.action.permitted() {
            Permitted::Http(action, grant) => self.http.run(&job, action, grant, cut),
        }
    }
}

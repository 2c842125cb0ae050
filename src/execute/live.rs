//! Acting for real.

use std::sync::Arc;

use super::cut::Cut;
use super::helper::Helpers;
use super::http::Http;
use super::{Execute, Job, Observation};
use crate::authorize::Permitted;
use crate::dial::Lookups;
use crate::home::Home;

/// Runs each action by its kind.
#[derive(Debug)]
pub struct Live {
    http: Http,
    helpers: Helpers,
}

impl Live {
    /// Nothing is opened or started before the first job.
    /// Helpers are kept out of the home.
    pub fn new(home: Option<&Home>) -> Self {
        let lookups = Arc::new(Lookups::new());
        Self { http: Http::new(lookups), helpers: Helpers::new(home) }
    }
}

impl Execute for Live {
    fn run(&self, job: Job, cut: &Cut) -> Observation {
        match job.action.permitted() {
            Permitted::Http(action, grant) => self.http.run(&job, action, grant, cut),
            Permitted::Helper(_, words, grant) => self.helpers.run(&job, words, grant, cut),
        }
    }
}

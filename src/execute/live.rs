//! Acting for real.

use std::sync::Arc;

use super::helper::Helpers;
use super::http::Http;
use super::ssh::Ssh;
use super::{Execute, Job, Observation};
use crate::authorize::Permitted;
use crate::child::Children;
use crate::cut::Cut;
use crate::dial::Lookups;
use crate::home::Home;

/// Runs each action by its kind.
#[derive(Debug)]
pub struct Live {
    http: Http,
    helpers: Helpers,
    ssh: Ssh,
}

impl Live {
    /// Nothing is opened or started before the first job.
    /// Helpers are kept out of the home.
    pub fn new(home: Option<&Home>) -> Self {
        let lookups = Arc::new(Lookups::new());
        let helpers = Helpers::new(home);
        let ssh = Ssh::new(home, Arc::clone(&lookups), &helpers.children());
        Self { http: Http::new(lookups), helpers, ssh }
    }

    /// What also runs programs that are no helpers, within the same budget.
    pub fn children(&self) -> Arc<Children> {
        self.helpers.children()
    }
}

impl Execute for Live {
    fn run(&self, job: Job, cut: &Cut) -> Observation {
        match job.action.permitted() {
            Permitted::Http(action, grant) => self.http.run(&job, action, grant, cut),
            Permitted::Helper(_, words, grant) => self.helpers.run(&job, words, grant, cut),
            Permitted::Ssh(action, grant) => self.ssh.run(&job, action, grant, cut),
        }
    }
}

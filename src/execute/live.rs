//! Acting for real.

use super::cut::{Cut, WasCut};
use super::helper::Helpers;
use super::http::Http;
use super::{End, Execute, Job, Observation};
use crate::authorize::Permitted;
use crate::home::Home;
use crate::state::Reason;

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
        Self { http: Http::new(), helpers: Helpers::new(home) }
    }
}

impl Execute for Live {
    fn run(&self, job: Job, cut: &Cut) -> Observation {
        match job.action.permitted() {
            Permitted::Http(action, grant) => self.http.run(&job, action, grant, cut),
            Permitted::Helper(_, words, grant) => self.helpers.run(&job, words, grant, cut),
            Permitted::Ssh(..) => match cut.begin().and_then(|()| cut.end()) {
                Ok(()) => {
                    let message = "This build of Keyward reaches no hosts.";
                    Observation::new(End::NotDispatched(Reason::Network), Some(message.into()))
                }
                Err(WasCut) => Observation::new(End::CancelledBefore, None),
            },
        }
    }
}

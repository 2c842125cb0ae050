//! A small text of our own, posted to a server of the operator's: a head of the record.
//!
//! Invariant: it goes over TLS, without a credential, once; no redirect is followed, and of the answer
//! nothing is used but its status.

use std::sync::Arc;

use ureq::http::{HeaderValue, Request, header};

use super::call::Serving;
use super::{pool, request, words};
use crate::clock::Deadline;
use crate::cut::Cut;
use crate::dial::{Lookups, Stop};
use crate::policy::witness::KeeperUrl;

/// Posts texts. It has lookup threads of its own, so that a name that hangs takes none from actions.
#[derive(Debug)]
pub struct Poster {
    lookups: Arc<Lookups>,
}

/// Why a text was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PostFault {
    /// The file of authorities cannot be used, or the host can have no certificate.
    Tls,
    /// No connection, for a reason in a word.
    Unlinked(&'static str),
    /// A connection that was lost.
    Network,
    /// Its time was over.
    Deadline,
    /// It was cut.
    Cut,
    /// The server answered with this status.
    Status(u16),
}

impl Default for Poster {
    fn default() -> Self {
        Self { lookups: Arc::new(Lookups::new()) }
    }
}

impl Poster {
    /// Posts one text as JSON, on the calling thread, until the deadline or until it is cut.
    ///
    /// # Errors
    /// [`PostFault`]: it is not known to have been taken.
    pub fn post(
        &self,
        to: &KeeperUrl,
        text: &str,
        deadline: Deadline,
        cut: &Cut,
    ) -> Result<(), PostFault> {
        let KeeperUrl { url, private, ca_file } = to;
        cut.begin().map_err(|_| PostFault::Cut)?;
        let serving = Serving::new(cut, deadline);
        let lookups = Arc::clone(&self.lookups);
        let client = pool::client(&url.origin, *private, ca_file.as_deref(), lookups)
            .map_err(|_| PostFault::Tls)?;
        let request = Request::post(url.uri.clone())
            .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(header::USER_AGENT, request::USER_AGENT)
            .body(text.as_bytes())
            .map_err(|_| PostFault::Network)?;
        let answer = client.run(request);
        cut.end().map_err(|_| PostFault::Cut)?;
        match answer {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(PostFault::Status(answer.status().as_u16())),
            Err(_) => {
                let progress = serving.progress();
                Err(match (progress.stop, &progress.link) {
                    (Some(Stop::Deadline), _) => PostFault::Deadline,
                    (Some(Stop::Cut), _) => PostFault::Cut,
                    (_, Some(fault)) => PostFault::Unlinked(words::not_linked(fault)),
                    (Some(Stop::Slow | Stop::Lost) | None, None) => PostFault::Network,
                })
            }
        }
    }
}

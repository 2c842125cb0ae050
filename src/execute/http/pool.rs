//! One client with its kept connections for each target, shared by all workers.
//!
//! Invariant: a connection serves one target of one configuration. Where the configuration, or the
//! target's `ca_file`, is another one, its connections are dropped.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ureq::Agent;

use super::authorities::{self, CaFault, Stamp};
use super::tls::{self, Tls};
use super::transport::{Later, TargetConnector};
use crate::action::http::{Origin, Scheme};
use crate::authorize::Grant;
use crate::dial::{Dialer, Host, Lookups};
use crate::limits;
use crate::name::Name;
use crate::policy::config::HttpTarget;

/// The clients of all targets that were called so far.
#[derive(Debug)]
pub(super) struct Pools {
    lookups: Arc<Lookups>,
    clients: Mutex<Clients>,
}

#[derive(Default, Debug)]
struct Clients {
    /// The configuration that they belong to.
    policy_digest: String,
    list: Vec<Client>,
}

#[derive(Debug)]
struct Client {
    key: Key,
    agent: Agent,
}

/// What of a target a connection depends on.
#[derive(PartialEq, Eq, Debug)]
struct Key {
    name: Name,
    origin: Origin,
    private: bool,
    ca_file: Option<(PathBuf, Option<Stamp>)>,
}

/// Why a target has no client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum PoolFault {
    /// Its `ca_file` cannot be used.
    Ca(CaFault),
    /// Its host can have no certificate.
    Host,
}

impl Pools {
    /// No client yet.
    pub(super) fn new(lookups: Arc<Lookups>) -> Self {
        Self { lookups, clients: Mutex::default() }
    }

    /// The client of an authorized action's target.
    pub(super) fn agent(&self, grant: &Grant<HttpTarget>) -> Result<Agent, PoolFault> {
        let key = Key::new(grant.target());
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.policy_digest != grant.policy_digest() {
            clients.list.clear();
            clients.policy_digest = grant.policy_digest().into();
        }
        if let Some(client) = clients.list.iter().find(|client| client.key == key) {
            return Ok(client.agent.clone());
        }
        // The same target with another `ca_file` may be there.
        clients.list.retain(|client| client.key.name != key.name);
        let ca_file = key.ca_file.as_ref().map(|(path, _)| path.as_path());
        let agent = client(&key.origin, key.private, ca_file, Arc::clone(&self.lookups))?;
        clients.list.push(Client { key, agent: agent.clone() });
        Ok(agent)
    }
}

/// A client of one origin, with no connection yet.
pub(super) fn client(
    origin: &Origin,
    private: bool,
    ca_file: Option<&Path>,
    lookups: Arc<Lookups>,
) -> Result<Agent, PoolFault> {
    let tls = match origin.scheme {
        Scheme::Http => None,
        Scheme::Https => {
            let roots = match ca_file {
                Some(path) => authorities::read(path).map_err(PoolFault::Ca)?,
                None => tls::builtin_roots(),
            };
            Some(Tls::new(&origin.host, roots).ok_or(PoolFault::Host)?)
        }
    };
    let host = Host::of_url(&origin.host);
    let dialer = Dialer::new(host, origin.port, private, lookups);
    Ok(Agent::with_parts(config(), TargetConnector { dialer, tls }, Later))
}

impl Key {
    fn new(target: &HttpTarget) -> Self {
        let ca_file = target.ca_file.as_ref().map(|path| (path.clone(), Stamp::new(path)));
        let (name, origin) = (target.name.clone(), target.origin.clone());
        Self { name, origin, private: target.private, ca_file }
    }
}

/// Every phase has a limit; the call's deadline is looked at beside it in every wait.
fn config() -> ureq::config::Config {
    Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent("")
        .accept("")
        .accept_encoding("")
        .max_response_header_size(limits::HTTP_HEAD_BYTES)
        .max_idle_connections(limits::IDLE_CONNECTIONS)
        .max_idle_connections_per_host(limits::IDLE_CONNECTIONS)
        .max_idle_age(limits::IDLE_FOR)
        .timeout_resolve(Some(limits::LOOKUP_FOR))
        .timeout_connect(Some(limits::LOOKUP_FOR + limits::CONNECT_FOR + limits::HANDSHAKE_FOR))
        .timeout_send_request(Some(limits::SEND_HEAD_FOR))
        .timeout_send_body(Some(limits::PHASE_FOR))
        .timeout_await_100(Some(limits::SEND_HEAD_FOR))
        .timeout_recv_response(Some(limits::PHASE_FOR))
        .timeout_recv_body(Some(limits::PHASE_FOR))
        .build()
}

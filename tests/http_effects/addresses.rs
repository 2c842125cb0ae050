//! H4: what a name may lead to, as far as it can be seen without a name server of one's own.

use keyward::execute::End;
use keyward::state::{Outcome, Reason};
use serde_json::json;

use crate::call::Target;
use crate::server::{Server, answer};

#[test]
fn a_name_for_this_machine_needs_private() {
    let server = Server::answering(answer(200, &[], ""));
    let url = format!("http://localhost:{}/", server.port());
    let seen = Target::new(&url).get("");
    assert_eq!(seen.end, End::NotDispatched(Reason::Network));
    let said = seen.message.unwrap();
    assert!(said.contains("no address that this target may reach"), "{said}");
    assert!(!said.contains("127."), "{said}");
    assert_eq!(server.connections(), 0);
    let seen = Target::new(&url).with("private", json!(true)).get("");
    assert_eq!(seen.end, End::Completed(Outcome::Success), "{seen:?}");
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_literal_address_needs_nothing() {
    let server = Server::answering(answer(200, &[], ""));
    assert_eq!(Target::new(&server.http()).get("").end, End::Completed(Outcome::Success));
}

#[test]
fn what_is_never_dialled() {
    for host in
        ["169.254.169.254", "0.0.0.0", "100.100.100.200", "[fe80::1]", "[::]", "[fd00:ec2::254]"]
    {
        let target = Target::new(&format!("http://{host}:9/"));
        for target in
            [target, Target::new(&format!("http://{host}:9/")).with("private", json!(true))]
        {
            let seen = target.get("");
            assert_eq!(seen.end, End::NotDispatched(Reason::Network), "{host}");
            assert!(seen.message.unwrap().contains("may reach"), "{host}");
        }
    }
}

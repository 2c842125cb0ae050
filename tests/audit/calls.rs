//! Open calls, and who closes them.

use std::fs;

use keyward::audit::{OpenCalls, close_abandoned, listed};
use keyward::name::SessionId;

use super::harness::{Home, call, ended, intent, random, small_segments};

#[test]
fn a_call_is_listed_while_it_is_open() {
    let home = Home::new("listed");
    let (audit, session) = home.audit(small_segments());
    let calls = [call(), call(), call()];
    for call in calls {
        audit.intent(intent(call)).unwrap();
    }
    audit.outcome(ended(calls[1])).unwrap();
    let seen = listed(&home.run_folder()).unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].session, seen[0].is_live), (session, true));
    assert_eq!(seen[0].calls, [calls[0], calls[2]]);
    // Nobody takes a living session's calls.
    let (other, _) = home.audit(small_segments());
    assert_eq!(close_abandoned(&home.run_folder(), &other), Ok(0));
    for call in [calls[0], calls[2]] {
        audit.outcome(ended(call)).unwrap();
    }
    drop(audit);
    assert_eq!(listed(&home.run_folder()).unwrap(), [], "a session that ended well leaves no file");
}

#[test]
fn whoever_gets_the_lock_closes_the_calls() {
    let home = Home::new("closes");
    let session = SessionId::new(random());
    let calls = [call(), call()];
    let mut list = OpenCalls::begin(&home.run_folder(), session).unwrap();
    list.list(calls.into_iter()).unwrap();
    assert!(listed(&home.run_folder()).unwrap()[0].is_live);
    drop(list);
    let left = listed(&home.run_folder()).unwrap();
    assert_eq!((left[0].is_live, left[0].calls.as_slice()), (false, calls.as_slice()));
    let (audit, _) = home.audit(small_segments());
    // A record that cannot be written closes nothing.
    let folder = home.audit_folder();
    fs::rename(&folder, home.path.join("away")).unwrap();
    assert!(close_abandoned(&home.run_folder(), &audit).is_err());
    fs::rename(home.path.join("away"), &folder).unwrap();
    assert_eq!(close_abandoned(&home.run_folder(), &audit), Ok(2));
    assert_eq!(close_abandoned(&home.run_folder(), &audit), Ok(0));
    drop(audit);
    let events = home.events();
    assert_eq!(events.len(), 2);
    for (event, call) in events.iter().zip(calls) {
        assert_eq!((event.call, event.session), (Some(call), session));
        assert_eq!(event.text(&["state"]).as_deref(), Some("outcome_unknown"));
    }
    assert_eq!(listed(&home.run_folder()).unwrap(), []);
}

/// A list cut short by a power loss lists what was durable, and nothing that is half there.
#[test]
fn a_list_that_was_cut_short_is_read() {
    let home = Home::new("short");
    let session = SessionId::new(random());
    let calls = [call(), call()];
    let mut list = OpenCalls::begin(&home.run_folder(), session).unwrap();
    list.list(calls.into_iter()).unwrap();
    drop(list);
    let path = home.run_folder().join(session.to_string());
    let whole = fs::read(&path).unwrap();
    for cut in 0..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let seen = listed(&home.run_folder()).unwrap();
        assert_eq!(seen[0].calls, calls[..2.min(cut / 35)], "{cut}");
    }
}

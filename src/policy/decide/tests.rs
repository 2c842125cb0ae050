//! The cases of the judgement, by table.

use super::*;
use crate::action::http::HttpRequest;
use crate::policy::config;

/// What becomes of a request: `allow`, `ask`, or the reason of its refusal and the message.
pub(super) fn verdict(
    policy: &Policy,
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
) -> String {
    let request = HttpRequest {
        method: method.into(),
        url: url.into(),
        headers: headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        body: None,
        json: None,
        timeout_seconds: None,
        max_bytes: None,
    };
    let action = match HttpAction::parse(request) {
        Ok(action) => action,
        Err(refused) => return format!("{}: {}", refused.reason.as_str(), refused.message),
    };
    match decide_http(policy, &action) {
        Judgement::Allow { .. } => "allow".into(),
        Judgement::Ask { .. } => "ask".into(),
        Judgement::Deny(denied) => format!("{}: {}", denied.reason.as_str(), denied.message),
    }
}

pub(super) fn policy(targets: &str) -> Policy {
    let text = format!(
        r#"{{ "version": 1, "http": {{ {targets} }}, "credentials": {{
            "bearer": {{ "type": "bearer", "source": {{ "file": "/k" }} }},
            "header": {{ "type": "header", "header": "X-Api-Key", "source": {{ "file": "/k" }} }},
            "query": {{ "type": "query", "parameter": "api_key", "source": {{ "file": "/k" }} }}
        }} }}"#
    );
    config::parse(&text).unwrap()
}

/// Each URL with the beginning of its verdict, for GET.
#[track_caller]
fn assert_verdicts(policy: &Policy, cases: &[(&str, &str)]) {
    for (url, expected) in cases {
        let found = verdict(policy, "GET", url, &[]);
        assert!(found.starts_with(expected), "{url}: {found}, not {expected}");
    }
}

const ALL: &str = r#""rules": [{ "decision": "allow", "methods": ["*"], "path": "/**" }]"#;

#[test]
fn a_target_is_its_origin_and_what_lies_below_its_base() {
    let policy = policy(&format!(
        r#""a": {{ "base_url": "https://h.test/api", {ALL} }},
           "b": {{ "base_url": "http://localhost:8080/", {ALL} }},
           "c": {{ "base_url": "http://0x7f.1/", {ALL} }}"#
    ));
    assert_verdicts(
        &policy,
        &[
            ("https://h.test/api/", "allow"),
            ("https://h.test/api/x", "allow"),
            ("https://h.test/api", "allow"),
            ("https://h.test/api?x=1", "allow"),
            ("https://H.Test:443/api/x", "allow"),
            ("https://h.test/apixyz", "no_target"),
            ("https://h.test/API/x", "no_target"),
            ("https://h.test/", "no_target"),
            ("https://h.test/api;x/y", "no_target"),
            ("http://h.test/api/x", "no_target"),
            ("https://h.test:444/api/x", "no_target"),
            ("https://h.test./api/x", "no_target"),
            ("http://localhost:8080/", "allow"),
            ("http://localhost.:8080/", "no_target"),
            ("http://127.0.0.1:8080/", "no_target"),
            ("http://2130706433:8080/", "no_target"),
            ("http://[::ffff:7f00:1]:8080/", "no_target"),
            ("http://0177.0.0.1:8080/", "no_target"),
            ("http://0x7f.1/", "allow"),
            ("https://evil.test/@h.test/api", "no_target"),
            ("https://h.test:x@evil.test/api", "ambiguous_url"),
            ("https://h.test\\@evil.test/api", "ambiguous_url"),
            ("https://h.test#@evil.test/api", "ambiguous_url"),
        ],
    );
    assert!(verdict(&Policy::empty(), "GET", "https://h.test/", &[]).starts_with("no_target"));
}

#[test]
fn a_deny_holds_for_every_reading_of_a_path() {
    let policy = policy(
        r#""a": { "base_url": "https://h.test/", "rules": [
            { "decision": "allow", "methods": ["*"], "path": "/**" },
            { "decision": "deny", "methods": ["*"], "path": "/admin/**" },
            { "decision": "ask", "methods": ["GET"], "path": "/users/*/keys" },
            { "decision": "deny", "methods": ["DELETE"], "path": "/**" }
        ] }"#,
    );
    assert_verdicts(
        &policy,
        &[
            ("https://h.test/", "allow"),
            ("https://h.test/administrator", "allow"),
            ("https://h.test/x/admin", "allow"),
            ("https://h.test/admin", "policy: A rule denies"),
            ("https://h.test/admin/", "policy: A rule denies"),
            ("https://h.test/Admin/x", "policy: A rule denies"),
            ("https://h.test/admin;a=1/x", "policy: A rule denies"),
            ("https://h.test/admin%3Ba=1/x", "policy: A rule denies"),
            ("https://h.test/admin.json", "policy: A rule denies"),
            ("https://h.test/admin%20/x", "policy: A rule denies"),
            ("https://h.test/admin./x", "policy: A rule denies"),
            ("https://h.test/%EF%BD%81dmin/x", "policy: A rule denies"),
            ("https://h.test/ádmin/x", "policy: A rule denies"),
            ("https://h.test/adm%E2%80%8Bin/x", "policy: A rule denies"),
            ("https://h.test/admin%3F/x", "policy: A rule denies"),
            ("https://h.test/%20/admin/x", "policy: A rule denies"),
            ("https://h.test/x/..;/admin/", "ambiguous_url"),
            ("https://h.test/;x/admin/", "ambiguous_url"),
            ("https://h.test//admin/", "ambiguous_url"),
            ("https://h.test/users/1/keys", "ask"),
            ("https://h.test/users/1/Keys/", "ask"),
            ("https://h.test/users/1/keys/2", "allow"),
        ],
    );
    assert!(verdict(&policy, "delete", "https://h.test/x", &[]).starts_with("policy"));
    assert!(verdict(&policy, "TRACE", "https://h.test/x", &[]).starts_with("arguments"));
}

#[test]
fn an_allow_holds_to_the_letter() {
    let policy = policy(
        r#""a": { "base_url": "https://h.test/v1/", "rules": [
            { "decision": "allow", "methods": ["GET"], "path": "/a@b/é/*" },
            { "decision": "allow", "methods": ["GET"], "path": "/x/**/y/*" },
            { "decision": "allow", "methods": ["GET"], "path": "/z/" }
        ] }"#,
    );
    assert_verdicts(
        &policy,
        &[
            ("https://h.test/v1/a@b/é/1", "allow"),
            ("https://h.test/v1/a@b/%c3%a9/1", "allow"),
            ("https://h.test/v1/a%40b/é/1", "policy: No rule"),
            ("https://h.test/v1/a@b/É/1", "policy: No rule"),
            ("https://h.test/v1/a@b/é/1/", "policy: No rule"),
            ("https://h.test/v1/a@b/é/", "policy: No rule"),
            ("https://h.test/v1/a@b/é", "policy: No rule"),
            ("https://h.test/v1/x/y/1", "allow"),
            ("https://h.test/v1/x/y/y/y/1", "allow"),
            ("https://h.test/v1/x/1/2/y/1", "allow"),
            ("https://h.test/v1/x/1/2/y/1/2", "policy: No rule"),
            ("https://h.test/v1/z/", "allow"),
            ("https://h.test/v1/z", "policy: No rule"),
            ("https://h.test/v1/", "policy: No rule"),
        ],
    );
}

#[test]
fn listed_names_of_a_query_are_the_only_ones() {
    let policy = policy(
        r#""a": { "base_url": "https://h.test/", "rules": [
            { "decision": "allow", "methods": ["GET"], "path": "/list",
              "query": { "page": "[0-9]+", "q q": "[a-z ]*", "é": "é|%", "any": ".*" } },
            { "decision": "allow", "methods": ["GET"], "path": "/none", "query": {} },
            { "decision": "allow", "methods": ["GET"], "path": "/open" },
            { "decision": "ask", "methods": ["GET"], "path": "/open", "query": { "force": "true" } },
            { "decision": "deny", "methods": ["GET"], "path": "/open", "query": { "debug": "1|yes" } },
            { "decision": "ask", "methods": ["GET"], "path": "/ask", "query": { "force": "true" } }
        ] }"#,
    );
    assert_verdicts(
        &policy,
        &[
            ("https://h.test/list", "allow"),
            ("https://h.test/list?", "allow"),
            ("https://h.test/list?page=1", "allow"),
            ("https://h.test/list?%70age=%31", "allow"),
            ("https://h.test/list?page=1&page=2", "ambiguous_url: The query names `page` twice."),
            ("https://h.test/list?page=1&%70age=2", "ambiguous_url: The query names `page` twice."),
            ("https://h.test/list?page=1&x=2", "policy: No rule"),
            ("https://h.test/list?page=", "policy: No rule"),
            ("https://h.test/list?page", "policy: No rule"),
            ("https://h.test/list?page=1x", "policy: No rule"),
            ("https://h.test/list?page=x1", "policy: No rule"),
            ("https://h.test/list?Page=1", "policy: No rule"),
            ("https://h.test/list?page[]=1", "policy: No rule"),
            ("https://h.test/list?page=1;x=2", "policy: No rule"),
            ("https://h.test/list?page=1&", "policy: No rule"),
            ("https://h.test/list?=1", "policy: No rule"),
            ("https://h.test/list?any=1;x=2", "policy: No rule"),
            ("https://h.test/list?any=1%3Bx=2", "allow"),
            ("https://h.test/list?any=a+b%26c", "allow"),
            ("https://h.test/list?q%20q=a%20b", "allow"),
            ("https://h.test/list?q%20q=a+b", "policy: No rule"),
            ("https://h.test/list?q+q=a", "policy: No rule"),
            ("https://h.test/list?%C3%A9=é", "allow"),
            ("https://h.test/list?é=%25", "allow"),
            ("https://h.test/none", "allow"),
            ("https://h.test/none?", "allow"),
            ("https://h.test/none?x", "policy: No rule"),
            ("https://h.test/open?a=1", "allow"),
            ("https://h.test/open?a=1&a=2", "ambiguous_url"),
            ("https://h.test/open?a=1&force=true", "ask"),
            ("https://h.test/open?a=1&FORCE=True", "ask"),
            ("https://h.test/open?force=false", "allow"),
            ("https://h.test/open?debug=1&force=true", "policy: A rule denies"),
            ("https://h.test/open?Debug[]=YES", "policy: A rule denies"),
            ("https://h.test/open?x=1;debug=1", "policy: A rule denies"),
            ("https://h.test/open?debug=0", "allow"),
            ("https://h.test/ask?force=true", "ask"),
            ("https://h.test/ask?force=true&x=1", "policy: No rule"),
        ],
    );
}

#[test]
fn the_parameter_of_a_credential_is_not_the_agents() {
    let policy = policy(&format!(
        r#""a": {{ "base_url": "https://h.test/", "credential": "query", {ALL} }}"#
    ));
    let refused = "ambiguous_url: The query names the parameter";
    assert_verdicts(
        &policy,
        &[
            ("https://h.test/?a=1&a=2", "allow"),
            ("https://h.test/?=&+", "allow"),
            ("https://h.test/?a=api_key", "allow"),
            ("https://h.test/?api_key=x", refused),
            ("https://h.test/?a=1&api_key", refused),
            ("https://h.test/?API_Key=x", refused),
            ("https://h.test/?%61pi%5Fkey=x", refused),
            ("https://h.test/?api_key[]=x", refused),
            ("https://h.test/?api.key=x", refused),
            ("https://h.test/?+api_key=x", refused),
            ("https://h.test/?a=1;api_key=x", refused),
            ("https://h.test/?%2561pi_key=x", "ambiguous_url: The URL is refused"),
        ],
    );
}

#[test]
fn a_header_is_sent_where_it_is_always_allowed_or_named() {
    let policy = policy(&format!(
        r#""a": {{ "base_url": "https://a.test/", "credential": "bearer", {ALL} }},
           "b": {{ "base_url": "https://b.test/", "credential": "header", {ALL},
                   "allow_headers": ["Cookie", "Range", "Accept-Encoding", "X-A", "Authorization"] }}"#
    ));
    let named = |target: &str, name: &str| {
        let found = verdict(&policy, "GET", &format!("https://{target}.test/"), &[(name, "x")]);
        match found.strip_prefix("header: The header ") {
            None => found,
            Some(rest) => rest.split(' ').next().unwrap_or_default().to_owned(),
        }
    };
    for (name, at_a, at_b) in [
        ("Accept", "allow", "allow"),
        ("accept-LANGUAGE", "allow", "allow"),
        ("Content-Type", "allow", "allow"),
        ("Content-Language", "allow", "allow"),
        ("User-Agent", "allow", "allow"),
        ("If-None-Match", "allow", "allow"),
        ("If_None_Match", "`if_none_match`", "`if_none_match`"),
        ("X-A", "`x-a`", "allow"),
        ("x_a", "`x_a`", "`x_a`"),
        ("authorization", "`authorization`", "allow"),
        ("Host", "`host`", "`host`"),
        ("Transfer-Encoding", "`transfer-encoding`", "`transfer-encoding`"),
        ("Content-Length", "`content-length`", "`content-length`"),
        ("Proxy-Authorization", "`proxy-authorization`", "`proxy-authorization`"),
        ("X-HTTP-Method-Override", "`x-http-method-override`", "`x-http-method-override`"),
        ("X-Original-URL", "`x-original-url`", "`x-original-url`"),
        ("X-Amz-Target", "`x-amz-target`", "`x-amz-target`"),
        ("Impersonate-User", "`impersonate-user`", "`impersonate-user`"),
        ("Cookie", "`cookie`", "allow"),
        ("Range", "`range`", "allow"),
        ("Accept-Encoding", "`accept-encoding`", "allow"),
        ("x-api-KEY", "`x-api-key`", "`x-api-key`"),
        ("x_api_key", "`x_api_key`", "`x_api_key`"),
    ] {
        assert_eq!(named("a", name), at_a, "{name} at a");
        assert_eq!(named("b", name), at_b, "{name} at b");
    }
}

#[test]
fn a_deny_is_its_targets_own() {
    let policy = policy(
        r#""a": { "base_url": "https://h.test/a/", "credential": "bearer", "rules": [
             { "decision": "allow", "methods": ["GET"], "path": "/**" },
             { "decision": "deny", "methods": ["GET"], "path": "/secret" } ] },
           "b": { "base_url": "https://h.test/b/", "credential": "bearer", "rules": [
             { "decision": "allow", "methods": ["GET"], "path": "/**" } ] }"#,
    );
    assert_verdicts(
        &policy,
        &[
            ("https://h.test/a/x", "allow"),
            ("https://h.test/a/Secret/", "policy"),
            ("https://h.test/b/secret", "allow"),
            ("https://h.test/b/../a/secret", "ambiguous_url"),
            ("https://h.test/b;/a/secret", "no_target"),
        ],
    );
}

#[test]
fn the_order_of_rules_changes_no_verdict() {
    let rules = [
        r#"{ "decision": "allow", "methods": ["*"], "path": "/**" }"#,
        r#"{ "decision": "ask", "methods": ["POST"], "path": "/a/**" }"#,
        r#"{ "decision": "deny", "methods": ["POST"], "path": "/a/b" }"#,
        r#"{ "decision": "ask", "methods": ["POST"], "path": "/c", "query": { "x": "1" } }"#,
    ];
    let verdicts = |order: &[usize]| -> Vec<String> {
        let list: Vec<&str> = order.iter().map(|place| rules[*place]).collect();
        let target =
            format!(r#""a": {{ "base_url": "https://h.test/", "rules": [{}] }}"#, list.join(","));
        let policy = policy(&target);
        ["/", "/a", "/a/b", "/a/B;x", "/a/c", "/c", "/c?x=1", "/c?x=1&y=2", "/c?y=2"]
            .map(|path| verdict(&policy, "POST", &format!("https://h.test{path}"), &[]))
            .into()
    };
    let expected = verdicts(&[0, 1, 2, 3]);
    for order in [[3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1], [2, 0, 1, 3]] {
        assert_eq!(verdicts(&order), expected, "{order:?}");
    }
}

#[test]
fn a_refusal_knows_where_it_was_decided() {
    let policy = policy(
        r#""a": { "base_url": "https://a.test/", "credential": "query", "rules": [
               { "decision": "allow", "methods": ["GET"], "path": "/x/**" },
               { "decision": "deny", "methods": ["GET"], "path": "/x/y" }] }"#,
    );
    for (url, headers, expected) in [
        ("https://b.test/", &[][..], None),
        ("https://a.test/z", &[], Some(DecidedBy::NoRule)),
        ("https://a.test/x/y", &[], Some(DecidedBy::Rule(1))),
        ("https://a.test/x/z?api_key=1", &[], Some(DecidedBy::Target)),
        ("https://a.test/x/z", &[("x-odd", "1")], Some(DecidedBy::Target)),
    ] {
        let denied = denied(&policy, url, headers);
        let by = denied.decided.as_ref().map(|decided| decided.by);
        assert_eq!(by, expected, "{url}: {denied:?}");
        assert!(denied.decided.is_none_or(|decided| decided.target.as_str() == "a"));
    }
}

fn denied(policy: &Policy, url: &str, headers: &[(&str, &str)]) -> Denied {
    let request = HttpRequest {
        method: "GET".into(),
        url: url.into(),
        headers: headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        body: None,
        json: None,
        timeout_seconds: None,
        max_bytes: None,
    };
    match decide_http(policy, &HttpAction::parse(request).unwrap()) {
        Judgement::Deny(denied) => denied,
        other => panic!("{url}: {other:?}"),
    }
}

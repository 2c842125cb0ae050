//! Layers, and the one mint of permissions.

use crate::{Faults, says, sources};

/// The layers from the lowest up: a module names others of its own layer and of those before it.
const LAYERS: &[(&str, &[&str])] = &[
    ("words", &["limits", "name", "secret", "state", "clock", "large", "hex"]),
    ("wire", &["wire"]),
    ("mcp", &["mcp"]),
    ("judgement", &["action", "policy", "authorize", "examination"]),
    (
        "effects",
        &[
            "cut",
            "trust",
            "home",
            "window",
            "credential",
            "dial",
            "child",
            "ssh",
            "execute",
            "audit",
            "witness",
        ],
    ),
    ("wiring", &["gateway"]),
    ("commands", &["cli", "main"]),
];

/// What a module must know nothing of, beside the layers after it: a part of a path, and the text.
const UNKNOWN: &[(&str, &[&str])] = &[
    ("src/action", OUTSIDE_WORLD),
    ("src/policy", OUTSIDE_WORLD),
    ("src/authorize", OUTSIDE_WORLD),
    ("src/examination", OUTSIDE_WORLD),
    ("src/wire", &["std::thread", "std::fs", "std::net"]),
    ("src/credential", &["wire::rpc", "crate::mcp"]),
    ("src/dial", &["wire::rpc", "crate::mcp"]),
    ("src/child", &["wire::rpc", "crate::mcp"]),
    ("src/ssh", &["wire::rpc", "crate::mcp"]),
    ("src/execute", &["wire::rpc", "crate::mcp"]),
    ("src/audit", &["wire::rpc", "crate::mcp"]),
    ("src/witness", &["wire::rpc", "crate::mcp"]),
    ("src/gateway", &["env::args"]),
];

const OUTSIDE_WORLD: &[&str] = &[
    "std::thread",
    "std::fs",
    "std::io",
    "std::env",
    "std::process",
    "TcpStream",
    "UdpSocket",
    "ToSocketAddrs",
    "Instant",
    "SystemTime",
    "crate::clock",
    "rustix",
];

#[test]
fn modules_name_only_their_own_layer_and_those_before() {
    let mut faults = Faults::default();
    for file in sources() {
        let Some(module) = module_of(&file.path) else { continue };
        let Some(own) = layer_of(module) else {
            faults.add(&file.path, "belongs to no layer");
            continue;
        };
        for (line, text) in file.code() {
            for other in named_modules(text) {
                match layer_of(&other) {
                    Some(layer) if layer <= own => {}
                    Some(_) => {
                        faults.add_line(&file, line, format!("names {other}, a later layer"))
                    }
                    None => faults.add_line(&file, line, format!("{other} belongs to no layer")),
                }
            }
            if text.trim_end().ends_with("crate::{") {
                faults.add_line(&file, line, "spreads a group over lines: name each by itself");
            }
            if reaches_the_root(&file.path, text) {
                faults.add_line(&file, line, "goes up to the root: write `crate::`");
            }
        }
    }
    faults.none();
}

#[test]
fn layers_know_nothing_of_what_is_not_theirs() {
    let mut faults = Faults::default();
    for file in sources() {
        for (_, unknown) in UNKNOWN.iter().filter(|(part, _)| file.path.starts_with(part)) {
            for (line, text) in file.code() {
                for word in unknown.iter().filter(|word| says(text, word)) {
                    faults.add_line(&file, line, format!("knows of {word}"));
                }
            }
        }
    }
    faults.none();
}

#[test]
fn there_is_one_mint() {
    const MINT: &str = "src/authorize.rs";
    let mut faults = Faults::default();
    for file in sources() {
        let is_mint = file.path == MINT;
        for (line, text) in file.code() {
            let makes =
                ["Authorized", "Grant", "Pending"].into_iter().find(|it| constructs(text, it));
            if let Some(made) = makes.filter(|_| !is_mint) {
                faults.add_line(&file, line, format!("makes {made}, as only {MINT} may"));
            }
            if is_mint && says(text, "mod") {
                faults.add_line(&file, line, "has a child module, which would see private fields");
            }
        }
        if file.path.starts_with("src/authorize/") {
            faults.add(&file.path, format!("stands below {MINT}, which is a leaf"));
        }
    }
    faults.none();
}

/// No agent's call ever becomes one.
#[test]
fn only_the_doctor_examines() {
    let owners = ["src/examination.rs", "src/cli/doctor/hosts/connect.rs"];
    let mut faults = Faults::default();
    for file in sources().into_iter().filter(|file| !owners.contains(&&*file.path)) {
        for (line, text) in file.code() {
            if text.contains("Examination::new") || constructs(text, "Examination") {
                faults.add_line(&file, line, format!("makes an Examination; may: {owners:?}"));
            }
        }
    }
    faults.none();
}

#[test]
fn these_tests_see_what_they_look_for() {
    assert_eq!(named_modules("use crate::policy::Policy;"), ["policy"]);
    assert_eq!(named_modules("use crate::{wire, mcp::call, name};"), ["wire", "mcp", "name"]);
    assert_eq!(
        named_modules("let x = crate::limits::GRACE + crate::clock::now();"),
        ["limits", "clock"]
    );
    assert_eq!(named_modules("pub(crate) fn f() {}"), [""; 0]);
    assert!(reaches_the_root("src/home.rs", "use super::policy;"));
    assert!(!reaches_the_root("src/home.rs", "    use super::*;"));
    assert!(!reaches_the_root("src/wire/frame.rs", "use super::json;"));
    assert!(reaches_the_root("src/wire/frame.rs", "use super::super::mcp;"));
    assert!(constructs("let x = Grant { target };", "Grant"));
    assert!(constructs("authorize::Authorized { action, grant }", "Authorized"));
    assert!(!constructs("fn grant(&self) -> &Grant {", "Grant"));
    assert!(!constructs("impl Grant {", "Grant"));
    assert!(!constructs("UserGrant {", "Grant"));
}

/// The module at the root of the crate to which a source file belongs; the root itself is none.
fn module_of(path: &str) -> Option<&str> {
    let module = path.strip_prefix("src/")?.split('/').next()?;
    let module = module.strip_suffix(".rs").unwrap_or(module);
    (module != "lib").then_some(module)
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|(_, modules)| modules.contains(&module))
}

/// The modules at the root of the crate that a line names.
fn named_modules(line: &str) -> Vec<String> {
    let mut named = Vec::new();
    for after in line.split("crate::").skip(1).chain(line.split("keyward::").skip(1)) {
        match after.strip_prefix('{') {
            None => named.push(first_word(after)),
            Some(group) => {
                let group = group.split_once("};").map_or(group, |(group, _)| group);
                let mut depth = 0;
                let outer = group.chars().filter(|character| {
                    depth += i32::from(*character == '{');
                    depth -= i32::from(*character == '}');
                    depth == 0
                });
                let outer: String = outer.collect();
                named.extend(outer.split(',').map(|path| first_word(path.trim())));
            }
        }
    }
    named.retain(|word| !word.is_empty());
    named
}

fn first_word(text: &str) -> String {
    text.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect()
}

/// Whether a chain of `super::` leads to the crate's root, past which no module's name says its layer.
fn reaches_the_root(path: &str, line: &str) -> bool {
    let inside = usize::from(line.starts_with(' '));
    let parts = path.trim_start_matches("src/").split('/').filter(|part| *part != "mod.rs");
    let depth = parts.count() + inside;
    line.contains(&"super::".repeat(depth))
}

/// Whether a line makes a value of a struct, as against naming its type.
fn constructs(line: &str, name: &str) -> bool {
    line.match_indices(&format!("{name} {{")).any(|(at, _)| {
        let before = &line[..at];
        let is_whole_word = !before.ends_with(|it: char| it.is_alphanumeric() || it == '_');
        let words = ["struct", "impl", "for", "->", "enum", "trait", "union"];
        let declares = before.split_whitespace().any(|word| words.contains(&word));
        is_whole_word && !declares
    })
}

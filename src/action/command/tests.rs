use super::*;

fn at(text: &str, shell: RemoteShell) -> Result<Vec<String>, Cause> {
    match CommandLine::parse(text).unwrap().at(shell) {
        Command::Simple(simple) => Ok(simple.words().to_vec()),
        Command::Shell(shell) => {
            assert_eq!(shell.as_str(), text, "it is sent as it came");
            Err(shell.why().clone())
        }
    }
}

fn assert_words(text: &str, words: &[&str]) {
    let words: Vec<String> = words.iter().map(|word| (*word).into()).collect();
    assert_eq!(at(text, RemoteShell::Unknown), Ok(words), "{text}");
}

#[test]
fn simple_commands() {
    for (text, words) in [
        ("ls", &["ls"][..]),
        ("  ls\t-la  ", &["ls", "-la"]),
        (r#"systemctl status "a b""#, &["systemctl", "status", "a b"]),
        ("systemctl 'status' nginx", &["systemctl", "status", "nginx"]),
        (r"a\ b c\;d", &["a b", "c;d"]),
        (r#"a "" '' b"#, &["a", "", "", "b"]),
        (r#"a"b"'c'\d"#, &["abcd"]),
        (
            r##"x "#" '$(id)' "\$HOME" "\`id\`" '*' "{a,b}" ';' '>' "~""##,
            &["x", "#", "$(id)", "$HOME", "`id`", "*", "{a,b}", ";", ">", "~"],
        ),
        (r#""a\"b""#, &["a\"b"]),
        ("tail file~ a~b", &["tail", "file~", "a~b"]),
        ("-x --a=b:c,d@e%f+g", &["-x", "--a=b:c,d@e%f+g"]),
        ("echo FOO=1 if", &["echo", "FOO=1", "if"]),
        ("'ls'", &["ls"]),
        ("command -v git", &["command", "-v", "git"]),
        (r"\ls", &["ls"]),
    ] {
        assert_words(text, words);
    }
}

#[test]
fn what_a_shell_would_act_on_is_a_shell_command() {
    use Cause::{Assigns, Expanded, Nameless, Reserved, Unfinished, Unquoted};
    let reserved = |word: &str| Reserved(word.into());
    for (text, why) in [
        ("systemctl status nginx; rm -rf /", Unquoted(';')),
        ("systemctl status $(id)", Expanded('$')),
        ("systemctl status nginx\nid", Unquoted('\n')),
        ("systemctl status nginx\n", Unquoted('\n')),
        ("FOO=1 systemctl status x", Assigns),
        ("'FOO=1' x", Assigns),
        ("FOO=\"a b\" x", Assigns),
        ("a+=b x", Assigns),
        ("! systemctl status x", Unquoted('!')),
        ("'!' x", reserved("!")),
        ("systemctl status ~", Unquoted('~')),
        ("systemctl status ~root/x", Unquoted('~')),
        ("x a=~/y", Unquoted('~')),
        ("x a:~/y", Unquoted('~')),
        ("x ''~", Unquoted('~')),
        ("x \"=\"~", Unquoted('~')),
        ("x {a,b}", Unquoted('{')),
        ("x *", Unquoted('*')),
        ("x a?", Unquoted('?')),
        ("x [a]", Unquoted('[')),
        ("x >y", Unquoted('>')),
        ("x <y", Unquoted('<')),
        ("x | y", Unquoted('|')),
        ("x &", Unquoted('&')),
        ("x #y", Unquoted('#')),
        ("#x", Unquoted('#')),
        ("(x)", Unquoted('(')),
        ("x `id`", Expanded('`')),
        ("x \"`id`\"", Expanded('`')),
        ("x \"$y\"", Expanded('$')),
        ("x $'y'", Expanded('$')),
        ("x a^b", Unquoted('^')),
        ("x\ry", Unquoted('\r')),
        ("x é", Unquoted('é')),
        ("x\u{a0}y", Unquoted('\u{a0}')),
        ("x 'y", Unfinished),
        ("x \"y", Unfinished),
        ("x \"y\\", Unfinished),
        ("x y\\", Unfinished),
        ("x y\\\nz", Unquoted('\n')),
        ("x \"y\\\nz\"", Unquoted('\n')),
        ("'' x", Nameless),
        ("if true", reserved("if")),
        ("'if' true", reserved("if")),
        ("time ls", reserved("time")),
        ("'[[' -f x ']]'", reserved("[[")),
        ("'{' x", reserved("{")),
        ("%1", reserved("%1")),
    ] {
        for shell in [RemoteShell::Unknown, RemoteShell::Posix] {
            assert_eq!(at(text, shell), Err(why.clone()), "{text:?}");
        }
    }
}

#[test]
fn what_not_every_shell_keeps_is_simple_for_posix_shells_only() {
    for (text, words, odd) in [
        ("x \"it's\"", "it's", '\''),
        (r"x 'a\b'", r"a\b", '\\'),
        (r#"x "a\b""#, r"a\b", '\\'),
        ("x 'a!b'", "a!b", '!'),
        (r"x \!", "!", '!'),
        ("x 'a\tb'", "a\tb", '\t'),
        ("x 'a\nb'", "a\nb", '\n'),
        ("x '\u{1b}'", "\u{1b}", '\u{1b}'),
        ("x '\u{7f}'", "\u{7f}", '\u{7f}'),
        ("x 'é'", "é", 'é'),
        (r"x \é", "é", 'é'),
    ] {
        let words = vec!["x".to_owned(), words.to_owned()];
        assert_eq!(at(text, RemoteShell::Posix), Ok(words), "{text:?}");
        assert_eq!(at(text, RemoteShell::Unknown), Err(Cause::Unportable(odd)), "{text:?}");
    }
    for name in ["and", "or", "not", "begin", "end", "-", "noglob"] {
        let text = format!("'{name}' x");
        assert_eq!(at(&text, RemoteShell::Posix), Ok(vec![name.into(), "x".into()]));
        let why = Cause::ReservedElsewhere(name.into());
        assert_eq!(at(&text, RemoteShell::Unknown), Err(why));
    }
}

#[test]
fn what_is_sent_is_quoted_word_by_word() {
    let sent = |text: &str, shell| CommandLine::parse(text).unwrap().at(shell).sent();
    assert_eq!(sent("a  b\\ c ''", RemoteShell::Unknown), "'a' 'b c' ''");
    assert_eq!(sent("a \"it's\"", RemoteShell::Posix), r"'a' 'it'\''s'");
    assert_eq!(sent("a \"it's\"", RemoteShell::Unknown), "a \"it's\"");
    assert_eq!(sent(" a; b ", RemoteShell::Posix), " a; b ");
}

#[test]
fn what_cannot_be_sent_is_refused() {
    for text in ["", " ", "\t ", "a\0b", "'\0'"] {
        let refused = CommandLine::parse(text).unwrap_err();
        assert_eq!(refused.reason, Reason::Arguments, "{text:?}");
    }
    const MAX: usize = limits::SSH_COMMAND_BYTES;
    // With its two quotes.
    assert!(CommandLine::parse(&"x".repeat(MAX - 2)).is_ok());
    assert!(CommandLine::parse(&"x".repeat(MAX - 1)).is_err());
    let quotes = |count: usize| format!("\"{}\"", "'".repeat(count));
    let most = (MAX - 2) / 4;
    let longest = CommandLine::parse(&quotes(most)).unwrap().at(RemoteShell::Posix).sent();
    assert!(longest.len() <= MAX && longest.len() > MAX - 4, "{}", longest.len());
    assert!(CommandLine::parse(&quotes(most + 1)).is_err());
    assert!(CommandLine::parse(&format!(";{}", "x".repeat(MAX - 1))).is_ok());
    assert!(CommandLine::parse(&format!(";{}", "x".repeat(MAX))).is_err());
}

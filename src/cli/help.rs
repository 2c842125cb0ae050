//! `help`: works whatever the configuration says.

use super::{Exit, print};

const TEXT: &str = "\
Keyward lets an AI agent act without holding a key.

usage: keyward COMMAND [--home DIR]

  mcp [--record FILE]         serve one MCP client over stdin and stdout
                              --record: dry run; writes each allowed action to FILE (a new file)
                              and does none of them
  init                        make the home with a configuration to edit, and say how to connect
                              Claude Code, Codex, Cursor, VS Code and Gemini
  policy explain TOOL JSON    say which rules match this call, what they decide, and how wide the
                              deciding rule is; acts on nothing (--json for programs)
  debug [--for TIME]          retain more of what helpers print, for 90s, 15m or 2h, in all gateways
                              of the home; 0s ends it; without --for: say whether it is open
  schema                      print the JSON Schema of config.json
  help, --help                print this
  --version                   print the version

The home is --home, else KEYWARD_HOME, else ~/.keyward. KEYWARD_LOG sets how much goes to stderr:
off, error, warn (as it comes), info, debug, trace.

exit status: 0 done; 1 failed at run time; 2 usage or configuration; 3 the client broke the wire
contract
";

/// Prints the help.
pub(super) fn run() -> Exit {
    print::raw(TEXT)
}

//! `help`: works whatever the configuration says.

use super::{Exit, print};

const TEXT: &str = "\
Keyward lets an AI agent act without holding a key.

usage: keyward COMMAND [--home DIR]

  mcp [--record FILE]         serve one MCP client over stdin and stdout
                              --record: dry run; writes each allowed action to FILE (a new file)
                              and does none of them
  init [--auditor RECIPIENT]  make the home with a configuration to edit and the record's keys, and
                              say how to connect Claude Code, Codex, Cursor, VS Code and Gemini
                              --auditor (again for each): whose public key the record is sealed to;
                              without it a private key is made and kept in the home
                              --new-chain: begin a new record where the signing key was lost
  sessions [SESSION_ID]       list sessions, live and past, or tell one's whole life: its client, what
                              started it, what it was refused
  sessions revoke ID          do nothing more in a live session, and stop what runs in it
  activity [CALL_ID]          list actions, or tell one call's whole life; --session ID,
                              --state STATE, --target NAME, --since TIME (2h, 3d, a date, or a
                              date and time, yours where no zone follows),
                              --follow; --identity FILE: an auditor's key, elsewhere than the home
  audit verify                check the record; needs no secret. --head FILE: heads that were kept
                              elsewhere; --chain ID: the chain that it should be
  audit head                  print a signed head, to be kept elsewhere
  audit prune --before FILE   remove whole segments that the head in FILE covers
  policy explain TOOL JSON    say which rules match this call, what they decide, and how wide the
                              deciding rule is; acts on nothing (--json for programs)
  debug [--for TIME]          retain more of what helpers print, for 90s, 15m or 2h, in all gateways
                              of the home; 0s ends it; without --for: say whether it is open
  doctor                      look at home, configuration, record, kernel and binary; say what is not as
                              it should be, and whether Keyward is isolated from the agent's user
  doctor --connect [HOST]     the same, and then log in at each SSH host, or at one, and see whether its
                              shell keeps hostile words as they are; on record like any action
  schema                      print the JSON Schema of config.json
  help, --help                print this
  --version                   print the version

The home is --home, else KEYWARD_HOME, else ~/.keyward. KEYWARD_LOG sets how much goes to stderr:
off, error, warn (as it comes), info, debug, trace.

exit status: 0 done; 1 failed at run time; 2 usage or configuration; 3 the client broke the wire
contract; 4 verification found damage
";

/// Prints the help.
pub(super) fn run() -> Exit {
    print::raw(TEXT)
}

//! What SSH, its files and the look at hosts are bounded by.

use std::time::Duration;

/// Longest command that is sent to a host, quotes included: what libssh2 takes for one packet.
pub const SSH_COMMAND_BYTES: usize = 34_725;
/// Hosts through which another one is reached, at most.
pub const SSH_HOPS: usize = 3;
/// What an SSH server may say before it names itself, in bytes.
pub const SSH_GREETING_BYTES: usize = 8 * 1024;
/// What an SSH server may send until it has let us in, in bytes.
pub const SSH_LOGIN_BYTES: usize = 256 * 1024;
/// What it may send from then on that is of no use, over all calls of a connection, in bytes.
pub const SSH_USELESS_BYTES: usize = 512 * 1024;
/// How long an SSH server may take to agree on keys.
pub const SSH_HANDSHAKE_FOR: Duration = Duration::from_secs(30);
/// How long a login may take, an agent's answer included.
pub const SSH_LOGIN_FOR: Duration = Duration::from_secs(60);
/// How long a server may take to open a channel.
pub const SSH_CHANNEL_FOR: Duration = Duration::from_secs(30);
/// The same in a connection that was kept: after that it counts as dead.
pub const SSH_KEPT_FOR: Duration = Duration::from_secs(5);
/// How long a server may take to close a channel in which everything has ended.
pub const SSH_CLOSE_FOR: Duration = Duration::from_secs(1);
/// After so much silence a server is asked whether it is there.
pub const SSH_ASK_AFTER: Duration = Duration::from_secs(10);
/// After so much silence it counts as lost.
pub const SSH_LOST_AFTER: Duration = Duration::from_secs(30);
/// Longest path of a file at a host, in bytes.
pub const SSH_PATH_BYTES: usize = 4096;
/// Longest message of an agent, in bytes.
pub const SSH_AGENT_BYTES: usize = 256 * 1024;
/// How much of a command's output a host may send ahead, in bytes; what was not read yet is in memory.
pub const SSH_WINDOW_BYTES: u32 = 1024 * 1024;
/// Largest part of that in one packet, in bytes. Source: libssh2.h, `LIBSSH2_CHANNEL_PACKET_DEFAULT`.
pub const SSH_PACKET_BYTES: u32 = 32 * 1024;
/// How long the script that a command runs under may take to report its process group, once it is to be stopped.
pub const SSH_REPORT_FOR: Duration = Duration::from_secs(1);
/// How long a host may take to send a signal.
pub const SSH_SIGNAL_FOR: Duration = Duration::from_secs(5);
/// How long it is watched whether a process group that was killed is gone.
pub const SSH_KILL_SEEN_FOR: Duration = Duration::from_secs(5);
/// How often that is looked at, and the beginning of a line of which too little is there to tell what it is.
pub const SSH_LOOK_EVERY: Duration = Duration::from_millis(50);
/// What a host may say to a signal, in bytes: what a login shell prints first counts.
pub const SSH_SAID_BYTES: usize = 16 * 1024;
/// Connections to one host that are kept between commands.
pub const SSH_IDLE_CONNECTIONS: usize = 4;
/// Connections to all hosts that are kept between commands.
pub const SSH_IDLE_CONNECTIONS_MAX: usize = 64;
/// Largest known_hosts file in bytes.
pub const KNOWN_HOSTS_BYTES: usize = 4 * 1024 * 1024;
/// Lines of known_hosts files that make no sense and are named; further ones are counted.
pub const KNOWN_HOSTS_IGNORED: usize = 16;
/// How long one gateway waits for another that stores a host's key.
pub const KNOWN_HOSTS_LOCK_FOR: Duration = Duration::from_secs(2);
/// How long `doctor --connect` may take at one host, everything included.
pub const DOCTOR_HOST_FOR: Duration = Duration::from_secs(60);
/// What it reads of what a host prints, in bytes: its own words, and what the login shell prints by itself.
pub const DOCTOR_STDOUT_BYTES: usize = 64 * 1024;
/// How long it waits for a stream that stays open after a command's exit.
pub const DOCTOR_GRACE: Duration = Duration::from_secs(1);
/// Rounds by which the passphrase of a private key may be stretched: at this number it takes seconds, and nothing can cut it.
pub const SSH_KEY_ROUNDS: u32 = 256;
/// Largest file of the owner's OpenSSH configuration, in bytes.
pub const SSH_CONFIG_BYTES: usize = 1024 * 1024;
/// How deep its files may include each other.
pub const SSH_CONFIG_DEPTH: usize = 16;
/// Lines of it with keywords that ssh(1) does not know that are told of one alias.
pub const SSH_CONFIG_UNKNOWN: usize = 16;
/// Files of it that are read for one alias.
pub const SSH_CONFIG_FILES: usize = 256;

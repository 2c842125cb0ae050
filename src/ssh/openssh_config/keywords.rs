//! The keywords that ssh(1) knows, those included that it only still passes over.
//!
//! Invariant: what is not here is told to the owner and changes nothing: ssh would refuse the whole file, and a newer
//! one may know more.

/// In lower case, in the order of their bytes. Source: ssh_config(5), OpenSSH 9.2 and what came with 9.4 to 10.0.
#[rustfmt::skip]
const KEYWORDS: &[&str] = &[
    "addkeystoagent", "addressfamily", "afstokenpassing", "batchmode", "bindaddress", "bindinterface",
    "canonicaldomains", "canonicalizefallbacklocal", "canonicalizehostname", "canonicalizemaxdots",
    "canonicalizepermittedcnames", "casignaturealgorithms", "certificatefile",
    "challengeresponseauthentication", "channeltimeout", "checkhostip", "cipher", "ciphers",
    "clearallforwardings", "compression", "compressionlevel", "connectionattempts", "connecttimeout",
    "controlmaster", "controlpath", "controlpersist", "dsaauthentication", "dynamicforward",
    "enableescapecommandline", "enablesshkeysign", "escapechar", "exitonforwardfailure", "fallbacktorsh",
    "fingerprinthash", "forkafterauthentication", "forwardagent", "forwardx11", "forwardx11timeout",
    "forwardx11trusted", "gatewayports", "globalknownhostsfile", "globalknownhostsfile2",
    "gssapiauthentication", "gssapiclientidentity", "gssapidelegatecredentials", "gssapikexalgorithms",
    "gssapikeyexchange", "gssapirenewalforcesrekey", "gssapiserveridentity", "gssapitrustdns",
    "hashknownhosts", "host", "hostbasedacceptedalgorithms", "hostbasedauthentication", "hostbasedkeytypes",
    "hostkeyalgorithms", "hostkeyalias", "hostname", "identitiesonly", "identityagent", "identityfile",
    "identityfile2", "ignoreunknown", "include", "ipqos", "kbdinteractiveauthentication",
    "kbdinteractivedevices", "kerberosauthentication", "kerberostgtpassing", "kexalgorithms",
    "knownhostscommand", "localcommand", "localforward", "loglevel", "logverbose", "macs", "match",
    "nohostauthenticationforlocalhost", "numberofpasswordprompts", "obscurekeystroketiming",
    "passwordauthentication", "permitlocalcommand", "permitremoteopen", "pkcs11provider", "port",
    "preferredauthentications", "protocol", "protocolkeepalives", "proxycommand", "proxyjump",
    "proxyusefdpass", "pubkeyacceptedalgorithms", "pubkeyacceptedkeytypes", "pubkeyauthentication",
    "refuseconnection", "rekeylimit", "remotecommand", "remoteforward", "requesttty", "requiredrsasize",
    "revokedhostkeys", "rhostsauthentication", "rhostsrsaauthentication", "securitykeyprovider", "sendenv",
    "serveralivecountmax", "serveraliveinterval", "sessiontype", "setenv", "setuptimeout",
    "skeyauthentication", "smartcarddevice", "stdinnull", "streamlocalbindmask", "streamlocalbindunlink",
    "stricthostkeychecking", "syslogfacility", "tag", "tcpkeepalive", "tisauthentication", "tunnel",
    "tunneldevice", "updatehostkeys", "useblacklistedkeys", "useprivilegedport", "user", "userknownhostsfile",
    "userknownhostsfile2", "useroaming", "usersh", "verifyhostkeydns", "versionaddendum", "visualhostkey",
    "warnweakcrypto", "xauthlocation",
];

/// Whether ssh(1) knows a keyword, which is in lower case.
pub(super) fn is_known(keyword: &str) -> bool {
    KEYWORDS.binary_search(&keyword).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords() {
        assert!(KEYWORDS.is_sorted());
        assert!(is_known("hostname") && is_known("xauthlocation") && !is_known("hostnam"));
    }
}

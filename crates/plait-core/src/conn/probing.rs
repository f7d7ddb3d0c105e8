//! Light probes of silent paths, so that one that has healed is found soon. RFC 6298 section 2.5
//! lets a timeout be capped at 60 s and no lower; a probe is one segment beside the timeout, which
//! goes on doubling.

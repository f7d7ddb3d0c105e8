//! An address that is used again while its last conversation is in TIME-WAIT (RFC 6191).

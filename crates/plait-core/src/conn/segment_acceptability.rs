//! Whether a segment belongs to the present conversation: sequence number, acknowledgement,
//! timestamp (RFC 9293 section 3.10.7.4, RFC 5961, RFC 7323 section 5).

//! The file with the key of `plait serve --key` and `plait proxy --through`.

use crate::failure::Failure;
use plait_live::RequestKey;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Largest file in bytes.
const MAX_KEY_BYTES: u64 = 4_096;

/// Reads the key of `--key`, without white space at its end.
pub(crate) fn read(file: &Path) -> Result<RequestKey, Failure> {
    let least = RequestKey::MIN_BYTES;
    let allowed = format!("{least} to {MAX_KEY_BYTES} bytes; make it: openssl rand -hex 32 > FILE");
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|it| it.take(MAX_KEY_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| Failure::unreadable("--key", file, &error, &allowed))?;
    let refuse = |problem: String| {
        let file = file.display();
        Failure::Usage(format!("--key: `{file}`: {problem}\n  allowed: {allowed}"))
    };
    if bytes.len() as u64 > MAX_KEY_BYTES {
        return Err(refuse(format!("it has more than {MAX_KEY_BYTES} bytes")));
    }
    let key = bytes.trim_ascii_end();
    RequestKey::new(key).ok_or_else(|| refuse(format!("it has {} bytes", key.len())))
}

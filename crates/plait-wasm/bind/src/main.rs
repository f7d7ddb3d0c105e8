//! Writes the bindings of `plait-wasm` and the page of `web/` as one file: `bind MODULE WEB OUT`.
//!
//! MODULE is the output of cargo, WEB the directory of the page, and OUT the directory for `plait.js`, `plait.wasm`
//! and `race.html`. The page has its style, its scripts and the compressed module in its text, so that it works from
//! a file as well as from any server.

mod page;

use flate2::Compression;
use flate2::write::GzEncoder;
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [module, web, out] = arguments.as_slice() else {
        eprintln!("usage: bind MODULE WEB OUT");
        return ExitCode::from(2);
    };
    match write(Path::new(module), Path::new(web), Path::new(out)) {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bind: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(module: &Path, web: &Path, out: &Path) -> Result<String, Box<dyn Error + Send + Sync>> {
    fs::create_dir_all(out)?;
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).out_name("plait").typescript(false).no_modules(true)?;
    bindgen.remove_name_section(true).remove_producers_section(true);
    bindgen.generate(out)?;
    let plain = out.join("plait_bg.wasm");
    let wasm = fs::read(&plain)?;
    fs::rename(&plain, out.join("plait.wasm"))?;
    let bindings = fs::read_to_string(out.join("plait.js"))?;
    let page = page::written(web, &bindings, &compressed(&wasm)?)?;
    let packed = compressed(page.as_bytes())?;
    fs::write(out.join("race.html"), &page)?;
    Ok(format!(
        "module: {} bytes, {} compressed; page: {} bytes, {} compressed",
        wasm.len(),
        compressed(&wasm)?.len(),
        page.len(),
        packed.len()
    ))
}

/// Compresses as gzip, without a time, so that the same input gives the same bytes.
fn compressed(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

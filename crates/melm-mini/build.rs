//! Says whether the weights are there. The package of the Rust registry does not contain them.

use std::path::Path;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(has_weights)");
    println!("cargo::rerun-if-changed=model/model.safetensors");
    if Path::new("model/model.safetensors").exists() {
        println!("cargo::rustc-cfg=has_weights");
    }
}

//! Compiles the inner half of the power-loss disk, which `src/power_loss.rs` carries inside.
//!
//! Elsewhere than on 64-bit Linux the library is left empty, and `PowerLoss::new` refuses to start.
use std::{env, error::Error, fs, path::PathBuf, process::Command};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=power-loss");
    println!("cargo::rerun-if-env-changed=CC");
    let library = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?).join("power_loss.so");
    if cfg!(not(all(target_os = "linux", target_pointer_width = "64"))) {
        return Ok(fs::write(library, [])?);
    }
    let status = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden"])
        .arg("-U_FORTIFY_SOURCE") // it would turn `open` into a macro, where we define it
        .args(["power-loss/notes.c", "power-loss/guards.c", "power-loss/calls.c", "-o"])
        .arg(&library)
        .status()?;
    if status.success() { Ok(()) } else { Err(format!("cc: {status}").into()) }
}

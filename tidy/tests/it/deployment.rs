//! The files in `ops/` that deploy Saveguard: they name settings that exist, and whoever reads them takes them.
//!
//! Does not do: build the container or apply the manifests; there is no engine for either here. Look at values, or send a save through
//! the example of nginx.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const FILES: [&str; 5] = [
    "container/Containerfile",
    "container/compose.yaml",
    "kubernetes/saveguard.yaml",
    "nginx/saveguard.conf",
    "systemd/saveguard.service",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Every setting as `section.name`, and those that may come from a file.
fn settings() -> BTreeSet<String> {
    let text = read("crates/server/src/config/documented.toml");
    let (mut section, mut found) = (String::new(), BTreeSet::new());
    for line in text.lines() {
        let plain = line.trim_start_matches("# ");
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name.clone_into(&mut section);
        } else if let Some((name, _)) = plain.split_once(" = ")
            && !name.is_empty()
            && name.chars().all(is_of_name)
        {
            found.insert(format!("{section}.{name}"));
        }
        let words = line.split(|letter| !is_of_name(letter)).filter(|word| word.ends_with("_file"));
        found.extend(words.map(|word| format!("{section}.{word}")));
    }
    found
}

#[test]
fn every_setting_that_a_deployment_file_names_exists() {
    let settings = settings();
    let variables: BTreeSet<String> = settings
        .iter()
        .map(|name| format!("SAVEGUARD_{}", name.replace('.', "_").to_ascii_uppercase()))
        .collect();
    let sections: BTreeSet<&str> = settings.iter().filter_map(|name| Some(name.split_once('.')?.0)).collect();

    let (mut named, mut unknown) = (0, Vec::new());
    for file in FILES {
        for word in read(&format!("ops/{file}")).split(|letter: char| !(is_of_name(letter) || letter == '.'))
        {
            let word = word.trim_end_matches('.');
            let is_dotted = word.split_once('.').is_some_and(|(section, name)| {
                sections.contains(section) && name.chars().all(is_of_name) && !is_file_name(name)
            });
            if word.starts_with("SAVEGUARD_") || is_dotted {
                named += 1;
                if !variables.contains(word) && !settings.contains(word) {
                    unknown.push(format!("ops/{file}: {word}"));
                }
            }
        }
    }

    assert_eq!(unknown, Vec::<String>::new());
    assert!(named > 30, "only {named} settings were found");
}

/// `saveguard.toml` is a file, not a setting.
fn is_file_name(name: &str) -> bool {
    matches!(name, "toml" | "conf" | "service" | "yaml" | "key" | "pem")
}

#[test]
fn compose_and_kubernetes_files_are_yaml() {
    let script = "import sys, yaml\nfor name in sys.argv[1:]:\n    for part in yaml.safe_load_all(open(name)): assert part, name";
    let files = ["ops/container/compose.yaml", "ops/kubernetes/saveguard.yaml", "ops/prometheus/alerts.yml"];

    let output = Command::new("python3")
        .args(["-c", script])
        .args(files.map(|file| root().join(file)))
        .output()
        .unwrap();

    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn nginx_takes_its_example() {
    let folder = std::env::temp_dir().join(format!("saveguard-nginx-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // Names of instances are looked up at once.
    let example = read("ops/nginx/saveguard.conf")
        .replace("saveguard-1", "127.0.0.1")
        .replace("saveguard-2", "127.0.0.2");
    std::fs::write(folder.join("saveguard.conf"), example).unwrap();
    let place = folder.display();
    let wrapper = format!(
        "pid {place}/pid; error_log {place}/errors; events {{}} http {{ access_log off; include {place}/saveguard.conf; }}"
    );
    std::fs::write(folder.join("nginx.conf"), wrapper).unwrap();

    let output = Command::new("/usr/sbin/nginx")
        .args(["-t", "-q", "-c"])
        .arg(folder.join("nginx.conf"))
        .output()
        .unwrap();

    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(output.status.success() && !said.contains("[warn]"), "{said}");
}

#[test]
fn systemd_takes_its_unit_and_the_page_shows_it() {
    let unit = read("ops/systemd/saveguard.service");
    let folder = std::env::temp_dir().join(format!("saveguard-unit-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("saveguard.service");
    // The program need not be installed to be named.
    std::fs::write(&file, unit.replace("/usr/local/bin/saveguard", "/bin/true")).unwrap();

    let output = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file).output().unwrap();

    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(output.status.success() && !said.contains("saveguard.service"), "{said}");
    let page = read("docs/how-to/run-as-a-service.md");
    assert!(page.contains(&unit), "docs/how-to/run-as-a-service.md shows another unit");
}

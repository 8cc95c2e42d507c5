//! The files of the repository, read once.

use std::path::{Path, PathBuf};

/// A text file of the repository.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its path from the root, with `/`.
    pub path: String,
    /// What it says.
    pub text: String,
}

impl Source {
    /// A file made up by a test.
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Whether it is Rust.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether it is only compiled for tests.
    pub fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        self.path.contains("/tests/") || name.ends_with("tests.rs") || name == "testing.rs"
    }
}

/// All text files of the repository.
#[derive(Debug, Default)]
pub struct Tree {
    /// The files, by path.
    pub sources: Vec<Source>,
}

impl Tree {
    /// Reads the repository this crate lies in.
    pub fn read() -> std::io::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut tree = Self::default();
        tree.add(&root, &root)?;
        tree.sources.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(tree)
    }

    /// The files below a folder.
    pub fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a Source> {
        self.sources.iter().filter(move |source| source.path.starts_with(folder))
    }

    /// One file.
    pub fn find(&self, path: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.path == path)
    }

    fn add(&mut self, root: &Path, folder: &Path) -> std::io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_ours = !matches!(name.as_str(), "target" | ".git" | "saveguard-data" | "saveguard-demo");
            if path.is_dir() {
                if is_ours {
                    self.add(root, &path)?;
                }
            } else if is_text(&path)
                && let Ok(text) = std::fs::read_to_string(&path)
            {
                self.sources.push(Source { path: relative(root, &path), text });
            }
        }
        Ok(())
    }
}

fn is_text(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
    matches!(extension.as_str(), "rs" | "toml" | "md" | "sql" | "js" | "css" | "html" | "c" | "h" | "java")
}

fn relative(root: &Path, path: &Path) -> String {
    let below: PathBuf = path.strip_prefix(root).unwrap_or(path).to_owned();
    below.to_string_lossy().replace('\\', "/")
}

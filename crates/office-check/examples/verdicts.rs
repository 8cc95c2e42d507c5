//! Checks the files of a manifest (path, verdict, …, separated by tabs) and tells where the verdicts differ.

#![expect(clippy::print_stdout, reason = "it is what the program is for")]

fn main() {
    let folder = std::path::PathBuf::from(std::env::args().nth(1).expect("a folder with a manifest.tsv"));
    let manifest = std::fs::read_to_string(folder.join("manifest.tsv")).expect("a manifest");
    let (mut same, mut total) = (0, 0);
    for line in manifest.lines().skip(1) {
        let words: Vec<&str> = line.split('\t').collect();
        let (path, expected) = (folder.join(words[0]), words[1]);
        let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        let file = std::fs::File::open(&path).expect("the file");
        let report = office_check::check(
            file,
            office_check::Hint::from_extension(&extension),
            &office_check::Limits::default(),
        );
        total += 1;
        if report.verdict.as_str() == expected {
            same += 1;
        } else {
            println!(
                "{} expected {expected}, is {} ({}): {}",
                words[0],
                report.verdict.as_str(),
                report.kind,
                words[2]
            );
            for finding in report.findings.iter().take(3) {
                println!("    {} {}", finding.code.as_str(), finding.message);
            }
        }
    }
    println!("{same} of {total}");
}

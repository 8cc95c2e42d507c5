//! axe-core, the accessibility checker, run inside a page of the real browser. Its npm package is fetched once into `target/`.

use std::sync::OnceLock;

use super::browser::Browser;
use super::npm::fetched;

/// Another version may find other things; this one is what the pages were made against.
const PACKAGE: &str = "axe-core@4.10.3";

/// Looks at the page as it is. Panics with what was found, unless that is nothing.
pub(crate) async fn find_nothing(browser: &Browser, page: &str) {
    let load = format!("{}; return typeof axe;", source());
    browser.client.execute(&load, Vec::new()).await.unwrap();
    // The frame of the Document Server is not ours.
    let run = r#"
        const done = arguments[arguments.length - 1];
        axe.run({ exclude: [["iframe"]] }, { resultTypes: ["violations"], iframes: false }).then((result) => done(result.violations.map((each) =>
            `${each.id} (${each.impact}): ${each.help}: ${each.nodes.map((node) => `${node.html} ${node.any.map((one) => one.message)}`).join(" | ")}`)), (error) => done([String(error)]));
    "#;
    let found = browser.client.execute_async(run, Vec::new()).await.unwrap();
    let found: Vec<String> = serde_json::from_value(found).unwrap();
    assert!(found.is_empty(), "{page}:\n{}", found.join("\n"));
}

fn source() -> &'static str {
    static SOURCE: OnceLock<String> = OnceLock::new();
    SOURCE.get_or_init(|| {
        let file = fetched("axe", PACKAGE).join("node_modules/axe-core/axe.min.js");
        std::fs::read_to_string(file).unwrap()
    })
}

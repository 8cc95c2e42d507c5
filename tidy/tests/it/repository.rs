//! The rules, held against this repository.

use tidy::{Source, Tree, directions, documents, manifests, migrations, sources};

fn rust(rule: impl Fn(&Source) -> Vec<String>) -> Vec<String> {
    Tree::read().unwrap().sources.iter().filter(|source| source.is_rust()).flat_map(rule).collect()
}

fn check(violations: &[String]) {
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

#[test]
fn every_file_opens_by_saying_what_it_is() {
    check(&rust(|source| sources::without_opening(source).into_iter().collect()));
}

#[test]
fn no_file_is_too_long() {
    check(&rust(|source| sources::too_long(source).into_iter().collect()));
}

#[test]
fn no_file_has_a_name_that_says_nothing() {
    check(&rust(|source| sources::nameless(source).into_iter().collect()));
}

#[test]
fn nothing_is_left_undone_without_a_number() {
    check(&rust(sources::undone));
}

#[test]
fn no_test_sleeps_or_is_switched_off() {
    check(&rust(sources::sleeping_tests));
    check(&rust(sources::ignored_tests));
}

#[test]
fn flows_know_ports_and_rules_and_nothing_else() {
    check(&directions::violations(&Tree::read().unwrap()));
}

#[test]
fn heavy_dependencies_have_owners() {
    check(&manifests::violations(&Tree::read().unwrap()));
}

#[test]
fn migrations_are_the_same_for_every_engine() {
    check(&migrations::violations(&Tree::read().unwrap()));
}

#[test]
fn every_error_code_has_a_page_and_every_page_a_code() {
    check(&documents::error_pages(&Tree::read().unwrap()));
}

#[test]
fn links_in_documents_lead_somewhere() {
    check(&documents::dead_links(&Tree::read().unwrap()));
}

#[test]
fn every_sentence_of_a_seed_has_its_proof() {
    check(&documents::unproven_rows(&Tree::read().unwrap()));
}

#[test]
fn the_readme_has_its_two_commands() {
    check(&documents::readme(&Tree::read().unwrap()));
}

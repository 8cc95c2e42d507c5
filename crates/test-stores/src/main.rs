//! Installs the programs of the test stores, before any test has to wait for them.

fn main() {
    test_stores::install();
}

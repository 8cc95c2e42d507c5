//! The options of a bench, word by word.

/// Reads options one after the other. `take` is given the name of one and the words that follow it, of which it takes its value;
/// `None` from it, for a name that is not known or a value that is none, is the end.
pub(crate) fn read<'a>(
    arguments: &[&'a str],
    mut take: impl FnMut(&str, &mut dyn Iterator<Item = &'a str>) -> Option<()>,
) -> Option<()> {
    let mut words = arguments.iter().copied();
    while let Some(name) = words.next() {
        take(name, &mut words)?;
    }
    Some(())
}

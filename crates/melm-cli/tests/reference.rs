//! Checks that the generated pages of the documentation are up to date.

#[path = "../examples/reference/pages/mod.rs"]
mod pages;

#[test]
fn the_generated_pages_are_up_to_date() {
    for page in pages::pages().unwrap() {
        let written = std::fs::read_to_string(&page.path).unwrap_or_default();
        let differs = written.lines().zip(page.text.lines()).find(|(old, new)| old != new);
        assert!(
            written == page.text,
            "{} is out of date: run `{}`. First difference: {differs:?}",
            page.path.display(),
            pages::COMMAND
        );
    }
}

#[test]
fn every_command_and_option_is_on_the_page() {
    let pages = pages::pages().unwrap();
    let mut n_options = 0;
    for command in melm_cli::command().get_subcommands() {
        assert!(pages[0].text.contains(&format!("### `melm {}", command.get_name())));
        for option in command.get_opts() {
            n_options += 1;
            let long = option.get_long().unwrap();
            assert!(pages[0].text.contains(&format!("--{long}")), "--{long}");
        }
    }
    assert!(n_options > 50, "{n_options}");
}

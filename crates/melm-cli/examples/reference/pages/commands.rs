//! The options of all commands, from their description in clap.

use clap::{Arg, Command};

use super::{COMMAND, escape};

/// The line that separates the written part of the page from the generated one.
const MARK: &str = "<!-- The rest of this page is generated";

const INTRODUCTION: &str = "\
## All options

This part lists what `melm COMMAND --help` prints. Every command also has `-q` (`--quiet`: print only errors), `-v`
(`--verbose`: print more) and `-h` (`--help`).
";

/// Returns the page with a new generated part. `written` is the page with the written part and perhaps an old generated
/// part.
pub(super) fn page(written: &str) -> String {
    let kept = written.split(MARK).next().unwrap_or(written).trim_end();
    let mut melm = melm_cli::command();
    melm.build();
    let mut sections = Vec::new();
    for command in melm.get_subcommands() {
        add_command(command, &mut sections);
    }
    let mark = format!("{MARK} by `{COMMAND}`. Do not edit. -->");
    format!("{kept}\n\n{mark}\n{INTRODUCTION}\n{}", sections.join("\n"))
}

fn add_command(command: &Command, sections: &mut Vec<String>) {
    if command.get_name() == "help" {
        return;
    }
    if command.has_subcommands() {
        command.get_subcommands().for_each(|inner| add_command(inner, sections));
        return;
    }
    sections.push(section(command));
}

fn section(command: &Command) -> String {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let mut text = format!("### `{name}`\n\n{}\n\n```text\n{usage}\n```\n", paragraphs(&about));
    for (heading, options) in by_heading(command) {
        text += &format!("\n| {heading} | meaning |\n| --- | --- |\n");
        text += &options.iter().map(|option| row(option)).collect::<String>();
    }
    if let Some(help) = command.get_after_help() {
        text += &after_help(&help.to_string());
    }
    text
}

/// Returns the text with full stops after its paragraphs, which help texts do not have after their first one.
fn paragraphs(text: &str) -> String {
    let end = |paragraph: &str| {
        let paragraph = escape(&paragraph.replace('\n', " "));
        if paragraph.ends_with(['.', ':']) { paragraph } else { paragraph + "." }
    };
    text.split("\n\n").map(end).collect::<Vec<_>>().join("\n\n")
}

/// Returns the arguments and options of a command by their headings, in the order of `--help`.
fn by_heading(command: &Command) -> Vec<(String, Vec<&Arg>)> {
    let mut groups: Vec<(String, Vec<&Arg>)> = Vec::new();
    let mut add =
        |heading: String, arg| match groups.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, args)) => args.push(arg),
            None => groups.push((heading, vec![arg])),
        };
    for arg in command.get_positionals() {
        add("argument".to_owned(), arg);
    }
    let is_global =
        |arg: &Arg| ["quiet", "verbose", "help", "version"].contains(&arg.get_id().as_str());
    let is_shown = |arg: &&Arg| !arg.is_positional() && !is_global(arg) && !arg.is_hide_set();
    let (with_heading, without): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(is_shown).partition(|arg| arg.get_help_heading().is_some());
    for arg in without.into_iter().chain(with_heading) {
        add(arg.get_help_heading().unwrap_or("option").to_lowercase(), arg);
    }
    groups
}

fn is_flag(arg: &Arg) -> bool {
    !arg.is_positional() && !arg.get_action().takes_values()
}

fn row(arg: &Arg) -> String {
    let names: Vec<String> = [
        arg.get_short().map(|short| format!("-{short}")),
        arg.get_long().map(|long| format!("--{long}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let values = arg.get_value_names().unwrap_or_default().iter().map(|name| format!("<{name}>"));
    let values: Vec<String> = if is_flag(arg) { Vec::new() } else { values.collect() };
    let mut values = values.join(" ");
    let mut space = if names.is_empty() || values.is_empty() { "" } else { " " };
    if arg.is_require_equals_set() {
        // As `--help` spells it. The brackets say that the value may be left out.
        let is_optional = arg.get_num_args().is_some_and(|range| range.min_values() == 0);
        values = if is_optional { format!("[={values}]") } else { format!("={values}") };
        space = "";
    }
    let spelled = names.join(", ") + space;
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut help = escape(&help.replace('\n', " "));
    let defaults: Vec<_> = arg.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
    if !defaults.is_empty() && !is_flag(arg) {
        help += &format!(" [default: `{}`]", defaults.join(" "));
    }
    let allowed: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|_| arg.get_action().takes_values())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !allowed.is_empty() {
        help += &format!(" [values: {}]", allowed.join(", "));
    }
    // A bar would end the cell, even in back-ticks.
    let cell = |text: &str| text.replace('|', "\\|");
    format!("| `{}` | {} |\n", cell(&(spelled + &values)), cell(&help))
}

fn after_help(text: &str) -> String {
    let lines = text.lines();
    let is_example = text.starts_with("Example");
    let body: Vec<&str> = lines.skip(usize::from(is_example)).map(str::trim).collect();
    if is_example {
        format!("\n```sh\n{}\n```\n", body.join("\n"))
    } else {
        format!("\n{}\n", paragraphs(&body.join(" ")))
    }
}

//! Errors in settings and in arguments.

use super::{AUGMENT, Case, TRAIN, check, nothing, write};

/// A case with one more argument.
fn with(command: &str, variant: &'static str, argument: &str, message: &'static str) -> Case {
    Case { variant, prepare: nothing, command: format!("{command} {argument}"), exit: 2, message }
}

#[test]
fn invalid_settings_are_refused() {
    check(&[
        with(
            TRAIN,
            "melm::error::Setting",
            "--set tagger.budget",
            "`--set tagger.budget`: expected `key=value`",
        ),
        with(
            AUGMENT,
            "melm::generate::settings::InvalidRanks",
            "--set generate.ranks=[2,1]",
            "ranks are two numbers from 1 on, the first not above the last; found 2 and 1",
        ),
        with(
            AUGMENT,
            "melm::generate::settings::InvalidSampling",
            "--set generate.sampling=greedy",
            "expected `uniform` or `temperature-0.8`, found `greedy`",
        ),
        with(
            AUGMENT,
            "melm::mask::InvalidRefresh",
            "--set finetune.mask.refresh=never",
            "expected `every-epoch` or `cycle-30`, found `never`",
        ),
        with(
            AUGMENT,
            "melm::rate::InvalidRate",
            "--set names.share=2",
            "a rate is a number from 0 to 1, found 2",
        ),
        with(
            AUGMENT,
            "melm::training::settings::ParseBudgetError",
            "--set tagger.budget=many",
            "`many` is not a valid budget: expected text such as `20 epochs`",
        ),
    ]);
}

#[test]
fn contradicting_arguments_are_refused() {
    check(&[
        Case {
            variant: "melm-cli::failure::Usage",
            prepare: nothing,
            command: "check - -".to_owned(),
            exit: 2,
            message: "only one of the files can be standard input",
        },
        Case {
            variant: "melm-cli::failure::Reported",
            prepare: |folder| write(folder, "wrong.conll", "a b c\nd e\n"),
            command: "check train.conll wrong.conll".to_owned(),
            exit: 1,
            message: "2 problems in total",
        },
        Case {
            variant: "melm::error::Read",
            prepare: nothing,
            command: AUGMENT.replace("plan.toml", "none.toml"),
            exit: 1,
            message: "cannot read `none.toml`",
        },
    ]);
}

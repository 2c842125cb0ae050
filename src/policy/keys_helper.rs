//! The keys of helpers, and of what they print.

use super::keys::{DECISION, optional, required, served};
use super::shape::{Key, Names, Shape};
use crate::limits::{ARGUMENT_MAX_CHARACTERS, ARGUMENT_MAX_ITEMS, TIMEOUT_MAX_SECONDS};

/// A local program with typed arguments.
pub(crate) const HELPER: Shape = Shape::Object(&[
    required("description", Shape::Text, "what it does, for the model"),
    required(
        "argv",
        Shape::Some(&Shape::Text),
        "the program as an absolute path, then its words; {name} stands for an argument",
    ),
    required("decision", DECISION, "whether it may run"),
    optional(
        "arguments",
        Shape::Named(Names::Argument, &ARGUMENT),
        "what the agent gives, by name",
    ),
    optional("timeout_seconds", Shape::Whole(1, TIMEOUT_MAX_SECONDS), "how long it may run"),
    optional(
        "environment",
        Shape::Named(Names::Variable, &Shape::Text),
        "all of its environment, but for credentials",
    ),
    optional(
        "credentials",
        Shape::Named(Names::Variable, &Shape::Text),
        "variables of its environment, each with the name of the credential that it carries",
    ),
    optional("folder", Shape::Text, "the folder that it runs in, an absolute path; / by itself"),
    optional("stdin", Shape::Text, "what it reads; {name} stands for an argument"),
    optional("result", Shape::Word(&["text", "json"]), "what it prints on stdout; text by itself"),
    optional("unconfined", Shape::Flag, "whether it may run where the kernel cannot confine it"),
    optional(
        "on_overflow",
        Shape::Word(&["ignore", "kill"]),
        "what becomes of it when it prints more than is kept; ignore by itself",
    ),
    optional("resolve_only", Shape::Flag, "whether it only resolves arguments and is no tool"),
]);

/// Bounds of what helpers print on stderr.
pub(crate) const HELPER_OUTPUT: Shape = Shape::Limits(
    "helper_output",
    &[
        optional(
            "retain",
            Shape::Word(&["tail", "head", "head_and_tail"]),
            "which part of a longer stderr is kept; the tail by itself",
        ),
        optional("head_bytes", PART_BYTES, "with head_and_tail: how much of the beginning"),
        optional("tail_bytes", PART_BYTES, "with head_and_tail: how much of the end"),
    ],
);

const PART_BYTES: Shape = Shape::Whole(1, 1024 * 1024);

const ARGUMENT: Shape = Shape::Tagged(&[
    served(
        "string",
        &[
            PATTERN,
            MIN_LENGTH,
            MAX_LENGTH,
            optional(
                "resolve",
                Shape::Text,
                "the helper that makes the value of what the agent gives",
            ),
            DESCRIPTION,
            DEFAULT,
            OPTIONAL,
            MAY_BE_OPTION,
        ],
        "a string",
    ),
    served(
        "integer",
        &[MIN_INTEGER, MAX_INTEGER, DESCRIPTION, DEFAULT, OPTIONAL, MAY_BE_OPTION],
        "an integer",
    ),
    served(
        "number",
        &[MIN_NUMBER, MAX_NUMBER, DESCRIPTION, DEFAULT, OPTIONAL, MAY_BE_OPTION],
        "a number",
    ),
    served(
        "boolean",
        &[
            optional("word", Shape::Text, "the word that stands for true; none stands for false"),
            DESCRIPTION,
            DEFAULT,
            OPTIONAL,
            MAY_BE_OPTION,
        ],
        "true or false",
    ),
    served(
        "enum",
        &[VALUES, DESCRIPTION, DEFAULT, OPTIONAL, MAY_BE_OPTION],
        "one of these strings",
    ),
    served(
        "array",
        &[
            required("items", ITEMS, "what each element is"),
            optional("min_items", COUNT, "fewest elements"),
            optional("max_items", COUNT, "most elements"),
            DESCRIPTION,
            DEFAULT,
            OPTIONAL,
            MAY_BE_OPTION,
        ],
        "an array; a word for each element",
    ),
]);

const ITEMS: Shape = Shape::Tagged(&[
    served("string", &[PATTERN, MIN_LENGTH, MAX_LENGTH, DESCRIPTION, MAY_BE_OPTION], "a string"),
    served("integer", &[MIN_INTEGER, MAX_INTEGER, DESCRIPTION, MAY_BE_OPTION], "an integer"),
    served("number", &[MIN_NUMBER, MAX_NUMBER, DESCRIPTION, MAY_BE_OPTION], "a number"),
    served("boolean", &[DESCRIPTION, MAY_BE_OPTION], "true or false"),
    served("enum", &[VALUES, DESCRIPTION, MAY_BE_OPTION], "one of these strings"),
]);

const LENGTH: Shape = Shape::Whole(0, ARGUMENT_MAX_CHARACTERS as u64);
const COUNT: Shape = Shape::Whole(0, ARGUMENT_MAX_ITEMS as u64);

const PATTERN: Key = optional("pattern", Shape::Text, "a regular expression of the whole value");
const MIN_LENGTH: Key = optional("min_length", LENGTH, "fewest characters");
const MAX_LENGTH: Key = optional("max_length", LENGTH, "most characters");
const MIN_INTEGER: Key = optional("min", Shape::Integer, "the smallest");
const MAX_INTEGER: Key = optional("max", Shape::Integer, "the largest");
const MIN_NUMBER: Key = optional("min", Shape::Number, "the smallest");
const MAX_NUMBER: Key = optional("max", Shape::Number, "the largest");
const VALUES: Key = required("values", Shape::Some(&Shape::Text), "the strings, each once");
const DESCRIPTION: Key = optional("description", Shape::Text, "what it says, for the model");
const DEFAULT: Key = optional("default", Shape::Anything, "the value where the agent gives none");
const OPTIONAL: Key = optional("optional", Shape::Flag, "whether the agent may leave it out");
const MAY_BE_OPTION: Key =
    optional("may_be_option", Shape::Flag, "whether a word of it may begin with - or +");

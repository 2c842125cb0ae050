//! The `keyward` program.

fn main() -> std::process::ExitCode {
    keyward::cli::run()
}

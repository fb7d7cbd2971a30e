//! `fairway completions`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use clap_complete::Shell;

use super::output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway completions bash > ~/.local/share/bash-completion/completions/fairway
  fairway completions zsh > ~/.zfunc/_fairway
  fairway completions fish > ~/.config/fish/completions/fairway.fish")]
pub(super) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(
    arguments: &CompletionsArguments,
    command: &mut clap::Command,
) -> Result<ExitCode> {
    // Into memory first: the generator panics when its output is closed.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, command, "fairway", &mut script);
    output::print_for_programs(&with_words(arguments.shell, String::from_utf8(script)?))?;
    Ok(ExitCode::SUCCESS)
}

/// clap knows options and subcommands; `fairway __complete` knows the words of `show`, `clear` and `explain`, and what the
/// daemon knows.
fn with_words(shell: Shell, script: String) -> String {
    let renamed = || script.replacen("_fairway() {", "_fairway_options() {", 1);
    match shell {
        Shell::Bash => format!("{}{}", BASH, renamed()),
        // The first line is `#compdef`, and the last ones call `_fairway`.
        Shell::Zsh => {
            let script = renamed();
            let (first, rest) = script.split_once('\n').unwrap_or((&script, ""));
            format!("{first}\n{ZSH}{rest}")
        }
        Shell::Fish => format!("{script}{FISH}"),
        _ => script,
    }
}

/// Readline takes a colon for the end of a word: what is before it must not be in a candidate.
const BASH: &str = r#"_fairway() {
    local -a given
    local line=${COMP_LINE:0:COMP_POINT} current candidate
    read -ra given <<<"$line"
    [[ $line == *[[:space:]] ]] && given+=('')
    current=${given[-1]}
    if [[ ${given[1]} == @(show|clear|explain) && ${#given[@]} -gt 2 && $current != -* ]]; then
        local cut=
        [[ $COMP_WORDBREAKS == *:* ]] && cut=${current%"${current##*:}"}
        COMPREPLY=()
        # No names of files instead.
        compopt +o bashdefault +o default 2>/dev/null
        while IFS=$'\t' read -r candidate _; do
            COMPREPLY+=("${candidate#"$cut"}")
        done < <("${given[0]}" __complete "${given[@]:1}" 2>/dev/null)
        return
    fi
    _fairway_options "$@"
}

"#;

const ZSH: &str = r#"
_fairway() {
    if (( CURRENT > 2 )) && [[ ${words[2]} == (show|clear|explain) && ${words[CURRENT]} != -* ]]; then
        local -a candidates
        local line
        for line in "${(@f)$(${words[1]} __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
            [[ -n $line ]] && candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
        done
        _describe -V 'word' candidates
        return
    fi
    _fairway_options "$@"
}
"#;

const FISH: &str = r#"complete -c fairway -n "__fish_seen_subcommand_from show clear explain" -f -a "(fairway __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)"
"#;

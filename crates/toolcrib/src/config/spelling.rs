//! How words may be written: `snake_case`, `camelCase` and `kebab-case` are the same word here.
//!
//! Also the guess behind every "did you mean". It never changes what was written, only compares it.

/// `stripServerPrefix`, `strip-server-prefix` and `Strip_Server_Prefix` all become `strip_server_prefix`.
pub(crate) fn snake(word: &str) -> String {
    let mut out = String::with_capacity(word.len() + 4);
    let mut after_lower = false;
    for letter in word.chars() {
        if letter == '-' || letter == '_' || letter == ' ' {
            out.push('_');
            after_lower = false;
        } else {
            if letter.is_ascii_uppercase() && after_lower {
                out.push('_');
            }
            after_lower = letter.is_ascii_lowercase() || letter.is_ascii_digit();
            out.push(letter.to_ascii_lowercase());
        }
    }
    out
}

/// `strip_server_prefix` becomes `stripServerPrefix`.
pub(crate) fn camel(snake: &str) -> String {
    let mut out = String::with_capacity(snake.len());
    let mut raise = false;
    for letter in snake.chars() {
        if letter == '_' {
            raise = true;
        } else {
            out.push(if raise { letter.to_ascii_uppercase() } else { letter });
            raise = false;
        }
    }
    out
}

/// The known word nearest to `word`, if one is near enough to be what was meant.
pub(crate) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // No key is this long, and comparing costs the product of the lengths.
    let word = Some(snake(word)).filter(|word| word.len() <= 64)?;
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &snake(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `a`, `b` or `c`, each in backticks.
pub(crate) fn one_of<'k>(words: impl IntoIterator<Item = &'k str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_spellings_are_one_word() {
        for word in ["stripServerPrefix", "strip-server-prefix", "strip_server_prefix"] {
            assert_eq!(snake(word), "strip_server_prefix");
        }
        assert_eq!(camel("strip_server_prefix"), "stripServerPrefix");
    }

    #[test]
    fn a_guess_is_made_only_when_it_is_near() {
        let known = ["command", "args", "url"];
        assert_eq!(nearest("comand", known), Some("command"));
        assert_eq!(nearest("agrs", known), Some("args"));
        assert_eq!(nearest("banana", known), None);
        assert_eq!(one_of(known), "`command`, `args` or `url`");
    }
}

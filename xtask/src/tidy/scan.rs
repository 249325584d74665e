//! A reading of Rust source just good enough for the rules: tokens without comments and literals, functions,
//! blocks. It never fails: source it does not understand gives fewer tokens, and the compiler complains anyway.

use std::ops::RangeInclusive;

/// A word or a single mark, and its line from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub text: &'a str,
    pub line: usize,
}

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    pub name: &'a str,
    pub lines: RangeInclusive<usize>,
    /// Inside `impl Trait for Type`: its name was chosen by the trait.
    pub of_trait: bool,
}

/// The source with comments, strings and character literals turned to spaces. Lines stay where they are.
pub fn scrub(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    let mut previous = ' ';
    while let Some(first) = rest.chars().next() {
        let length = literal_length(rest, previous);
        let taken = if length == 0 { first.len_utf8() } else { length };
        let (piece, after) = rest.split_at(taken);
        if length == 0 {
            out.push_str(piece);
        } else {
            out.extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        }
        previous = piece.chars().next_back().unwrap_or(' ');
        rest = after;
    }
    out
}

/// How many bytes of comment, string or character literal `rest` starts with; zero when it starts with code.
fn literal_length(rest: &str, previous: char) -> usize {
    let in_word = previous.is_alphanumeric() || previous == '_';
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return rest.find("*/").map_or(rest.len(), |end| end + 2);
    }
    if rest.starts_with('"') {
        return 1 + escaped_length(rest.get(1..).unwrap_or_default(), '"');
    }
    if rest.starts_with('r') && !in_word || rest.starts_with('r') && previous == 'b' {
        return raw_length(rest);
    }
    match (rest.starts_with('\''), rest.chars().nth(1), rest.chars().nth(2)) {
        (true, Some('\\'), _) => 1 + escaped_length(rest.get(1..).unwrap_or_default(), '\''),
        (true, Some(letter), Some('\'')) => 2 + letter.len_utf8(),
        _ => 0,
    }
}

/// Bytes up to and with the closing `quote`, minding backslashes.
fn escaped_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return index + 1,
            _ => {}
        }
    }
    text.len()
}

/// Bytes of a raw string `r"…"` or `r#"…"#`; zero when it is only a word that starts with r.
fn raw_length(text: &str) -> usize {
    let hashes = text.chars().skip(1).take_while(|c| *c == '#').count();
    let open = 1 + hashes;
    if !text.get(open..).is_some_and(|after| after.starts_with('"')) {
        return 0;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let body = text.get(open + 1..).unwrap_or_default();
    body.find(&close).map_or(text.len(), |end| open + 1 + end + close.len())
}

/// Words and marks of scrubbed source.
pub fn tokens(scrubbed: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    for (index, line) in scrubbed.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let length = match is_word(first) {
                true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                false => first.len_utf8(),
            };
            let (text, after) = rest.split_at(length);
            found.push(Token { text, line: index + 1 });
            rest = after.trim_start();
        }
    }
    found
}

/// The index of the mark that ends the item starting at `from`: its closing brace, or its semicolon.
fn end_of_item(tokens: &[Token<'_>], from: usize) -> Option<(usize, usize)> {
    let mut brackets = 0_i32;
    for (index, token) in tokens.iter().enumerate().skip(from) {
        match token.text {
            "(" | "[" => brackets += 1,
            ")" | "]" => brackets -= 1,
            ";" if brackets == 0 => return None,
            "{" if brackets == 0 => return closing_brace(tokens, index).map(|end| (index, end)),
            _ => {}
        }
    }
    None
}

fn closing_brace(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

/// Every function that has a body, nested ones included.
pub fn functions<'a>(tokens: &[Token<'a>]) -> Vec<Function<'a>> {
    let trait_blocks = trait_impls(tokens);
    let mut found = Vec::new();
    for (index, pair) in tokens.windows(2).enumerate() {
        let [keyword, name] = pair else { continue };
        let is_name = name.text.starts_with(|c: char| c.is_alphabetic() || c == '_');
        if keyword.text != "fn" || !is_name {
            continue;
        }
        let Some((_, end)) = end_of_item(tokens, index + 2) else { continue };
        let Some(last) = tokens.get(end) else { continue };
        let of_trait = trait_blocks.iter().any(|block| block.contains(&index));
        found.push(Function { name: name.text, lines: keyword.line..=last.line, of_trait });
    }
    found
}

/// Token ranges of `impl Trait for Type { … }`: names inside were chosen by the trait.
pub fn trait_impls(tokens: &[Token<'_>]) -> Vec<RangeInclusive<usize>> {
    let mut found = Vec::new();
    for (index, _) in tokens.iter().enumerate().filter(|(_, token)| token.text == "impl") {
        let Some((open, end)) = end_of_item(tokens, index) else { continue };
        let Some(header) = tokens.get(index..open) else { continue };
        // `for<'a>` is a bound, not a trait impl.
        let is_for = header.windows(2).any(|pair| matches!(pair, [a, b] if a.text == "for" && b.text != "<"));
        if is_for {
            found.push(index..=end);
        }
    }
    found
}

/// Line ranges of items behind `#[cfg(test)]`.
pub fn test_regions(tokens: &[Token<'_>]) -> Vec<RangeInclusive<usize>> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut found = Vec::new();
    for (index, window) in tokens.windows(MARK.len()).enumerate() {
        if !window.iter().zip(MARK).all(|(token, mark)| token.text == mark) {
            continue;
        }
        let from = index + MARK.len();
        if let (Some(first), Some((_, end))) = (tokens.get(from), end_of_item(tokens, from))
            && let Some(last) = tokens.get(end)
        {
            found.push(first.line..=last.line);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{functions, scrub, test_regions, tokens};

    #[test]
    fn comments_and_literals_are_not_code() {
        let source = "a // fn x\n\"fn \\\" y\" b r#\"fn \"z\" \"# '{' 'a: c /* fn\nq */ d br\"}\" rest";
        let scrubbed = scrub(source);
        let words: Vec<&str> = tokens(&scrubbed).iter().map(|token| token.text).collect();
        assert_eq!(words, ["a", "b", "'", "a", ":", "c", "d", "b", "rest"]);
        assert_eq!(scrubbed.lines().count(), source.lines().count());
    }

    #[test]
    fn functions_are_found_with_their_lines() {
        let source = "impl A for B {\n  fn one(&self) -> impl Fn() {\n    x(|| {})\n  }\n}\nfn two<T>(a: [u8; 3]) {}\nfn three();";
        let scrubbed = scrub(source);
        let found = functions(&tokens(&scrubbed));
        let told: Vec<_> = found.iter().map(|f| (f.name, f.lines.clone(), f.of_trait)).collect();
        assert_eq!(told, [("one", 2..=4, true), ("two", 6..=6, false)]);
    }

    #[test]
    fn a_bound_is_not_a_trait_impl() {
        let scrubbed = scrub("impl<F: for<'a> Fn(&'a u8)> Held<F> { fn one() {} }");
        assert!(functions(&tokens(&scrubbed)).iter().all(|function| !function.of_trait));
    }

    #[test]
    fn test_regions_end_with_their_block() {
        let scrubbed = scrub("fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\nfn c() {}");
        assert_eq!(test_regions(&tokens(&scrubbed)), [3..=5]);
    }
}

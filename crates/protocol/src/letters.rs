//! Letters that do not show, in the words of strangers: whoever shows these words marks them (D-28).

/// Whether a letter is a control, bidirectional or zero-width character, a variation selector, or a blank that is not the
/// space of the keyboard: something a person does not see, or takes for something else.
#[must_use]
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{17b4}'
            | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}'
            | '\u{205f}'..='\u{206f}' | '\u{2800}' | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::is_hidden;

    #[test]
    fn what_does_not_show_is_known_and_what_does_is_left_alone() {
        let hidden =
            "\u{7}\u{a0}\u{34f}\u{200b}\u{202e}\u{2800}\u{3164}\u{fe00}\u{fe0f}\u{e0041}\u{e0173}\u{e01ef}";
        assert!(hidden.chars().all(is_hidden));
        assert!(!"Ünïcödé 日本 😀 a-z".chars().any(is_hidden));
    }
}

//! Text in HTML and SVG.

/// A text with nothing in it that HTML or SVG reads as more than text, in content and in attributes.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            // Neither may stand in a page, whatever it is written as.
            '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\x7f' => safe.push('\u{fffd}'),
            letter => safe.push(letter),
        }
    }
    safe
}

/// All of them, one after the other.
pub(crate) fn joined<T>(items: impl IntoIterator<Item = T>, html: impl FnMut(T) -> String) -> String {
    items.into_iter().map(html).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_an_element_or_ends_an_attribute() {
        assert_eq!(escaped("a<b> & \"c\" 'd'\n\u{1b}"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;\n\u{fffd}");
    }
}

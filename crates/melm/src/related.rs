//! Words related to the name of an entity type (section 2.1: "organization" for `<B-ORG>`).

/// Common abbreviations of entity types in news, encyclopedia and biomedical corpora, with words for their meaning.
const ABBREVIATIONS: [(&str, &[&str]); 44] = [
    ("PER", &["person"]),
    ("PERS", &["person"]),
    ("ORG", &["organization"]),
    ("LOC", &["location"]),
    ("MISC", &["miscellaneous"]),
    ("OTH", &["other"]),
    // A geopolitical entity is a place with a government.
    ("GPE", &["country", "city"]),
    ("NORP", &["nationality", "religion"]),
    ("FAC", &["building"]),
    ("VEH", &["vehicle"]),
    ("WEA", &["weapon"]),
    ("EVT", &["event"]),
    ("EVE", &["event"]),
    ("DUR", &["duration"]),
    ("LANG", &["language"]),
    ("MON", &["money"]),
    ("NUM", &["number"]),
    ("QTY", &["quantity"]),
    ("PCT", &["percent"]),
    ("PROD", &["product"]),
    ("PRO", &["product"]),
    ("CORP", &["corporation"]),
    ("GRP", &["group"]),
    ("CW", &["creative", "work"]),
    ("WOA", &["work", "art"]),
    ("TTL", &["title"]),
    ("POS", &["position"]),
    ("ROLE", &["role"]),
    ("DIS", &["disease"]),
    ("SYM", &["symptom"]),
    ("CHEM", &["chemical"]),
    ("MED", &["medicine"]),
    ("ANAT", &["anatomy"]),
    ("SPEC", &["species"]),
    ("ANIM", &["animal"]),
    ("BIO", &["biology"]),
    ("CEL", &["celestial", "body"]),
    ("INST", &["instrument"]),
    ("MEDIA", &["media"]),
    ("MYTH", &["myth"]),
    ("SCI", &["scientist"]),
    ("DERIV", &["derived"]),
    ("TIM", &["time"]),
    ("ADDR", &["address"]),
];

/// The name of each language in the language itself, by ISO 639-1 code. The paper's marker `<Español>` is such a
/// name.
const LANGUAGES: [(&str, &str); 30] = [
    ("ar", "العربية"),
    ("bg", "български"),
    ("bn", "বাংলা"),
    ("cs", "čeština"),
    ("da", "dansk"),
    ("de", "Deutsch"),
    ("el", "Ελληνικά"),
    ("en", "English"),
    ("es", "español"),
    ("fa", "فارسی"),
    ("fi", "suomi"),
    ("fr", "français"),
    ("he", "עברית"),
    ("hi", "हिन्दी"),
    ("hu", "magyar"),
    ("id", "Indonesia"),
    ("it", "italiano"),
    ("ja", "日本語"),
    ("ko", "한국어"),
    ("nl", "Nederlands"),
    ("no", "norsk"),
    ("pl", "polski"),
    ("pt", "português"),
    ("ro", "română"),
    ("ru", "русский"),
    ("sv", "svenska"),
    ("sw", "Kiswahili"),
    ("tr", "Türkçe"),
    ("uk", "українська"),
    ("zh", "中文"),
];

/// Returns the name of a language, or its code if the name is not known.
pub(crate) fn language_name(code: &str) -> String {
    let main = code.split(['-', '_']).next().unwrap_or(code);
    let found = LANGUAGES.iter().find(|(known, _)| main.eq_ignore_ascii_case(known));
    found.map_or_else(|| code.to_owned(), |(_, name)| (*name).to_owned())
}

/// The related word for bare `B` and `I` tags, which name no type.
const UNNAMED_TYPE: &str = "entity";

/// Derives words from the name of an entity type, in lower case. Splits camelCase, `snake_case` and kebab-case, and
/// spells out common abbreviations.
pub(crate) fn related_words(name: &str) -> Vec<String> {
    let parts = name.split(|c: char| !c.is_alphanumeric()).flat_map(split_camel);
    let words: Vec<_> = parts
        .flat_map(|part| match expand_abbreviation(&part) {
            // In `WORK_OF_ART`, the word `of` says nothing about the type.
            _ if part.eq_ignore_ascii_case("of") => Vec::new(),
            Some(words) => words.iter().map(ToString::to_string).collect(),
            None => vec![part.to_lowercase()],
        })
        .collect();
    if words.is_empty() { vec![UNNAMED_TYPE.to_owned()] } else { words }
}

fn expand_abbreviation(part: &str) -> Option<&'static [&'static str]> {
    ABBREVIATIONS
        .iter()
        .find(|(abbreviation, _)| part.eq_ignore_ascii_case(abbreviation))
        .map(|(_, words)| *words)
}

/// Splits `OtherPROD` into Other and PROD, `PERderiv` into PER and deriv, `HTMLPage` into HTML and Page.
fn split_camel(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut last = String::new();
    for c in name.chars() {
        let part = parts.last_mut().expect("there is always a part");
        let after_capitals = part.chars().count() > 1 && part.chars().all(char::is_uppercase);
        if c.is_uppercase() && part.chars().last().is_some_and(|before| !before.is_uppercase()) {
            parts.push(c.to_string());
        } else if c.is_lowercase() && after_capitals {
            if expand_abbreviation(part).is_none() {
                last.extend(part.pop());
            }
            last.push(c);
            parts.push(std::mem::take(&mut last));
        } else {
            part.push(c);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::related_words;

    #[test]
    fn words_are_derived_from_the_names_of_types() {
        for (name, words) in [
            ("PER", "person"),
            ("org", "organization"),
            ("LOC", "location"),
            ("MISC", "miscellaneous"),
            ("politicalparty", "politicalparty"),
            ("PoliticalParty", "political party"),
            ("political_party", "political party"),
            ("political-party", "political party"),
            ("WORK_OF_ART", "work art"),
            ("OtherPROD", "other product"),
            ("PERderiv", "person derived"),
            ("HTMLPage", "html page"),
            ("CW", "creative work"),
            ("DATE", "date"),
            ("LAW", "law"),
            ("", "entity"),
            ("_", "entity"),
            ("Ort", "ort"),
            ("ÖRTLICH", "örtlich"),
        ] {
            assert_eq!(related_words(name).join(" "), words, "{name}");
        }
    }
}

//! Words related to the name of an entity type (section 2.1: "organization" for `<B-ORG>`).

/// Names of entity types in news, encyclopedia and biomedical corpora that are not words themselves: abbreviations,
/// words written together, and words that tokenizers often cut into many pieces. Each has words for its meaning. At
/// least one of them is short, because only short words are used (`crate::markers`).
const MEANINGS: &[(&str, &[&str])] = &[
    ("PER", &["person"]),
    ("PERS", &["person"]),
    ("ORG", &["organization"]),
    ("LOC", &["location"]),
    // In CoNLL: nationalities, events, products, and titles of works.
    ("MISC", &["miscellaneous", "nationality", "event", "product", "title"]),
    ("MISCELLANEOUS", &["miscellaneous", "nationality", "event", "product", "title"]),
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
    ("QTY", &["quantity", "amount"]),
    ("QUANTITY", &["quantity", "amount"]),
    ("CARDINAL", &["number"]),
    ("ORDINAL", &["ordinal", "first", "second"]),
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
    ("ANAT", &["anatomy", "organ"]),
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
    // CrossNER writes words together.
    ("POLITICALPARTY", &["political", "party"]),
    ("CHEMICALELEMENT", &["chemical", "element"]),
    ("CHEMICALCOMPOUND", &["chemical", "compound"]),
    ("ASTRONOMICALOBJECT", &["astronomical", "object", "planet", "star"]),
    ("ACADEMICJOURNAL", &["academic", "journal"]),
    ("MUSICGENRE", &["music", "genre"]),
    ("MUSICALARTIST", &["musical", "artist"]),
    ("MUSICALINSTRUMENT", &["musical", "instrument"]),
    ("LITERARYGENRE", &["literary", "genre"]),
    ("PROGRAMLANG", &["programming", "language"]),
    ("METRICS", &["metric", "score"]),
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
/// replaces the names in [`MEANINGS`] by their words.
pub(crate) fn related_words(name: &str) -> Vec<String> {
    let parts = name.split(|c: char| !c.is_alphanumeric()).flat_map(split_camel);
    let words: Vec<_> = parts
        .flat_map(|part| match meaning_of(&part) {
            // In `WORK_OF_ART`, the word `of` says nothing about the type.
            _ if part.eq_ignore_ascii_case("of") => Vec::new(),
            Some(words) => words.iter().map(ToString::to_string).collect(),
            None => vec![part.to_lowercase()],
        })
        .collect();
    if words.is_empty() { vec![UNNAMED_TYPE.to_owned()] } else { words }
}

fn meaning_of(part: &str) -> Option<&'static [&'static str]> {
    MEANINGS.iter().find(|(known, _)| part.eq_ignore_ascii_case(known)).map(|(_, words)| *words)
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
            if meaning_of(part).is_none() {
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
            ("MISC", "miscellaneous nationality event product title"),
            ("politicalparty", "political party"),
            ("freetext", "freetext"),
            ("CARDINAL", "number"),
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

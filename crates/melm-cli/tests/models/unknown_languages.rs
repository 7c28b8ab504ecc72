//! A model that does not know the script or the language of a text has a warning.

use std::fs;
use std::path::Path;

use crate::support::{done, folder};
use crate::tagger::train_into;

/// Sentences with mentions in scripts that `mini` does not know, written for this test.
const FOREIGN: [(&str, &str); 4] = [
    (
        "Thai",
        "สมชาย B-PER\nเดินทาง O\nไป O\nกรุงเทพมหานคร B-LOC\nเมื่อวานนี้ O\n\n\
         นายกรัฐมนตรี O\nไทย B-LOC\nกล่าว O\nที่ O\nเชียงใหม่ B-LOC\nว่า O\nเศรษฐกิจ O\nดีขึ้น O\n\n",
    ),
    (
        "Greek",
        "Ο O\nΓιώργος B-PER\nΠαπανδρέου I-PER\nταξίδεψε O\nστην O\nΑθήνα B-LOC\nχθες O\n\n\
         Η O\nκυβέρνηση O\nτης O\nΕλλάδας B-LOC\nανακοίνωσε O\nνέα O\nμέτρα O\n\n",
    ),
    (
        "Russian",
        "Владимир B-PER\nИванов I-PER\nприехал O\nвчера O\nв O\nМоскву B-LOC\n\n\
         Правительство O\nРоссии B-LOC\nобъявило O\nновые O\nмеры O\n\n",
    ),
    (
        "Arabic",
        "سافر O\nمحمد B-PER\nإلى O\nالقاهرة B-LOC\nأمس O\n\n\
         أعلنت O\nالحكومة O\nالمصرية O\nإجراءات O\nجديدة O\nفي O\nالإسكندرية B-LOC\n\n",
    ),
];

/// Returns the figures of the warning about the script: the share in percent.
fn unknown_share(messages: &str, what: &str) -> Option<u32> {
    let start = format!(" does not seem to know the script or the language of {what}: ");
    let (_, rest) = messages.split_once(&start)?;
    let (percent, rest) = rest.split_once(" % of its pieces say little (of ")?;
    assert!(rest.contains(" are unknown and ") && rest.contains(" are single letters"), "{rest}");
    percent.parse().ok()
}

/// The model of this folder has the tokenizer of `mini`.
#[test]
fn a_script_that_the_model_does_not_know_has_a_warning() {
    let folder = folder();
    done(folder.path(), &train_into("tagger", "--updates 2"));
    for (language, text) in FOREIGN {
        fs::write(folder.path().join("foreign.conll"), text).unwrap();
        let messages = done(folder.path(), "augment foreign.conll -o out --model model --dry-run");
        let share = unknown_share(&messages, "the training set");
        assert!(share.is_some_and(|share| share > 90), "{language}: {messages}");
        let messages = done(folder.path(), "tag tagger foreign.conll -o - --to conll");
        assert!(unknown_share(&messages, "`foreign.conll`").is_some(), "{language}: {messages}");
    }
    // Kana are in the vocabulary, and most kanji are not.
    let text = "安倍 B-PER\n晋三 I-PER\n首相 O\nは O\n昨日 O\n東京 B-LOC\nで O\n記者 O\n会見 O\nを O\n開き O\nました O\n\n\
                政府 O\nは O\n京都 B-LOC\nの O\n経済 O\n対策 O\nを O\n発表 O\nした O\n\n";
    fs::write(folder.path().join("foreign.conll"), text).unwrap();
    let messages = done(folder.path(), "augment foreign.conll -o out --model model --dry-run");
    assert!(unknown_share(&messages, "the training set").is_some(), "{messages}");
    let messages = done(folder.path(), "train foreign.conll -o other --model model --updates 1");
    assert!(unknown_share(&messages, "the training set").is_some(), "{messages}");
    let text = "augment train.conll -o out --model model --dry-run --unlabelled foreign.conll";
    let messages = done(folder.path(), text);
    assert!(unknown_share(&messages, "the unlabelled text").is_some(), "{messages}");
    assert!(!messages.contains("the training set:"), "{messages}");
}

#[test]
fn languages_that_mini_knows_have_no_warning() {
    let folder = folder();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let politics = root.join("politics/train-100.conll").display().to_string();
    let text = root.join("politics/text.conll").display().to_string();
    let args = format!("augment {politics} --unlabelled {text} -o out --model model --dry-run");
    let messages = done(folder.path(), &args);
    assert!(!messages.contains("does not seem to know"), "{messages}");
    for language in ["de", "en", "es"] {
        let file = root.join(format!("languages/{language}.conll"));
        let args = format!("augment {} -o out --model model --dry-run", file.display());
        let messages = done(folder.path(), &args);
        assert!(!messages.contains("does not seem to know"), "{language}: {messages}");
    }
}

/// Sentences in languages that `mini` does not know, written for this test. `*` marks the first token of a mention.
const UNKNOWN: [(&str, &str); 3] = [
    (
        "Polish",
        "*Kowalski pojechał wczoraj z *Warszawy do *Krakowa , aby spotkać się z burmistrzem i obejrzeć nową szkołę . \
         Rząd ogłosił w poniedziałek nowe środki oszczędnościowe dla wszystkich urzędów w kraju . \
         Prezes spółki powiedział , że fabryka zostanie zamknięta w przyszłym roku , ponieważ nikt nie kupuje już maszyn . \
         W sobotę rano dzieci bawiły się nad rzeką , a ich rodzice przygotowywali obiad na świeżym powietrzu . \
         Wieczorem zaczął padać deszcz , więc wszyscy szybko wrócili autobusem do domu i oglądali film .",
    ),
    (
        "Finnish",
        "*Virtanen matkusti eilen *Helsingistä *Tampereelle tapaamaan kaupunginjohtajaa ja katsomaan uutta koulua . \
         Hallitus ilmoitti maanantaina uusista säästötoimista , jotka koskevat kaikkia virastoja koko maassa . \
         Yhtiön toimitusjohtaja kertoi , että tehdas suljetaan ensi vuonna , koska kukaan ei enää osta koneita . \
         Lauantaina aamulla lapset leikkivät joen rannalla , ja heidän vanhempansa valmistivat ruokaa ulkona . \
         Illalla sade alkoi , joten kaikki lähtivät nopeasti kotiin bussilla ja katsoivat yhdessä elokuvan . \
         Seuraavana päivänä he kävivät torilla ostamassa tuoretta leipää ja kalaa .",
    ),
    (
        "Turkish",
        "*Yılmaz dün yeni okulu görmek ve belediye başkanıyla konuşmak için *Ankara şehrinden *İstanbul şehrine gitti . \
         Hükümet pazartesi günü ülkedeki bütün kurumlar için yeni tasarruf önlemlerini açıkladı . \
         Şirketin genel müdürü , artık kimse makine satın almadığı için fabrikanın gelecek yıl kapatılacağını söyledi . \
         Cumartesi sabahı çocuklar nehir kıyısında oynarken anneleri ve babaları açık havada yemek hazırladı . \
         Akşam yağmur başlayınca herkes otobüsle hızlıca evine döndü .",
    ),
];

/// Sentences with the same content in the languages that `mini` knows, written for this test.
const KNOWN: [(&str, &str); 4] = [
    (
        "English",
        "*Smith travelled from *Leeds to *London yesterday to meet the mayor and to see the new school . \
         The government announced new savings for all offices in the country on Monday . \
         The director of the company said that the factory will be closed next year , because nobody buys machines any more . \
         On Saturday morning the children played by the river , and their parents cooked lunch in the open air .",
    ),
    (
        "German",
        "*Müller reiste gestern von *Hamburg nach *Leipzig , um den Bürgermeister zu treffen und die neue Schule zu sehen . \
         Die Regierung kündigte am Montag neue Sparmaßnahmen für alle Ämter im ganzen Land an . \
         Der Direktor der Firma sagte , dass das Werk im nächsten Jahr geschlossen wird , weil niemand mehr Maschinen kauft . \
         Am Samstag spielten die Kinder am Fluss , und ihre Eltern kochten draußen , während es langsam wärmer wurde und \
         immer mehr Leute kamen , die hier nur einen ruhigen Tag haben wollten .",
    ),
    (
        "Spanish",
        "*García viajó ayer de *Sevilla a *Madrid para reunirse con el alcalde y ver la nueva escuela . \
         El gobierno anunció el lunes nuevas medidas de ahorro para todas las oficinas del país . \
         El director de la empresa dijo que la fábrica cerrará el próximo año , porque ya nadie compra máquinas . \
         El sábado por la mañana los niños jugaron junto al río , y sus padres prepararon la comida al aire libre .",
    ),
    (
        "Dutch",
        "*Jansen reisde gisteren van *Utrecht naar *Amsterdam om de burgemeester te ontmoeten en de nieuwe school te zien . \
         De regering kondigde maandag nieuwe bezuinigingen aan voor alle kantoren in het land . \
         De directeur van het bedrijf zei dat de fabriek volgend jaar wordt gesloten , omdat niemand nog machines koopt . \
         Zaterdagochtend speelden de kinderen bij de rivier , en hun ouders maakten het eten klaar in de open lucht .",
    ),
];

/// Returns a CoNLL file with the sentences of a text.
fn to_conll(text: &str) -> String {
    let row = |token: &str| match token.strip_prefix('*') {
        Some(name) => format!("{name} B-X\n"),
        None if token == "." => ". O\n\n".to_owned(),
        None => format!("{token} O\n"),
    };
    text.split_whitespace().map(row).collect()
}

/// Returns the average length of a piece that a warning states, if there is one.
fn letters_per_piece(messages: &str) -> Option<f64> {
    let (_, rest) = messages.split_once(" lower-case tokens become ")?;
    let (_, rest) = rest.split_once(" pieces of ")?;
    rest.split(' ').next()?.parse().ok()
}

#[test]
fn a_language_in_latin_script_that_the_model_does_not_know_has_a_warning() {
    let folder = folder();
    done(folder.path(), &train_into("tagger", "--updates 2"));
    let path = folder.path().join("text.conll");
    for (language, text) in UNKNOWN {
        fs::write(&path, to_conll(text)).unwrap();
        for command in [
            "augment text.conll -o out --model model --dry-run",
            "tag tagger text.conll -o - --to conll",
        ] {
            let messages = done(folder.path(), command);
            assert!(messages.contains("does not seem to know"), "{language}: {messages}");
            // Turkish has enough letters of its own to be recognised by them.
            let letters = letters_per_piece(&messages);
            let is_short = letters.is_some_and(|letters| letters < 2.6);
            assert!(is_short || language == "Turkish", "{language}: {messages}");
        }
    }
    for (language, text) in KNOWN {
        fs::write(&path, to_conll(text)).unwrap();
        let messages = done(folder.path(), "augment text.conll -o out --model model --dry-run");
        assert!(!messages.contains("does not seem to know"), "{language}: {messages}");
    }
}

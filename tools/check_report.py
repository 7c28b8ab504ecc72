#!/usr/bin/env python3
"""Open the page of `melm report` in headless Chromium and check it.

    python3 tools/check_report.py MELM [--folder DIR] [--screenshots DIR]

MELM is the program. The script writes the folder of a small run, makes its report, clicks every filter, sorts, makes
decisions with the keyboard, saves them and applies them with `melm filter`. Counts on the page are compared with
`melm report --json` and with the script's own counts. Needs selenium, and Debian's packages chromium and
chromium-driver. With --screenshots, also writes pictures of the page of DIR (or of the small run) in two widths and
both themes.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

HOSTILE = [
    "</script><script>document.title='owned'</script>",
    "<img/src=x/onerror=document.title='owned'>",
    "\u202eevil\u2066",
    '"onmouseover="document.title=1',
]
PEOPLE = ["Ada", "Grace", "Alan", "Edsger", "שרה", "محمد"]
PLACES = ["Bonn", "Oslo", "Ghent", "Köln"]
VERDICTS = ["kept", "disagrees", "repeats-draft"]
N_GOLD, N_ROUNDS, N_TEXT = 30, 3, 20


def gold(number):
    return [PEOPLE[number % len(PEOPLE)], "visited", PLACES[number % len(PLACES)], "."], ["B-PER", "O", "B-LOC", "O"]


def draft_line(number, round_, verdict):
    """Return a draft of a gold sentence: one new person, one new place. Some are hostile."""
    tokens, tags = gold(number)
    person = HOSTILE[number] if number < len(HOSTILE) else f"Person{number}x{round_}"
    place = f"Place{(number + round_) % 7}"
    old = [tokens[0], tokens[2]]
    tokens[0], tokens[2] = person, place
    replaced = [
        {"mention": 0, "entity_type": "PER", "start": 0, "end": 1, "old": [old[0]], "new": [person]},
        {"mention": 1, "entity_type": "LOC", "start": 2, "end": 3, "old": [old[1]], "new": [place]},
    ]
    line = {"origin": "draft", "source": number + 1, "round": round_, "seed": 1, "verdict": verdict, "tokens": tokens}
    line |= {"tags": tags, "replaced": replaced}
    if verdict != "repeats-draft":
        line["probability"] = round(((number * 37 + round_ * 11) % 100) / 100, 2)
    if verdict == "disagrees":
        line["disagreements"] = [{"token": 0, "wanted": "B-PER", "found": "O", "probability": 0.05}]
    return line


def text_line(number):
    start = "היא גרה בעיר" if number % 5 == 0 else "In"
    tokens, tags = [start, f"City{number}", "."], ["O", "B-LOC", "O"]
    mentions = [{"entity_type": "LOC", "start": 1, "end": 2, "votes": 3 - number % 2}]
    return {
        "origin": "text", "file": "text.txt", "line": number + 1, "pass": 1, "tokens": tokens, "tags": tags,
        "verdict": "disagrees" if number % 2 else "kept", "votes": 3, "panel": 3,
        "probabilities": [0.9, 0.8, 0.7], "mentions": mentions,
    }


def write_run(folder):
    """Write the folder of a small run. Return its lines of drafts.jsonl."""
    lines = [
        draft_line(number, round_, VERDICTS[(number + round_) % 3])
        for round_ in range(1, N_ROUNDS + 1)
        for number in range(N_GOLD)
    ] + [text_line(number) for number in range(N_TEXT)]
    rows = ["".join(f"{token}\t{tag}\n" for token, tag in zip(*gold(n))) + "\n" for n in range(N_GOLD)]
    (folder / "train.conll").write_text("".join(rows))
    (folder / "train.augmented.conll").write_text("".join(rows))
    (folder / "drafts.jsonl").write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    run = {
        "melm": "0.1.0", "command": "augment", "arguments": ["augment", "train.conll", "-o", "more"], "method": "melm-both",
        "rounds": N_ROUNDS, "seed": 1, "train": {"file": "train.conll", "sentences": N_GOLD}, "dev": None, "key": "check",
        "text": {"files": [{"file": "text.txt", "sentences": N_TEXT}], "left_out": {"gold": 2, "dev": 0, "repeated": 1}},
        "gold_check": {"folds": 4, "sentences": N_GOLD, "contradicted": 1, "suspect": 1}, "seconds": 83.0,
    }
    (folder / "run.json").write_text(json.dumps(run))
    tokens, tags = gold(0)
    check = {
        "source": 1, "fold": 1, "tokens": tokens, "tags": tags, "found": ["O", "O", "B-LOC", "O"], "probability": 0.01,
        "found_probability": 0.9, "disagreements": [{"token": 0, "wanted": "B-PER", "found": "O", "probability": 0.002}],
    }
    (folder / "gold.jsonl").write_text(json.dumps(check) + "\n")
    metrics = [{"stage": "judge", "epoch": e, "step": 7 * e, "loss": 9 / e, "dev_f1": 1 - 1 / e} for e in range(1, 9)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in metrics))
    return lines


def browser(downloads, javascript=True, width=1280):
    options = Options()
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-prefers-reduced-motion", f"--window-size={width},900"]:
        options.add_argument(argument)
    prefs = {"download.default_directory": str(downloads)}
    if not javascript:
        prefs["profile.managed_default_content_settings.javascript"] = 2
    options.add_experimental_option("prefs", prefs)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.binary_location = "/usr/bin/chromium"
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def wait(check, what):
    """Wait up to five seconds until `check` returns a true value."""
    for _ in range(100):
        if value := check():
            return value
        time.sleep(0.05)
    sys.exit(f"waited in vain for {what}")


class Page:
    def __init__(self, driver):
        self.driver = driver

    def text(self, id_):
        return self.driver.find_element(By.ID, id_).text

    def count(self):
        """Return the number of matching sentences."""
        return int(self.text("count").split(" of ")[0].replace(",", ""))

    def choose(self, id_, value):
        Select(self.driver.find_element(By.ID, id_)).select_by_value(value)

    def values(self, id_):
        options = Select(self.driver.find_element(By.ID, id_)).options
        return [o.get_attribute("value") for o in options if o.get_attribute("value")]

    def press(self, keys):
        self.driver.switch_to.active_element.send_keys(keys)

    def rows(self):
        return self.driver.find_elements(By.CSS_SELECTOR, "#list > li")

    def reset(self):
        self.driver.find_element(By.ID, "reset").click()
        wait(lambda: self.count() == self.total, "the reset")


def expect(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: found {found!r}, expected {expected!r}")
    print(f"ok: {what}: {found}" if isinstance(found, (int, str)) else f"ok: {what}")


def check_filters(page, numbers, lines):
    """Choose every value of every filter and compare the counts with the JSON and with the lines."""
    shown = numbers["shown"]
    expect("sentences", page.count(), len(lines))
    kinds = lambda line: {tag[2:] for tag in line["tags"] if tag != "O"}
    own = {
        "f-type": lambda line, value: value in kinds(line),
        "f-verdict": lambda line, value: line["verdict"] == value,
        "f-round": lambda line, value: str(line.get("round", line.get("pass"))) == value,
        "f-origin": lambda line, value: {"text": "text"}.get(line["origin"], "rewritten") == value,
    }
    for id_, key in [("f-type", "by_type"), ("f-origin", "by_origin"), ("f-verdict", "by_verdict"), ("f-round", "by_round")]:
        expect(f"choices of {id_}", sorted(page.values(id_)), sorted(shown[key]))
        for value in page.values(id_):
            page.choose(id_, value)
            n = sum(own[id_](line, value) for line in lines)
            expect(f"{id_} {value}", (page.count(), shown[key][value]), (n, n))
        page.choose(id_, "")
    page.driver.find_element(By.ID, "f-text").send_keys("place3")
    n = sum("Place3" in line["tokens"] for line in lines)
    wait(lambda: page.count() == n, f"{n} sentences with Place3")
    print(f"ok: text search: {n}")
    page.reset()


def check_sorting(page):
    def values(word):
        metas = [row.find_element(By.CLASS_NAME, "meta").text for row in page.rows()]
        return [float(m.split(f"{word} ")[1].split()[0]) for m in metas if f"{word} " in m]

    for order, word, reverse in [("improbable", "· p", False), ("probable", "· p", True), ("novel", "novelty", True)]:
        page.choose("sort", order)
        found = values(word)
        expect(f"sorted by {order}", found, sorted(found, reverse=reverse))
    page.reset()


def check_decisions(page, melm, folder, downloads):
    """Accept and reject with the keyboard, undo, save, reload, and apply the decisions with `melm filter`."""
    driver = page.driver
    page.press("j")
    first = driver.switch_to.active_element.get_attribute("id")
    expect("the first sentence has the focus", first, page.rows()[0].get_attribute("id"))
    for key, expected in [
        ("a", "Accepted. 1 accepted, 0 rejected"), ("r", "Rejected. 1 accepted, 1 rejected"),
        ("r", "Rejected. 1 accepted, 2 rejected"), ("u", "Undone. 1 accepted, 1 rejected"),
    ]:
        page.press(key)
        expect(f"key {key}", page.text("decided"), expected)
    page.press("k")
    page.press(Keys.ARROW_DOWN)
    row = page.rows()[4]
    row.find_element(By.CSS_SELECTOR, "button.accept").click()
    expect("the button", page.text("decided"), "Accepted. 2 accepted, 1 rejected")
    for decision, n in [("accept", 2), ("reject", 1), ("none", page.total - 3)]:
        page.choose("f-decision", decision)
        expect(f"f-decision {decision}", page.count(), n)
    page.reset()
    driver.find_element(By.ID, "download").click()
    saved = downloads / "decisions.jsonl"
    wait(lambda: saved.exists() and saved.stat().st_size > 0, "the saved decisions")
    found = [json.loads(line)["decision"] for line in saved.read_text().splitlines()]
    expect("saved decisions", sorted(found), ["accept", "accept", "reject"])
    driver.refresh()
    expect("decisions after a reload", page.text("decided"), "2 accepted, 1 rejected")
    out = folder / "decided.jsonl"
    command = [melm, "filter", folder / "drafts.jsonl", folder / "train.conll", "--decisions", saved, "-o", out]
    subprocess.run(list(map(str, command)), check=True)
    verdicts = [json.loads(line)["verdict"] for line in out.read_text().splitlines()]
    expect("verdicts after melm filter", (verdicts.count("accepted"), verdicts.count("rejected")), (2, 1))


def check_harmless(page):
    driver = page.driver
    title = driver.execute_script("return document.title")
    expect("hostile text runs no script", "owned" in title, False)
    expect("hostile text makes no element", driver.find_elements(By.CSS_SELECTOR, "img, iframe, object, link"), [])
    expect("requests", driver.execute_script("return performance.getEntriesByType('resource').length"), 0)
    body = driver.find_element(By.TAG_NAME, "body").text
    expect("hostile text is shown as text", all(h in body for h in HOSTILE[:2]), True)
    expect("direction controls are shown", ("\u202e" in body, "⟨U+202E⟩" in body), (False, True))
    page.choose("f-origin", "text")
    rtl = driver.execute_script(
        "return [...document.querySelectorAll('#list p.text')].filter(p => getComputedStyle(p).direction === 'rtl').length")
    expect("right-to-left sentences", rtl, N_TEXT // 5)
    page.reset()
    errors = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    expect("errors in the console", errors, [])


def check_list(page):
    """Show more, and open a sentence from the highlights."""
    n = len(page.rows())
    page.driver.find_element(By.ID, "more").click()
    expect("more sentences", len(page.rows()) > n, True)
    link = page.driver.find_element(By.CSS_SELECTOR, "#worst a[data-id]")
    wanted = "s-" + link.get_attribute("data-id")
    link.click()
    expect("a highlight opens its sentence", page.driver.switch_to.active_element.get_attribute("id"), wanted)


def check_without_javascript(url, downloads):
    driver = browser(downloads, javascript=False)
    driver.get(url)
    rows = driver.find_elements(By.CSS_SELECTOR, "noscript li.sentence")
    expect("sentences without JavaScript", len(rows), N_GOLD * N_ROUNDS + N_TEXT)
    expect("they are displayed", rows[0].is_displayed(), True)
    expect("filters without JavaScript", driver.find_element(By.ID, "filters").is_displayed(), False)
    driver.quit()


def set_screen(driver, name):
    """Set the size of the window to that of a phone or a desktop, and return its width."""
    width, height = {"phone": (390, 844), "desktop": (1280, 900)}[name]
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": name == "phone"}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    return width


def check_widths(url, downloads):
    """Check that the page is not wider than the screen, also with long mentions."""
    driver = browser(downloads)
    for name in ["phone", "desktop"]:
        width = set_screen(driver, name)
        driver.get(url)
        widest = "return Math.max(...[...document.querySelectorAll('.sentence')].map(e => e.getBoundingClientRect().right))"
        right = driver.execute_script(widest)
        expect(f"sentences fit on a {name}", right <= width, True)
    driver.quit()


def screenshots(url, folder, downloads):
    """Write pictures of the page: the top, the sentences and the whole page."""
    folder.mkdir(parents=True, exist_ok=True)
    driver = browser(downloads)
    for name in ["phone", "desktop"]:
        set_screen(driver, name)
        for theme in ["light", "dark"]:
            feature = {"name": "prefers-color-scheme", "value": theme}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
            driver.get(url)
            for section in ["summary", "mentions", "gold", "worst", "sentences", "training", "scores"]:
                found = driver.find_elements(By.ID, section)
                if found:
                    driver.execute_script("arguments[0].scrollIntoView({behavior: 'instant'})", found[0])
                    time.sleep(0.2)
                    driver.save_screenshot(str(folder / f"{name}-{theme}-{section}.png"))
    driver.quit()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("melm", type=pathlib.Path)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--screenshots", type=pathlib.Path)
    args = parser.parse_args()
    melm = str(args.melm.resolve())
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        downloads = folder / "downloads"
        downloads.mkdir()
        lines = write_run(folder)
        page_file = folder / "report.html"
        subprocess.run([melm, "report", str(folder)], check=True)
        numbers = json.loads(subprocess.run([melm, "report", str(folder), "--json"], check=True, capture_output=True).stdout)
        expect("the page is at most 2 MB", page_file.stat().st_size <= 2_000_000, True)
        driver = browser(downloads)
        driver.get(page_file.as_uri())
        page = Page(driver)
        page.total = len(lines)
        check_filters(page, numbers, lines)
        check_sorting(page)
        check_harmless(page)
        check_list(page)
        driver.refresh()
        check_decisions(page, melm, folder, downloads)
        driver.quit()
        check_without_javascript(page_file.as_uri(), downloads)
        check_widths(page_file.as_uri(), downloads)
        if args.screenshots:
            shown = page_file
            if args.folder:
                shown = folder / "other.html"
                subprocess.run([melm, "report", str(args.folder), "-o", str(shown)], check=True)
            screenshots(shown.as_uri(), args.screenshots, downloads)
    print("the report works")


if __name__ == "__main__":
    main()

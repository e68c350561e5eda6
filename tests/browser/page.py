#!/usr/bin/env python3
"""page.py WHAT PAGE: looks at a page of `rdgate trace --html` in a browser. WHAT is one of the functions below; the page is
of the scene `trouble` (tests/scenes), or for `many` the template itself."""
import json
import random
import sys

from chrome import Chrome


def colour_of(browser, x, y):
    """Of the canvas at a point of the page."""
    return browser.value(
        f"(() => {{ const c = document.getElementById('canvas'), b = c.getBoundingClientRect(), r = c.width / b.width;"
        f"return [...c.getContext('2d').getImageData(({x} - b.left) * r, ({y} - b.top) * r, 1, 1).data].slice(0, 3) }})()"
    )


def drawn(browser, name):
    """Is anything of this kind's colour on the canvas?"""
    return browser.value(
        f"(() => {{ const hex = getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim(),"
        "n = parseInt(hex.slice(1), 16), c = document.getElementById('canvas'),"
        "d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "for (let i = 0; i < d.length; i += 4)"
        "if (d[i] === n >> 16 && d[i + 1] === (n >> 8 & 255) && d[i + 2] === (n & 255)) return true;"
        "return false })()"
    )


def text(browser, what="body"):
    return browser.value(f"document.querySelector({json.dumps(what)}).innerText")


def stage(browser):
    return browser.value("(() => { const b = document.getElementById('canvas').getBoundingClientRect();"
                         "return [b.left, b.top, b.width, b.height] })()")


def find(browser, what):
    """Where on the page the middle of what has this class of colour is: the first pixel row that shows it widely."""
    return browser.value(
        f"(() => {{ const hex = getComputedStyle(document.documentElement).getPropertyValue('--{what}').trim(),"
        "n = parseInt(hex.slice(1), 16), c = document.getElementById('canvas'), b = c.getBoundingClientRect(), r = c.width / b.width,"
        "d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "for (let y = 0; y < c.height; y++) { let run = 0; for (let x = 0; x < c.width; x++) { const i = 4 * (y * c.width + x);"
        "const is = d[i] === n >> 16 && d[i + 1] === (n >> 8 & 255) && d[i + 2] === (n & 255);"
        "run = is ? run + 1 : 0; if (run > 40 * r) return [b.left + (x - 20 * r) / r, b.top + y / r + 3] } } return null })()"
    )


def settled(browser):
    """Lets what was asked for be drawn."""
    browser.value("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")


def no_troubles(browser):
    assert browser.troubles() == [], browser.troubles()
    assert browser.requests() == [], browser.requests()


def picture(browser):
    """All of the canvas, with the ruler, which is another one wherever the page was moved to."""
    return browser.value("document.getElementById('canvas').toDataURL()")


def desk(browser, page):
    browser.screen(1200, 800)
    browser.open(page)
    no_troubles(browser)
    assert "billing" in text(browser, "h1")
    assert text(browser, "#facts").startswith("20"), text(browser, "#facts")
    first = text(browser, "#findings li")
    assert first.startswith("deadlock, "), first
    for kind in ("poll", "call", "end", "callback", "wait", "owed"):
        assert drawn(browser, kind), f"nothing of kind {kind} is drawn"
    # a bar opens
    x, y = find(browser, "callback")
    browser.click(x, y)
    settled(browser)
    assert text(browser, "#detail").startswith("×\nrebalance_cb") or "rebalance_cb" in text(browser, "#detail h2")
    assert "still there at the end" in text(browser, "#detail")
    # keys: findings, zoom, all of it
    browser.value("document.getElementById('canvas').focus()")
    for key in ("Escape", "n", "+", "ArrowRight", "0"):
        browser.value(f"dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}'}}))")
        settled(browser)
        if key == "Escape":
            assert browser.value("document.getElementById('detail').hidden")
        if key == "n":
            assert text(browser, "#detail h2") == "deadlock"
            browser.value("document.querySelector('#detail details').open = true")
            assert "rdgate: finding:" in text(browser, "#detail pre")
    # the wheel zooms where the mouse is
    before = picture(browser)
    left, top, wide, high = stage(browser)
    browser.mouse("mouseWheel", left + wide - 40, top + high / 2, deltaX=0, deltaY=-600)
    settled(browser)
    assert picture(browser) != before, "the wheel changes nothing"
    no_troubles(browser)


def words(browser, page):
    """What comes from the process is shown as it is, and is nothing but text."""
    browser.screen(1200, 800)
    browser.open(page)
    options = browser.value("[...document.getElementById('which').options].map(o => o.text)")
    assert 'mail ?[31m</script><b>"quoted" \\ é#consumer-4 (po?st)' in options, options
    assert browser.value("document.scripts.length") == 2
    browser.value("(w => { w.value = '1'; w.onchange({target: w}) })(document.getElementById('which'))")
    settled(browser)
    no_troubles(browser)


def phone(browser, page):
    browser.screen(390, 844, phone=True, scale=2)
    browser.open(page)
    no_troubles(browser)
    assert browser.value("document.scrollingElement.scrollWidth") <= 390
    assert browser.value("innerWidth") == 390, "the viewport is not the phone's"
    left, top, wide, high = stage(browser)
    assert wide == 390 and high > 400, (wide, high)
    assert browser.value("Math.min(...[...document.querySelectorAll('#bar button')].filter(b => b.offsetParent)"
                         ".map(b => Math.min(b.offsetWidth, b.offsetHeight)))") >= 34
    assert browser.value("parseFloat(getComputedStyle(document.querySelector('#findings span')).fontSize)") >= 13
    x, y = find(browser, "callback")
    browser.touch("touchStart", (x, y))
    browser.touch("touchEnd")
    settled(browser)
    assert "rebalance_cb" in text(browser, "#detail h2")
    box = browser.value("(() => { const b = document.getElementById('detail').getBoundingClientRect(); return [b.left, b.right, b.bottom] })()")
    assert box[0] >= 0 and box[1] <= 390 and box[2] <= 844, box
    browser.value("document.querySelector('#detail .close').click()")
    # two fingers zoom, one moves
    before = picture(browser)
    middle = top + high / 2
    browser.touch("touchStart", (150, middle), (240, middle))
    for step in range(8):
        browser.touch("touchMove", (150 - 15 * step, middle), (240 + 15 * step, middle))
    browser.touch("touchEnd")
    settled(browser)
    drawn = picture(browser)
    assert drawn != before, "two fingers change nothing"
    browser.touch("touchStart", (200, middle))
    for step in range(8):
        browser.touch("touchMove", (200 + 12 * step, middle))
    browser.touch("touchEnd")
    settled(browser)
    assert picture(browser) != drawn, "a finger moves nothing"
    no_troubles(browser)


def dark(browser, page):
    for wanted, least, most in ((False, 200, 255), (True, 0, 60)):
        browser.screen(800, 600, dark=wanted)
        browser.open(page)
        settled(browser)
        back = browser.value("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number).slice(0, 3)")
        canvas = colour_of(browser, 796, 590)
        assert all(least <= n <= most for n in back + canvas), (back, canvas)
        no_troubles(browser)


def many(browser, template):
    """100 000 spans: as many boxes are drawn as can be told apart, and none when nothing is there."""
    random.seed(7)
    spans, at = [], 0
    for _ in range(100000):
        at += random.randint(1, 400)
        spans.append((at, random.randint(1, 300), random.randrange(60), random.randrange(20), random.randrange(2),
                      random.choice((0, 1, 1, 5))))
    free = [0] * 60
    starts = []
    for i, (begin, length, thread, consumer, name, kind) in enumerate(spans):  # a thread does one thing at a time
        begin = max(begin, free[thread])
        free[thread] = begin + length
        starts.append((begin, length, thread, consumer, name, kind))
    starts.sort()
    columns = list(zip(*starts))
    length = max(b + n for b, n, *_ in starts)
    data = {
        "v": 1, "program": "many", "pid": 1, "alive": False, "began": 1764589000000, "length": length, "events": 200000, "lost": 0,
        "names": ["rd_kafka_consumer_poll", "rd_kafka_commit"],
        "threads": [{"tid": i + 1, "name": f"worker-{i}"} for i in range(60)],
        "consumers": [{"name": f"c-{i}", "group": "g", "gate": i + 1, "life": "open"} for i in range(20)],
        "spans": {
            "start": [b - a for a, b in zip((0,) + columns[0], columns[0])], "length": columns[1], "thread": columns[2],
            "consumer": columns[3], "name": columns[4], "kind": columns[5], "depth": [0] * 100000, "flags": [0] * 100000,
            "other": [-1] * 100000,
        },
        "marks": {"at": [], "thread": [], "consumer": [], "name": []}, "findings": [],
    }
    path = sys.argv[3] + "/many.html"
    with open(template, encoding="utf-8") as f, open(path, "w", encoding="utf-8") as to:
        to.write(f.read().replace("@DATA@", json.dumps(data, separators=(",", ":"))))
    for wide, high, phone_ in ((1600, 1000, False), (390, 844, True)):
        browser.screen(wide, high, phone=phone_)
        browser.open(path, "#frames=50")
        seen = browser.value("({...document.getElementById('canvas').dataset})")
        rows = int(seen["lanes"]) * 4 * 3  # of a lane: its rows, and in each what is drawn over what
        assert 0 < int(seen["boxes"]) <= rows * wide, seen
        print(f"# 100000 spans at {wide} x {high}: {seen['frameMs']} ms a frame, at most {seen['worstMs']} ms, "
              f"{seen['boxes']} boxes for all of it")
        browser.open(path, f"#view={length / 1000 - 1}-{length / 1000}")  # the last millisecond
        few = int(browser.value("document.getElementById('canvas').dataset.boxes"))
        assert few < 500, few
        no_troubles(browser)


if __name__ == "__main__":
    with Chrome() as chrome:
        globals()[sys.argv[1]](chrome, sys.argv[2])

"""Makes a customer file from word lists and a seed: one seed, one file, byte for byte."""

import csv
import io
import random
from datetime import date, timedelta

import words

COLUMNS = [
    "Index", "Customer Id", "First Name", "Last Name", "Company", "City", "Country",
    "Phone 1", "Phone 2", "Email", "Subscription Date", "Website",
]  # fmt: skip

FIRST_DAY = date(2023, 1, 16)
LAST_DAY = date(2025, 6, 18)
# New customers per day rise by this share over the whole period; weekends bring fewer.
GROWTH = 0.5
WEEKDAY_WEIGHTS = [1.1, 1.15, 1.15, 1.1, 1.05, 0.7, 0.65]
SAME_DOMAIN_SHARE = 0.55
PHONE_FORMS = ["({}) 555-{}", "{}-555-{}", "+1-{}-555-{}", "{}.555.{}", "{}-555-{}x{}"]


def day(rng: random.Random) -> date:
    """A subscription day: weighted by growth and by the weekday."""
    span = (LAST_DAY - FIRST_DAY).days
    while True:
        offset = rng.randrange(span + 1)
        found = FIRST_DAY + timedelta(days=offset)
        weight = (1 + GROWTH * offset / span) * WEEKDAY_WEIGHTS[found.weekday()]
        if rng.random() < weight / ((1 + GROWTH) * max(WEEKDAY_WEIGHTS)):
            return found


def phone(rng: random.Random) -> str:
    """A number with the 555 exchange, which is kept for fiction, in one of several spellings."""
    area, line, extension = (
        rng.randrange(200, 990),
        f"{rng.randrange(10000):04}",
        rng.randrange(100, 99999),
    )
    return rng.choice(PHONE_FORMS).format(area, line, extension)


def company(rng: random.Random) -> tuple[str, str]:
    """A company and the name that its domain is made from."""
    if rng.random() < 0.3:
        one, two = rng.sample(words.LAST_NAMES, 2)
        return (
            f"{one}, {two} and Partners" if rng.random() < 0.3 else f"{one}-{two}",
            f"{one}-{two}".lower(),
        )
    trade, craft = rng.choice(words.TRADES), rng.choice(words.CRAFTS)
    return f"{trade} {craft} {rng.choice(words.FORMS)}", f"{trade}{craft}".lower()


def ending(rng: random.Random) -> str:
    """A top-level domain, by weight."""
    return rng.choices(
        [name for _, name in words.ENDINGS], [weight for weight, _ in words.ENDINGS]
    )[0]


def customer(rng: random.Random, index: int, names: list[str], weights: list[float]) -> list[str]:
    """One line of the file."""
    first, last = rng.choice(words.FIRST_NAMES), rng.choice(words.LAST_NAMES)
    firm, label = company(rng)
    site = f"{label}.{ending(rng)}"
    private = f"{rng.choice(words.TRADES)}{rng.choice(words.TRADES)}".lower()
    mail = site if rng.random() < SAME_DOMAIN_SHARE else f"{private}.{ending(rng)}"
    scheme = "https" if rng.random() < 0.8 else "http"
    city = rng.choice(words.CITY_STARTS) + rng.choice(words.CITY_ENDS)
    return [
        str(index), f"{rng.getrandbits(60):015x}", first, last, firm, city,
        rng.choices(names, weights)[0], phone(rng), phone(rng), f"{first}.{last}@{mail}".lower(),
        f"{day(rng):%Y-%m-%d}", f"{scheme}://www.{site}/",
    ]  # fmt: skip


def customers(rows: int = 1000, seed: int = 2024) -> str:
    """The file as text: a header line and `rows` customers."""
    rng = random.Random(seed)
    names = sorted(words.countries())
    weights = [words.MARKETS.get(name, 1) * rng.lognormvariate(0, 0.35) for name in names]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for index in range(1, rows + 1):
        writer.writerow(customer(rng, index, names, weights))
    return text.getvalue()

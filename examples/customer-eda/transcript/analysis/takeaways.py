"""The summary at the head of the report: five takeaways, each worded by what the figures say."""

from wording import (
    SIGNIFICANT,
    chi_square,
    count,
    listing,
    month_name,
    percent,
    probability,
    significant,
)


def completeness(figures: dict) -> str:
    """How complete and how clean the file is."""
    facts = figures["integrity"]
    flaws = []
    if facts["missing_cells"]:
        flaws.append(count(facts["missing_cells"], "missing cell"))
    if facts["duplicate_rows"]:
        flaws.append(count(facts["duplicate_rows"], "duplicate row"))
    if facts["repeated_ids"]:
        flaws.append(count(facts["repeated_ids"], "repeated customer id"))
    size = f"{count(facts['rows'], 'row')} and {count(facts['columns'], 'column')}"
    if flaws:
        return (
            f"**Mostly clean data.** The file has {size}, with {listing(flaws)}; section 2 says "
            "where."
        )
    return (
        f"**Clean data.** The file has {size}, without a missing value, a duplicate row or a "
        "repeated customer id."
    )


def reach(figures: dict) -> str:
    """How widely and how evenly the customers are spread over the world."""
    place = figures["geography"]
    top = place["top"]["rows"][0]
    named = [f"{row['continent']} ({percent(row['share'])})" for row in place["continents"][:3]]
    where = count(place["countries"], "country", "countries")
    verb = "leads" if len(named) == 1 else "lead"
    text = (
        f"customers come from {where} on {count(place['continents_known'], 'continent')}; "
        f"the largest, {top['country']}, holds {percent(top['share'])}. {listing(named)} {verb}."
    )
    if not place["dispersion"]["usable"]:
        return f"**Reach.** The {text}"
    if significant(place["dispersion"]) and place["dispersion"]["index"] > 1:
        return f"**Some countries matter far more than others.** The {text}"
    return (
        f"**A spread without a centre.** The {text} Country sizes differ no more than chance "
        "would make them."
    )


def pace(figures: dict) -> str:
    """Whether subscriptions grow, fall or hold."""
    time = figures["seasons"]
    if time["mean_month"] is None or not time["trend"]["usable"]:
        return (
            f"**Pace.** The file covers {count(time['days'], 'day')}, too short for a trend by "
            "month."
        )
    mean = f"{time['mean_month']:,.1f} new customers a month on average"
    test = time["trend"]
    change = f"{test['slope']:+.2f} a month for every month that passes, {probability(test['p'])}"
    if test["p"] >= SIGNIFICANT:
        return (
            f"**A steady pace.** There are {mean}, with no trend that stands out from chance "
            f"({change})."
        )
    word = "Growth" if test["slope"] > 0 else "Decline"
    return (
        f"**{word}.** There are {mean}, and the pace is "
        f"{'rising' if test['slope'] > 0 else 'falling'} ({change})."
    )


def week(figures: dict) -> str:
    """Whether weekdays differ."""
    facts = figures["seasons"]["weekdays"]
    rows = facts["rows"]
    most = max(rows, key=lambda row: row["customers"])
    least = min(rows, key=lambda row: row["customers"])
    ends = (
        f"from {least['customers']:,} on {least['weekday']}s to {most['customers']:,} on "
        f"{most['weekday']}s"
    )
    if significant(facts["test"]):
        return (
            f"**The week has a rhythm.** Counts run {ends}, more than chance explains "
            f"({chi_square(facts['test'])})."
        )
    if facts["test"]["usable"]:
        return (
            f"**No weekday stands out.** Counts run {ends}, which chance explains "
            f"({chi_square(facts['test'])})."
        )
    return f"**Weekdays.** Counts run {ends}; there are too few customers to tell more."


def addresses(figures: dict) -> str:
    """What the domains say about the customers."""
    net = figures["domains"]
    top = net["endings"][0] if net["endings"] else None
    if top is None:
        return "**Domains.** No e-mail address or website in the file can be read."
    text = (
        f"`{top['tld']}` ends {percent(top['email_share'])} of e-mail addresses and "
        f"{percent(top['website_share'])} of websites. The addresses use "
        f"{count(net['email_domains'], 'e-mail domain')}, and "
    )
    if net["same_domain"] == 0:
        return (
            f"**Mail and web do not match.** {text}none equals the website's domain of the same "
            "customer."
        )
    share = net["same_domain"] / net["compared"]
    word = "Mail and web mostly match" if share >= 0.5 else "Mail and web rarely match"
    return f"**{word}.** {text}{percent(share)} of customers have both on one domain."


def advice(figures: dict) -> str:
    """What follows for whoever works with the file, from the outcomes of the tests."""
    place, time, net = figures["geography"], figures["seasons"], figures["domains"]
    tests = [
        place["dispersion"],
        time["month_test"],
        time["weekdays"]["test"],
        time["continent_year_test"],
    ]
    found = [test for test in tests if test["usable"]]
    telling = [test for test in found if significant(test)]
    if found and not telling and net["same_domain"] == 0:
        return (
            "**What this means.** Places, months and weekdays behave like independent draws, "
            "and addresses do not match websites. Real customer bases cluster; treat the file "
            "as sample or generated data before drawing a commercial conclusion from it."
        )
    if telling:
        peak = time["highest"]
        return (
            f"**What this means.** {len(telling)} of {len(found)} tests for an even spread fail, "
            "so there is structure worth planning with: start from "
            f"{place['top']['rows'][0]['country']}, the largest country, and from "
            f"{month_name(peak['month'])}, the month with most new customers "
            f"({peak['customers']:,})."
        )
    return (
        "**What this means.** Nothing here departs clearly from an even spread; larger samples "
        "may show more."
    )


def summary(figures: dict) -> str:
    """The takeaways as a numbered list."""
    lines = [completeness, reach, pace, week, addresses, advice]
    return "\n".join(f"{at}. {line(figures)}" for at, line in enumerate(lines, start=1))

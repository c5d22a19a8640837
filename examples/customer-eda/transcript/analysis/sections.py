"""The body of the report, one function per section."""

from wording import count, listing, month_name, percent, probability, table, verdict


def picture(figures: dict, number: int, caption: str) -> str:
    """A chart with its caption, by its place in the list of charts."""
    name = figures["charts"][number - 1]
    return f"![{caption}]({name})\n\n*Chart {number}: {caption}*"


def structure(figures: dict) -> str:
    """Rows, columns, kinds, missing and distinct values."""
    facts = figures["integrity"]
    rows = [
        [f"`{row['column']}`", row["kind"], f"{row['missing']:,}", f"{row['distinct']:,}"]
        for row in facts["by_column"]
    ]
    missing = (
        "no missing value"
        if not facts["missing_cells"]
        else count(facts["missing_cells"], "missing value")
    )
    doubled = (
        "no duplicate row"
        if not facts["duplicate_rows"]
        else count(facts["duplicate_rows"], "duplicate row")
    )
    ids = count(facts["distinct_ids"], "distinct customer id")
    size = f"**{count(facts['rows'], 'row')}** and **{count(facts['columns'], 'column')}**"
    parts = [
        f"The file has {size}, {missing}, {doubled} and {ids}.",
        table(["Column", "Kind", "Missing", "Distinct"], rows),
    ]
    net, time = figures["domains"], figures["seasons"]
    unread = []
    if time["undated"]:
        unread.append(count(time["undated"], "row") + " without a date in the form YYYY-MM-DD")
    if net["bad_emails"]:
        unread.append(
            count(net["bad_emails"], "e-mail address", "e-mail addresses") + " without a domain"
        )
    if net["bad_websites"]:
        unread.append(count(net["bad_websites"], "website") + " without a host")
    if unread:
        parts.append(f"Left out where they matter: {listing(unread)}.")
    return "\n\n".join(parts)


def continents(figures: dict) -> str:
    """The table of continents and what its shares follow."""
    place = figures["geography"]
    rows = [
        [f"**{row['continent']}**", row["countries"], row["customers"], percent(row["share"])]
        for row in place["continents"]
    ]
    test = verdict(
        place["continent_vs_countries"],
        "The continents' shares differ from their shares of country names by more than chance "
        "would explain",
        "The continents' shares follow their shares of country names: what looks like a lead is "
        "the number of names",
        "There are too few customers to compare the continents' shares with their numbers of "
        "countries.",
    )
    return table(["Continent", "Countries", "Customers", "Share"], rows) + "\n\n" + test


def countries(figures: dict) -> str:
    """The largest countries and how even the rest is."""
    place = figures["geography"]
    top = place["top"]
    rows = [
        [at, row["country"], row["continent"], row["customers"], percent(row["share"])]
        for at, row in enumerate(top["rows"], start=1)
    ]
    tied = ""
    if top["tied_below"]:
        more = count(top["tied_below"], "more country has", "more countries have")
        tied = f" {more} {top['last_count']:,} as well; names decide the order among equals."
    spread = place["dispersion"]
    even = verdict(
        spread,
        "Country sizes vary more than chance alone would make them" if spread.get("index", 0) > 1
        else "Country sizes vary less than chance alone would make them",
        "That is the variation that chance alone gives when every country has the same odds",
        "There are too few customers per country to say whether their sizes differ by more than "
        "chance.",
    )  # fmt: skip
    ratio = (
        f" Variance over mean is {spread['index']:.2f} (1 under pure chance)."
        if spread["usable"]
        else ""
    )
    return (
        f"The customers live in {count(place['countries'], 'country', 'countries')}, on average "
        f"{place['mean_per_country']:,.2f} in each (median {place['median_per_country']:g}). "
        f"The {len(top['rows'])} largest hold {percent(top['share_together'])} together.{tied}\n\n"
        + table(["Rank", "Country", "Continent", "Customers", "Share"], rows)
        + f"\n\n{picture(figures, 2, 'the countries with most customers')}\n\n"
        + f"{picture(figures, 3, 'countries by their number of customers')}\n\n"
        + (ratio.strip() + " " if ratio else "")
        + even
    )


def geography(figures: dict) -> str:
    """Continents, countries and how names were placed."""
    sources = figures["geography"]["sources"]
    note = (
        f"Country names were placed on continents by library ({sources.get('library', 0)}) and, "
        "where it does not know the name or the territory, by a written table "
        f"({sources.get('table', 0)})."
    )
    if figures["geography"]["unresolved"]:
        note += f" Not placed: {listing(figures['geography']['unresolved'])}."
    return "\n\n".join(
        [
            "### Continents",
            continents(figures),
            picture(figures, 1, "customers by continent"),
            note,
            "### Countries",
            countries(figures),
        ]
    )


def pace(figures: dict) -> str:
    """Months and years: level, extremes, trend."""
    time = figures["seasons"]
    rows = [
        [str(row["year"]), row["customers"], row["whole_months"]]
        + (
            [f"{row['per_month']:,.1f}", row["lowest"], row["highest"]]
            if row["whole_months"]
            else ["", "", ""]
        )
        for row in time["years"]
    ]
    text = table(["Year", "Customers", "Full months", "Per full month", "Lowest", "Highest"], rows)
    high = time["highest"]
    text += (
        f"\n\nThe strongest month is {month_name(high['month'])} with "
        f"{count(high['customers'], 'new customer')}"
    )
    if time["lowest"]:
        low = time["lowest"]
        text += (
            f", the weakest month covered in full is {month_name(low['month'])} with "
            f"{low['customers']:,}"
        )
    text += ". "
    text += verdict(
        time["month_test"],
        "Months differ by more than chance would explain",
        "Apart from that the months differ no more than chance would make them, given their "
        "lengths",
        "There are too few customers to test whether months differ.",
    )
    if time["trend"]["usable"]:
        text += (
            " The straight line through the months covered in full changes by "
            f"{time['trend']['slope']:+.2f} customers a month ({probability(time['trend']['p'])})."
        )
    return text


def weekdays(figures: dict) -> str:
    """Weekdays against an even pace."""
    facts = figures["seasons"]["weekdays"]
    rows = [
        [row["weekday"], row["customers"], percent(row["share"]), f"{row['expected']:,.1f}"]
        for row in facts["rows"]
    ]
    test = verdict(
        facts["test"],
        "Weekdays differ by more than chance would explain",
        "The differences between weekdays are within what chance gives",
        "There are too few customers to test whether weekdays differ.",
    )
    return table(["Weekday", "Customers", "Share", "At an even pace"], rows) + "\n\n" + test


def time(figures: dict) -> str:
    """Years, months, weekdays, continents over time."""
    facts = figures["seasons"]
    mix = verdict(
        facts["continent_year_test"],
        "The mix of continents changed over the years",
        "The mix of continents did not change over the years by more than chance would explain",
        "There are too few customers to test whether the mix of continents changed over the years.",
    )
    if facts["continent_year_test"]["usable"] and (
        left_out := facts["continent_year_test"]["left_out"]
    ):
        mix += f" {listing(left_out)}, with too few customers for the test, left aside."
    intro = (
        f"Subscriptions run from {facts['first']} to {facts['last']}, "
        f"{count(facts['days'], 'day')}."
    )
    return "\n\n".join(
        [
            intro,
            "### Years and months",
            pace(figures),
            picture(figures, 4, "new customers per month"),
            picture(figures, 5, "the calendar of new customers"),
            "### Weekdays",
            weekdays(figures),
            picture(figures, 6, "new customers by weekday"),
            "### Continents over the years",
            mix,
            picture(figures, 7, "continents over the years"),
        ]
    )


def domains(figures: dict) -> str:
    """Top-level domains, overlap, companies and names."""
    net = figures["domains"]
    rows = [
        [
            f"`{row['tld']}`",
            row["email"],
            percent(row["email_share"]),
            row["website"],
            percent(row["website_share"]),
        ]
        for row in net["endings"]
    ]
    alike = verdict(
        net["ending_test"],
        "Mail and web use the endings in different proportions",
        "Mail and web use the endings in the same proportions",
        "There are too few addresses to compare the endings of mail and web.",
    )
    pairs = verdict(
        net["pair_test"],
        "A customer's two endings go together more often than chance would make them",
        "A customer's e-mail ending says nothing about the website's ending",
        "There are too few addresses to test whether a customer's two endings go together.",
    )
    overlap = (
        f"There are **{net['email_domains']:,} distinct e-mail domains** in {net['emails']:,} "
        f"addresses and **{net['website_domains']:,} distinct website domains** in "
        f"{net['websites']:,}. In {net['same_domain']:,} of {count(net['compared'], 'customer')} "
        f"both are the same; {count(net['shared_domains'], 'domain')} "
        f"{'occurs' if net['shared_domains'] == 1 else 'occur'} on both sides somewhere in the "
        "file."
    )
    if net["repeated_email_domains"]:
        often = [f"`{row['name']}` ({row['customers']:,})" for row in net["repeated_email_domains"]]
        overlap += f" The e-mail domains that occur most often: {listing(often)}."
    people = (
        f"{net['companies']:,} distinct companies stand behind "
        f"{count(net['with_company'], 'customer')}, and {net['full_names']:,} distinct full "
        f"names ({net['first_names']:,} first, {net['last_names']:,} last) behind "
        f"{net['with_full_name']:,}; they live in "
        f"{count(net['cities'], 'distinct city', 'distinct cities')}. "
        f"{percent(net['secure_websites'] / max(1, net['websites']))} of websites are given with "
        "https."
    )
    if net["repeated_companies"]:
        often = [f"{row['name']} ({row['customers']:,})" for row in net["repeated_companies"]]
        people += f" Companies that occur more than once: {listing(often)}"
        people += "." if len(net["repeated_companies"]) < 5 else ", to name the first."
    chart = picture(figures, 8, "top-level domains of e-mail addresses and websites")
    endings = table(["Ending", "E-mail", "Share", "Website", "Share"], rows)
    parts = ["### Top-level domains", endings, f"{alike} {pairs}", chart, "### Domains", overlap]
    return "\n\n".join([*parts, "### Companies and people", people])


def method(figures: dict) -> str:
    """What the words of the report mean."""
    months = figures["seasons"]["whole_months"]
    covered = f"{month_name(months[0])} to {month_name(months[-1])}" if months else "none"
    return (
        "Tests ask whether chance alone would give such counts: chi-square against equal "
        "shares, against the number of days or of country names, or of independence; for the "
        "trend a straight line under a Poisson law. Below p = 0.05 the report speaks of a "
        "difference; among several tests one such result can itself be chance. A test is left "
        "out where chance would put fewer than 1 customer into some cell, or fewer than 5 into "
        "more than a fifth of them.\n\nAverages and tests by month use only the months that the "
        f"file covers in full ({covered}). The figures behind every table and chart are in "
        "`figures.json` beside this report."
    )

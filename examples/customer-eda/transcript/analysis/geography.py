"""Where the customers are: countries, continents, and how evenly they spread."""

import pandas as pd

from evenness import dispersion, spread

TOP = 15


def continents(table: pd.DataFrame, places: pd.DataFrame) -> list[dict]:
    """Customers and country names per continent, most customers first."""
    customers = table["continent"].value_counts()
    countries = places["continent"].value_counts()
    return [
        {
            "continent": name,
            "customers": int(count),
            "share": count / len(table),
            "countries": int(countries.get(name, 0)),
        }
        for name, count in sorted(customers.items(), key=lambda item: (-item[1], item[0]))
    ]


def top_countries(counts: pd.Series, places: pd.DataFrame, rows: int) -> dict:
    """The largest countries; `tied_below` counts those left out that equal the last one shown."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = ranked[:TOP]
    last = shown[-1][1]
    continent = dict(zip(places["country"], places["continent"], strict=True))
    return {
        "rows": [
            {
                "country": name,
                "continent": continent[name],
                "customers": int(count),
                "share": count / rows,
            }
            for name, count in shown
        ],
        "last_count": int(last),
        "tied_below": sum(1 for _, count in ranked[TOP:] if count == last),
        "share_together": sum(count for _, count in shown) / rows,
    }


def per_country(counts: pd.Series) -> list[dict]:
    """How many countries have one customer, two, three and so on."""
    sizes = counts.value_counts()
    return [
        {"customers": size, "countries": int(sizes.get(size, 0))}
        for size in range(1, int(sizes.index.max()) + 1)
    ]


def figures(table: pd.DataFrame, places: pd.DataFrame) -> dict:
    """All that the report says about places."""
    counts = table["Country"].value_counts()
    if counts.empty:
        raise SystemExit("no customer has a country: nothing to say about geography")
    by_continent = continents(table, places)
    known = [row for row in by_continent if row["countries"] and row["continent"] != "Unknown"]
    return {
        "countries": int(counts.size),
        "mean_per_country": float(counts.mean()),
        "median_per_country": float(counts.median()),
        "largest": int(counts.max()),
        "continents": by_continent,
        "continents_known": len(known),
        "sources": {name: int(count) for name, count in places["source"].value_counts().items()},
        "unresolved": sorted(places.loc[places["continent"] == "Unknown", "country"]),
        "top": top_countries(counts, places, len(table)),
        "per_country": per_country(counts),
        "dispersion": dispersion(counts.tolist()),
        "continent_vs_countries": spread(
            [row["customers"] for row in known], [row["countries"] for row in known]
        ),
    }

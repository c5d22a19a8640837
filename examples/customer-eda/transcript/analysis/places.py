"""Which continent a country name belongs to: by library, else by a written table."""

import pandas as pd
import pycountry
from pycountry_convert import country_alpha2_to_continent_code as continent_code

CONTINENTS = {
    "AF": "Africa", "AN": "Antarctica", "AS": "Asia", "EU": "Europe",
    "NA": "North America", "OC": "Oceania", "SA": "South America",
}  # fmt: skip

# Names that the library does not list: former, short or spelled in another way. Each stands for one
# country code. A fuzzy search is no substitute: it takes "Korea" for the northern one.
OTHER_NAMES = {
    "antarctica (the territory south of 60 deg s)": "AQ",
    "bouvet island (bouvetoya)": "BV",
    "british indian ocean territory (chagos archipelago)": "IO",
    "cape verde": "CV",
    "cote d'ivoire": "CI",
    "ivory coast": "CI",
    "korea": "KR",
    "libyan arab jamahiriya": "LY",
    "macedonia": "MK",
    "micronesia": "FM",
    "netherlands antilles": "BQ",
    "palestine": "PS",
    "palestinian territory": "PS",
    "pitcairn islands": "PN",
    "reunion": "RE",
    "russia": "RU",
    "saint barthelemy": "BL",
    "saint helena": "SH",
    "saint martin": "MF",
    "slovakia (slovak republic)": "SK",
    "svalbard & jan mayen islands": "SJ",
    "swaziland": "SZ",
    "turkey": "TR",
    "united states virgin islands": "VI",
    "vatican": "VA",
    "vatican city": "VA",
}

# Codes without a continent in the library: territories whose place is disputed, shared or polar.
# The French Southern Territories count with Antarctica, as the library already does for Bouvet and
# Heard; the Minor Outlying Islands with Oceania, where all but one of them lie.
OTHER_CONTINENTS = {
    "AQ": "AN", "EH": "AF", "PN": "OC", "SX": "NA", "TF": "AN", "TL": "AS", "UM": "OC", "VA": "EU",
}  # fmt: skip


def country_code(name: str) -> tuple[str | None, str]:
    """The two-letter code of a name and how it was found: `library`, `table` or `unknown`."""
    if code := OTHER_NAMES.get(name.casefold()):
        return code, "table"
    try:
        return pycountry.countries.lookup(name).alpha_2, "library"
    except LookupError:
        return None, "unknown"


def place(name: str) -> dict:
    """Code, continent and the source of a country name."""
    code, source = country_code(name)
    continent = OTHER_CONTINENTS.get(code or "")
    if continent:
        source = "table"
    elif code:
        try:
            continent = continent_code(code)
        except KeyError:
            source = "unknown"
    return {
        "country": name,
        "code": code,
        "continent": CONTINENTS.get(continent or "", "Unknown"),
        "source": source,
    }


def locate(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The table with a `continent` column, and one row per country name with its place."""
    names = sorted(table["Country"].dropna().unique())
    places = pd.DataFrame(
        [place(name) for name in names], columns=["country", "code", "continent", "source"]
    )
    by_name = dict(zip(places["country"], places["continent"], strict=True))
    out = table.copy()
    out["continent"] = table["Country"].map(by_name, na_action="ignore").fillna("Unknown")
    return out, places

"""Reads the customer file, checks its shape and derives the columns that the analysis needs."""

from pathlib import Path
from urllib.parse import urlsplit

import pandas as pd

COLUMNS = [
    "Index", "Customer Id", "First Name", "Last Name", "Company", "City", "Country",
    "Phone 1", "Phone 2", "Email", "Subscription Date", "Website",
]  # fmt: skip


def read(path: Path) -> pd.DataFrame:
    """The file as text columns in the expected order; blank cells are missing values."""
    table = pd.read_csv(path, dtype="string", keep_default_na=False, skipinitialspace=True)
    absent = [name for name in COLUMNS if name not in table.columns]
    if absent:
        raise SystemExit(
            f"{path} lacks the columns {', '.join(absent)}; found {', '.join(table.columns)}"
        )
    table = table.apply(lambda column: column.str.strip())
    table = table.mask(table == "")
    if table.empty:
        raise SystemExit(f"{path} holds no customer, only the header line")
    return table


def kind(column: pd.Series) -> str:
    """What the cells of a column are: whole number, date or text."""
    cells = column.dropna()
    if cells.empty:
        return "empty"
    if cells.str.fullmatch(r"-?\d+").all():
        return "whole number"
    if pd.to_datetime(cells, format="%Y-%m-%d", errors="coerce").notna().all():
        return "date"
    return "text"


def integrity(table: pd.DataFrame) -> dict:
    """Completeness, duplicates and the kind of every column."""
    ids = table["Customer Id"].dropna()
    return {
        "rows": len(table),
        "columns": len(table.columns),
        "missing_cells": int(table.isna().sum().sum()),
        "duplicate_rows": int(table.duplicated().sum()),
        "distinct_ids": int(ids.nunique()),
        "repeated_ids": int(ids.duplicated().sum()),
        "by_column": [
            {
                "column": name,
                "kind": kind(table[name]),
                "missing": int(table[name].isna().sum()),
                "distinct": int(table[name].nunique()),
            }
            for name in table.columns
        ],
    }


def host_of(url: str) -> str | None:
    """The host of a web address in lower case, without a leading `www.`."""
    try:
        host = urlsplit(url if "//" in url else f"//{url}").hostname
    except ValueError:
        return None
    return host.removeprefix("www.") if host else None


def mail_domain(address: str) -> str | None:
    """What follows the last @ of an e-mail address, in lower case; None if nothing does."""
    name, at, domain = address.rpartition("@")
    return domain.lower() if name and at and domain else None


def features(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a parsed date, both domains and both top-level domains."""

    def derive(column: str, rule) -> pd.Series:
        return table[column].map(rule, na_action="ignore").astype("string")

    def last_label(name: str) -> str:
        return "." + name.rpartition(".")[2]

    out = table.copy()
    out["date"] = pd.to_datetime(table["Subscription Date"], format="%Y-%m-%d", errors="coerce")
    out["email_domain"] = derive("Email", mail_domain)
    out["website_domain"] = derive("Website", host_of)
    for side in ("email", "website"):
        out[f"{side}_tld"] = (
            out[f"{side}_domain"].map(last_label, na_action="ignore").astype("string")
        )
    return out

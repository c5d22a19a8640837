"""What the e-mail addresses, websites and company names say."""

import pandas as pd

from evenness import association

TOP = 5


def endings(table: pd.DataFrame) -> list[dict]:
    """Customers per top-level domain, of e-mail addresses and of websites, largest first."""
    mail, web = table["email_tld"].value_counts(), table["website_tld"].value_counts()
    names = sorted(
        set(mail.index) | set(web.index),
        key=lambda name: (-mail.get(name, 0) - web.get(name, 0), name),
    )
    return [
        {
            "tld": name,
            "email": int(mail.get(name, 0)),
            "email_share": mail.get(name, 0) / max(1, mail.sum()),
            "website": int(web.get(name, 0)),
            "website_share": web.get(name, 0) / max(1, web.sum()),
        }
        for name in names
    ]


def repeated(column: pd.Series) -> list[dict]:
    """The values that occur most often, if any occurs twice."""
    counts = column.value_counts()
    ranked = sorted(counts[counts > 1].items(), key=lambda item: (-item[1], item[0]))
    return [{"name": name, "customers": int(count)} for name, count in ranked[:TOP]]


def figures(table: pd.DataFrame) -> dict:
    """All that the report says about domains, companies and names."""
    mail, web = table["email_domain"], table["website_domain"]
    both = mail.notna() & web.notna()
    rows = endings(table)
    full_names = (table["First Name"] + " " + table["Last Name"]).dropna()
    return {
        "emails": int(mail.notna().sum()),
        "websites": int(web.notna().sum()),
        "bad_emails": int((table["Email"].notna() & mail.isna()).sum()),
        "bad_websites": int((table["Website"].notna() & web.isna()).sum()),
        "email_domains": int(mail.nunique()),
        "website_domains": int(web.nunique()),
        "compared": int(both.sum()),
        "same_domain": int((mail[both] == web[both]).sum()),
        "shared_domains": len(set(mail.dropna()) & set(web.dropna())),
        "endings": rows,
        "ending_test": association(
            [[row["email"] for row in rows], [row["website"] for row in rows]]
        ),
        "pair_test": association(
            pd.crosstab(table["email_tld"], table["website_tld"]).to_numpy().tolist()
        ),
        "repeated_email_domains": repeated(mail),
        "secure_websites": int(table["Website"].str.lower().str.startswith("https://").sum()),
        "companies": int(table["Company"].nunique()),
        "with_company": int(table["Company"].notna().sum()),
        "repeated_companies": repeated(table["Company"]),
        "first_names": int(table["First Name"].nunique()),
        "last_names": int(table["Last Name"].nunique()),
        "full_names": int(full_names.nunique()),
        "with_full_name": len(full_names),
        "cities": int(table["City"].nunique()),
    }

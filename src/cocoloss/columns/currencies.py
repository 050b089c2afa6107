"""Which signs and words before or after a number are a currency."""

SIGNS = "$€£¥₹₩₽₺₪"

CODES = (
    *("AED", "ARS", "AUD", "BGN", "BRL", "CAD", "CHF", "CLP", "CNY", "COP", "CZK", "DKK", "EGP"),
    *("HKD", "HUF", "IDR", "ISK", "MXN", "MYR", "NOK", "NZD", "PHP", "PLN", "RMB", "RON", "RSD"),
    *("SAR", "SEK", "SGD", "THB", "TWD", "UAH", "VND", "ZAR"),
)

# A word in lower case -> what stands for it in the name of a form. A sign and its word are one, so
# that 5 EUR and 6 € may stand in one column.
WORDS = {code.lower(): code for code in CODES} | {
    "usd": "$",
    "us$": "$",
    "eur": "€",
    "euro": "€",
    "gbp": "£",
    "jpy": "¥",
    "inr": "₹",
    "rs": "₹",
    "rs.": "₹",
    "krw": "₩",
    "rub": "₽",
    "try": "₺",
    "ils": "₪",
    "kr": "kr",
    "kr.": "kr",
    "fr.": "CHF",
    "sfr.": "CHF",
    "zł": "PLN",
    "kč": "CZK",
    "r$": "BRL",
}

"""Public bounds of usual columns, proposed as comments by name and description."""

from __future__ import annotations

import re

_COMMON = (
    (r"age|alter|edad", "0 to 120, years: nobody is known to have lived longer than 122"),
    (r"year of birth|birth year|yob", "1900 to the year of the survey"),
    (r"year|jahr|annee", "the first to the last year that the table can cover"),
    (r"heart rate|pulse|hr|bpm", "30 to 220, beats a minute"),
    (r"systolic|sbp|sys bp", "60 to 260, mmHg"),
    (r"diastolic|dbp|dia bp", "30 to 160, mmHg"),
    (r"body temperature|temp c", "30 to 45, degrees Celsius"),
    (r"bmi|body mass index", "10 to 80, kg/m²"),
    (r"height cm|body height|stature", "50 to 250, centimeters"),
    (r"weight kg|body weight", "2 to 300, kilograms"),
    (r"hours (worked|per week|a week)|weekly hours", "0 to 99, hours a week: most questionnaires have two digits"),
    (r"percent|percentage|pct|prozent", "0 to 100"),
    (r"likert|agreement|satisfaction", "the first and the last answer of the scale, such as 1 to 5"),
    (
        r"(household )?income|einkommen|salary|wage|earnings",
        "from 0; United States, 2023: median 80,610 dollars a household (Census P60-282); Germany, 2023: 26,274 euros a person, "
        "equivalized (EU-SILC); United Kingdom, 2022: 32,300 pounds a household (ONS). Four times the median clips few",
    ),
    (r"latitude|lat", "-90 to 90, degrees"),
    (r"longitude|lon|lng", "-180 to 180, degrees"),
)


def usual_bounds(name: str, description: str | None) -> str:
    """Return public bounds of a usual column in words; "" for other columns.

    >>> usual_bounds("patient_age", None)
    '0 to 120, years: nobody is known to have lived longer than 122'
    """
    for text in (name, description or ""):
        spaced = re.sub(r"[^a-z]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).casefold())
        for pattern, words in _COMMON:
            if re.search(rf"\b({pattern})\b", spaced):
                return words
    return ""

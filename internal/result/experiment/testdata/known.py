"""Prints known.json: samples, and what scipy and statsmodels make of them. python3 -m pip install scipy statsmodels"""

import json

import numpy as np
import scipy
import statsmodels
from scipy import stats
from statsmodels.stats.multitest import multipletests

random = np.random.default_rng(20261121)


def sample(name, a, b):
    mean = np.mean(b)
    half = stats.t.ppf(0.9995, len(b) - 1) * stats.sem(b)
    pairs = min(len(a), len(b))
    lo = int(stats.binom.ppf(0.025, len(b), 0.5))
    return {
        "name": name,
        "a": list(a),
        "b": list(b),
        "mean": mean,
        "half_width_999": half,
        "median": np.median(b),
        "median_order": lo,  # the interval's ends: order statistics lo and n+1-lo, counted from 1
        "p": stats.ttest_rel(np.log(a[:pairs]), np.log(b[:pairs])).pvalue,
    }


cases = [
    sample("five and five", random.normal(100, 5, 5), random.normal(110, 5, 5)),
    sample("ten and seven", random.exponential(1, 10), random.exponential(1, 7)),
    sample("apart", random.normal(10, 1, 8), random.normal(20, 1, 8)),
    sample("with ties", random.integers(1, 6, 30).astype(float), random.integers(2, 7, 25).astype(float)),
]
p = [0.011, 0.8, 0.02, 0.0005, 0.04, 0.02]
print(
    json.dumps(
        {
            "scipy": scipy.__version__,
            "statsmodels": statsmodels.__version__,
            "cases": cases,
            "p": p,
            "holm": list(multipletests(p, method="holm")[1]),
        },
        indent="\t",
    )
)

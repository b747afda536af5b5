"use strict";
// The noise of a release for any choice of columns, from laws that were planned beforehand. Each function is the one of the same name in
// dpmoments/planning (noise_in_units.py, ball_law.py); the tests hold both to the same numbers.

// Regularised upper incomplete gamma function Q(a, x): by its series below a + 1, by its continued fraction (Lentz) above.
function logGamma(a) {
  if (a > 20) return (a - 0.5) * Math.log(a) - a + 0.9189385332046727 + 1 / (12 * a) - 1 / (360 * a ** 3) + 1 / (1260 * a ** 5);
  let shift = 0;
  while (a <= 20) { shift += Math.log(a); a += 1; }
  return logGamma(a) - shift;
}
function upperGamma(a, x) {
  if (!(x > 0)) return 1;
  const front = Math.exp(a * Math.log(x) - x - logGamma(a));
  if (x < a + 1) {
    let term = 1 / a, sum = term;
    for (let k = 1; k < 100000 && term > sum * 1e-16; k++) { term *= x / (a + k); sum += term; }
    return Math.max(0, 1 - front * sum);
  }
  let b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (let k = 1; k < 100000; k++) {
    const an = -k * (k - a);
    b += 2;
    d = an * d + b; if (Math.abs(d) < 1e-300) d = 1e-300;
    c = b + an / c; if (Math.abs(c) < 1e-300) c = 1e-300;
    d = 1 / d;
    const step = d * c;
    h *= step;
    if (Math.abs(step - 1) < 1e-15) break;
  }
  return Math.min(1, front * h);
}
function normalBelow(z) {
  const tail = 0.5 * upperGamma(0.5, z * z / 2);
  return z < 0 ? tail : 1 - tail;
}

function columnWeights(columns, grid) {
  if (!columns.some((column) => column.has_range)) return columns.map(() => 1);
  const k = columns.length, {doubt, most, trust} = grid.constants;
  const asked = columns.map((column) => column.asked);
  const ends = [...asked.map((a) => a / doubt), ...asked.map((a) => a * doubt)].sort((a, b) => a - b);
  const agreed = Math.sqrt(ends[k - 1] * ends[k]);
  const within = (value, low, high) => Math.min(Math.max(value, low), high);
  const kept = asked.map((a) => within(within(agreed, a / doubt, a * doubt), agreed / most, agreed * most));
  const total = kept.reduce((sum, a) => sum + a, 0);
  return kept.map((a) => Math.sqrt(1 - trust + trust * k * (a / total)));
}

// A level is a whole multiple of 1/lattice: the bound on a row is the next that makes it one, and weights are rounded down.
function longestRowNorm(columns, grid) {
  if (!columns.some((column) => column.block)) return Math.sqrt(columns.length);
  return grid.constants.lattice / Math.floor(Math.sqrt(Math.floor(grid.constants.lattice ** 2 / columns.length)));
}

function latticeWeights(weights, columns, norm, grid) {
  if (!columns.some((column) => column.block) || !columns.some((column) => column.has_range)) return weights;
  const steps = Math.round(grid.constants.lattice / norm);
  return weights.map((weight) => Math.floor(weight * steps) / steps);
}

// The features of the columns that are ticked, encoded as a release of these columns alone encodes them.
function encoded(grid, ticked) {
  const columns = grid.columns.filter((column, place) => ticked[place]);
  const longest = longestRowNorm(columns, grid);
  const norm = grid.row_norm === null ? longest : columns.some((c) => c.features[0].lower === null) ? grid.row_norm : Math.min(grid.row_norm, longest);
  const shortened = columns.some((c) => c.features[0].lower === null) || norm < longest * (1 - 1e-12);
  const weights = latticeWeights(columnWeights(columns, grid), columns, norm, grid);
  const d = columns.reduce((sum, column) => sum + column.features.length, 0);
  const features = [];
  columns.forEach((column, place) => {
    for (const feature of column.features) {
      const scale = feature.unit * norm / weights[place];
      const sd = column.spread_over_ball ? norm / Math.sqrt(d + 2) : feature.sd;
      const lower = feature.lower === null ? -norm : feature.lower, upper = feature.upper === null ? norm : feature.upper;
      features.push({
        name: feature.name, column: place, share: feature.share, assumed: feature.assumed, scale, sd, mean: feature.mean, lower, upper,
        unitSd: sd / scale, unitMean: (feature.mean - feature.offset) / scale,
        farthest: Math.max(Math.abs((lower - feature.offset) / scale - (feature.mean - feature.offset) / scale),
          Math.abs((upper - feature.offset) / scale - (feature.mean - feature.offset) / scale)),
        indicator: column.indicators && !shortened, certain: column.certain && !shortened,
      });
    }
  });
  return {columns, features, norm};
}

function squaredDistance(grid, table) {
  const {columns, features} = table;
  const ofNumbers = features.filter((f) => !f.share).reduce((sum, f) => sum + f.unitSd ** 2, 0);
  const numbers = features.filter((f) => !f.share).length;
  const values = grid.spectrum_is_of_numbers ? grid.spectrum.slice(0, Math.max(1, numbers)) : grid.spectrum;
  const sum = values.reduce((s, v) => s + v, 0), squares = values.reduce((s, v) => s + v * v, 0);
  let variance = squares > 0 ? ofNumbers ** 2 * 2 * squares / sum ** 2 : 0;
  columns.forEach((column, place) => {
    const own = features.filter((f) => f.column === place);
    if (!own[0].share) return;
    const whole = own.reduce((s, f) => s + f.unitSd ** 2, 0), levels = own.length;
    if (levels === 1) {
      const spread = Math.min(own[0].sd ** 2, 0.25);
      if (spread > 0) variance += whole ** 2 * (1 - 4 * spread) / spread;
    } else {
      const ofShares = 6 / ((levels + 1) * (levels + 2)) - 4 / (levels + 1) ** 2;
      variance += whole ** 2 * 4 * ofShares * ((levels + 1) / (levels - 1)) ** 2;
    }
  });
  const total = features.reduce((s, f) => s + f.unitSd ** 2, 0);
  return [total, total > 0 ? variance / total ** 2 : 0];
}

// A law is {p, off, diag, sum, count, centered}: variances of the noise on cells, sums and the number of rows.
function scaled(v, factor, p, centered) {
  return {p, off: v[0] * factor, diag: v[1] * factor, sum: v[2] * factor, count: v[3] * factor, centered};
}

function ballLaws(grid, entry, steps, nRows, table) {
  const constants = grid.constants, pure = entry.pure;
  const strength = (share) => pure ? share * share : share;
  const atBounds = (share, p) => scaled(entry.outside, 1 / strength(share), p, false);
  if (steps.length === 1) return [atBounds(1 - steps[0], 1)];
  const [, rowsBeyond, centerNoise, screened, spentAtScreen, spentInAll, search, preferencePlace] = steps;
  let [size, unevenness] = squaredDistance(grid, table);
  size += Math.min(centerNoise, size);
  const certain = !(size > 0 && unevenness > 0);
  const beyond = (radius) => certain ? (radius ** 2 < size ? nRows : 0) : nRows * upperGamma(1 / unevenness, radius ** 2 / (size * unevenness));
  if (screened !== null && beyond(constants.screen_radius) > screened) return [atBounds(1 - spentAtScreen, 1)];
  const radii = grid.radii[String(pure)], shares = grid.deviations[entry.excess_shares], looks = grid.deviations[entry.deviations];
  const farther = radii.map(beyond);
  let chosen;
  if (pure) {
    const prefer = grid.deviations[preferencePlace];
    const scores = farther.map((number, place) => -Math.abs(Math.round(number) - rowsBeyond) + prefer[place]);
    const best = Math.max(...scores), odds = scores.map((score) => Math.exp(search / 2 * (score - best)));
    const all = odds.reduce((sum, odd) => sum + odd, 0);
    chosen = odds.map((odd) => odd / all);
  } else {
    const fewer = farther.map((number) => normalBelow((rowsBeyond - number) / search));
    chosen = radii.map(() => 0);
    chosen[0] = 1;
    for (let step = 0, half = radii.length; step < constants.comparisons; step++) {
      half = Math.floor(half / 2);
      for (let at = 0; at < radii.length; at += 2 * half) {
        chosen[at + half] = chosen[at] * fewer[at + half];
        chosen[at] -= chosen[at + half];
      }
    }
  }
  const corner = Math.sqrt(table.features.reduce((s, f) => s + f.farthest ** 2, 0));
  const farthest = Math.min(corner, 1 + Math.sqrt(table.features.reduce((s, f) => s + f.unitMean ** 2, 0)));
  const laws = [];
  radii.forEach((radius, place) => {
    if (!(chosen[place] > constants.least_probability && radius < constants.largest_radius)) return;
    const looked = spentInAll + shares[place];
    const error = entry.error / Math.sqrt(strength(1 - looked));
    const deviation = looks[place] * Math.max(farthest ** 2 - radius ** 2, 0);
    const lenience = deviation * Math.max(0, 1 - (radius / constants.lenient_below) ** 2);
    const shape = 1 / unevenness, at = radius ** 2 / (size * unevenness);
    const excess = certain ? nRows * Math.max(0, size - radius ** 2) : nRows * (size * upperGamma(shape + 1, at) - radius ** 2 * upperGamma(shape, at));
    const room = constants.excess_for_noise * error * (1 - radius ** 2) + lenience - excess;
    let passes;
    if (deviation <= 0) passes = room >= 0 ? 1 : 0;
    else if (pure) { const half = 0.5 * Math.exp(-Math.SQRT2 * Math.abs(room) / deviation); passes = room >= 0 ? 1 - half : half; }
    else passes = normalBelow(room / deviation);
    const p = chosen[place] * passes;
    if (p > constants.least_probability) {
      const law = scaled(entry.inside, 1 / strength(1 - looked - constants.beyond_share), p, true);
      laws.push({...law, off: law.off * radius ** 4, diag: law.diag * radius ** 4, sum: law.sum * radius ** 2});
    }
  });
  const inside = laws.reduce((sum, law) => sum + law.p, 0);
  if (inside < 1 - constants.most_left_out) laws.push(atBounds(1 - spentInAll, 1 - inside));
  return laws;
}

const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b), half = Math.floor(sorted.length / 2);
  return sorted.length === 0 ? NaN : sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
};

// What a release of the ticked columns would have: {by, features: [{name, sd, mean, …}], correlation, coefficient}; null where none can be.
function planned(grid, ticked, budgetPlace, rowsPlace) {
  const table = encoded(grid, ticked), {columns, features} = table;
  if (features.length === 0) return null;
  const key = `${features.length} ${Number(columns.some((c) => c.number))} ${Number(columns.some((c) => c.drops))}`;
  const entry = (grid.laws[key] || [])[budgetPlace], n = grid.rows[rowsPlace];
  if (!entry) return null;
  const laws = entry.law ? [scaled(entry.law, 1, 1, false)] : ballLaws(grid, entry, entry.steps[rowsPlace], n, table);
  const rootMeanSquare = (of) => Math.sqrt(laws.reduce((sum, law) => sum + law.p * of(law) ** 2, 0));
  const ofVariance = (f, law) => {
    if (f.certain) return 0;
    const about = law.centered ? 0 : f.unitMean;
    let square = law.diag + 4 * about ** 2 * law.sum + (about ** 2 - f.unitSd ** 2) ** 2 * law.count;
    if (!law.centered && f.indicator) {
      const share = Math.min(Math.max(f.mean, 0), 1);
      square = (1 - 2 * share) ** 2 * (law.sum + about ** 2 * law.count) / f.scale ** 2;
    }
    return Math.sqrt(square) / n;
  };
  const everything = laws.reduce((sum, law) => sum + law.p, 0);
  const variancesBelow = (f, times) => laws.reduce((lost, law) => {
    const noise = ofVariance(f, law), variance = (f.sd / f.scale) ** 2;
    return lost + (variance <= times * noise && noise > 0 ? law.p : 0);
  }, 0) >= 0.5 * everything;
  const found = features.map((f) => {
    const mean = f.certain ? 0 : rootMeanSquare((law) => Math.sqrt(law.sum + (law.centered ? 0 : f.unitMean ** 2) * law.count)) / n * f.scale;
    const sd = rootMeanSquare((law) => {
      const noise = ofVariance(f, law) * f.scale ** 2;
      return f.sd > 0 ? Math.min(Math.sqrt(noise), noise / (2 * f.sd)) : Math.sqrt(noise);
    });
    return {
      name: f.name, column: f.column, share: f.share, assumed: f.assumed, typical: f.sd, mean, sd,
      meanIsNoise: mean >= (f.upper - f.lower) / Math.sqrt(12),
      sdIsNoise: variancesBelow(f, 1), isRough: variancesBelow(f, grid.constants.known_variance),
      correlationIsNoise: variancesBelow(f, grid.constants.known_variance),
    };
  });
  const correlation = (i, j) => {
    const a = features[i], b = features[j];
    if (a.column === b.column) return NaN;
    const value = rootMeanSquare((law) => {
      const s = law.centered ? 0 : a.unitMean ** 2, t = law.centered ? 0 : b.unitMean ** 2;
      const cell = Math.sqrt(law.off + (s + t) * law.sum + s * t * law.count) / (a.unitSd * b.unitSd) / n;
      return laws.length === 1 ? cell : Math.min(cell, 1);
    });
    return Number.isFinite(value) ? value : NaN;
  };
  const pairs = (allowed) => {
    const list = [];
    for (let i = 0; i < features.length; i++) for (let j = 0; j < i; j++) {
      if (!allowed(features[i]) || !allowed(features[j])) continue;
      const noise = correlation(i, j);
      if (Number.isFinite(noise)) list.push({noise, lost: found[i].correlationIsNoise || found[j].correlationIsNoise});
    }
    return list;
  };
  let typical = pairs((f) => !f.share);
  if (typical.length === 0) typical = pairs(() => true);
  found.forEach((f, i) => {
    f.correlations = median(features.map((_, j) => j === i ? NaN : correlation(i, j)).filter(Number.isFinite));
  });
  const sigma = median(typical.map((pair) => pair.noise));
  const isNoise = 2 * typical.filter((pair) => pair.lost).length > typical.length;
  const blocks = columns.filter((c) => c.features.length > 1 && c.features[0].share).length;
  const k = Math.max(1, features.length - blocks - 1), square = (k - 1) * sigma ** 2;
  let coefficient = NaN;
  if (Number.isFinite(sigma)) {
    const spread = square > 1e-9 ? (1 / Math.sqrt(1 - 4 * square) - 1) / (2 * square) : 1;
    coefficient = 4 * square >= 1 ? Infinity : sigma * Math.sqrt((1 + grid.constants.explained) * spread);
  }
  const edge = sigma * Math.sqrt(k) * (2 + k ** (-2 / 3));
  return {
    by: entry.by, features: found, correlation: sigma, correlationIsNoise: isNoise, regressors: k, coefficient,
    coefficientIsNoise: Number.isFinite(sigma) && (isNoise || edge >= 1),
  };
}

// Numbers and words as dpmoments/planning/columns_in_words.py and dpmoments/report/planner.py write them.
function digits(value, significant = 2) {
  if (value === 0 || !Number.isFinite(value)) return value === 0 ? "0" : Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (!(-5 < size && size < 9)) return Number(value.toPrecision(significant)).toExponential().replace(/e([+-])(\d)$/, "e$10$2");
  const rounded = Number(value.toPrecision(significant)), places = Math.max(0, significant - 1 - size);
  return size >= significant - 1 ? rounded.toLocaleString("en-US", {maximumFractionDigits: 0}) : rounded.toFixed(places);
}
function rowsInWords(found) {
  const others = (f) => Number.isFinite(f.correlations);
  return found.features.map((f) => {
    const more = f.isRough ? ">" : "";
    const learnt = [f.meanIsNoise ? "" : f.share ? "share" : "mean", f.share || f.sdIsNoise ? "" : "spread",
      f.correlationIsNoise || !others(f) ? "" : "correlations"].filter(Boolean);
    return [
      f.name, `${f.assumed ? "~" : ""}${digits(f.typical, 3)}`, f.meanIsNoise ? "noise" : digits(f.mean),
      f.share ? "–" : f.sdIsNoise ? "noise" : more + digits(f.sd),
      f.share || f.sdIsNoise || !(f.typical > 0) ? "–" : `${more}${(100 * f.sd / f.typical).toFixed(1)}%`,
      !others(f) ? "–" : f.correlationIsNoise ? "noise" : digits(f.correlations), learnt.join(", ") || "nothing",
    ];
  });
}
function planInWords(found) {
  if (!Number.isFinite(found.correlation)) return `By ${found.by}: one column alone has no correlation.`;
  const shown = found.correlationIsNoise ? "noise" : `±\u00a0${digits(found.correlation)}`;
  const coefficient = found.coefficientIsNoise ? "noise" : `±\u00a0${digits(found.coefficient)}`;
  const lost = found.features.filter((f) => f.correlationIsNoise).length;
  const said = lost ? `${lost} of ${found.features.length} features are lost to correlations` : "no feature is lost to correlations";
  return `By ${found.by}: a typical correlation ${shown}, a standardised coefficient on all other features ${coefficient}; ${said}.`;
}

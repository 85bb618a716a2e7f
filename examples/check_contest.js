// A checker of contests, written from docs/contest.md and from nothing else: another language, no library.
//
//   node examples/check_contest.js FILE ...
//
// checkContest(text) returns for each statement whether it follows, and throws Refused where the page says that a checker
// must refuse the file.

class Refused extends Error {}
const LARGEST = 2n ** 53n - 1n;
const EXTENSIONS = ["abstention", "doubt", "phase", "tables", "together"];

function refuse(why) { throw new Refused(why); }
function require(isRight, why) { if (!isRight) refuse(why); }

// ---- JSON, read in one way only: objects become maps, numbers BigInt. JSON.parse forgets names that stand twice, and rounds. ----

function parseJson(text) {
  let at = 0;
  const skip = () => { while (at < text.length && " \t\n\r".includes(text[at])) at++; };
  const next = (sign) => { skip(); require(text[at] === sign, "no JSON"); at++; };

  function listOf(end, readOne) {
    at++;
    skip();
    if (text[at] === end) { at++; return; }
    for (;;) {
      readOne();
      skip();
      if (text[at] === end) { at++; return; }
      next(",");
    }
  }

  function readText() {
    skip();
    require(text[at] === '"', "no JSON");
    let end = at + 1;
    while (end < text.length && text[end] !== '"') end += text[end] === "\\" ? 2 : 1;
    const quoted = text.slice(at, end + 1);
    at = end + 1;
    try { return JSON.parse(quoted); } catch { return refuse("no JSON"); }
  }

  function read(depth) {
    skip();
    require(depth < 200, "it nests too deeply");
    if (text[at] === '"') return readText();
    if (text[at] === "[") {
      const list = [];
      listOf("]", () => list.push(read(depth + 1)));
      return list;
    }
    if (text[at] === "{") {
      const object = new Map();
      listOf("}", () => {
        const name = readText();
        require(!object.has(name), `${name} stands twice`);
        next(":");
        object.set(name, read(depth + 1));
      });
      return object;
    }
    for (const [word, value] of [["true", true], ["false", false], ["null", null]]) {
      if (text.startsWith(word, at)) { at += word.length; return value; }
    }
    const whole = /^-?(0|[1-9][0-9]*)(?![0-9.eE])/.exec(text.slice(at, at + 400));
    require(whole, "no JSON, or no whole number");
    at += whole[0].length;
    return BigInt(whole[0]);
  }

  const value = read(0);
  skip();
  require(at === text.length, "more than one value");
  return value;
}

// ---- What stands in a file ----

function number(value, least = 0n) {
  require(typeof value === "bigint" && value >= least && value <= LARGEST && value >= -LARGEST, "no such number");
  return value;
}
function words(value) {
  require(typeof value === "string" && value.trim(), "a text is empty");
  return value;
}
function list(value, readOne) {
  require(Array.isArray(value), "no list");
  return value.map(readOne);
}
function mapping(value, readOne) {
  require(value instanceof Map, "no object");
  return new Map([...value].map(([name, each]) => [words(name), readOne(each)]));
}
function fields(value, names) {
  require(value instanceof Map, "no object");
  for (const name of value.keys()) require(names.includes(name), `unknown field ${name}`);
  for (const name of names) require(value.has(name), `no ${name}`);
  return Object.fromEntries(value);
}
const isSameSet = (a, b) => [...a].sort().join("\n") === [...b].sort().join("\n");
const isDistinct = (names) => new Set(names).size === names.length;
const total = (numbers) => numbers.reduce((sum, each) => sum + each, 0n);
const larger = (a, b) => (a > b ? a : b);

class Contest {
  constructor(root) {
    require(root instanceof Map && root.get("format") === "contest" && root.get("version") === 1n, "another format");
    this.extensions = list(root.get("extensions"), words);
    require(this.extensions.every((name) => EXTENSIONS.includes(name)), "an unknown extension");
    require(this.extensions.join() === [...new Set(this.extensions)].sort().join(), "extensions are not sorted");
    const names = ["format", "version", "extensions", "claim", "classes", "moves", "attackers", "targets", "statements"];
    const file = fields(root, [...names, ...this.also("abstention", "least_lead")]);
    const claim = fields(file.claim, ["defence", "author", "reference", "assumes"]);
    [claim.defence, claim.author, claim.reference].forEach(words);
    list(claim.assumes, words);
    this.classes = list(file.classes, words);
    require(this.classes.length && isDistinct(this.classes), "classes");
    this.leastLead = this.has("abstention") ? number(file.least_lead) : 0n;
    this.moves = mapping(file.moves, words);
    require(this.moves.size, "no moves");
    this.attackers = mapping(file.attackers, (each) => this.attacker(each));
    this.targets = list(file.targets, (each) => this.target(each));
    require(this.targets.length && isDistinct(this.targets.map(({ name }) => name)), "targets");
    const used = this.targets.flatMap(({ pools, fresh }) => [...fresh.keys(), ...pools.flatMap(({ hitBy }) => [...hitBy.keys()])]);
    for (const move of this.moves.keys()) require(used.includes(move), `${move} does nothing`);
    this.statements = file.statements;
  }

  has(extension) { return this.extensions.includes(extension); }
  also(extension, name) { return this.has(extension) ? [name] : []; }
  vector(value, least = -LARGEST) {
    const numbers = list(value, (each) => number(each, least));
    require(numbers.length === this.classes.length, "a vector of another length");
    return numbers;
  }
  factors(value) { return mapping(value, (each) => number(each)); }

  limit(value, names) {
    const at = fields(value, names);
    const moves = list(at.moves, words);
    require(moves.length && isDistinct(moves) && moves.every((move) => this.moves.has(move)), "moves of a limit");
    const tables = at.tables === undefined ? new Map() : mapping(at.tables, (each) => this.factors(each));
    return { moves, atMost: this.factors(at.at_most), tables };
  }

  attacker(value) {
    const at = fields(value, ["counts", "limits", ...this.also("phase", "phase"), ...this.also("together", "shared")]);
    const counts = mapping(at.counts, words);
    const limits = list(at.limits, (each) => this.limit(each, ["moves", "at_most", ...this.also("tables", "tables")]));
    const phase = this.has("phase") ? this.factors(at.phase) : new Map();
    const shared = this.has("together") && at.shared !== null ? this.limit(at.shared, ["moves", "at_most"]) : null;
    for (const move of this.moves.keys()) require(limits.some(({ moves }) => moves.includes(move)), `no limit names ${move}`);
    const readings = [phase, ...[...limits, ...(shared ? [shared] : [])].flatMap(({ atMost, tables }) => [atMost, ...tables.values()])];
    const read = readings.flatMap((each) => [...each]);
    require(read.every(([count]) => counts.has(count)), "a count that is not there is read");
    for (const count of counts.keys()) require(read.some(([name, factor]) => name === count && factor > 0n), `nothing reads ${count}`);
    return { counts, limits, phase, shared };
  }

  effect(value) {
    const at = fields(value, ["adds", "cap", ...this.also("doubt", "doubt")]);
    return { adds: this.vector(at.adds), cap: this.vector(at.cap, 0n), doubt: this.has("doubt") ? number(at.doubt) : 0n };
  }
  effects(value) {
    const found = mapping(value, (each) => this.effect(each));
    for (const move of found.keys()) require(this.moves.has(move), `${move} is no move`);
    return found;
  }
  unit(value) {
    const at = fields(value, ["count", "adds", ...this.also("doubt", "doubt"), ...this.also("phase", "until")]);
    return {
      count: number(at.count, 1n), adds: this.vector(at.adds), doubt: this.has("doubt") ? number(at.doubt) : 0n,
      until: this.has("phase") && at.until !== null ? number(at.until) : null,
    };
  }
  pool(value) {
    const at = fields(value, ["hit_by", "units", ...this.also("phase", "free")]);
    const hitBy = this.effects(at.hit_by), units = list(at.units, (each) => this.unit(each));
    const free = this.has("phase") && at.free !== null ? this.effect(at.free) : null;
    require(units.length && (hitBy.size || free), "a pool without units, or that nothing hits");
    require(free || units.every(({ until }) => until === null), "it is not said what units become");
    return { hitBy, units, free };
  }

  target(value) {
    const names = ["name", "scores", "label", "fixed", "pools", "new", ...this.also("doubt", "doubt"), ...this.also("tables", "tables")];
    const at = fields(value, names);
    const target = {
      name: words(at.name), label: Number(number(at.label)), scores: this.vector(at.scores), pools: list(at.pools, (each) => this.pool(each)),
      fresh: this.effects(at.new), doubt: this.has("doubt") ? this.vector(at.doubt, 0n) : this.classes.map(() => 0n),
      tables: this.has("tables") ? mapping(at.tables, (row) => list(row, (each) => number(each))) : new Map(),
    };
    const named = [...this.attackers.values()].flatMap(({ limits }) => limits.flatMap(({ tables }) => [...tables.keys()]));
    require(isSameSet(target.tables.keys(), new Set(named)), "other tables than limits name");
    for (const row of target.tables.values()) require(row.every((each, i) => i === 0 || row[i - 1] <= each), "a table decreases");
    const sums = this.vector(at.fixed);
    for (const { count, adds } of target.pools.flatMap(({ units }) => units)) adds.forEach((each, k) => { sums[k] += count * each; });
    require(sums.every((sum, k) => sum === target.scores[k]), "scores that are no sums");
    const best = sums.reduce((found, sum, k) => (sum > sums[found] ? k : found), 0);
    require(best === target.label, "a label that does not lead");
    return target;
  }
}

// ---- What follows ----

function amountOf(factors, budget) { // null is any number
  let sum = 0n;
  for (const [count, factor] of factors) {
    if (factor === 0n) continue;
    if (budget.get(count) === null) return null;
    sum += factor * budget.get(count);
  }
  return sum;
}

function entryOf(row, place) {
  if (place === 0n || !row.length) return 0n;
  return place === null || place > BigInt(row.length) ? row.at(-1) : row[Number(place) - 1];
}

function allowanceOf(attacker, budget, target) {
  const limits = attacker.limits.map(({ moves, atMost, tables }) => {
    let amount = amountOf(atMost, budget);
    for (const [name, factors] of tables) {
      if (amount !== null) amount += entryOf(target.tables.get(name), amountOf(factors, budget));
    }
    return { moves, amount };
  });
  return { limits, phase: amountOf(attacker.phase, budget) };
}

// Whether prices show that the weighted lead over class k stays as large as it has to; `give` is how far it may fall.
function bears(contest, target, { limits, phase }, { weights, k, prices, give }) {
  const size = total(weights);
  const worth = (vector) => total(vector.map((each, c) => weights[c] * each)) - size * vector[k];
  const left = ({ adds, cap, doubt }) => worth(adds) - size * (cap[k] + 2n * doubt);
  const priceOf = (move) => total(limits.map(({ moves }, l) => (moves.includes(move) ? prices[l] : 0n)));
  const smaller = total(weights.slice(0, k));
  const ties = contest.has("doubt") && smaller > 1n ? 1n : smaller;
  const doubts = total(weights.map((weight, c) => weight * (target.doubt[c] + target.doubt[k])));
  let lead = worth(target.scores) + ties - 1n + give - doubts, taken = 0n;
  for (const [move, effect] of target.fresh) if (-left(effect) > priceOf(move)) return false;
  for (const [l, { amount }] of limits.entries()) {
    if (amount === null && prices[l] > 0n) return false;
    taken += (amount ?? 0n) * prices[l];
  }
  for (const { hitBy, units, free } of target.pools) {
    for (const { count, adds, doubt, until } of units) {
      const stands = worth(adds) - 2n * size * doubt;
      const isOver = free && until !== null && (phase === null || until < phase);
      const lost = isOver ? larger(0n, stands - left(free)) : 0n;
      const harms = [...hitBy].map(([move, effect]) => stands - left(effect) - lost - priceOf(move));
      lead -= count * (2n * size * doubt + lost);
      taken += count * harms.reduce(larger, 0n);
    }
  }
  return taken <= lead;
}

function keepsLabel(contest, target, allowed, rows) {
  require(rows.length === contest.classes.length, "another number of rows");
  const weights = contest.classes.map((_, c) => (c === target.label ? 1n : 0n));
  return rows.map((prices, k) => {
    require(prices.length === (k === target.label ? 0 : allowed.limits.length), "another number of prices");
    return k === target.label || bears(contest, target, allowed, { weights, k, prices, give: -contest.leastLead });
  }).every(Boolean);
}

function follows(contest, value) {
  const says = value instanceof Map ? value.get("says") : null;
  const prices = (row) => list(row, (each) => number(each));
  const placeOf = (each) => {
    require(number(each) < BigInt(contest.targets.length), "no such target");
    return Number(each);
  };
  const attackOf = (at) => {
    const attacker = contest.attackers.get(words(at.attacker));
    require(attacker, "no such attacker");
    const budget = mapping(at.budget, (each) => (each === "any" ? null : number(each)));
    require(isSameSet(budget.keys(), attacker.counts.keys()), "a budget of other counts");
    return [attacker, budget];
  };

  if (says === "stays") {
    const at = fields(value, ["says", "target", "attacker", "budget", "prices"]);
    const target = contest.targets[placeOf(at.target)];
    return keepsLabel(contest, target, allowanceOf(...attackOf(at), target), list(at.prices, prices));
  }
  if (says === "excludes") {
    const at = fields(value, ["says", "target", "attacker", "budget", "class", "weights", "prices"]);
    const target = contest.targets[placeOf(at.target)], allowed = allowanceOf(...attackOf(at), target);
    const k = Number(number(at.class)), weights = contest.vector(at.weights, 0n), row = prices(at.prices);
    require(k < contest.classes.length && weights[k] === 0n && total(weights) > 0n, "weights");
    require(row.length === allowed.limits.length, "another number of prices");
    return bears(contest, target, allowed, { weights, k, prices: row, give: total(weights) * contest.leastLead });
  }
  require(says === "broken_at_most" && contest.has("together"), "no statement of this file");
  const at = fields(value, ["says", "attacker", "budget", "number", "needs"]);
  const [attacker, budget] = attackOf(at);
  require(attacker.shared, "no moves are shared");
  const needs = list(at.needs, (each) => {
    const need = fields(each, ["target", "moves", "prices"]);
    const place = placeOf(need.target), target = contest.targets[place], allowed = allowanceOf(attacker, budget, target);
    const moves = need.moves === null ? null : number(need.moves, 1n);
    if (moves !== null) allowed.limits.push({ moves: attacker.shared.moves, amount: moves - 1n });
    return { place, moves, isShown: keepsLabel(contest, target, allowed, list(need.prices, prices)) };
  });
  require(isDistinct(needs.map(({ place }) => place)), "a target twice");
  const costs = needs.flatMap(({ moves }) => (moves === null ? [] : [moves])).sort((a, b) => (a < b ? -1 : 1));
  const money = amountOf(attacker.shared.atMost, budget);
  let spent = 0n, broken = BigInt(contest.targets.length - needs.length);
  for (const cost of costs) {
    spent += cost;
    if (money !== null && spent > money) break;
    broken++;
  }
  return needs.every(({ isShown }) => isShown) && broken <= number(at.number);
}

function checkContest(text) {
  const contest = new Contest(parseJson(text));
  const found = list(contest.statements, (each) => follows(contest, each));
  require(found.length, "it states nothing");
  return found;
}

if (typeof process !== "undefined" && process.argv[1]?.endsWith("check_contest.js")) {
  import("node:fs").then(({ readFileSync }) => {
    for (const file of process.argv.slice(2)) {
      try {
        const found = checkContest(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(readFileSync(file)));
        console.log(`${file}: ${found.filter(Boolean).length} of ${found.length} statements follow`);
        if (!found.every(Boolean)) process.exitCode = 1;
      } catch (error) {
        if (!(error instanceof Refused || error instanceof TypeError)) throw error;
        console.log(`${file} is refused: ${error.message}`);
        process.exitCode = 1;
      }
    }
  });
}

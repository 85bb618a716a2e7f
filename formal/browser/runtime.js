// Arithmetic of the checker in a browser, and its way out to the page. A number is a double if it is a safe integer, and
// else a BigInt, never both: so ===, < and <= of JavaScript compare any two of them rightly.

//Provides: agnncert_number const
function agnncert_number(big) {
  return big >= Number.MIN_SAFE_INTEGER && big <= Number.MAX_SAFE_INTEGER ? Number(big) : big;
}

//Provides: agnncert_add const
//Requires: agnncert_number
function agnncert_add(x, y) {
  if (typeof x === "number" && typeof y === "number") {
    var sum = x + y;
    if (Number.isSafeInteger(sum)) return sum;
  }
  return agnncert_number(BigInt(x) + BigInt(y));
}

//Provides: agnncert_sub const
//Requires: agnncert_number
function agnncert_sub(x, y) {
  if (typeof x === "number" && typeof y === "number") {
    var rest = x - y;
    if (Number.isSafeInteger(rest)) return rest;
  }
  return agnncert_number(BigInt(x) - BigInt(y));
}

//Provides: agnncert_mul const
//Requires: agnncert_number
function agnncert_mul(x, y) {
  if (typeof x === "number" && typeof y === "number") {
    var product = x * y;
    if (Number.isSafeInteger(product)) return product === 0 ? 0 : product;
  }
  return agnncert_number(BigInt(x) * BigInt(y));
}

//Provides: agnncert_div const
//Requires: agnncert_number
function agnncert_div(x, y) {
  if (y === 0) return 0;
  var a = BigInt(x), b = BigInt(y), q = a / b;
  return agnncert_number(q * b !== a && (a < 0) !== (b < 0) ? q - BigInt(1) : q);
}

//Provides: agnncert_half const
//Requires: agnncert_number
function agnncert_half(x) {
  return typeof x === "number" ? Math.floor(x / 2) : agnncert_number(x >> BigInt(1));
}

//Provides: agnncert_export
function agnncert_export(name, value) {
  globalThis.agnncertChecker = globalThis.agnncertChecker || {};
  globalThis.agnncertChecker[name] = value;
}

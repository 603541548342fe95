/* The language of searcher.constraint and dl show --where, which searcher/space/constraint.h defines.
 * compileExpression (text, column) returns a function of a trial; the function returns true, false, or null if unknown.  It
 * throws a message if the text is not a condition.  column (name) returns an object with text (i), key (i) and 'words', or
 * undefined if there is no such column. */
const compileExpression = (text, column) => {
  const functions = { abs: Math.abs, log: Math.log, log2: Math.log2, log10: Math.log10, exp: Math.exp, sqrt: Math.sqrt, floor: Math.floor, ceil: Math.ceil, min: Math.min, max: Math.max };
  const pattern = /\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_][\w.]*)|`([^`]*)`|'([^']*)'|"([^"]*)"|(\|\||&&|[=!<>]=|[-+*/%^()<>!,]))/y;
  const tokens = [];
  for (let m; pattern.lastIndex < text.trimEnd().length; tokens.push(m)) {
    const at = pattern.lastIndex;
    if (!(m = pattern.exec(text))) throw `column ${at + 1}: unexpected character`;
  }
  let next = 0;
  const sign = (...list) => { const t = tokens[next], s = t && (t[6] || { and: "&&", or: "||", not: "not" }[t[2]]); return list.includes(s) ? (next++, s) : null; };
  const none = (v) => v === null || v === undefined || v === "" || Number.isNaN(v);
  const truth = (e) => { if (e.type !== "truth") throw "expected a comparison"; return e.f; };
  const number = (e) => { if (e.type === "truth" || e.type === "text") throw "expected a number"; return (i) => { const v = e.f(i); return none(v) ? NaN : Number(v); }; };
  const numeric = (f) => ({ type: "number", f });
  const left = (of, signs, make) => { let e = of(); for (let s; (s = sign(...signs));) e = make(s, e, of()); return e; };
  const primary = () => {
    const t = tokens[next++];
    if (!t) throw "unexpected end of the condition";
    if (t[1] !== undefined) return numeric(() => Number(t[1]));
    if (t[6] === "(") { const e = or(); if (!sign(")")) throw "expected )"; return e; }
    if (t[4] !== undefined || t[5] !== undefined) return { type: "text", value: t[4] ?? t[5] };
    const name = t[2] ?? t[3];
    if (name === undefined) throw `unexpected '${t[6]}'`;
    const call = t[2] && tokens[next] && tokens[next][6] === "(";
    if (call && name === "active") {
      next++;
      const t = tokens[next++], of = t && column(t[2] ?? t[3]);
      if (!of) throw "active() takes the name of a parameter";
      if (!sign(")")) throw "expected )";
      return { type: "truth", f: (i) => !none(of.key(i)) };
    }
    if (call && functions[name]) {
      next++;
      const args = [number(or())], several = name === "min" || name === "max";
      while (sign(",")) args.push(number(or()));
      if (!sign(")")) throw "expected )";
      if (several !== args.length > 1) throw several ? "this function takes two values or more" : "this function takes one value";
      return numeric((i) => functions[name](...args.map((f) => f(i))));
    }
    const c = column(name);
    if (c) return { type: c.words ? "words" : "number", f: c.key };
    return t[2] === "true" || t[2] === "false" ? { type: "truth", f: () => t[2] === "true", value: t[2] } : { type: "text", value: name };
  };
  const power = () => { const e = primary(); if (!sign("^")) return e; const a = number(e), b = number(unary()); return numeric((i) => a(i) ** b(i)); };
  const unary = () => {
    if (sign("-")) { const a = number(unary()); return numeric((i) => -a(i)); }
    if (sign("!")) return negation(unary());
    return power();
  };
  const product = () => left(unary, ["*", "/", "%"], (s, x, y) => { const a = number(x), b = number(y); return numeric({ "*": (i) => a(i) * b(i), "/": (i) => a(i) / b(i), "%": (i) => a(i) % b(i) }[s]); });
  const sum = () => left(product, ["+", "-"], (s, x, y) => { const a = number(x), b = number(y); return numeric(s === "+" ? (i) => a(i) + b(i) : (i) => a(i) - b(i)); });
  const equal = (x, y) => {
    const literal = [x, y].find((e) => e.value !== undefined), other = literal === x ? y : x;
    if (literal) return (i) => { const v = other.f ? other.f(i) : other.value; return none(v) ? null : String(v) === literal.value; };
    if (x.type === "words" && y.type === "words") return (i) => { const a = x.f(i), b = y.f(i); return none(a) || none(b) ? null : String(a) === String(b); };
    const a = number(x), b = number(y);
    return (i) => { const v = a(i), w = b(i); return Number.isNaN(v) || Number.isNaN(w) ? null : v === w; };
  };
  const negation = (e) => { const f = truth(e); return { type: "truth", f: (i) => { const v = f(i); return v === null ? null : !v; } }; };
  const comparison = () => {
    const x = sum(), s = sign("==", "!=", "<", "<=", ">", ">=");
    if (!s) return x;
    const y = sum(), same = s[1] === "=" && "=!".includes(s[0]) && equal(x, y);
    if (same) return s === "==" ? { type: "truth", f: same } : negation({ type: "truth", f: same });
    const a = number(x), b = number(y), of = { "<": (v, w) => v < w, "<=": (v, w) => v <= w, ">": (v, w) => v > w, ">=": (v, w) => v >= w }[s];
    return { type: "truth", f: (i) => { const v = a(i), w = b(i); return Number.isNaN(v) || Number.isNaN(w) ? null : of(v, w); } };
  };
  const not = () => sign("not") ? negation(not()) : comparison();
  const and = () => left(not, ["&&"], (s, x, y) => { const a = truth(x), b = truth(y); return { type: "truth", f: (i) => { const v = a(i), w = b(i); return v === false || w === false ? false : v === null || w === null ? null : true; } }; });
  const or = () => left(and, ["||"], (s, x, y) => { const a = truth(x), b = truth(y); return { type: "truth", f: (i) => { const v = a(i), w = b(i); return v || w ? true : v === null || w === null ? null : false; } }; });
  const whole = truth(or());
  if (next < tokens.length) throw "unexpected text after the condition";
  return whole;
};

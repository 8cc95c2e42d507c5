// Small line charts as SVG, from numbers that the page has collected itself.

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [600, 180, 56, 22, 10];

const shape = (name, attributes, text) => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
};

/** A round number not below the largest. */
const ceiling = (largest) => {
  if (largest <= 0) return 1;
  const step = 10 ** Math.floor(Math.log10(largest));
  return [1, 2, 5, 10].map((times) => times * step).find((round) => round >= largest);
};

/** Draws lines: `[{ name, kind, points: [[ms, value], …] }]` over the last `spanMs`. */
export const draw = (place, lines, { spanMs, label, unit }) => {
  const now = Date.now();
  const top = ceiling(Math.max(0, ...lines.flatMap((line) => line.points.map(([, value]) => value))));
  const x = (at) => LEFT + (WIDTH - LEFT - 8) * (1 - (now - at) / spanMs);
  const y = (value) => HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value / top);
  const chart = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label });
  for (const part of [0, 0.5, 1]) {
    chart.append(shape("line", { x1: LEFT, x2: WIDTH - 8, y1: y(top * part), y2: y(top * part), class: "rule" }));
    chart.append(shape("text", { x: LEFT - 6, y: y(top * part) + 4, "text-anchor": "end", class: "axis" }, `${Number((top * part).toPrecision(2))}${unit}`));
  }
  const minutes = Math.round(spanMs / 60000);
  chart.append(shape("text", { x: LEFT, y: HEIGHT - 5, class: "axis" }, `−${minutes} min`));
  chart.append(shape("text", { x: WIDTH - 8, y: HEIGHT - 5, "text-anchor": "end", class: "axis" }, "0"));
  for (const { kind, points } of lines) {
    const seen = points.filter(([at]) => now - at <= spanMs);
    if (seen.length === 0) continue;
    const path = seen.map(([at, value], index) => `${index ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
    const [first, last] = [x(seen[0][0]).toFixed(1), x(seen.at(-1)[0]).toFixed(1)];
    chart.append(shape("path", { d: `${path}L${last} ${y(0)}L${first} ${y(0)}Z`, class: `area ${kind}` }));
    chart.append(shape("path", { d: path, class: `line ${kind}` }));
  }
  const key = document.createElement("p");
  key.className = "key";
  for (const { name, kind, points } of lines) {
    const entry = document.createElement("span");
    entry.className = kind;
    entry.textContent = `${name} ${points.length ? `${Number(points.at(-1)[1].toPrecision(3))}${unit}` : "–"}`;
    key.append(entry);
  }
  place.replaceChildren(chart, key);
};

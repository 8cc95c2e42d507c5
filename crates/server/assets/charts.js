// Small line charts as SVG, from numbers that the service remembers.

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

/** Points in a row; where nothing was measured for longer than `gapMs`, a new row begins. */
const rows = (points, gapMs) => points.reduce((found, point) => {
  const last = found.at(-1);
  if (last && point[0] - last.at(-1)[0] <= gapMs) last.push(point);
  else found.push([point]);
  return found;
}, []);

/** Draws lines: `[{ name, kind, points: [[ms, value], …] }]` over the last `spanMs`. */
export const draw = (place, lines, { spanMs, gapMs, label, unit }) => {
  const now = Date.now();
  const top = ceiling(Math.max(0, ...lines.flatMap((line) => line.points.map(([, value]) => value))));
  const x = (at) => LEFT + (WIDTH - LEFT - 8) * (1 - (now - at) / spanMs);
  const y = (value) => HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value / top);
  const chart = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label });
  for (const part of [0, 0.5, 1]) {
    chart.append(shape("line", { x1: LEFT, x2: WIDTH - 8, y1: y(top * part), y2: y(top * part), class: "rule" }));
    chart.append(shape("text", { x: LEFT - 6, y: y(top * part) + 4, "text-anchor": "end", class: "axis" }, `${Number((top * part).toPrecision(2))}${unit}`));
  }
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    const minutes = Math.round((spanMs * (1 - part)) / 60000);
    chart.append(shape("text", { x: LEFT + (WIDTH - LEFT - 8) * part, y: HEIGHT - 5, "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle", class: "axis" }, minutes ? `−${minutes} min` : "0"));
  }
  for (const { kind, points } of lines) {
    for (const seen of rows(points.filter(([at]) => now - at <= spanMs), gapMs)) {
      // A single point is as wide as what it stands for.
      const drawn = seen.length === 1 ? [[seen[0][0] - gapMs / 2, seen[0][1]], seen[0]] : seen;
      const path = drawn.map(([at, value], index) => `${index ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
      const [first, last] = [x(drawn[0][0]).toFixed(1), x(drawn.at(-1)[0]).toFixed(1)];
      chart.append(shape("path", { d: `${path}L${last} ${y(0)}L${first} ${y(0)}Z`, class: `area ${kind}` }));
      chart.append(shape("path", { d: path, class: `line ${kind}` }));
    }
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

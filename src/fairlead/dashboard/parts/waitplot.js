// Waits over time, as it is and as it would be: a plot by uPlot, and the same as words.
import uPlot from "../vendor/uplot.js";
import { span, time } from "../lib/format.js";
import { html, useEffect, useRef, useSignal } from "../lib/ui.js";

const HEIGHT = 260;
const SHORT = 1_200; // s: the axis needs seconds

export function WaitPlot({ series }) {
  const box = useRef();
  const plot = useRef(null);
  const theme = useTheme();
  const data = [
    series.map((bucket) => Date.parse(bucket.at) / 1000),
    series.map((bucket) => bucket.p95[0]),
    series.map((bucket) => bucket.p95[1]),
  ];
  useEffect(() => {
    plot.current = new uPlot(options(box.current.clientWidth, data[0].at(-1) - data[0][0] < SHORT), data, box.current);
    const observer = new ResizeObserver(() => plot.current.setSize({ width: box.current.clientWidth, height: HEIGHT }));
    observer.observe(box.current);
    return () => {
      observer.disconnect();
      plot.current.destroy();
    };
  }, [theme]);
  useEffect(() => plot.current.setData(data), [series]);
  const longest = (side) => Math.max(0, ...series.map((bucket) => bucket.p95[side] ?? 0));
  return html`<div class="plot" ref=${box} role="img"
    aria-label="Waits over time: at most ${span(longest(0))} as it is, ${span(longest(1))} changed. The table below has the numbers."></div>`;
}

/** uPlot draws on a canvas: its colours do not follow the theme by themselves. */
function useTheme() {
  const root = document.documentElement;
  const theme = useSignal(root.dataset.theme);
  useEffect(() => {
    const observer = new MutationObserver(() => { theme.value = root.dataset.theme; });
    observer.observe(root, { attributeFilter: ["data-theme"] });
    return () => observer.disconnect();
  }, []);
  return theme.value;
}

/** Points between gaps: a line does not show them. */
function alone(plot, number) {
  const values = plot.data[number];
  const isKnown = (i) => values[i] !== null && values[i] !== undefined;
  return values.map((_, i) => i).filter((i) => isKnown(i) && !isKnown(i - 1) && !isKnown(i + 1));
}

function options(width, seconds) {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const font = `11px ${colour("--font")}`;
  const axis = { stroke: colour("--ink-3"), font, grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  const line = (name, more) => ({ stroke: colour(name), points: { size: 5, filter: alone }, ...more });
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { points: { size: 7 }, drag: { setScale: false } },
    scales: { y: { range: (_, least, most) => [0, Math.max(1, most * 1.08)] } },
    axes: [{ ...axis, values: (_, ticks) => ticks.map((tick) => time(1000 * tick, { seconds })) }, { ...axis, size: 58, values: (_, ticks) => ticks.map(span) }],
    series: [{}, line("--ink-3", { width: 1.5, dash: [5, 4] }), line("--medium", { width: 2.25 })],
  };
}

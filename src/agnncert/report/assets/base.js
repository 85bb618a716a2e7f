// Reading the payload, and making elements. Text from the data reaches the page as text nodes only, never as markup.

const ARRAY_TYPES = {
  int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array, int32: Int32Array, float64: Float64Array,
};

async function readPayload() {
  const meta = JSON.parse(document.getElementById("meta").textContent);
  const packed = Uint8Array.from(atob(document.getElementById("data").textContent.trim()), (c) => c.charCodeAt(0));
  const unzipped = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = await new Response(unzipped).arrayBuffer();
  const arrays = {};
  for (const { name, type, offset, length } of meta.arrays) {
    arrays[name] = new ARRAY_TYPES[type](bytes, offset, length);
  }
  arrays.ids = JSON.parse(new TextDecoder().decode(arrays.ids));
  arrays.reach_ptr = runningSum(arrays.reach_len);
  arrays.indptr = runningSum(arrays.listed_len);
  return { meta, arrays };
}

function runningSum(lengths = []) {
  const sums = new Int32Array(lengths.length + 1);
  for (let i = 0; i < lengths.length; i++) sums[i + 1] = sums[i] + lengths[i];
  return sums;
}

function byId(id) { return document.getElementById(id); }

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [k, v] of Object.entries(value)) element.style.setProperty(k, v);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const WHOLE = new Intl.NumberFormat("en");
function whole(value) { return value === Infinity ? "any number" : WHOLE.format(value); }
// As percent(share, LOWER) in proving/words.py, with the same arithmetic: what is good is rounded down everywhere.
function atLeast(share) { return Number.isNaN(share) ? "–" : `${(Math.floor(1000 * share + 1e-9) / 10).toFixed(1)}\u00a0%`; }
function atMost(share) { return `${(Math.ceil(1000 * share - 1e-9) / 10).toFixed(1)}\u00a0%`; }
function plural(count, one, many) { return `${whole(count)} ${count === 1 ? one : many ?? `${one}s`}`; }

// "Page 2 of 40", with buttons; go(page) draws another one.
function drawPager(box, page, numPages, what, go) {
  const focused = box.contains(document.activeElement) ? document.activeElement.dataset.step : null;
  const step = (text, to, enabled) =>
    make("button", { type: "button", "data-step": text, disabled: !enabled, "aria-label": `${text} page of ${what}`, onclick: () => go(to) }, text);
  box.replaceChildren();
  if (numPages < 2) return;
  box.append(
    step("First", 0, page > 0), step("Previous", page - 1, page > 0),
    make("span", {}, `page ${whole(page + 1)} of ${whole(numPages)}`),
    step("Next", page + 1, page < numPages - 1), step("Last", numPages - 1, page < numPages - 1),
  );
  const again = focused && box.querySelector(`[data-step="${focused}"]`);
  if (again && !again.disabled) again.focus();
}

function wireCopyButtons() {
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(byId(button.dataset.copy).textContent);
        button.textContent = "Copied";
      } catch {
        const range = document.createRange(); // no clipboard from a local file: select it, so that Ctrl+C works
        range.selectNodeContents(byId(button.dataset.copy));
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
}

// A table that is wider than the window says so: a shade at the side where columns are hidden, and a line above it.
function wireTableBoxes(part) {
  for (const box of part.querySelectorAll(".tablebox:not([data-hidden])")) {
    box.dataset.hidden = "";
    const cue = make("p", { class: "cue small quiet", hidden: true }, "The table is wider than this window: scroll it sideways for more columns.");
    box.before(cue);
    const look = () => {
      const right = box.scrollWidth - box.clientWidth - box.scrollLeft > 2, left = box.scrollLeft > 2;
      box.dataset.hidden = `${left ? "left" : ""} ${right ? "right" : ""}`.trim();
      cue.hidden = !(left || right);
    };
    box.addEventListener("scroll", look, { passive: true });
    new ResizeObserver(look).observe(box);
    if (box.firstElementChild) new ResizeObserver(look).observe(box.firstElementChild);
  }
}

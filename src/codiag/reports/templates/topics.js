"use strict";
// The map of topics, the slider of the relevance, and the words of the chosen topic. All labels are set as text.
(() => {
  const place = document.getElementById("explorer");
  const data = JSON.parse(document.getElementById("topics-data").textContent);
  const state = { topic: 0, share: 0.6 };

  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const draw = (name, attributes = {}) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const nameOf = (number) => `Topic ${number + 1}: ${percent(data.topics[number].weight)}`;

  // Sievert and Shirley (2014): share * log p(w|t) + (1 - share) * log (p(w|t) / p(w)).
  const ranked = (topic, share) =>
    topic.words
      .map((word, at) => ({
        word,
        own: topic.own[at],
        overall: topic.overall[at],
        relevance: share * Math.log(topic.own[at]) + (1 - share) * Math.log(topic.own[at] / topic.overall[at]),
      }))
      .sort((one, other) => other.relevance - one.relevance)
      .slice(0, data.nWords);

  const SIZE = 400, MARGIN = 56, LARGEST = 44, SMALLEST = 12;
  const map = draw("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group", "aria-label": "Map of the topics" });
  const drawMap = () => {
    const xs = data.topics.map((topic) => topic.x), ys = data.topics.map((topic) => topic.y);
    const middle = (values) => (Math.min(...values) + Math.max(...values)) / 2;
    const extent = (values) => Math.max(...values) - Math.min(...values);
    const scale = (SIZE - 2 * MARGIN) / (Math.max(extent(xs), extent(ys)) || 1);
    const at = (value, values, sign) => SIZE / 2 + sign * (value - middle(values)) * scale;
    const [x0, y0] = [at(0, xs, 1), at(0, ys, -1)];
    map.append(draw("line", { class: "axis", x1: 0, x2: SIZE, y1: y0, y2: y0 }));
    map.append(draw("line", { class: "axis", y1: 0, y2: SIZE, x1: x0, x2: x0 }));
    const heaviest = Math.max(...data.topics.map((topic) => topic.weight));
    const order = data.topics.map((_, number) => number).sort((a, b) => data.topics[b].weight - data.topics[a].weight);
    for (const number of order) {
      const topic = data.topics[number];
      const group = draw("g", { class: "topic", role: "button", tabindex: 0, "data-topic": number });
      group.setAttribute("aria-label", nameOf(number));
      const [x, y] = [at(topic.x, xs, 1), at(topic.y, ys, -1)];
      const radius = Math.max(LARGEST * Math.sqrt(topic.weight / heaviest), SMALLEST);
      const label = draw("text", { x, y });
      label.textContent = number + 1;
      group.append(draw("circle", { cx: x, cy: y, r: radius }), label);
      group.addEventListener("click", () => choose(number));
      group.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          choose(number);
        }
      });
      map.append(group);
    }
  };

  const list = make("select", { id: "topic-choice" });
  data.topics.forEach((_, number) => list.append(make("option", { value: number }, nameOf(number))));
  const slider = make("input", { type: "range", id: "relevance", min: 0, max: 1, step: 0.05, value: state.share });
  const value = make("output", { for: "relevance" });
  const rows = make("tbody");
  const said = make("p", { class: "note", "aria-live": "polite", id: "said" });

  const show = () => {
    const topic = data.topics[state.topic], words = ranked(topic, state.share);
    const widest = Math.max(...words.map((one) => Math.max(one.overall, one.own * topic.weight)));
    value.textContent = state.share.toFixed(2);
    list.value = state.topic;
    rows.replaceChildren(
      ...words.map((one) => {
        const bar = (kind, share) => make("span", { class: kind, style: `width: ${(100 * share) / widest}%` });
        const bars = make("div", { class: "bar" }, bar("all", one.overall), bar("own", one.own * topic.weight));
        const name = make("th", { scope: "row", title: one.word }, one.word);
        return make("tr", { "data-relevance": one.relevance }, name, make("td", {}, bars), make("td", { class: "share" }, one.own.toPrecision(3)));
      }),
    );
    map.querySelectorAll(".topic").forEach((group) =>
      group.setAttribute("aria-pressed", String(Number(group.dataset.topic) === state.topic)));
    said.textContent = `${nameOf(state.topic)}, relevance ${state.share.toFixed(2)}: ` +
      words.slice(0, 5).map((one) => one.word).join(", ");
  };
  const choose = (number) => {
    state.topic = number;
    show();
  };
  list.addEventListener("change", () => choose(Number(list.value)));
  slider.addEventListener("input", () => {
    state.share = Number(slider.value);
    show();
  });

  drawMap();
  const heading = make("thead", {}, make("tr", {},
    make("th", { scope: "col" }, "word"),
    make("th", { scope: "col" }, "in all texts (gray), in this topic (red)"),
    make("th", { scope: "col", class: "share" }, "share in topic")));
  heading.querySelector("th").style.textAlign = "right";
  const choices = make("div", { class: "choices" },
    make("label", { for: "topic-choice" }, "Topic ", list),
    make("label", { for: "relevance" }, "Relevance λ ", slider, value));
  const caption = make("figcaption", {}, place.dataset.caption);
  place.append(
    make("figure", {}, map, caption),
    make("div", {}, choices, make("table", { class: "bars" }, heading, rows), said));
  place.hidden = false;
  show();
})();
